# SPDX-License-Identifier: Apache-2.0
"""Collectives in two levels: within groups of members, such as the hosts of a switch or a pod, and between groups.

The first member of each group speaks for it. It gets what the group has along a binomial tree, goes round a ring with
those who speak for the others, and sends what comes of that along the tree again. So little is sent between groups, and
those who speak send and receive for all.

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
    """Gather in groups, a ring between them, broadcast in groups of all that there is."""
    inside = comm.among(_groups(comm))
    tree.gather(inside, size)
    gathers.ring(comm.among(_groups(comm)[:, 0]), inside.size * size)
    tree.broadcast(inside, comm.size * size)


def reduce_scatter(comm: Communicator, size: int) -> None:
    """Reduce in groups, a ring between them that brings each group its part, scatter in groups."""
    groups = _groups(comm)
    inside = comm.among(groups)
    tree.reduce(inside, size)
    scatters.ring(comm.among(groups[:, 0]), size)
    first = shares(size, comm.size)
    bounds = np.column_stack([first[groups], first[groups[:, -1] + 1]])
    tree.scatter_parts(inside, np.tile(bounds, (len(inside.groups) // len(groups), 1)))


def all_reduce(comm: Communicator, size: int) -> None:
    """Reduce in groups, a ring all-reduce between them, broadcast in groups."""
    inside = comm.among(_groups(comm))
    tree.reduce(inside, size)
    reductions.ring(comm.among(_groups(comm)[:, 0]), size)
    tree.broadcast(inside, size)


def _groups(comm: Communicator) -> Ints:
    """int64 [groups, members of a group]."""
    return comm.members.reshape(-1, comm.group)
