"""All-to-all: everybody has something for each of the others.

Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.3.
"""

import numpy as np

from models.application.collectives.communicator import Communicator, distances


def bruck(comm: Communicator, size: int) -> None:
    """ceil(log2 p) rounds: to the member 1, 2, 4, ... after all that has that distance in its way.

    Source: Bruck et al. 1997, doi:10.1109/71.642949.
    """
    way = np.arange(comm.size)
    for distance in distances(comm.size):
        comm.exchange(comm.members, (comm.members + distance) % comm.size, np.count_nonzero(way & distance) * size)


def pairwise(comm: Communicator, size) -> None:
    """p - 1 rounds: an exchange with member i XOR k where p is a power of two, else to i + k and from i - k.

    size: bytes of every message, or int64 [p, p], from member to member.
    """
    power = comm.size & (comm.size - 1) == 0
    for k in range(1, comm.size):
        target = comm.members ^ k if power else (comm.members + k) % comm.size
        comm.exchange(comm.members, target, _between(comm, size, comm.members, target))


def linear(comm: Communicator, size) -> None:
    """One round: everybody sends all its messages, to members i + 1, i + 2, ..., without waiting.

    size: bytes of every message, or int64 [p, p], from member to member.
    """
    comm.expect(comm.size * (comm.size - 1))
    source, target = everybody(comm.size)
    comm.exchange(source, target, _between(comm, size, source, target))


def everybody(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Source and target of the messages of all to all, each source's from the member after it on."""
    source = np.repeat(np.arange(size), size - 1)
    return source, (source + np.tile(np.arange(1, size), size)) % size


def _between(comm: Communicator, size, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.broadcast_to(size, (comm.size, comm.size))[source, target]
