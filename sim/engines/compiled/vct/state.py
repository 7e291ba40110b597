# SPDX-License-Identifier: Apache-2.0
"""What a run of virtual cut-through is made of: its constants, its state, and both at tick 0."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import interpreted
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.ports import Ports, make_ports
from flitlab.models.rules.tables import Tables
from flitlab.models.rules.vc import Rings, last_resorts, make_rings
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.due import Due, make_due
from flitlab.sim.engines.compiled.mail import Mail, no_mail
from flitlab.sim.engines.compiled.memory import aligned, records_in_lines, whole_lines
from flitlab.sim.engines.compiled.messages import Program, make_program
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import HOST, NOBODY, PACKET, Net, Tally
from flitlab.sim.engines.compiled.ugal import by_congestion
from flitlab.sim.engines.compiled.wheel import Wheel, make_wheel, ticks_for, wake_all

# An input VC, a cache line.
VC = np.dtype(
    [
        ("front", np.uint32),  # the packet that is first in it
        ("back", np.uint32),  # and the last one
        ("left", np.uint32),  # tick at which the packet before them has left it
        ("room", np.uint32),  # in flits
        ("returning", np.uint32),  # how many packets' room is on its way back upstream
        ("first_return", np.uint32),  # and where in the ring of those the next is
        ("switch", np.uint32),
        ("upstream", np.uint32),  # the output that feeds it, or the number of outputs + the host
        ("queued", np.uint32),  # flits of the packets in it that are routed and not granted, if congestion decides
        ("eligible", np.uint32),  # tick from which on its first packet may be granted
        ("lane", np.uint32),  # of a VC between regions (see ``exchange``): the region at the other end plus 1, or 0
        ("twin", np.uint32),  # and the record that the VC has there
        ("ring", np.uint32, 4),  # returning room, if it fits: tick from which on it is usable and flits, of each
    ]
)
_VC_WORDS, _RING_AT = 16, 12

# An output, a cache line.
OUTPUT = np.dtype(
    [
        ("busy", np.int64),  # tick until which it is held
        ("waiting", np.int64),  # how many heads wait for it
        ("lacking", np.int64),  # VCs at its end, a bit each, in which heads that wait have found no room
        ("end", np.int64),  # the input at its end and, from bit CHANNEL_AT on, its channel, both NOBODY if it ejects
        ("heads", np.int64, 4),  # key and want of the first INLINE heads that wait, in order (see ``rows``)
    ]
)
CHANNEL_AT, INLINE = 32, 2
OUTPUT_WORDS, HEADS_AT = 8, 4


class VctConstants(NamedTuple):
    """The constants of a run of virtual cut-through; times are in ticks."""

    net: Net
    vcs: int  # of an input
    policy: int  # which VCs a packet may take: ANY ... (flitlab.models.routing.routes)
    resorts: int  # of the VCs, the first ones that are taken only if no other has room
    rule: int  # how one of several ways is chosen: RANDOM ...
    compares: bool | None  # True where that is by congestion, which else is not compiled (see ``ugal``)
    shared_input: bool  # whether an input sends one packet at a time
    oldest_first: bool  # whether the packet created first goes first, not the one that has waited longest
    buffer_flits: int  # room of an input VC
    header: int
    switch: int
    link: int
    injection: int
    ejection: int
    credit: int
    ring: int  # capacity of an input VC's ring of returning room, a power of two
    ring_at: int  # the ring of VC 0 begins there in ``VctState.returns``,
    ring_shift: int  # and that of each following one 1 << ring_shift entries later
    routes: Tables
    out_start: Ints  # int64 [switches + 1]: first channel of each switch
    delay: Ints  # int64 [channels]: ticks of each beyond ``link``
    delayed: bool  # whether there are such channels
    rings: Rings


class VctState(NamedTuple):
    """The state of a run of virtual cut-through: all that changes."""

    pool: Pool
    vc: np.ndarray  # VC [input VCs]
    returns: Words  # uint32: the rings of returning room of all input VCs, in their records if they fit
    input_busy: np.ndarray  # uint32 [inputs]
    rows: np.ndarray  # OUTPUT [outputs]
    heads: Ints  # int64: the same memory, in which the heads of an output are from OUTPUT_WORDS * output + HEADS_AT on
    behind: Ints  # int64 [outputs, 2 * heads]: keys and wants of the heads behind the first ones of each output
    host: np.ndarray  # HOST [hosts]
    arriving: Due  # packets by the tick at which they are ready to be routed
    leaving: Due  # packets by the tick at which their tail is delivered
    members: Words  # uint32 [outputs or hosts]: scratch, who is looked at
    cursor: Ints  # int64 [outputs of a switch]: scratch, places in their rows
    used: Ints  # int64 [outputs, 2]: credit in use behind each, and the tick in which it was counted (POLARIZED)
    outputs: Wheel
    senders: Wheel
    mail: Mail
    program: Program | None
    tally: Tally


def build(scenario: Scenario[Vct], arrivals: Arrivals, packets: Packets, seed: int) -> tuple[VctConstants, VctState]:
    """Make the constants and the state of a run at tick 0.

    arrivals, packets: what hosts send. seed: of all draws.
    """
    topology, model = scenario.topology, scenario.switching
    ports = make_ports(topology)
    outputs, inputs, hosts = len(ports.out_input), len(ports.in_switch), topology.hosts
    shortest, longest = int(packets.flits.min()), int(packets.flits.max())
    slots = model.buffer_flits // shortest
    horizon = longest + model.credit + model.switch + model.header + int(topology.delay.max(initial=0))
    horizon += max(model.link, model.ejection, model.injection) + 2
    ticks = 1 << int(horizon - 1).bit_length()
    row = int(np.diff(ports.in_base).max(initial=1)) * model.vcs
    ring = 1 << (slots - 1).bit_length()
    tables = scenario.routes.tables(topology, model.vc_policy)
    constants = VctConstants(
        net=records.make_net(topology, ports, arrivals, packets, seed),
        vcs=model.vcs,
        policy=model.vc_policy,
        resorts=last_resorts(tables, model.vc_policy),
        rule=scenario.routes.select,
        compares=True if interpreted(by_congestion)(scenario.routes.select) else None,
        shared_input=model.shared_input,
        oldest_first=model.oldest_first,
        buffer_flits=model.buffer_flits,
        header=model.header,
        switch=model.switch,
        link=model.link,
        injection=model.injection,
        ejection=model.ejection,
        credit=model.credit,
        ring=ring,
        ring_at=_RING_AT if fits(ring) else 0,
        ring_shift=(_VC_WORDS if fits(ring) else 2 * ring).bit_length() - 1,
        routes=tables,
        out_start=topology.out_start,
        delay=topology.delay,
        delayed=bool(topology.delay.any()),
        rings=make_rings(topology),
    )
    # Credits bound what is in buffers and on its way to them, the ejection channel's rate what is leaving.
    leaving = hosts * ((longest + model.switch + model.ejection) // shortest + 2)
    pool = make_pool(inputs * model.vcs * slots + leaving, PACKET)
    vc, returns = make_vcs(inputs * model.vcs, ring)
    _set_places(vc, ports, model)
    rows = records_in_lines(outputs, OUTPUT)
    set_ends(rows, ports)
    state = VctState(
        pool=pool,
        vc=vc,
        returns=returns,
        input_busy=np.zeros(inputs, np.uint32),
        rows=rows,
        heads=rows.view(np.int64),
        behind=aligned(outputs, whole_lines(2 * max(row - INLINE, 1), np.int64), np.int64),
        host=records_in_lines(hosts, HOST),
        arriving=make_due(ticks, len(pool.packet)),
        leaving=make_due(ticks, len(pool.packet)),
        members=np.zeros(max(outputs, hosts), np.uint32),
        cursor=np.zeros(int(np.diff(ports.out_base).max()), np.int64),
        used=np.full((outputs, 2), -1, np.int64),
        outputs=make_wheel(outputs, ticks),
        senders=make_wheel(hosts, ticks_for(ticks, hosts, typical_gap(arrivals))),
        mail=no_mail(),
        program=make_program(scenario),
        tally=records.make_tally(topology),
    )
    records.first_packets(constants, state)
    wake_all(state.senders, np.arange(hosts), 0)
    return constants, state


def set_ends(rows: np.ndarray, ports: Ports) -> None:
    """Fill in the ends of outputs; rows: of outputs, ports: with numbers below 0, or NOBODY, where there are none."""
    entry, channel = ports.out_input.astype(np.uint32), ports.out_channel.astype(np.uint32)
    rows["end"] = entry.astype(np.int64) | channel.astype(np.int64) << CHANNEL_AT


def fits(ring: int) -> bool:
    """Tell whether a ring of so much returning room is in the record of its VC."""
    return _RING_AT + 2 * ring <= _VC_WORDS


def make_vcs(count: int, ring: int) -> tuple[np.ndarray, Words]:
    """Make the records of so many input VCs, in which nothing is, and their rings: (VC [count], uint32)."""
    vc = records_in_lines(count, VC)
    vc["front"] = vc["back"] = NOBODY
    return vc, vc.view(np.uint32) if fits(ring) else aligned(count, 2 * ring, np.uint32).reshape(-1)


def rings(const: VctConstants, state: VctState) -> Words:
    """Return the rings of returning room as a table, uint32 [VCs, 2 * ring]."""
    table: Words = state.returns.reshape(len(state.vc), -1)[:, const.ring_at : const.ring_at + 2 * const.ring]
    return table


def _set_places(vc: np.ndarray, ports: Ports, model: Vct) -> None:
    """Fill in where the input VCs of a network are, and their room."""
    vc["room"] = model.buffer_flits
    vc["switch"] = np.repeat(ports.in_switch, model.vcs)
    upstream = np.where(ports.in_output >= 0, ports.in_output, len(ports.out_input) - 1 - ports.in_output)
    vc["upstream"] = np.repeat(upstream, model.vcs)
