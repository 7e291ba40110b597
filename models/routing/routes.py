"""What a routing gives to the engines and the LPs: where packets may go, and how one of several ways is chosen."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from flitlab.models.hashing import content_hash
from flitlab.models.registry import Spec
from flitlab.models.topology.graph import Topology

# How one of the allowed ways is chosen (``select`` or ``per`` in a config).
RANDOM, HASH, ADAPTIVE, UGAL_LOCAL, UGAL_GLOBAL = 0, 1, 2, 3, 4
SELECT = {"random": RANDOM, "hash": HASH, "adaptive": ADAPTIVE}
PER = {"packet": RANDOM, "flow": HASH}

# What the allowed ways are made of.
TABLE = 0  # a set of next hops for each switch and destination
PATHS = 1  # whole paths for each pair of switches, one of which is drawn at the source
VIA = 2  # next hops to an intermediate switch that is drawn at the source, and from there on
DIGITS = 3  # next hops as in a table, computed from the numbers of the switches

# Which virtual channels a packet may take on a channel (``vc_policy`` in a config).
ANY, HOP, DATELINE_ENTRY, DATELINE_CROSSING, LAYERED, LEGS, ESCAPE, GROUPS = 0, 1, 2, 3, 4, 5, 6, 7

ESCAPE_VC = 0
"""The VC of the escape channels; the others are adaptive."""

MAX_PORTS = 64
"""Largest out-degree of a switch where port sets are 64-bit masks."""

MAX_PATH_PORTS = 256
"""Largest out-degree of a switch where routes are whole paths."""

NO_PORTS = np.zeros((0, 0), np.uint64)
_NONE = np.zeros(0, np.int64)
_NO_BYTES = np.zeros(0, np.uint8)


class PathTable(NamedTuple):
    """The paths between switches: of the pair (s, t), those numbered pair_start[s * switches + t] and on.

    pair_start: int64 [switches**2 + 1]. path_start: int64 [paths + 1]. port: uint8: path p leaves its h-th
    switch (the source is the 0th) by the port[path_start[p] + h]-th channel of it.
    """

    pair_start: np.ndarray
    path_start: np.ndarray
    port: np.ndarray


class Tables(NamedTuple):
    """A :class:`Routes` as the decisions of :mod:`flitlab.models.rules.route` and :mod:`flitlab.models.rules.vc` read
    it.

    Arrays that a form or a VC policy does not need are empty. form, rule: TABLE ... and RANDOM ... ports, paths, layer,
    layers, escape, group: see Routes. leg: uint8 [switches, switches], hops from s to t (VIA). host_switch: int64
    [hosts]. degree, shift, out_start, dst: of a graph whose switch v reaches degree v + shift ... (DIGITS).
    threshold: of UGAL_LOCAL (flits times hops) and UGAL_GLOBAL (flits). classes: of HOP, one for each channel of the
    longest route.
    """

    form: int
    rule: int
    switches: int
    ports: np.ndarray
    pair_start: np.ndarray
    path_start: np.ndarray
    path_port: np.ndarray
    leg: np.ndarray
    host_switch: np.ndarray
    degree: int
    shift: int
    out_start: np.ndarray
    dst: np.ndarray
    layer: np.ndarray
    layers: int
    escape: np.ndarray
    threshold: int
    classes: int
    group: np.ndarray


@dataclass(frozen=True, eq=False)
class Routes:
    """The ways that a routing allows on one topology.

    ports: uint64 [switches, switches]; bit p of ports[t, v] allows a packet for a host of switch t
    to leave switch v by channel ``topology.out_start[v] + p``; 0 where t == v. Empty for PATHS and DIGITS.
    select: RANDOM (TABLE, DIGITS: drawn once a hop; PATHS, VIA: once a packet), HASH (of the flow, and
    where drawn by hop of the switch), ADAPTIVE (decided every tick), or (VIA) UGAL_LOCAL or UGAL_GLOBAL: drawn as
    RANDOM, and compared with the way without an intermediate switch when the packet is sent (``threshold``).
    deflection: whether packets may be sent to ports outside the set (hot-potato).
    hops_max: the longest route, in channels between switches (deflection: without deflections).
    vc_policy: ANY, HOP, ...; None: the default, see :func:`flitlab.models.routing.certificate.certify`.
    form: TABLE, PATHS, VIA (``ports`` are those of each leg) or DIGITS. paths: of PATHS.
    leg: uint8 [switches, switches], hops from s to t (VIA). digits: (degree, shift) of DIGITS.
    layer: uint8, the layer of each path, or of each pair s * switches + t if there are no paths; layers: how many
    there are (LAYERED). escape: uint8 [switches, switches], port at v of the escape channel towards t at [t, v]
    (ESCAPE). group: int32 [switches], of a dragonfly (GROUPS).
    """

    kind: str
    ports: np.ndarray
    select: int
    hops_max: int
    deflection: bool = False
    vc_policy: int | None = None
    notes: dict = field(default_factory=dict)
    form: int = TABLE
    paths: PathTable | None = None
    leg: np.ndarray | None = None
    digits: tuple[int, int] | None = None
    layer: np.ndarray | None = None
    layers: int = 0
    escape: np.ndarray | None = None
    threshold: int = 0
    group: np.ndarray | None = None

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        parts: list[Any] = [self.kind, self.ports, self.select, self.deflection, self.vc_policy, self.hops_max]
        if self.form != TABLE or self.vc_policy in (LAYERED, ESCAPE, GROUPS):
            parts += [self.form, *(self.paths or ()), self.digits, self.layers]
            parts += [array for array in (self.layer, self.escape, self.group) if array is not None]
        if self.select in (UGAL_LOCAL, UGAL_GLOBAL):
            parts.append(self.threshold)
        return content_hash(*parts)

    @property
    def oblivious(self) -> bool:
        """Whether the traffic split is fixed beforehand, so that path-restricted ceilings mean something."""
        return not self.deflection and self.select in (RANDOM, HASH)

    def tables(self, topology: Topology) -> Tables:
        """The routes for compiled code."""
        paths = self.paths or PathTable(_NONE, _NONE, _NO_BYTES)
        degree, shift = self.digits or (0, 0)
        computed, by_leg = self.form == DIGITS, self.form == VIA
        none = np.zeros((0, 0), np.uint8)
        return Tables(
            self.form, self.select, topology.switches, self.ports, *paths, none if self.leg is None else self.leg,
            topology.host_switch.astype(np.int64) if by_leg else _NONE, degree, shift,
            topology.out_start if computed else _NONE, topology.dst if computed else _NONE,
            _NO_BYTES if self.layer is None else self.layer, self.layers, none if self.escape is None else self.escape,
            self.threshold, max(self.hops_max, 1), np.zeros(0, np.int32) if self.group is None else self.group,
        )  # fmt: skip


_POLICIES = {"any": ANY, "hop": HOP, "layered": LAYERED, "legs": LEGS, "escape": ESCAPE, "groups": GROUPS}


class VcPolicySpec(Spec):
    """``vc_policy`` of a routing; a plain string in a config is its kind.

    ``any``: any VC. ``hop``: there are as many classes of VCs as the longest route has channels, and the h-th channel
    of a packet uses those of class h. ``dateline``: under dor on a torus, half of the VCs on either side of the
    wrap-around, chosen ``on_entry`` of a ring or ``at_crossing``. ``legs``: under valiant and ugal, half of the VCs
    before and half after the intermediate switch. ``groups``: under the routing dragonfly and by its legs, half of the
    VCs up to the global channel and half after it; each of two legs has its own halves. ``layered``: every path has
    its layer and every layer its VCs; the paths are taken in ``order`` (by length, or drawn) and each put into the
    first layer that it closes no cycle in; with ``layers`` the fullest are split until there are so many. ``escape``:
    under minimal with ``select: adaptive``, VC 0 follows dor (mesh, hypercube) or updown and a packet on it stays on
    it. Classes, halves and layers have equal numbers of VCs, and the first of them those that are left over.

    Sources: Kim, Dally, Scott, Abts, ISCA 2008, doi:10.1109/ISCA.2008.19 (groups); Skeie, Lysne, Theiss, LASH, IPDPS
    2002, doi:10.1109/IPDPS.2002.1016580; Domke, Hoefler, Nagel, DFSSSP, IPDPS 2011, doi:10.1109/IPDPS.2011.65; Duato
    1993, doi:10.1109/71.250114.
    """

    kind: Literal["any", "hop", "dateline", "layered", "legs", "escape", "groups"]
    choose: Literal["on_entry", "at_crossing"] = "on_entry"
    order: Literal["short_first", "long_first", "random"] = "short_first"
    layers: int | None = Field(default=None, ge=1, le=255)

    def code(self) -> int:
        """The constant of this module that names the policy."""
        if self.kind == "dateline":
            return DATELINE_ENTRY if self.choose == "on_entry" else DATELINE_CROSSING
        return _POLICIES[self.kind]


class RoutingSpec(Spec):
    """Keys that every routing takes. A routing adds its own and defines :meth:`build`."""

    vc_policy: VcPolicySpec | None = None

    @field_validator("vc_policy", mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    def build(self, topology: Topology) -> Routes:
        """The routes on a topology. Raises :class:`~flitlab.models.registry.SpecError` where it cannot serve it."""
        raise NotImplementedError

    def policy_code(self) -> int | None:
        """The VC policy asked for, or None for the default."""
        return None if self.vc_policy is None else self.vc_policy.code()
