# SPDX-License-Identifier: Apache-2.0
"""Barrier: no member continues before all have arrived."""

from flitlab.models.application.collectives.communicator import Communicator, distances


def dissemination(comm: Communicator, size: int) -> None:
    """ceil(log2 p) rounds: an empty message to the member 1, 2, 4, ... after.

    Source: Hensgen, Finkel and Manber 1988, doi:10.1007/BF01379320.
    """
    for distance in distances(comm.size):
        comm.exchange(comm.members, (comm.members + distance) % comm.size, 0)
