# SPDX-License-Identifier: Apache-2.0
"""A private queue before the network for every subflow, as fast as the host: ``feeder_packets``."""

from dataclasses import replace
from math import ceil

import numpy as np

from flitlab.models.rules.datagram import RATIO_BITS
from flitlab.models.transport.paths import Paths
from flitlab.models.transport.queues import exact, fastest_capacity
from flitlab.models.transport.session import Change, Session


def with_feeders(session: Session) -> Session:
    """The session as engines run it: data of subflow i first passes its feeder, link ``len(session.delay) + i``.

    A feeder has no delay beyond serialization, and holds ``feeder_packets`` packets. Acknowledgements pass none.

    Parameters
    ----------
    session: the session.
    """
    if not session.queues.feeder_packets:
        return session
    first, subflows = len(session.delay), session.subflows
    ratio = ceil(exact(fastest_capacity(session.topology)) / exact(session.topology.host_capacity) * 2**RATIO_BITS)
    changes = tuple(_fed_change(change, first) for change in session.changes)
    return replace(
        session,
        delay=np.append(session.delay, np.zeros(subflows, np.int64)),
        ratio=np.append(session.ratio, np.full(subflows, ratio)),
        paths=_behind(first + np.arange(subflows), session.paths),
        changes=changes,
    )


def _fed_change(change: Change, first: int) -> Change:
    return replace(change, paths=_behind(first + change.moved, change.paths))


def _behind(feeder: np.ndarray, paths: Paths) -> Paths:
    """Paths with a feeder in front of each."""
    link = np.insert(paths.link, paths.start[:-1], feeder)
    return Paths(paths.start + np.arange(len(paths.start)), link.astype(np.int32))
