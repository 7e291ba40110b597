# SPDX-License-Identifier: Apache-2.0
"""The maximum concurrent flow by any routing."""

from typing import ClassVar

from flitlab.fluid.ceiling import PER_FLOW
from flitlab.fluid.kinds.concurrent import Concurrent
from flitlab.fluid.kinds.spec import Quantities
from flitlab.models.registry import register


@register("ceiling", "mcf")
class Mcf(Concurrent):
    """Maximum concurrent flow: the largest load at which every demand is met, by any routing.

    method: ``exact`` goes to a gap of 1e-6 (rejected, with the size, where it does not fit into memory),
    ``approx`` uses a first-order method, ``auto`` chooses.
    gap: relative gap of the two bounds at which an approximation may stop.
    per_flow: also the rates of flows, as in throughput models.
    """

    rank = 0
    label = "maximum concurrent flow"
    quantities: ClassVar[Quantities] = {"mean": ("MCF", PER_FLOW)}
    share = "Of the load that any routing could carry on the same network"
    of_one_flow = True
    growth = 0.72  # measured from 64 to 10,000 switches: in small networks path search is a small part
