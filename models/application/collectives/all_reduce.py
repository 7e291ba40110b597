# SPDX-License-Identifier: Apache-2.0
"""All-reduce: every member gets the reduction of all data.

Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.5; the ring: Patarasuk and Yuan
2009, doi:10.1016/j.jpdc.2008.09.002.
"""

import numpy as np

from flitlab.models.application.collectives import all_gather, reduce_scatter
from flitlab.models.application.collectives.communicator import Communicator, distances, fold, shares


def recursive_doubling(comm: Communicator, size: int) -> None:
    """log2 p rounds of all bytes between members 1, 2, 4, ... apart."""
    folded = fold(comm.size)
    reduce_scatter.fold_in(comm, folded, size)
    actors = np.arange(len(folded.actor))
    for distance in distances(len(actors)):
        comm.exchange(folded.actor, folded.actor[actors ^ distance], size)
        comm.reduce(folded.actor, size)
    comm.exchange(folded.silent + 1, folded.silent, size)


def rabenseifner(comm: Communicator, size: int) -> None:
    """Reduce-scatter by recursive halving, then all-gather by recursive doubling: 2 log2 p rounds.

    Source: Rabenseifner 2004, doi:10.1007/978-3-540-24685-5_1.
    """
    folded = fold(comm.size)
    bounds = shares(size, len(folded.actor))
    reduce_scatter.fold_in(comm, folded, size)
    reduce_scatter.halving(comm, folded, bounds)
    all_gather.doubling(comm, folded, bounds)
    comm.exchange(folded.silent + 1, folded.silent, size)


def ring(comm: Communicator, size: int) -> None:
    """Reduce-scatter and all-gather round the ring: 2 (p - 1) rounds of a p-th of the bytes."""
    reduce_scatter.ring(comm, size)
    all_gather.ring_parts(comm, shares(size, comm.size))
