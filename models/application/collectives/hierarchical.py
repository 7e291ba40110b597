# SPDX-License-Identifier: Apache-2.0
"""Collectives in two levels: within groups of members, such as the hosts of a switch or a pod, and between groups.

The first member of each group is its leader. It collects the group's data along a binomial tree, runs a ring with the
other leaders, and distributes the result along the tree. So groups exchange little, and leaders send and receive for
all.

Source: Karonis et al., Exploiting hierarchy in parallel computer networks to optimize collective operation performance,
IPDPS 2000.
"""

import numpy as np

from flitlab.models.application.collectives import all_gather as gathers
from flitlab.models.application.collectives import all_reduce as reductions
from flitlab.models.application.collectives import reduce_scatter as scatters
from flitlab.models.application.collectives import tree
from flitlab.models.application.collectives.communicator import Communicator, shares
from flitlab.models.arrays import Ints


def all_gather(comm: Communicator, size: int) -> None:
    """Gather within groups, a ring between them, broadcast of the result within groups.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    inside = comm.among(_groups(comm))
    tree.gather(inside, size)
    gathers.ring(comm.among(_groups(comm)[:, 0]), inside.size * size)
    tree.broadcast(inside, comm.size * size)


def reduce_scatter(comm: Communicator, size: int) -> None:
    """Reduce within groups, a ring between them that gives each group its part, scatter within groups.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    groups = _groups(comm)
    inside = comm.among(groups)
    tree.reduce(inside, size)
    scatters.ring(comm.among(groups[:, 0]), size)
    first = shares(size, comm.size)
    bounds = np.column_stack([first[groups], first[groups[:, -1] + 1]])
    tree.scatter_parts(inside, np.tile(bounds, (len(inside.groups) // len(groups), 1)))


def all_reduce(comm: Communicator, size: int) -> None:
    """Reduce within groups, a ring all-reduce between them, broadcast within groups.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    inside = comm.among(_groups(comm))
    tree.reduce(inside, size)
    reductions.ring(comm.among(_groups(comm)[:, 0]), size)
    tree.broadcast(inside, size)


def _groups(comm: Communicator) -> Ints:
    """int64 [groups, members of a group]."""
    return comm.members.reshape(-1, comm.group)
