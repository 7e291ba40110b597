# SPDX-License-Identifier: Apache-2.0
"""Reduce-scatter: every member gets its part of the reduction of all data.

Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.4.
"""

import numpy as np

from flitlab.models.application.collectives.communicator import Communicator, Fold, distances, fold, shares


def ring(comm: Communicator, size: int) -> None:
    """p - 1 rounds: forward to the next member the part that finally reaches its owner.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    length = np.diff(shares(size, comm.size))
    for k in range(comm.size - 1):
        comm.exchange(comm.members, (comm.members + 1) % comm.size, length[(comm.members - 1 - k) % comm.size])
        comm.reduce(comm.members, length[(comm.members - 2 - k) % comm.size])


def pairwise(comm: Communicator, size: int) -> None:
    """p - 1 rounds: to the member 1, 2, 3, ... after its own part."""
    length = np.diff(shares(size, comm.size))
    for k in range(1, comm.size):
        target = (comm.members + k) % comm.size
        comm.exchange(comm.members, target, length[target])
        comm.reduce(comm.members, length)


def recursive_halving(comm: Communicator, size: int) -> None:
    """log2 p rounds between members p / 2, p / 4, ... apart; for other p, odd members act for those before them."""
    folded, bounds = fold(comm.size), shares(size, comm.size)
    silent = folded.silent
    fold_in(comm, folded, size)
    halving(comm, folded, bounds[folded.first])
    comm.exchange(silent + 1, silent, bounds[silent + 1] - bounds[silent])


def fold_in(comm: Communicator, folded: Fold, size: int) -> None:
    """Members that do not act give all their data to those that act for them.

    Parameters
    ----------
    comm: the communicator.
    folded: the acting members.
    size: bytes.
    """
    comm.exchange(folded.silent, folded.silent + 1, size)
    comm.reduce(folded.silent + 1, size)


def halving(comm: Communicator, folded: Fold, bounds: np.ndarray) -> None:
    """Recursive halving among actors; actor j ends with bytes bounds[j] .. bounds[j + 1] - 1.

    Parameters
    ----------
    comm: the communicator.
    folded: the acting members.
    bounds: int64 [parts + 1], where the bytes of each part begin and end.
    """
    actors = np.arange(len(folded.actor))
    for distance in reversed(distances(len(actors))):
        mine, theirs = (member // distance * distance for member in (actors, actors ^ distance))
        comm.exchange(folded.actor, folded.actor[actors ^ distance], bounds[theirs + distance] - bounds[theirs])
        comm.reduce(folded.actor, bounds[mine + distance] - bounds[mine])
