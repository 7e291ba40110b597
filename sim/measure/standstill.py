# SPDX-License-Identifier: Apache-2.0
"""Whether a network in which packets wait has come to a standstill, whatever its certificate says."""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import CREATED_PACKETS, DELIVERED_FLITS, DELIVERED_PACKETS, GRANTS, SENT_PACKETS, Run


class StandstillError(Exception):
    """A standstill that is a defect: nothing moves, or can move, though packets wait and no certificate was missing."""


def is_deadlocked(run: Run, scenario: Scenario, batches: Ints, ticks: int) -> bool:
    """Whether some packet can never move again, at the end of a window.

    With a certificate it is asked only if nothing has moved for long. batches: what each of the window's equal parts
    added to the scalars, int64 [batches, SCALARS]. ticks: its length. Raises :class:`StandstillError` if nothing has
    moved though packets wait, unless that is a deadlock that no certificate excludes.
    """
    if scenario.switching.may_deadlock and run.deadlocked():
        return True
    scalars = run.scalars()
    created, sent, delivered = (int(scalars[place]) for place in (CREATED_PACKETS, SENT_PACKETS, DELIVERED_PACKETS))
    quiet, since = _quiet(batches, ticks)
    if quiet > patience(scenario, max(scenario.source.flits)) and created - since > delivered:
        where = f"({sent - delivered:,} in the network, {created - sent:,} at hosts)"
        if run.deadlocked():
            raise StandstillError(f"packets wait for each other for ever, in spite of the certificate {where}")
        raise StandstillError(f"nothing has moved for {quiet:,} ticks, though packets wait {where}")
    return False


def _quiet(batches: Ints, ticks: int) -> tuple[int, int]:
    """Ticks at the end of the window in which nothing moved, and the packets created in them."""
    moves = (batches[:, [SENT_PACKETS, GRANTS, DELIVERED_FLITS]] > 0).sum(axis=1)
    count = len(moves) - 1 - int(np.flatnonzero(moves).max(initial=-1))
    return ticks * count // len(moves), int(batches[len(moves) - count :, CREATED_PACKETS].sum())


def patience(scenario: Scenario, flits: int) -> int:
    """Ticks in which some packet of so many flits must move if any can."""
    return scenario.switching.deadlock_timeout(scenario.topology, flits)
