# SPDX-License-Identifier: Apache-2.0
"""Constants and state of a run of virtual cut-through, and both at tick 0.

Record layouts are documented here, with units; kernels refer to them. Indices and ticks are uint32; NONE stands for no
entity.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import interpreted
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.classes import ClassTables
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.ports import Ports, input_delays, make_ports
from flitlab.models.rules.tables import Tables
from flitlab.models.rules.vc import Rings, make_rings, reserved_vcs
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.models.timeline.flit_ticks import slowest_flit_of_epochs
from flitlab.models.topology.flit_times import flit_times
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.calendar_queue import CalendarQueue, calendar_ticks, make_calendar_queue
from flitlab.sim.engines.compiled.flit_times import output_ticks
from flitlab.sim.engines.compiled.mailbox import Mailboxes, no_mailboxes
from flitlab.sim.engines.compiled.memory import aligned, aligned_records, round_to_cache_lines
from flitlab.sim.engines.compiled.messages import Program
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.records import NONE, Net, RunCounters
from flitlab.sim.engines.compiled.stalls import StallCounters
from flitlab.sim.engines.compiled.timing_wheel import TimingWheel, make_timing_wheel, schedule_all, wheel_ticks
from flitlab.sim.engines.compiled.ugal import uses_congestion

# An input VC, half a cache line. A VC of a cut edge has a second record, a remote copy in the partition that feeds it.
VC = np.dtype(
    [
        ("head_packet", np.uint32),  # packet at the front, or NONE
        ("last_packet", np.uint32),  # packet at the end, or NONE
        ("predecessor_left_at", np.uint32),  # tick at which the tail of the previous head packet has left
        ("credit_index", np.uint32),  # index in VctState.free_flits of the free flits of this VC
        ("switch", np.uint32),
        ("queued_flits", np.uint32),  # flits of routed packets without a grant; counted if routing is congestion-aware
        ("eligible_at", np.uint32),  # tick from which on the head packet may be granted
        ("remote_copy", np.uint32),  # of a VC of a cut edge: the index of its other record
    ]
)

# An output, a cache line.
OUTPUT = np.dtype(
    [
        ("busy_until", np.uint32),  # tick at which the output is free again
        ("requests_waiting", np.uint32),  # requests of head packets for this output
        ("downstream_input", np.uint32),  # input at the end of the channel; NONE if the output ejects
        ("channel", np.uint32),  # NONE if the output ejects
        ("first_requests", np.int64, 6),  # age key and request of the first INLINE_REQUESTS head packets, oldest first
    ]
)
OUTPUT_WORDS, REQUESTS_WORD, INLINE_REQUESTS = 8, 2, 3
"""Layout of an output: its int64s, the word at which requests begin, and how many requests the record stores."""

OUT_VC, COST = range(2)
"""Columns of VctState.candidate: the VC that an output can grant to the visited head packet, and its cost in flits."""


class VctConstants(NamedTuple):
    """Constants of a run of virtual cut-through.

    Names that end with ``_ticks`` are times in ticks. ``delay``, ``access`` and ``credit_delay`` are extra ticks of
    single channels, on top of these; they include the further ticks of a flit on a slow channel.
    """

    net: Net
    vcs: int  # VCs of an input
    policy: int  # VC policy: ANY ... (flitlab.models.rules.tables)
    reserved_vcs: int  # VCs 0 .. reserved_vcs - 1 are taken only if no other VC has space
    rule: int  # selection among several routes or ports: RANDOM ...
    congestion_aware: bool | None  # True if routes depend on congestion; None, not False, keeps that code uncompiled
    shared_input: bool  # an input sends one packet at a time
    by_rank: bool  # arbitration by a rank of the packet before its waiting time: its creation, or its priority
    buffer_flits: int  # capacity of an input VC, the largest one where they differ
    input_buffers: Ints  # int64 [inputs]: capacity of each VC of an input, in flits
    output_buffers: Ints | None  # int64 [outputs]: that of the VCs behind an output; None where all are equal
    header_ticks: int
    switch_ticks: int
    link_ticks: int
    injection_ticks: int
    ejection_ticks: int
    credit_ticks: int
    vc_bits: int  # VctState.free_flits has 1 << vc_bits entries per upstream
    overflow_start: int  # index in VctState.requests of request INLINE_REQUESTS of output 0, less 2 * INLINE_REQUESTS
    overflow_words: int  # distance in VctState.requests between the overflow of two outputs
    routes: Tables
    out_start: Ints  # int64 [switches + 1]: first channel of each switch
    delay: Ints  # int64 [channels]: ticks on top of ``link_ticks``
    access: Ints  # int64 [hosts]: ticks on top of ``injection_ticks`` and ``ejection_ticks``
    credit_delay: Ints  # int64 [inputs]: ticks on top of ``credit_ticks``
    delayed: bool  # some extra ticks are not 0
    output_ticks: Ints | None  # int64 [outputs]: ticks of a flit, see flitlab.sim.engines.compiled.flit_times
    rings: Rings


class VctState(NamedTuple):
    """State of a run of virtual cut-through: all that changes.

    The *upstream* of a VC is what sends into it: an output, or the number of outputs + a host.
    """

    pool: Pool
    vc: np.ndarray  # VC [input VCs]
    remote_partition: np.ndarray  # uint8 [input VCs]: partition at the other end of a cut edge, plus 1; else 0
    free_flits: Words  # uint32 [(outputs + hosts) << vc_bits]: free flits of each downstream VC, as its upstream knows
    returning_credits: CalendarQueue  # credits in flight, by the tick from which on they are usable
    input_busy: np.ndarray  # uint32 [inputs]: tick at which a shared input is free again
    output: np.ndarray  # OUTPUT [outputs]
    requests: Ints  # int64: the memory of ``output``, and behind it the requests that its records cannot store
    host: np.ndarray  # HOST [hosts]
    arriving: CalendarQueue  # packets, by the tick at which they are ready to be routed
    ejecting: CalendarQueue  # packets, by the tick at which their tail is delivered
    members: Words  # uint32 [more than outputs or hosts]: scratch, the outputs or hosts of a tick
    cursor: Ints  # int64 [outputs of a switch]: scratch, index of the next request of each
    candidate: Ints  # int64 [outputs of a switch, 2]: scratch, columns OUT_VC and COST
    credits_in_use_cache: (
        Ints  # int64 [outputs, 2]: downstream credits in use, and the tick of this count (adaptive routing)
    )
    output_wheel: TimingWheel  # outputs to allocate, by tick
    host_wheel: TimingWheel  # hosts to evaluate, by tick
    mailboxes: Mailboxes
    program: Program | None
    counters: RunCounters
    stalls: StallCounters | None  # None unless the run counts the traffic of channels


def make_constants_and_state(
    scenario: Scenario[Vct], arrivals: Arrivals, packets: Packets, seed: int, classes: ClassTables | None = None
) -> tuple[VctConstants, VctState]:
    """Make the constants and the state of a run at tick 0.

    Parameters
    ----------
    scenario: topology, routes, traffic and switching parameters.
    arrivals: when hosts create packets.
    packets: lengths in flits, and destinations, of these packets.
    seed: of all draws.
    classes: of traffic, None without.

    Returns
    -------
    (constants, state). Pools and calendars hold the most packets and credits that can exist at a time.

    Raises
    ------
    ValueError
        A program has times too long to be counted in ticks.
    """
    topology, model = scenario.topology, scenario.switching
    ports = make_ports(topology)
    ticks_of_outputs, slowest = output_ticks(scenario, ports), slowest_flit_of_epochs(topology, scenario.timeline)
    outputs, inputs, hosts = len(ports.out_input), len(ports.in_switch), topology.hosts
    shortest, longest = int(packets.flits.min()), int(packets.flits.max())
    input_buffers = input_delays(ports, *np.split(model.buffers_of(topology), [topology.channels]))
    packets_per_input = model.vcs * (input_buffers // shortest)
    horizon = (longest + 1) * slowest - 1 + model.credit + model.switch + model.header + topology.longest_delay
    horizon += max(model.link, model.ejection, model.injection) + 2
    ticks = calendar_ticks(horizon)
    max_requests = int(np.diff(ports.in_base).max(initial=1)) * model.vcs
    overflow_words = round_to_cache_lines(2 * max(max_requests - INLINE_REQUESTS, 1), np.int64)
    vc_bits = (model.vcs - 1).bit_length()
    tables = scenario.routes.tables(topology, model.vc_policy)
    credit_delay = input_delays(ports, model.credit_delays(topology), topology.access_delay)
    constants = VctConstants(
        net=records.make_net(topology, ports, arrivals, packets, seed, classes),
        vcs=model.vcs,
        policy=model.vc_policy,
        reserved_vcs=reserved_vcs(tables, model.vc_policy),
        rule=scenario.routes.select,
        congestion_aware=True if interpreted(uses_congestion)(scenario.routes.select) else None,
        shared_input=model.shared_input,
        by_rank=model.oldest_first or model.priority == "class",
        buffer_flits=model.buffer_flits,
        input_buffers=input_buffers,
        output_buffers=None if model.channel_buffers is None else input_buffers[ports.out_input],
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
        delay=topology.delay + flit_times(topology).channel - 1,
        access=topology.access_delay + flit_times(topology).host - 1,
        credit_delay=credit_delay,
        delayed=topology.has_delays or ticks_of_outputs is not None,
        output_ticks=ticks_of_outputs,
        rings=make_rings(topology),
    )
    # Credits bound the packets in buffers and in flight to them; the rate of ejection channels bounds those ejecting.
    pool_records = int(packets_per_input.sum()) + int(max_packets_ejecting_per_host(constants).sum())
    vc = make_empty_vc_records(inputs * model.vcs)
    _fill_switches_and_credit_indices(vc, ports, model.vcs, vc_bits)
    requests = aligned(1, outputs * (OUTPUT_WORDS + overflow_words), np.int64)[0]
    output_records = requests[: outputs * OUTPUT_WORDS].view(OUTPUT)
    fill_downstream_inputs_and_channels(output_records, ports)
    state = VctState(
        **records.make_common_state(scenario, constants.net, pool_records),
        vc=vc,
        remote_partition=np.zeros(len(vc), np.uint8),
        free_flits=_initial_free_flits(ports, input_buffers, vc_bits),
        returning_credits=make_queue_of_returning_credits(
            ticks,
            _max_packets_with_returning_credits_in_network(
                model, ports, credit_delay, packets_per_input, shortest, longest
            ),
        ),
        input_busy=np.zeros(inputs, np.uint32),
        output=output_records,
        requests=requests,
        arriving=make_calendar_queue(ticks, pool_records),
        ejecting=make_calendar_queue(ticks, pool_records),
        members=np.zeros(max(outputs, hosts) + 1, np.uint32),
        cursor=np.zeros(int(np.diff(ports.out_base).max()), np.int64),
        candidate=np.zeros((int(np.diff(ports.out_base).max()), 2), np.int64),
        credits_in_use_cache=np.full((outputs, 2), -1, np.int64),
        output_wheel=make_timing_wheel(outputs, ticks),
        host_wheel=make_timing_wheel(hosts, wheel_ticks(ticks, hosts, typical_gap(arrivals))),
        mailboxes=no_mailboxes(),
        stalls=None,
    )
    records.draw_first_packets(constants, state)
    schedule_all(state.host_wheel, np.arange(hosts), 0)
    return constants, state


def fill_downstream_inputs_and_channels(output_records: np.ndarray, ports: Ports) -> None:
    """Fill in the downstream input and the channel of outputs.

    Parameters
    ----------
    output_records: OUTPUT [outputs].
    ports: port numbers of the network, NONE or negative where an output ejects.
    """
    output_records["downstream_input"], output_records["channel"] = ports.out_input, ports.out_channel


def make_queue_of_returning_credits(ticks: int, packets: int) -> CalendarQueue:
    """Make an empty calendar of returning credits.

    Parameters
    ----------
    ticks: horizon, a power of two.
    packets: packets whose credits can be in flight at a time.
    """
    return make_calendar_queue(ticks, packets, np.uint64)


def _max_packets_with_returning_credits_in_network(
    model: Vct, ports: Ports, credit_delay: Ints, packets_per_input: Ints, shortest: int, longest: int
) -> int:
    """Bound the packets whose credits are in flight.

    An output sends one packet at a time, and the credits of an upstream never exceed the buffers. Packets have
    ``shortest`` to ``longest`` flits; credit_delay: int64 [inputs], ticks on top of ``model.credit``;
    packets_per_input: int64 [inputs], packets that its buffers hold.
    """
    typical = len(ports.out_input) * ((longest + model.credit) // shortest + 2)
    delayed = credit_delay > 0
    sent = model.vcs * (credit_delay[delayed] // shortest + 1)
    return typical + int(np.minimum(sent, packets_per_input[delayed]).sum())


def _initial_free_flits(ports: Ports, input_buffers: Ints, vc_bits: int) -> Words:
    """Free flits of all downstream VCs, empty, by upstream: uint32 [(outputs + hosts) << vc_bits]."""
    downstream = np.concatenate([input_buffers[ports.out_input], input_buffers[ports.inject]])
    return np.repeat(downstream, 1 << vc_bits).astype(np.uint32)


def max_packets_ejecting_per_host(const: VctConstants) -> Ints:
    """Bound the packets in flight from its switch to each host, int64 [hosts]."""
    flits = const.net.packets.flits
    bound: Ints = (int(flits.max()) + const.switch_ticks + const.ejection_ticks + const.access) // int(flits.min()) + 2
    return bound


def make_empty_vc_records(count: int) -> np.ndarray:
    """Make the records of empty input VCs: VC [count]."""
    vc = aligned_records(count, VC)
    vc["head_packet"] = vc["last_packet"] = NONE
    return vc


def _fill_switches_and_credit_indices(vc: np.ndarray, ports: Ports, vcs: int, vc_bits: int) -> None:
    """Fill in the switch and the credit index of the input VCs of a network."""
    vc["switch"] = np.repeat(ports.in_switch, vcs)
    upstream = np.where(ports.in_output >= 0, ports.in_output, len(ports.out_input) - 1 - ports.in_output)
    vc["credit_index"] = ((upstream[:, None] << vc_bits) + np.arange(vcs)).ravel()
