# SPDX-License-Identifier: Apache-2.0
"""All-gather: every member gets the data of all.

Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.1.
"""

import numpy as np

from flitlab.models.application.collectives.communicator import Communicator, Fold, distances, fold


def parts(comm: Communicator, size: int) -> np.ndarray:
    """Where the parts of all members, of ``size`` bytes each, begin and end.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    return np.arange(comm.size + 1) * size


def ring(comm: Communicator, size: int) -> None:
    """p - 1 rounds: forward to the next member what came from the previous one.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    ring_parts(comm, parts(comm, size))


def ring_parts(comm: Communicator, bounds: np.ndarray) -> None:
    """The ring where member i has bytes bounds[i] .. bounds[i + 1] - 1.

    Parameters
    ----------
    comm: the communicator.
    bounds: int64 [parts + 1], where the bytes of each part begin and end.
    """
    length = np.diff(bounds)
    for k in range(comm.size - 1):
        comm.exchange(comm.members, (comm.members + 1) % comm.size, length[(comm.members - k) % comm.size])


def bruck(comm: Communicator, size: int) -> None:
    """All-gather of Bruck et al.: in each round a member sends to the one 1, 2, 4, ... before it all that this lacks.

    Among p members there are ceil(log2 p) rounds; that of distance d carries min(d, p - d) parts per message. They are
    added to the present step of the communicator's builder.

    Parameters
    ----------
    comm: the communicator.
    size: bytes of the part of each member.

    Raises
    ------
    SpecError: the program would have too many operations.
    ValueError: the builder has no step to add rounds to.

    Source: Bruck et al., IEEE Transactions on Parallel and Distributed Systems 8, 1997, doi:10.1109/71.642949.
    """
    for distance in distances(comm.size):
        count = min(distance, comm.size - distance)
        comm.exchange(comm.members, (comm.members - distance) % comm.size, count * size)


def recursive_doubling(comm: Communicator, size: int) -> None:
    """log2 p rounds between members 1, 2, 4, ... apart; for other p, odd members act for those before them."""
    doubling_parts(comm, parts(comm, size))


def doubling_parts(comm: Communicator, bounds: np.ndarray) -> None:
    """Recursive doubling where member i has bytes bounds[i] .. bounds[i + 1] - 1.

    Parameters
    ----------
    comm: the communicator.
    bounds: int64 [parts + 1], where the bytes of each part begin and end.
    """
    folded = fold(comm.size)
    silent = folded.silent
    own = bounds[silent + 1] - bounds[silent]
    comm.exchange(silent, silent + 1, own)
    doubling(comm, folded, bounds[folded.first])
    comm.exchange(silent + 1, silent, bounds[-1] - own)


def doubling(comm: Communicator, folded: Fold, bounds: np.ndarray) -> None:
    """Recursive doubling among actors; actor j has bytes bounds[j] .. bounds[j + 1] - 1.

    Parameters
    ----------
    comm: the communicator.
    folded: the acting members.
    bounds: int64 [parts + 1], where the bytes of each part begin and end.
    """
    actors = np.arange(len(folded.actor))
    for distance in distances(len(actors)):
        base = actors // distance * distance
        partner = folded.actor[actors ^ distance]
        comm.exchange(folded.actor, partner, bounds[base + distance] - bounds[base])
