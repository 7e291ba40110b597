# SPDX-License-Identifier: Apache-2.0
"""What a run of virtual cut-through is made of: its constants, its state, and both at tick 0."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import interpreted
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.ports import Ports, input_delays, make_ports
from flitlab.models.rules.tables import Tables
from flitlab.models.rules.vc import Rings, last_resorts, make_rings
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.calendar_queue import CalendarQueue, make_calendar_queue
from flitlab.sim.engines.compiled.mailbox import Mailboxes, no_mailboxes
from flitlab.sim.engines.compiled.memory import aligned, aligned_records, round_to_cache_lines
from flitlab.sim.engines.compiled.messages import Program, make_program
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import HOST, NONE, PACKET, Net, RunCounters
from flitlab.sim.engines.compiled.timing_wheel import TimingWheel, make_timing_wheel, schedule_all, wheel_ticks
from flitlab.sim.engines.compiled.ugal import uses_congestion

# An input VC, half a cache line.
VC = np.dtype(
    [
        ("head_packet", np.uint32),  # the packet that is first in it
        ("last_packet", np.uint32),  # and the last one
        ("predecessor_left_at", np.uint32),  # tick at which the packet before them has left it
        ("credit_index", np.uint32),  # where its room is counted (see ``free_flits``)
        ("switch", np.uint32),
        (
            "queued_flits",
            np.uint32,
        ),  # flits of the packets in it that are routed and not granted, if congestion decides
        ("eligible_at", np.uint32),  # tick from which on its first packet may be granted
        (
            "remote_copy",
            np.uint32,
        ),  # of a VC between regions (see ``exchange``): the record that it has in the other one
    ]
)

# An output, a cache line.
OUTPUT = np.dtype(
    [
        ("busy_until", np.uint32),  # tick until which it is held
        ("requests_waiting", np.uint32),  # how many heads wait for it
        ("downstream_input", np.uint32),  # the input at its end,
        ("channel", np.uint32),  # and its channel, both NOBODY if it ejects
        ("first_requests", np.int64, 6),  # key and want of the first INLINE heads that wait, in order (see ``output``)
    ]
)
OUTPUT_WORDS, REQUESTS_WORD, INLINE_REQUESTS = 8, 2, 3

# What an output offers the adaptive head that is visited: a VC, and its cost (``rules.adaptive``).
OUT_VC, COST = range(2)


class VctConstants(NamedTuple):
    """The constants of a run of virtual cut-through; times are in ticks."""

    net: Net
    vcs: int  # of an input
    policy: int  # which VCs a packet may take: ANY ... (flitlab.models.routing.routes)
    reserved_vcs: int  # of the VCs, the first ones that are taken only if no other has room
    rule: int  # how one of several ways is chosen: RANDOM ...
    congestion_aware: bool | None  # True where that is by congestion, which else is not compiled (see ``ugal``)
    shared_input: bool  # whether an input sends one packet at a time
    oldest_first: bool  # whether the packet created first goes first, not the one that has waited longest
    buffer_flits: int  # room of an input VC
    header_ticks: int
    switch_ticks: int
    link_ticks: int
    injection_ticks: int
    ejection_ticks: int
    credit_ticks: int
    vc_bits: int  # the room of the VCs behind a sender has 1 << vc_bits places in ``VctState.free_flits``
    overflow_start: (
        int  # index in ``VctState.requests`` of the first word of the heads behind the first ones of output 0
    )
    overflow_words: int  # and words from there to those of the next output
    routes: Tables
    out_start: Ints  # int64 [switches + 1]: first channel of each switch
    delay: Ints  # int64 [channels]: ticks of each beyond ``link``
    access: Ints  # int64 [hosts]: ticks of each beyond ``injection`` and ``ejection``
    credit_delay: Ints  # int64 [inputs]: ticks of the credits of each beyond ``credit``
    delayed: bool  # whether any of these is more than 0
    rings: Rings


class VctState(NamedTuple):
    """The state of a run of virtual cut-through: all that changes."""

    pool: Pool
    vc: np.ndarray  # VC [input VCs]
    remote_partition: (
        np.ndarray
    )  # uint8 [input VCs]: of a VC between regions, the region at the other end plus 1; else 0
    free_flits: Words  # uint32 [(outputs + hosts) << vc_bits]: room of the VCs behind each, in flits
    returning_credits: CalendarQueue  # room on its way back, by the tick from which on it is usable
    input_busy: np.ndarray  # uint32 [inputs]
    output: np.ndarray  # OUTPUT [outputs]
    requests: Ints  # int64: the same memory, and behind it the keys and wants of the heads behind the first ones
    host: np.ndarray  # HOST [hosts]
    arriving: CalendarQueue  # packets by the tick at which they are ready to be routed
    ejecting: CalendarQueue  # packets by the tick at which their tail is delivered
    members: Words  # uint32 [more than outputs or hosts]: scratch, who is looked at
    cursor: Ints  # int64 [outputs of a switch]: scratch, places in their rows
    candidate: Ints  # int64 [outputs of a switch, 2]: scratch, see ``OUT_VC``
    in_use_cache: Ints  # int64 [outputs, 2]: credit in use behind each, and the tick in which it was counted (ADAPTIVE)
    output_wheel: TimingWheel
    host_wheel: TimingWheel
    mailboxes: Mailboxes
    program: Program | None
    counters: RunCounters


def build(scenario: Scenario[Vct], arrivals: Arrivals, packets: Packets, seed: int) -> tuple[VctConstants, VctState]:
    """Make the constants and the state of a run at tick 0.

    arrivals, packets: what hosts send. seed: of all draws.
    """
    topology, model = scenario.topology, scenario.switching
    ports = make_ports(topology)
    outputs, inputs, hosts = len(ports.out_input), len(ports.in_switch), topology.hosts
    shortest, longest = int(packets.flits.min()), int(packets.flits.max())
    packets_per_vc = model.buffer_flits // shortest
    horizon = longest + model.credit + model.switch + model.header + topology.longest_delay
    horizon += max(model.link, model.ejection, model.injection) + 2
    ticks = 1 << int(horizon - 1).bit_length()
    max_requests = int(np.diff(ports.in_base).max(initial=1)) * model.vcs
    overflow_words = round_to_cache_lines(2 * max(max_requests - INLINE_REQUESTS, 1), np.int64)
    vc_bits = (model.vcs - 1).bit_length()
    tables = scenario.routes.tables(topology, model.vc_policy)
    credit_delay = input_delays(ports, model.credit_delays(topology), topology.access_delay)
    constants = VctConstants(
        net=records.make_net(topology, ports, arrivals, packets, seed),
        vcs=model.vcs,
        policy=model.vc_policy,
        reserved_vcs=last_resorts(tables, model.vc_policy),
        rule=scenario.routes.select,
        congestion_aware=True if interpreted(uses_congestion)(scenario.routes.select) else None,
        shared_input=model.shared_input,
        oldest_first=model.oldest_first,
        buffer_flits=model.buffer_flits,
        header_ticks=model.header,
        switch_ticks=model.switch,
        link_ticks=model.link,
        injection_ticks=model.injection,
        ejection_ticks=model.ejection,
        credit_ticks=model.credit,
        vc_bits=vc_bits,
        overflow_start=outputs * OUTPUT_WORDS - 2 * INLINE_REQUESTS,
        overflow_words=overflow_words,
        routes=tables,
        out_start=topology.out_start,
        delay=topology.delay,
        access=topology.access_delay,
        credit_delay=credit_delay,
        delayed=topology.has_delays,
        rings=make_rings(topology),
    )
    # Credits bound what is in buffers and on its way to them, the ejection channel's rate what is leaving.
    pool = make_pool(inputs * model.vcs * packets_per_vc + int(max_ejecting(constants).sum()), PACKET)
    vc = make_vc_records(inputs * model.vcs)
    _set_upstream(vc, ports, model.vcs, vc_bits)
    requests = aligned(1, outputs * (OUTPUT_WORDS + overflow_words), np.int64)[0]
    output_records = requests[: outputs * OUTPUT_WORDS].view(OUTPUT)
    set_downstream(output_records, ports)
    state = VctState(
        pool=pool,
        vc=vc,
        remote_partition=np.zeros(len(vc), np.uint8),
        free_flits=np.full((outputs + hosts) << vc_bits, model.buffer_flits, np.uint32),
        returning_credits=make_credit_queue(ticks, _max_returning(model, ports, credit_delay, shortest, longest)),
        input_busy=np.zeros(inputs, np.uint32),
        output=output_records,
        requests=requests,
        host=aligned_records(hosts, HOST),
        arriving=make_calendar_queue(ticks, len(pool.packet)),
        ejecting=make_calendar_queue(ticks, len(pool.packet)),
        members=np.zeros(max(outputs, hosts) + 1, np.uint32),
        cursor=np.zeros(int(np.diff(ports.out_base).max()), np.int64),
        candidate=np.zeros((int(np.diff(ports.out_base).max()), 2), np.int64),
        in_use_cache=np.full((outputs, 2), -1, np.int64),
        output_wheel=make_timing_wheel(outputs, ticks),
        host_wheel=make_timing_wheel(hosts, wheel_ticks(ticks, hosts, typical_gap(arrivals))),
        mailboxes=no_mailboxes(),
        program=make_program(scenario),
        counters=records.make_counters(topology),
    )
    records.draw_first_packets(constants, state)
    schedule_all(state.host_wheel, np.arange(hosts), 0)
    return constants, state


def set_downstream(output_records: np.ndarray, ports: Ports) -> None:
    """Fill in the ends of outputs; rows: of outputs, ports: with numbers below 0, or NOBODY, where there are none."""
    output_records["downstream_input"], output_records["channel"] = ports.out_input, ports.out_channel


def make_credit_queue(ticks: int, packets: int) -> CalendarQueue:
    """Make empty lists of returning room, for so many packets' room in all."""
    return make_calendar_queue(ticks, packets, np.uint64)


def _max_returning(model: Vct, ports: Ports, credit_delay: Ints, shortest: int, longest: int) -> int:
    """Bound how many packets have room that is still on its way back.

    An output sends one packet at a time, and no more can be on their way to a sender than fit into the buffers. Packets
    have ``shortest`` to ``longest`` flits. credit_delay: of each input, as in the constants.
    """
    typical = len(ports.out_input) * ((longest + model.credit) // shortest + 2)
    per_input = model.vcs * (model.buffer_flits // shortest)
    delayed = credit_delay > 0
    return typical + int(np.minimum(model.vcs * (credit_delay[delayed] // shortest + 1), per_input).sum())


def max_ejecting(const: VctConstants) -> Ints:
    """Bound how many packets are on their way from its switch to each host, int64 [hosts]."""
    flits = const.net.packets.flits
    bound: Ints = (int(flits.max()) + const.switch_ticks + const.ejection_ticks + const.access) // int(flits.min()) + 2
    return bound


def make_vc_records(count: int) -> np.ndarray:
    """Make the records of so many input VCs, in which nothing is: VC [count]."""
    vc = aligned_records(count, VC)
    vc["head_packet"] = vc["last_packet"] = NONE
    return vc


def _set_upstream(vc: np.ndarray, ports: Ports, vcs: int, vc_bits: int) -> None:
    """Fill in where the input VCs of a network are, and where their room is counted."""
    vc["switch"] = np.repeat(ports.in_switch, vcs)
    upstream = np.where(ports.in_output >= 0, ports.in_output, len(ports.out_input) - 1 - ports.in_output)
    vc["credit_index"] = ((upstream[:, None] << vc_bits) + np.arange(vcs)).ravel()
