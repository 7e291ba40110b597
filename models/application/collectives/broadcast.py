# SPDX-License-Identifier: Apache-2.0
"""Broadcast of long messages; short ones use the tree.

Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.2, after van de Geijn.
"""

from flitlab.models.application.collectives.all_gather import doubling_parts, ring_parts
from flitlab.models.application.collectives.communicator import Communicator, shares
from flitlab.models.application.collectives.tree import scatter_parts


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
