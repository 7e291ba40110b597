# SPDX-License-Identifier: Apache-2.0
"""The binomial tree of a group: broadcast, reduce, gather and scatter along it.

Broadcasts of long messages begin with a scatter (after van de Geijn).

Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.
"""

import numpy as np

from flitlab.models.application.collectives.all_gather import doubling_parts, ring_parts
from flitlab.models.application.collectives.communicator import Communicator, distances, shares
from flitlab.models.arrays import Ints


def branches(size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(parent, child) members of each level, from the root's first child on; child - parent is constant in a level.

    Parameters
    ----------
    size: bytes.
    """
    members = np.arange(size)
    levels = []
    for distance in reversed(distances(size)):
        parent = members[(members % (2 * distance) == 0) & (members + distance < size)]
        levels.append((parent, parent + distance))
    return levels


def below(size: int, parent: np.ndarray, child: Ints) -> Ints:
    """The end of the subtree of each child, int64: it consists of members child .. below - 1.

    Parameters
    ----------
    size: members.
    parent: int64, parents.
    child: int64, children.
    """
    below: Ints = np.minimum(2 * child - parent, size)
    return below


def broadcast(comm: Communicator, size: int) -> None:
    """ceil(log2 p) rounds in which all members with the message send it on.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    for parent, child in branches(comm.size):
        comm.exchange(parent, child, size)


def reduce(comm: Communicator, size: int) -> None:
    """The reversed broadcast: data is reduced on its way to the root.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    for parent, child in reversed(branches(comm.size)):
        comm.exchange(child, parent, size)
        comm.reduce(parent, size)


def scatter_parts(comm: Communicator, bounds: np.ndarray) -> None:
    """Member i gets bytes bounds[i] .. bounds[i + 1] - 1 of the root; the parts of a subtree travel together.

    Parameters
    ----------
    comm: the communicator.
    bounds: int64 [members + 1], or [groups, members + 1] where groups differ.
    """
    for parent, child in branches(comm.size):
        comm.exchange(parent, child, bounds[..., below(comm.size, parent, child)] - bounds[..., child])


def scatter(comm: Communicator, size: int) -> None:
    """Every member gets its part of the root's ``size`` bytes."""
    scatter_parts(comm, shares(size, comm.size))


def gather(comm: Communicator, size: int) -> None:
    """The root gets ``size`` bytes of each member."""
    for parent, child in reversed(branches(comm.size)):
        comm.exchange(child, parent, (below(comm.size, parent, child) - child) * size)


def van_de_geijn(comm: Communicator, size: int) -> None:
    """The root scatters the message, then a ring all-gather completes it.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    scatter_parts(comm, shares(size, comm.size))
    ring_parts(comm, shares(size, comm.size))


def scatter_doubling(comm: Communicator, size: int) -> None:
    """The root scatters the message, then a recursive-doubling all-gather completes it.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    scatter_parts(comm, shares(size, comm.size))
    doubling_parts(comm, shares(size, comm.size))
