# SPDX-License-Identifier: Apache-2.0
"""The routes of a routing on a topology, and their tables for compiled code."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bytes, Floats, Ints, Ints32, Masks, Words
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import Notes
from flitlab.models.routing.bit_parallel import longest_paths
from flitlab.models.rules.port_sets import pack_ports
from flitlab.models.rules.tables import RouteForm, Selection, Tables, VcPolicy
from flitlab.models.topology.graph import Topology

SELECT = {"random": Selection.RANDOM, "hash": Selection.HASH, "adaptive": Selection.ADAPTIVE}
PER = {"packet": Selection.RANDOM, "flow": Selection.HASH}

NO_PORTS = np.zeros((0, 0), np.uint64)
_NONE = np.zeros(0, np.int64)
_NO_BYTES = np.zeros(0, np.uint8)
EQUAL_SHARES = np.zeros(0, np.uint32)
"""Thresholds of a table whose paths are equally likely."""
LAST_WORD = (1 << 32) - 1
"""The threshold of the last path of a pair, which takes all remaining draws."""


class PathTable(NamedTuple):
    """The paths between switches: those of the pair (s, t) begin at pair_start[s * switches + t].

    pair_start: int64 [switches**2 + 1]. path_start: int64 [paths + 1]. port: uint8: path p leaves its h-th switch (the
    source is the 0th) by the port[path_start[p] + h]-th channel of it. threshold: uint32 [paths], rising within a pair
    to LAST_WORD: the first path whose threshold exceeds a draw of 32 bits is taken, else the last. Empty: all paths of
    a pair are equally likely.
    """

    pair_start: Ints
    path_start: Ints
    port: Bytes
    threshold: Words = EQUAL_SHARES

    @property
    def shares(self) -> Floats:
        """The probability of each path among those of its pair: float64 [paths]."""
        counts = np.diff(self.pair_start)
        if not len(self.threshold):
            return np.repeat(1.0 / np.maximum(counts, 1), counts)
        last = self.pair_start[1:][counts > 0] - 1
        ends = self.threshold.astype(np.float64)
        ends[last] = LAST_WORD + 1.0
        begins = np.concatenate([np.zeros(1), ends[:-1]])
        begins[self.pair_start[:-1][counts > 0]] = 0.0
        shares: Floats = (ends - begins) / (LAST_WORD + 1.0)
        return shares


@dataclass(frozen=True, eq=False)
class Routes:
    """The routes of a routing on one topology.

    ports: uint64 [switches, switches]; bit p of ports[t, v] allows a packet for a host of switch t to leave switch v by
    channel ``topology.out_start[v] + p``; 0 where t == v. With over 64 channels out of a switch uint64 [switches,
    switches, 2], bit p of ports[t, v, k] for channel 64 k + p. Empty for PATHS and DIGITS. select: RANDOM (TABLE,
    DIGITS: drawn once per hop; PATHS, VIA: once per packet), HASH (of the flow, and per hop of the switch), ADAPTIVE
    (evaluated every tick), or (VIA) UGAL_LOCAL or UGAL_GLOBAL: drawn as RANDOM, and compared with the minimal route
    when the packet is sent (``threshold``), or PROGRESSIVE: once more at the second switch of the same group, or
    (PATHS) LEAST_QUEUED: the best of several drawn when the packet is sent. deflection: whether packets may be sent to
    ports outside the set (hot-potato). hops_max: the longest route, in channels between switches (deflection: without
    deflections). vc_policy: ANY, HOP, ...; None: the default, see :func:`flitlab.models.routing.certificate.certify`.
    form: TABLE, PATHS, VIA (``ports`` are those of each leg), DIGITS or POLARIZED (always ADAPTIVE). paths: of PATHS.
    leg: uint8 [switches, switches], hops from s to t (VIA, POLARIZED). digits: (degree, shift) of DIGITS. layer: uint8,
    the layer of each path, or of each pair s * switches + t if there are no paths; layers: their number (LAYERED).
    escape: uint8 [switches, switches], port at v of the escape channel towards t at [t, v] (ESCAPE). group: int32
    [switches], of a dragonfly (GROUPS, PROGRESSIVE). port_threshold: uint8 [switches, switches, ports]: the first of
    ports[t, v] is taken whose threshold exceeds a draw of 8 bits, else the last, whose threshold is 255; None: all are
    equally likely (TABLE, VIA). draws: paths drawn per packet (LEAST_QUEUED).
    """

    kind: str
    ports: Masks
    select: int
    hops_max: int
    deflection: bool = False
    vc_policy: int | None = None
    notes: Notes = field(default_factory=dict)
    form: int = RouteForm.TABLE
    paths: PathTable | None = None
    leg: Bytes | None = None
    digits: tuple[int, int] | None = None
    layer: Bytes | None = None
    layers: int = 0
    escape: Bytes | None = None
    threshold: int = 0
    group: Ints32 | None = None
    port_threshold: Bytes | None = None
    draws: int = 1

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        parts: list[object] = [self.kind, self.ports, self.select, self.deflection, self.vc_policy, self.hops_max]
        if self.form != RouteForm.TABLE or self.vc_policy in (VcPolicy.LAYERED, VcPolicy.ESCAPE, VcPolicy.GROUPS):
            parts += [self.form, *(self.paths or ())[:3], self.digits, self.layers]
            if self.paths is not None and len(self.paths.threshold):
                parts.append(self.paths.threshold)
            parts += [array for array in (self.layer, self.escape, self.group) if array is not None]
        if self.select == Selection.LEAST_QUEUED:
            parts.append(self.draws)
        if self.port_threshold is not None:
            parts.append(self.port_threshold)
        if (
            self.select in (Selection.UGAL_LOCAL, Selection.UGAL_GLOBAL, Selection.PROGRESSIVE)
            or self.form == RouteForm.POLARIZED
        ):
            parts.append(self.threshold)
        return content_hash(*parts)

    @property
    def oblivious(self) -> bool:
        """Whether the routing split is fixed beforehand, so that path-restricted ceilings apply."""
        return not self.deflection and self.select in (Selection.RANDOM, Selection.HASH)

    @property
    def weighed(self) -> bool:
        """Whether its paths, or next hops, have weights."""
        return self.port_threshold is not None or (self.paths is not None and len(self.paths.threshold) > 0)

    def tables(self, topology: Topology, policy: int = VcPolicy.ANY) -> Tables:
        """The routes for compiled code, with the tables of the VC policy in force.

        Parameters
        ----------
        topology: the network.
        policy: VC policy, ANY, HOP, ...
        """
        paths = self.paths or PathTable(_NONE, _NONE, _NO_BYTES)
        degree, shift = self.digits or (0, 0)
        computed, by_leg = self.form in (RouteForm.DIGITS, RouteForm.POLARIZED), self.form == RouteForm.VIA
        rising = self.form == RouteForm.TABLE and policy == VcPolicy.RISING
        ends = computed or rising or self.select == Selection.PROGRESSIVE
        none = np.zeros((0, 0), np.uint8)
        rest = longest_paths(topology, self.ports) if rising else none
        return Tables(
            self.form, self.select, topology.switches, pack_ports(self.ports), *paths,
            none if self.leg is None else self.leg, topology.host_switch.astype(np.int64) if by_leg else _NONE,
            degree, shift,
            topology.out_start if computed else _NONE, topology.dst if ends else _NONE,
            _NO_BYTES if self.layer is None else self.layer, self.layers, none if self.escape is None else self.escape,
            np.zeros((0, 0, 0), np.uint8) if self.port_threshold is None else self.port_threshold,
            self.threshold, self.draws, max(self.hops_max, 1),
            np.zeros(0, np.int32) if self.group is None else self.group, rest,
        )  # fmt: skip
