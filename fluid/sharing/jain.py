# SPDX-License-Identifier: Apache-2.0
"""Jain's method (JM): Hoefler's shares again and again, of what is left, for the paths that cross no full link.

Source: Jain, Bhatele, Ni, Wright, Kale, SC 2014, doi:10.1109/SC.2014.33, as stated by Faizian et al., "Throughput
Models of Interconnection Networks", section II-D.
"""

from flitlab.fluid.sharing.filling import filled, least_on_path
from flitlab.fluid.sharing.flows import Flows
from flitlab.models.arrays import Floats


def jain(flows: Flows) -> Floats:
    """float64 [paths]: the rates once every path crosses a full link."""
    return filled(flows, least_on_path)
