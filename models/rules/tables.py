# SPDX-License-Identifier: Apache-2.0
"""Routes as the decisions read them: numbers of forms, choices and policies, and arrays."""

from typing import NamedTuple

from flitlab.models.arrays import Bytes, Ints, Ints32, Words
from flitlab.models.rules.port_sets import PortSets


class _Selection(NamedTuple):
    """How one of the allowed routes is chosen (``select`` or ``per`` in a config)."""

    RANDOM: int = 0
    HASH: int = 1
    ADAPTIVE: int = 2
    UGAL_LOCAL: int = 3
    UGAL_GLOBAL: int = 4
    LEAST_QUEUED: int = 5
    """Of some paths drawn when a packet is sent, the one with the least expected time (PATHS)."""
    PROGRESSIVE: int = 6
    """As UGAL_LOCAL, and decided again at the second switch if that is in the same group (VIA)."""


Selection = _Selection()


class _RouteForm(NamedTuple):
    """The form of the allowed routes."""

    TABLE: int = 0  # a set of next hops for each switch and destination
    PATHS: int = 1  # whole paths for each pair of switches; one is drawn at the source
    VIA: int = 2  # next hops to an intermediate switch that is drawn at the source, and from there on
    DIGITS: int = 3  # next hops as in a table, computed from the numbers of the switches
    POLARIZED: int = 4  # next hops by the distances from the source and to the destination


RouteForm = _RouteForm()


class _VcPolicy(NamedTuple):
    """Which virtual channels a packet may take on a channel (``vc_policy`` in a config)."""

    ANY: int = 0
    HOP: int = 1
    DATELINE_ENTRY: int = 2
    DATELINE_CROSSING: int = 3
    LAYERED: int = 4
    LEGS: int = 5
    ESCAPE: int = 6
    GROUPS: int = 7
    RISING: int = 8
    RESERVE: int = 9


VcPolicy = _VcPolicy()

ESCAPE_VC = 0
"""The VC of the escape channels; the others are adaptive."""


class _MaxPorts(NamedTuple):
    """Largest out-degree of a switch."""

    MASK: int = 64  # where a port set is one 64-bit mask
    TABLE: int = 128  # where port sets are tables: of one mask, or two in a wide network
    PATH: int = 256  # where routes are whole paths


MaxPorts = _MaxPorts()


class Tables(NamedTuple):
    """The routes of a topology as the decisions of this package read them.

    Arrays that a form or a VC policy does not need are empty. form, rule: TABLE ... and RANDOM ... switches: their
    number. ports: bit p of the set of (t, v) allows a packet for switch t to leave switch v by channel
    out_start[v] + p. pair_start: int64 [switches**2 + 1], path_start: int64 [paths + 1], path_port: uint8
    [ports]: the paths of the pair (s, t) are those from pair_start[s * switches + t] on, and path p leaves its h-th
    switch by port path_port[path_start[p] + h] (PATHS). path_threshold: uint32 [paths], rising within a pair: the first
    path is taken whose threshold exceeds a draw of 32 bits, or else the last; empty: all are drawn alike. leg: uint8
    [switches, switches], hops from s to t (VIA, POLARIZED). host_switch: int64 [hosts]. degree, shift, out_start, dst:
    of a graph whose switch v reaches degree v + shift ... (DIGITS; out_start and dst also of POLARIZED, dst of
    TABLE under RISING and of PROGRESSIVE). layer: uint8, of each path, or of each pair s * switches + t if there
    are no paths; layers: how many there are (LAYERED). escape: uint8 [switches, switches], port at v of the escape
    channel towards t at [t, v] (ESCAPE). port_threshold: uint8 [switches, switches, ports]: of the ports allowed at
    [t, v] the first is taken whose threshold exceeds a draw of 8 bits, or else the last; empty: all are drawn alike
    (TABLE, VIA). threshold: of UGAL_LOCAL and PROGRESSIVE (flits times hops), UGAL_GLOBAL (flits) and POLARIZED
    (packets for a gain of 1). draws: of LEAST_QUEUED. classes: of HOP, RESERVE and POLARIZED, one for each channel
    of the longest route. group: int32 [switches], of a dragonfly (GROUPS, PROGRESSIVE). rest: uint8 [switches,
    switches], channels of the longest allowed path from switch v to t at [t, v], 255 also if there are more (RISING,
    TABLE).
    """

    form: int
    rule: int
    switches: int
    ports: PortSets
    pair_start: Ints
    path_start: Ints
    path_port: Bytes
    path_threshold: Words
    leg: Bytes
    host_switch: Ints
    degree: int
    shift: int
    out_start: Ints
    dst: Ints
    layer: Bytes
    layers: int
    escape: Bytes
    port_threshold: Bytes
    threshold: int
    draws: int
    classes: int
    group: Ints32
    rest: Bytes
