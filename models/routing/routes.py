"""What a routing gives to the engines and the LPs: allowed outputs, and how one is chosen."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import field_validator

from models.hashing import content_hash
from models.registry import Spec
from models.topology.graph import Topology

# How one of the allowed outputs is chosen (``select`` in a config).
RANDOM, HASH, ADAPTIVE = 0, 1, 2
SELECT = {"random": RANDOM, "hash": HASH, "adaptive": ADAPTIVE}

# Which virtual channels a packet may take on a channel (``vc_policy`` in a config).
ANY, HOP, DATELINE_ENTRY, DATELINE_CROSSING = 0, 1, 2, 3

MAX_PORTS = 64
"""Largest out-degree of a switch: port sets are 64-bit masks."""


@dataclass(frozen=True, eq=False)
class Routes:
    """Next-hop sets of a routing on one topology.

    ports: uint64 [switches, switches]; bit p of ports[t, v] allows a packet for a host of switch t
    to leave switch v by channel ``topology.out_start[v] + p``; 0 where t == v.
    select: RANDOM (drawn once a hop), HASH (of flow and switch) or ADAPTIVE (decided every tick).
    deflection: whether packets may be sent to ports outside the set (hot-potato).
    hops_max: the longest route, in channels between switches (deflection: without deflections).
    vc_policy: ANY, HOP, DATELINE_*; None: ANY if that has a certificate, else HOP.
    """

    kind: str
    ports: np.ndarray
    select: int
    hops_max: int
    deflection: bool = False
    vc_policy: int | None = None
    notes: dict = field(default_factory=dict)

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        return content_hash(self.kind, self.ports, self.select, self.deflection, self.vc_policy)

    @property
    def oblivious(self) -> bool:
        """Whether the traffic split is fixed beforehand, so that path-restricted ceilings mean something."""
        return not self.deflection and self.select != ADAPTIVE


class VcPolicySpec(Spec):
    """``vc_policy`` of a routing; a plain string in a config is its kind."""

    kind: Literal["any", "hop", "dateline"]
    choose: Literal["on_entry", "at_crossing"] = "on_entry"

    def code(self) -> int:
        """The constant of this module that names the policy."""
        if self.kind == "dateline":
            return DATELINE_ENTRY if self.choose == "on_entry" else DATELINE_CROSSING
        return {"any": ANY, "hop": HOP}[self.kind]


class RoutingSpec(Spec):
    """Keys that every routing takes. A routing adds its own and defines :meth:`build`."""

    vc_policy: VcPolicySpec | None = None

    @field_validator("vc_policy", mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    def build(self, topology: Topology) -> Routes:
        """The routes on a topology. Raises :class:`~models.registry.SpecError` where it cannot serve it."""
        raise NotImplementedError

    def policy_code(self) -> int | None:
        """The VC policy asked for, or None for the default."""
        return None if self.vc_policy is None else self.vc_policy.code()
