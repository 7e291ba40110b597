# SPDX-License-Identifier: Apache-2.0
"""What a ceiling is: a row of ceilings.csv with what proves it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from flitlab.models.html import facts, interval
from flitlab.models.topology.graph import Topology

if TYPE_CHECKING:  # they bring compilers along, which a configuration alone does not need
    import numpy as np

    from flitlab.fluid.certificate import Certificate
    from flitlab.fluid.collective.evidence import Evidence
    from flitlab.fluid.mcf.paths import Paths
    from flitlab.fluid.worst import Worst


Method = Literal["auto", "exact", "approx"]
"""Of a linear program: ``exact`` goes to a gap of 1e-6, ``approx`` is a first-order method, ``auto`` chooses."""

PER_FLOW = "flits/tick/flow"

THETA_UNITS = ("load", "theta_hose")
"""Units of theta, with finite host channels and with infinite ones."""

NO_THETA = "is for demands that grow as a whole, and this one has a fixed background"
"""Why there is no theta of some demands."""


@dataclass(frozen=True, eq=False)
class Ceiling:
    """A ceiling between ``lower`` (a flow reaches it) and ``upper`` (lengths forbid more).

    ceiling: the kind, or ``<kind>:<quantity>`` for what it says besides.
    load: for ``total``, else None.
    lower, upper: nan where omitted or not known; ``note`` says why.
    unit: ``load`` (theta multiplies T, as loads do), ``theta_hose`` (the same, with infinite host channels),
    ``flits/tick/host`` (``total``, as ``accepted``), ``flits/tick/flow`` or ``flits/tick`` (rates of flows and their
    sum), ``hops``, ``ns`` (``makespan``: nothing is quicker than ``lower``), ``ticks/flit`` (``collective``: the same,
    for units of a flit), or ``1`` for ratios.
    certificate: the lengths behind ``upper``, if lengths are.
    channel_load: float64 [channels], flits per tick of the flow that reaches ``lower``; None if there is none.
    flow: that flow between switches, of any scale: float64 [destinations with demand, channels], or paths for every
    commodity of :class:`~flitlab.fluid.problem.Demand`; of ``worst_case`` the demand and prices that prove both ends,
    of ``collective`` what proves a time. None where it was not kept.
    """

    ceiling: str
    load: float | None
    lower: float
    upper: float
    unit: str
    method: str
    seconds: float
    note: str = ""
    certificate: "Certificate | None" = None
    channel_load: "np.ndarray | None" = None
    flow: "np.ndarray | Paths | Worst | Evidence | None" = None

    def _repr_html_(self) -> str:
        """Shows it in notebooks, as a table of what is certain."""
        ends = "unknown" if math.isnan(self.lower) and math.isnan(self.upper) else interval(self.lower, self.upper)
        about = {
            "certified": ends, "unit": self.unit, "at load": self.load, "method": self.method,
            "seconds": f"{self.seconds:.3g}", "note": self.note or None,
        }  # fmt: skip
        return facts(f"Ceiling {self.ceiling}", about)

    @classmethod
    def omitted(cls, kind: str, unit: str, reason: str) -> "Ceiling":
        """The row of a ceiling that is not there, with the reason."""
        return cls(kind, None, math.nan, math.nan, unit, "omitted", 0.0, reason)

    @classmethod
    def value(cls, name: str, lower: float, upper: float, unit: str, method: str, note: str = "") -> "Ceiling":
        """A row without certificate."""
        return cls(name, None, lower, upper, unit, method, 0.0, note)


def theta_unit(topology: Topology) -> str:
    """The unit of ceilings of theta on a topology."""
    return THETA_UNITS[math.isinf(topology.host_capacity)]
