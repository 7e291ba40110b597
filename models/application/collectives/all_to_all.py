# SPDX-License-Identifier: Apache-2.0
"""All-to-all: every member sends different data to each of the others.

Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.3.
"""

import numpy as np
import numpy.typing as npt

from flitlab.models.application.collectives.communicator import Communicator, distances
from flitlab.models.arrays import Ints

BATCH = 32
"""Messages of a member of :func:`scattered` in flight at a time (MPICH's MPIR_CVAR_ALLTOALL_THROTTLE)."""


def bruck(comm: Communicator, size: int) -> None:
    """ceil(log2 p) rounds: to the member 1, 2, 4, ... after, all data whose remaining offset has that bit.

    Source: Bruck et al. 1997, doi:10.1109/71.642949.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    offset = np.arange(comm.size)
    for distance in distances(comm.size):
        comm.exchange(comm.members, (comm.members + distance) % comm.size, np.count_nonzero(offset & distance) * size)


def pairwise(comm: Communicator, size: npt.ArrayLike) -> None:
    """p - 1 rounds: an exchange with member i XOR k where p is a power of two, else to i + k and from i - k.

    size: bytes of every message, or int64 [p, p], from member to member.
    """
    power = comm.size & (comm.size - 1) == 0
    for k in range(1, comm.size):
        target = comm.members ^ k if power else (comm.members + k) % comm.size
        comm.exchange(comm.members, target, _between(comm, size, comm.members, target))


def linear(comm: Communicator, size: npt.ArrayLike) -> None:
    """One round: every member sends all its messages, to members i + 1, i + 2, ..., without waiting.

    size: bytes of every message, or int64 [p, p], from member to member.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    _in_batches(comm, size, comm.size)


def scattered(comm: Communicator, size: npt.ArrayLike) -> None:
    """The messages of :func:`linear` in rounds of ``BATCH``, so that late members are not flooded.

    size: bytes of every message, or int64 [p, p], from member to member.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    _in_batches(comm, size, BATCH)


def _in_batches(comm: Communicator, size: npt.ArrayLike, batch: int) -> None:
    comm.expect(comm.size * (comm.size - 1))
    for first in range(1, comm.size, batch):
        offsets = np.arange(first, min(first + batch, comm.size))
        source = np.repeat(comm.members, len(offsets))
        target = (source + np.tile(offsets, comm.size)) % comm.size
        comm.exchange(source, target, _between(comm, size, source, target))


def _between(comm: Communicator, size: npt.ArrayLike, source: Ints, target: Ints) -> Ints:
    bytes_between: Ints = np.broadcast_to(size, (comm.size, comm.size))[source, target]
    return bytes_between
