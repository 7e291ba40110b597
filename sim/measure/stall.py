# SPDX-License-Identifier: Apache-2.0
"""Whether a network with waiting packets has stalled or deadlocked, whatever its certificate says."""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Run, Scalar


class StallError(Exception):
    """A stall that is a defect: packets wait and nothing moves, although a certificate excludes a deadlock."""


def is_deadlocked(run: Run, scenario: Scenario, batches: Ints, ticks: int) -> bool:
    """Whether some packet can never move again, at the end of a window.

    With a certificate this is checked only after a long stall.

    Parameters
    ----------
    batches : int64 [batches, scalars]
        Increments of the scalar counters over equal parts of the window.
    ticks : int
        Length of the window.

    Raises
    ------
    StallError
        If nothing has moved for the deadlock timeout though packets wait, and a certificate excludes a deadlock.
    """
    if scenario.switching.may_deadlock and run.deadlocked():
        return True
    scalars = run.scalars()
    created, sent, delivered = (
        int(scalars[index]) for index in (Scalar.CREATED_PACKETS, Scalar.SENT_PACKETS, Scalar.DELIVERED_PACKETS)
    )
    quiet, since = _stalled_ticks(batches, ticks)
    if quiet > deadlock_timeout(scenario, max(scenario.source.flits)) and created - since > delivered:
        where = f"({sent - delivered:,} in the network, {created - sent:,} at hosts)"
        if run.deadlocked():
            raise StallError(f"packets wait for each other in a cycle, in spite of the certificate {where}")
        raise StallError(f"nothing has moved for {quiet:,} ticks, though packets wait {where}")
    return False


def _stalled_ticks(batches: Ints, ticks: int) -> tuple[int, int]:
    """Return the ticks at the end of the window in which nothing moved, and the packets created in them."""
    moves = (batches[:, [Scalar.SENT_PACKETS, Scalar.GRANTS, Scalar.DELIVERED_FLITS]] > 0).sum(axis=1)
    count = len(moves) - 1 - int(np.flatnonzero(moves).max(initial=-1))
    return ticks * count // len(moves), int(batches[len(moves) - count :, Scalar.CREATED_PACKETS].sum())


def deadlock_timeout(scenario: Scenario, flits: int) -> int:
    """Return the ticks in which some packet of ``flits`` flits must move if any can."""
    return scenario.switching.deadlock_timeout(scenario.topology, flits)
