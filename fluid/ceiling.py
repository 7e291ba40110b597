"""What a ceiling is and how a configuration asks for one."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:  # they bring compilers along, which a configuration alone does not need
    import numpy as np

    from flitlab.fluid.certificate import Certificate
    from flitlab.fluid.mcf.paths import Paths

Kind = Literal[
    "mcf", "mcf_paths", "split", "total", "bounds", "cuts", "mmf", "hm", "jm", "decomposition", "utilisation",
    "makespan",
]  # fmt: skip
Method = Literal["auto", "exact", "approx"]
BY_ROUTING: tuple[Kind, ...] = ("mcf_paths", "split", "mmf", "hm", "jm")
"""Kinds that say something of the paths of a routing."""

CONCURRENT = ("mcf", "mcf_paths", "split")
"""Kinds that give every flow the same part of its demand."""


class CeilingSpec(BaseModel):
    """One entry of ``ceilings:`` in a configuration.

    method: ``exact`` goes to a gap of 1e-6 (refused, with the size, where that would not fit into memory),
    ``approx`` uses a first-order method, ``auto`` chooses.
    gap: relative distance of the two bounds at which an approximation may stop.
    per_flow: of mcf, mcf_paths and split, also the rates that flows get, as throughput models have them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    method: Method = "auto"
    gap: float = Field(default=0.01, gt=0, lt=1)
    per_flow: bool = False

    @model_validator(mode="after")
    def _flows_of_a_theta(self) -> Self:
        if self.per_flow and self.kind not in CONCURRENT:
            raise ValueError(f"per_flow goes with {', '.join(CONCURRENT)}, not with {self.kind}")
        return self


@dataclass(frozen=True, eq=False)
class Ceiling:
    """A ceiling between ``lower`` (a flow reaches it) and ``upper`` (lengths forbid more).

    ceiling: the kind, or ``<kind>:<quantity>`` for what it says besides.
    load: for ``total``, else None.
    lower, upper: nan where omitted or not known; ``note`` says why.
    unit: ``load`` (theta multiplies T, as loads do), ``theta_hose`` (the same, with infinite host channels),
    ``flits/tick/host`` (``total``, as ``accepted``), ``flits/tick/flow`` or ``flits/tick`` (rates of flows and their
    sum), ``hops``, ``ns`` (``makespan``: nothing is quicker than ``lower``), or ``1`` for ratios.
    certificate: the lengths behind ``upper``, if lengths are.
    channel_load: float64 [channels], flits per tick of the flow that reaches ``lower``; None if there is none.
    flow: that flow between switches, of any scale: float64 [destinations with demand, channels], or paths for every
    commodity of :class:`~flitlab.fluid.problem.Demand`; None where it was not kept.
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
    flow: "np.ndarray | Paths | None" = None

    @classmethod
    def omitted(cls, kind: str, unit: str, reason: str) -> "Ceiling":
        """The row of a ceiling that is not there, with the reason."""
        return cls(kind, None, math.nan, math.nan, unit, "omitted", 0.0, reason)

    @classmethod
    def value(cls, name: str, lower: float, upper: float, unit: str, method: str, note: str = "") -> "Ceiling":
        """A row without certificate."""
        return cls(name, None, lower, upper, unit, method, 0.0, note)
