# SPDX-License-Identifier: Apache-2.0
"""What a run of virtual cut-through is made of: its constants, its state, and both at tick 0."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import interpreted
from flitlab.models.rules.arrivals import Arrivals
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.ports import Ports, make_ports
from flitlab.models.rules.tables import Tables
from flitlab.models.rules.vc import Rings, last_resorts, make_rings
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.due import Due, make_due
from flitlab.sim.engines.compiled.mail import Mail, no_mail
from flitlab.sim.engines.compiled.memory import aligned, whole_lines
from flitlab.sim.engines.compiled.messages import Program, make_program
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import NOBODY, RECORD, Net, Tally
from flitlab.sim.engines.compiled.ugal import by_congestion
from flitlab.sim.engines.compiled.wheel import Wheel, make_wheel, wake

# Fields of an input VC record, uint32.
FRONT, BACK, LEFT, ROOM, RETURNS, FIRST_RETURN, SWITCH, UPSTREAM, QUEUED, ELIGIBLE, LANE, TWIN, RING = range(13)
# UPSTREAM: the output that feeds it, or the number of outputs + the host. QUEUED: flits of the packets in it that are
# routed and not granted, where congestion decides on ways. ELIGIBLE: the tick from which on its front packet may be
# granted. LANE, TWIN: of a VC between regions (see ``exchange``), the region at the other end of its channel, plus 1,
# and the record that the VC has there; LANE is 0 for all others.
# From RING on: pairs (tick, flits) of room on its way back upstream, a ring of them.

# Fields of an output's record, int64.
BUSY, WAITING, LACKING, END, KEYS, WANTS = range(6)
# BUSY: held until this tick. WAITING: how many heads wait for it. LACKING: VCs at its end, a bit each, in which heads
# that wait have found no room. END: the input at its end and, from bit CHANNEL_AT on, its channel, both NOBODY if it
# ejects. The i-th head that waits, who goes first first, has its key at KEYS + 2 i and what it wants at WANTS + 2 i if
# there are fewer than INLINE before it (see ``rows``).
CHANNEL_AT, INLINE = 32, 2
OUTPUT_RECORD = KEYS + 2 * INLINE


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
    routes: Tables
    out_start: Ints  # int64 [switches + 1]: first channel of each switch
    delay: Ints  # int64 [channels]: ticks of each beyond ``link``
    delayed: bool  # whether there are such channels
    rings: Rings


class VctState(NamedTuple):
    """The state of a run of virtual cut-through: all that changes."""

    pool: Pool
    vc: np.ndarray  # uint32 [input VCs, record]
    input_busy: np.ndarray  # uint32 [inputs]
    rows: Ints  # int64 [outputs, OUTPUT_RECORD]
    behind: Ints  # int64 [outputs, 2 * heads]: keys and wants of the heads behind the first ones of each output
    host: Ints  # int64 [hosts, HOST_RECORD]
    arriving: Due  # packets by the tick at which they are ready to be routed
    leaving: Due  # packets by the tick at which their tail is delivered
    members: Ints  # int64 [outputs or hosts]: scratch, who is looked at
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
        routes=tables,
        out_start=topology.out_start,
        delay=topology.delay,
        delayed=bool(topology.delay.any()),
        rings=make_rings(topology),
    )
    # Credits bound what is in buffers and on its way to them, the ejection channel's rate what is leaving.
    leaving = hosts * ((longest + model.switch + model.ejection) // shortest + 2)
    pool = make_pool(inputs * model.vcs * slots + leaving, RECORD)
    rows = aligned(outputs, OUTPUT_RECORD, np.int64)
    set_ends(rows, ports)
    state = VctState(
        pool=pool,
        vc=_vc_records(ports, model, ring),
        input_busy=np.zeros(inputs, np.uint32),
        rows=rows,
        behind=aligned(outputs, whole_lines(2 * max(row - INLINE, 1), np.int64), np.int64),
        host=np.zeros((hosts, records.HOST_RECORD), np.int64),
        arriving=make_due(ticks, len(pool.packet)),
        leaving=make_due(ticks, len(pool.packet)),
        members=np.zeros(max(outputs, hosts), np.int64),
        cursor=np.zeros(int(np.diff(ports.out_base).max()), np.int64),
        used=np.full((outputs, 2), -1, np.int64),
        outputs=make_wheel(outputs, ticks),
        senders=make_wheel(hosts, ticks),
        mail=no_mail(),
        program=make_program(scenario),
        tally=records.make_tally(topology),
    )
    records.first_packets(constants, state)
    for host in range(hosts):
        wake(state.senders, host, 0)
    return constants, state


def set_ends(rows: Ints, ports: Ports) -> None:
    """Fill in the ends of outputs; rows: of outputs, ports: with numbers below 0, or NOBODY, where there are none."""
    entry, channel = ports.out_input.astype(np.uint32), ports.out_channel.astype(np.uint32)
    rows[:, END] = entry.astype(np.int64) | channel.astype(np.int64) << CHANNEL_AT


def _vc_records(ports: Ports, model: Vct, ring: int) -> np.ndarray:
    """Make the records of all input VCs, empty; ring: pairs that each has for room on its way back."""
    vc = aligned(len(ports.in_switch) * model.vcs, whole_lines(RING + 2 * ring, np.uint32), np.uint32)
    vc[:, FRONT] = vc[:, BACK] = NOBODY
    vc[:, ROOM] = model.buffer_flits
    vc[:, SWITCH] = np.repeat(ports.in_switch, model.vcs)
    upstream = np.where(ports.in_output >= 0, ports.in_output, len(ports.out_input) - 1 - ports.in_output)
    vc[:, UPSTREAM] = np.repeat(upstream, model.vcs)
    return vc
