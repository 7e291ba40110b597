# SPDX-License-Identifier: Apache-2.0
"""A ceiling: a row of ceilings.csv, and its proof."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from flitlab.models.html import facts, interval
from flitlab.models.topology.graph import Topology

if TYPE_CHECKING:  # these import compilers, which reading a configuration does not need
    import numpy as np

    from flitlab.fluid.certificate import Certificate

Method = Literal["auto", "exact", "approx"]
"""How a linear program is solved: ``exact`` to a gap of 1e-6, ``approx`` by a first-order method, ``auto`` chooses."""

PER_FLOW = "flits/tick/flow"

THETA_UNITS = ("load", "theta_hose", "theta")
"""Units of theta: with finite, and with infinite host channels; ``theta``: a factor of demands that are not scaled."""

NO_THETA = "is for demands that grow as a whole, and this one has a fixed background"
"""Why a demand with a background has no theta."""


@dataclass(frozen=True, eq=False)
class Ceiling:
    """A ceiling between ``lower`` (a flow reaches it) and ``upper`` (channel prices prove that no flow exceeds it).

    ceiling: the kind, or ``<kind>:<quantity>`` for its further quantities. load: for ``total``, else None. lower,
    upper: nan where omitted or unknown; ``note`` gives the reason. unit: ``load`` (theta multiplies T, as loads do),
    ``theta_hose`` (the same, with infinite host channels), ``theta`` (a factor of T where it is neither scaled nor
    that of loads; set by experiments), ``flits/tick/host`` (``total``, as ``accepted``),
    ``flits/tick/flow`` or ``flits/tick`` (rates of flows and their sum), ``hops``, ``ns`` (``makespan``: no run is
    faster than ``lower``), ``ticks/flit`` (``collective``: the same, for units of a flit), or ``1`` for ratios.
    certificate: the prices that prove ``upper``, if prices do. channel_load: float64 [channels], flits/tick of the flow
    that reaches ``lower``; None if there is none. flow: that flow between switches, in any scale: float64 [destinations
    with demand, channels], or paths for every commodity of :class:`~flitlab.fluid.graph.Demand`; of other kinds what
    their saved proof is made of. None where it was not kept.
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
    flow: object = None

    def __str__(self) -> str:
        """The interval, how it is proved, and the note: three lines at most."""
        ends = "unknown" if math.isnan(self.lower) and math.isnan(self.upper) else interval(self.lower, self.upper)
        at = "" if self.load is None else f" at load {self.load:g}"
        proof = ", proved by channel prices" * (self.certificate is not None)
        lines = [f"{self.ceiling}{at}: {ends} {self.unit}", f"{self.method}, {self.seconds:.3g} s{proof}", self.note]
        return "\n".join(filter(None, lines))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """HTML for notebooks: a table of the certified interval."""
        ends = "unknown" if math.isnan(self.lower) and math.isnan(self.upper) else interval(self.lower, self.upper)
        about = {
            "certified": ends, "unit": self.unit, "at load": self.load, "method": self.method,
            "seconds": f"{self.seconds:.3g}", "note": self.note or None,
        }  # fmt: skip
        return facts(f"Ceiling {self.ceiling}", about)

    @classmethod
    def omitted(cls, kind: str, unit: str, reason: str) -> "Ceiling":
        """The row of an omitted ceiling.

        Parameters
        ----------
        kind : str
            Kind, or ``<kind>:<quantity>``.
        unit : str
            Its unit.
        reason : str
            Why it is omitted.
        """
        return cls(kind, None, math.nan, math.nan, unit, "omitted", 0.0, reason)

    @classmethod
    def value(cls, name: str, lower: float, upper: float, unit: str, method: str, note: str = "") -> "Ceiling":
        """A row without certificate.

        Parameters
        ----------
        name : str
            Kind, or ``<kind>:<quantity>``.
        lower, upper : float
            Both ends, in ``unit``.
        unit : str
            See :class:`Ceiling`.
        method : str
            How it was computed.
        note : str
            Text of the row.
        """
        return cls(name, None, lower, upper, unit, method, 0.0, note)


def theta_unit(topology: Topology) -> str:
    """The unit of theta on a topology."""
    return THETA_UNITS[math.isinf(topology.host_capacity)]
