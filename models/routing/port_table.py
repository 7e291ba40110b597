# SPDX-License-Identifier: Apache-2.0
"""Tables of port sets on a topology (:mod:`flitlab.models.rules.port_sets`)."""

import numpy as np

from flitlab.models.arrays import Masks
from flitlab.models.rules.port_sets import table_shape
from flitlab.models.topology.graph import Topology


def empty_table(topology: Topology) -> Masks:
    """A table of empty port sets, uint64 [t, v], or [t, v, 2] with over 64 channels out of a switch.

    Parameters
    ----------
    topology: the network.
    """
    return np.zeros(table_shape(topology.switches, int(topology.out_degree.max(initial=0))), np.uint64)
