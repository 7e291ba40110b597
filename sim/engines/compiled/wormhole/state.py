# SPDX-License-Identifier: Apache-2.0
"""Constants and state of a run of wormhole switching, and both at tick 0.

VCs are numbered input by input in the order of :mod:`flitlab.models.rules.ports`; behind the input VCs come those at
the hosts' end of the ejection channels. The upstream and the downstream end of a VC share its record. Record layouts
are documented here; kernels refer to them. NONE stands for no entity.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.allocate import AllocatorKind
from flitlab.models.rules.arrivals import Arrivals
from flitlab.models.rules.bits import WORD
from flitlab.models.rules.classes import ClassTables
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.ports import Ports, input_delays, make_ports
from flitlab.models.rules.tables import RouteForm, Selection, Tables
from flitlab.models.rules.vc import Rings, make_rings, reserved_vcs
from flitlab.models.scenario import Scenario
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.timeline.flit_ticks import flit_ticks_by_epoch
from flitlab.models.topology.flit_times import MAX_FLIT_TICKS, flit_times
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.compiled.flit_times import output_ticks
from flitlab.sim.engines.compiled.memory import aligned_records
from flitlab.sim.engines.compiled.messages import Program
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.records import (
    NONE,
    Net,
    RunCounters,
    draw_first_packets,
    make_common_state,
    make_net,
)
from flitlab.sim.engines.compiled.stalls import StallCounters
from flitlab.sim.engines.compiled.timing_wheel import TimingWheel, make_timing_wheel, schedule_all
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.crossbar import Crossbar, make_crossbar
from flitlab.sim.engines.compiled.wormhole.layout import U
from flitlab.sim.engines.compiled.wormhole.shared_queues import SharedQueues, make_shared_queues
from flitlab.sim.engines.compiled.wormhole.urgency import Urgency, make_urgency
from flitlab.sim.engines.compiled.wormhole.wavefront import Wavefront, make_wavefront

_NEAR_CACHE_BYTES = 1 << 19
"""Bytes of VC records up to which a network fits into a cache near the core."""

# A VC, a cache line.
_VC = np.dtype(
    [
        ("read_index", np.uint32),  # of the front flit in the ring buffer; 0 if the VC is empty
        ("write_index", np.uint32),  # of the next flit to arrive
        ("front_flit", np.uint32),
        ("blocked", np.uint32),  # reasons why the front flit cannot be sent: EMPTY | ...
        ("output", np.uint32),  # of the packet at the front
        ("next_vc", np.uint32),  # granted to the packet at the front
        ("credits", np.uint32),  # flits that may be sent into this VC
        ("holder", np.uint32),  # input VC whose packet holds this VC, or NONE
        (
            "last_requester",
            np.uint32,
        ),  # input VC that this VC was last granted to; with adaptive routing, ``flits_sent``
        # when the packet that it was last granted to will have been sent
        ("last_granted", np.uint32),  # VC last granted to a packet at the front of this VC
        ("switch", np.uint32),  # that has this input
        ("upstream", np.uint32),  # wait queue of packets for this VC, or ``wait_queues`` + host
        ("allowed_vcs", np.uint64),  # VCs of the output that the packet at the front may take, a bit each
        ("flits_sent", np.uint32),  # into this VC so far
        ("first_output", np.uint32),  # of the switch
    ]
)
# An output, as the crossbar sees it.
_OUTPUT = np.dtype(
    [
        ("best_bid", np.uint64),  # requests of this time, or the highest bid (see ``layout.py``)
        ("last_input", np.uint32),  # crossbar input that was served last
        ("queue", np.uint32),  # delay queue of its flits
    ]
)
# The VCs of an output, as VC allocation sees them, and the wait queue of the same number.
_VC_SET = np.dtype(
    [
        ("free", np.uint64),  # VCs that no packet holds, a bit each
        ("best_bid", np.uint64),  # requests of this time (see ``layout.py``)
        ("first", np.uint32),  # number of the first VC
        ("first_waiting", np.uint32),  # first input VC in the wait queue, or NONE
        ("last_waiting", np.uint32),  # last input VC in the wait queue, if any
        ("unused", np.uint32),
    ]
)
# An input of the crossbar.
_CROSSBAR_INPUT = np.dtype(
    [
        ("best_bid", np.uint64),  # requests of this time, or the highest bid (see ``layout.py``)
        ("vc", np.uint32),  # served last
        ("output", np.uint32),  # served last
    ]
)
# A delay queue; indices in ``WormholeState.entries``.
_QUEUE = np.dtype(
    [
        ("tick_begin", np.uint64),  # first entry of this tick
        ("end", np.uint64),  # one past the last entry
        ("first", np.uint64),  # first index of the queue
        ("last", np.uint64),  # last index at which a tick's entries may begin
        ("delay", np.int64),  # ticks
    ]
)
# The packet in injection of a source (see ``records.HOST``).
_INJECTING = np.dtype(
    [
        ("packet", np.uint32),  # or NONE
        ("flits_left", np.uint32),
        ("vc", np.uint32),  # of this packet, or of the previous one
        ("queue", np.uint32),  # delay queue of its flits
    ]
)


class WormholeConstants(NamedTuple):
    """Constants of a run of wormhole switching; times are in ticks."""

    net: Net
    vcs: int  # VCs of an input
    policy: int  # VC policy: ANY ... (flitlab.models.rules.tables)
    reserved_vcs: int  # VCs 0 .. reserved_vcs - 1 are taken only if no other VC has space
    rule: int  # selection among several routes or ports: RANDOM ...
    iterations: int  # of both allocators, per tick
    buffer_flits: int  # capacity of an input VC, the largest one where they differ
    vc_buffers: Ints | None  # int64 [input VCs]: capacity of each; None where all are equal
    header_ticks: int
    reads_headers: bool  # a head that has its VC may have to wait for its header
    credit_queue: np.ndarray | None  # uint32 [input VCs]: queue of the credits of each; None if one queue has all
    switch_queues_end: np.uint64  # first queue behind those of flits in flight to switches
    host_queues_end: np.uint64  # first queue behind those of flits in flight to hosts
    input_vcs: np.uint64
    buffer_mask: np.uint64  # capacity of a ring buffer, less 1
    due_bits: np.uint64  # log2 of the ticks of ``WormholeState.due``
    wait_queues: np.uint64  # of packets that wait for a VC: as many as outputs
    ready_capacity: np.uint64  # entries of each part of ``WormholeState.ready``: enough for all input VCs
    input_first: bool | None  # True with allocator separable_input_first; None, not False, omits its code
    crossbar_factor: np.uint64  # crossbar inputs in 2**CROSSBAR_SHIFT input VCs, rounded up; ports if there are several
    inputs_per_port: np.uint64 | None  # crossbar inputs of a port; None where it has one, or one for each VC
    output_ticks: Ints | None  # int64 [outputs]: ticks of a flit; None if all are 1
    host_ticks: int  # of a flit on the channel of a host
    exceeds_cache: bool  # VC records exceed a cache near the core, so that prefetching pays
    routes: Tables
    single_port: np.ndarray  # uint8 [switches * switches]: [v * switches + t], port of v towards t, or MULTIPLE_PORTS
    switch: np.ndarray  # uint32 [input VCs]
    rings: Rings


class WormholeState(NamedTuple):
    """State of a run of wormhole switching: all that changes.

    The last entry of ``ready``, ``new_heads`` and ``contenders`` is the length of the list between ticks.
    """

    pool: Pool
    vc: np.ndarray  # _VC [all VCs]
    output: np.ndarray  # _OUTPUT [outputs]
    free_at: Ints  # int64 [outputs]: tick from which each takes a flit, where channels differ in speed
    vc_set: np.ndarray  # _VC_SET [outputs]
    crossbar_input: np.ndarray  # _CROSSBAR_INPUT [crossbar inputs]
    flits: np.ndarray  # uint32 [capacity * input VCs]: ring buffers without front flits; index 0 of all VCs first
    best_offer: np.ndarray  # uint64 [all VCs]: bid of the input VC that a VC offers itself to
    ready: np.ndarray  # uint64 [3 * ready_capacity]: requests whose front flit can be sent in this tick, and in the
    # next (the first two parts, in turn), and scratch
    bids: np.ndarray  # uint64 [input VCs]: scratch, of contended requests
    new_heads: np.ndarray  # uint64 [more than input VCs]: head flit << 32 | the input VC whose front it has reached
    contenders: np.ndarray  # uint64 [input VCs + 1]: requests for VCs, some of which are free
    next_waiting: np.ndarray  # uint32 [input VCs]: next in the same wait queue
    to_retry: np.ndarray  # uint64: bitmap of wait queues for which a VC may be free
    member_bits: np.ndarray  # uint64: scratch, a bitmap of input VCs
    members: np.ndarray  # uint32 [more than VCs, wait queues or hosts]: scratch, a bitmap as a list
    queue: np.ndarray  # _QUEUE [delay queues]
    entries: np.ndarray  # uint64: flit << 32 | VC; entries of a queue, and those of a tick, are consecutive
    due: np.ndarray  # uint64 [queues << due_bits]: by tick, entries that leave the queue: first << 32 | end
    host: np.ndarray  # HOST [sources]
    injecting: np.ndarray  # _INJECTING [sources]
    active_hosts: Ints  # int64 [hosts + 1]: scratch, hosts of a tick
    host_wheel: TimingWheel
    wavefront: Wavefront | None  # None with other allocators
    crossbar: Crossbar | None  # of several steps per tick; None: one step
    urgency: Urgency | None  # of packets; None: no priorities
    shared_queues: SharedQueues | None  # None: every source has a queue of its own
    program: Program | None
    counters: RunCounters
    stalls: StallCounters | None  # None unless the run counts the traffic of channels


def make_constants_and_state(
    scenario: Scenario[Wormhole], arrivals: Arrivals, packets: Packets, seed: int, classes: ClassTables | None = None
) -> tuple[WormholeConstants, WormholeState]:
    """Make the constants and the state of a run at tick 0.

    Parameters
    ----------
    scenario: topology, routes, traffic and switching parameters.
    arrivals: when hosts create packets.
    packets: lengths in flits, and destinations, of these packets.
    seed: of all draws.
    classes: of traffic, None without.
    """
    ports = make_ports(scenario.topology)
    queues = _queues(scenario, ports)
    net = make_net(scenario.topology, ports, arrivals, packets, seed, classes)
    constants = _constants(scenario, net, ports, queues)
    state = _state(scenario, constants, ports, queues)
    draw_first_packets(constants, state)
    schedule_all(state.host_wheel, np.arange(scenario.topology.hosts), 0)
    return constants, state


def _constants(scenario: Scenario[Wormhole], net: Net, ports: Ports, queues: "_Queues") -> WormholeConstants:
    """Make the constants of a run."""
    topology, model = scenario.topology, scenario.switching
    inputs, outputs = len(ports.in_switch) * model.vcs, len(ports.out_input)
    tables = scenario.routes.tables(topology, model.vc_policy)
    sharing = 1 if model.inputs_per_port == model.vcs else model.vcs
    return WormholeConstants(
        net=net,
        vcs=model.vcs,
        policy=model.vc_policy,
        reserved_vcs=reserved_vcs(tables, model.vc_policy),
        rule=scenario.routes.select,
        iterations=model.iterations,
        buffer_flits=model.buffer_flits,
        vc_buffers=None if model.channel_buffers is None else _vc_buffers(topology, model, ports),
        header_ticks=model.header,
        reads_headers=_reads_headers(model),
        credit_queue=np.repeat(queues.of_credit, model.vcs).astype(np.uint32) if queues.of_credit.any() else None,
        switch_queues_end=U(queues.switch_queues_end),
        host_queues_end=U(queues.host_queues_end),
        input_vcs=U(inputs),
        buffer_mask=U((1 << _bits(model.buffer_flits)) - 1),
        due_bits=U(_bits(int(queues.delay.max()) + 1)),
        wait_queues=U(outputs),
        ready_capacity=U(inputs) + layout.FAR_PREFETCH_DISTANCE + U(1),
        input_first=True if model.matching == AllocatorKind.INPUT_FIRST else None,
        crossbar_factor=U(-(-(1 << int(layout.CROSSBAR_SHIFT)) // sharing)),
        inputs_per_port=U(model.inputs_per_port) if model.input_speedup else None,
        output_ticks=output_ticks(scenario, ports),
        host_ticks=flit_times(topology).host,
        exceeds_cache=inputs * _VC.itemsize > _NEAR_CACHE_BYTES,
        routes=tables,
        single_port=single_ports(scenario.routes),
        switch=np.repeat(ports.in_switch, model.vcs).astype(np.uint32),
        rings=make_rings(topology),
    )


def _state(
    scenario: Scenario[Wormhole], constants: WormholeConstants, ports: Ports, queues: "_Queues"
) -> WormholeState:
    """Make the state of a run before the first injection."""
    model, hosts, net = scenario.switching, scenario.topology.hosts, constants.net
    inputs, outputs = int(constants.input_vcs), len(ports.out_input)
    queue, entry_count = _queue_records(scenario.topology, model, ports, queues)
    # A packet in the network has its tail in a buffer, in flight to a buffer or a host, or is in injection.
    vc_buffers = _vc_buffers(scenario.topology, model, ports)
    packets_per_vc = (vc_buffers - 1) // int(constants.net.packets.flits.min()) + 1
    to_host = queues.delay[queues.of_output[ports.eject]]
    records = int(packets_per_vc.sum()) + int((to_host + 2).sum()) + net.sources - hosts
    ends = np.array([model.vcs]) if net.classes is None else net.classes.end_vc
    injecting = np.zeros(net.sources, _INJECTING)
    injecting["packet"], injecting["vc"] = NONE, (ports.inject * model.vcs + ends[:, None] - 1).ravel()
    injecting["queue"] = np.tile(queues.of_host, len(ends))
    return WormholeState(
        **make_common_state(scenario, net, records),
        vc=_vc_records(scenario, ports, vc_buffers),
        output=_output_records(queues.of_output),
        free_at=np.zeros(outputs, np.int64),
        vc_set=_vc_set_records(ports, model.vcs, hosts),
        crossbar_input=_crossbar_input_records(ports, model.inputs_per_port, model.vcs),
        flits=np.zeros(inputs * (int(constants.buffer_mask) + 1), np.uint32),
        best_offer=np.zeros(inputs + hosts * model.vcs, np.uint64),
        ready=np.zeros(3 * int(constants.ready_capacity), np.uint64),
        bids=np.zeros(inputs, np.uint64),
        new_heads=np.zeros(inputs + 2 + int(layout.FAR_PREFETCH_DISTANCE), np.uint64),
        contenders=np.zeros(inputs + 1, np.uint64),
        next_waiting=np.zeros(inputs, np.uint32),
        to_retry=np.zeros(-(-outputs // 64), np.uint64),
        member_bits=np.zeros(-(-inputs // 64), np.uint64),
        members=np.zeros(max(inputs, outputs) + 4, np.uint32),
        queue=queue,
        entries=np.zeros(entry_count, np.uint64),
        due=np.zeros(len(queues.delay) << int(constants.due_bits), np.uint64),
        injecting=injecting,
        active_hosts=np.zeros(hosts + 1, np.int64),
        host_wheel=make_timing_wheel(hosts, 256 if constants.output_ticks is None else 2 * MAX_FLIT_TICKS),
        wavefront=make_wavefront(model, ports),
        crossbar=make_crossbar(model, ports, vc_buffers.reshape(-1, model.vcs).sum(axis=1)),
        urgency=make_urgency(model, ports, hosts),
        shared_queues=make_shared_queues(scenario.traffic),
        stalls=None,
    )


def _reads_headers(model: Wormhole) -> bool:
    """Whether heads that have their VC may wait for their header: not at 1 tick in a crossbar of one step per tick."""
    return model.header > (1 if model.speedup == 1 else 0)


def _vc_buffers(topology: Topology, model: Wormhole, ports: Ports) -> Ints:
    """Capacity of each input VC in flits, int64 [input VCs]."""
    sizes = input_delays(ports, *np.split(model.buffers_of(topology), [topology.channels]))
    return np.repeat(sizes, model.vcs)


def _bits(size: int) -> int:
    """Find the log2 of the least power of two that is no less than ``size``."""
    return int(size - 1).bit_length()


class _Queues(NamedTuple):
    """Delay queues of a network, all int64.

    delay: [queues], ticks. of_output: [outputs], of the flits sent through it as built. outputs: [queues], those whose
    flits it has in some epoch. of_host: [hosts], of the flits it injects. of_credit: [inputs], of the credits for its
    VCs. switch_queues_end, host_queues_end: as in :class:`WormholeConstants`.
    """

    delay: Ints
    of_output: Ints
    outputs: Ints
    of_host: Ints
    of_credit: Ints
    switch_queues_end: int
    host_queues_end: int


def _queues(scenario: Scenario[Wormhole], ports: Ports) -> _Queues:
    """Make the delay queues that a network needs: one for each delay that a channel has in some epoch."""
    topology, model, of_hosts = scenario.topology, scenario.switching, flit_times(scenario.topology).host
    extra, kind = np.unique(topology.delay + flit_ticks_by_epoch(topology, scenario.timeline) - 1, return_inverse=True)
    injection, ejection = model.injection + of_hosts - 1, model.switch + model.ejection + of_hosts - 1
    fixed = [model.credit, model.header, ejection, injection]
    ejected = int(layout.NETWORK) + len(extra)
    access_delays, of_access = _distinct_delays(topology.access_delay)
    ejected += len(access_delays)
    returned = ejected + len(access_delays)
    credit_delays, of_credit = _distinct_delays(
        input_delays(ports, model.credit_delays(topology), topology.access_delay)
    )
    of_output = np.full(len(ports.out_channel), int(layout.EJECTED))
    network_outputs = ports.out_channel >= 0
    of_output[network_outputs] = int(layout.NETWORK) + kind[0, ports.out_channel[network_outputs]]
    of_output[ports.eject] = np.where(of_access < 0, int(layout.EJECTED), ejected + of_access)
    delay = np.concatenate(
        [
            fixed,
            model.switch + model.link + extra,
            injection + access_delays,
            fixed[2] + access_delays,
            model.credit + credit_delays,
        ]
    ).astype(np.int64)
    outputs = np.bincount(of_output[ports.eject], minlength=len(delay))
    of_channels = np.array([(kind == one).any(axis=0).sum() for one in range(len(extra))], np.int64)
    outputs[int(layout.NETWORK) : int(layout.NETWORK) + len(extra)] += of_channels
    return _Queues(
        delay=delay,
        of_output=of_output,
        outputs=outputs,
        of_host=np.where(of_access < 0, int(layout.INJECTED), ejected - len(access_delays) + of_access),
        of_credit=np.where(of_credit < 0, int(layout.RETURNED), returned + of_credit),
        switch_queues_end=ejected,
        host_queues_end=returned,
    )


def _distinct_delays(delays: Ints) -> tuple[Ints, Ints]:
    """List the distinct delays above 0, and the index of each delay in that list, -1 for 0; int64."""
    distinct = np.unique(delays[delays > 0])
    return distinct, np.where(delays > 0, np.searchsorted(distinct, delays), -1)


def _queue_records(topology: Topology, model: Wormhole, ports: Ports, queues: _Queues) -> tuple[np.ndarray, int]:
    """Make the records of empty delay queues, and count their entries.

    Entries of a tick are consecutive. A queue has room for the most entries at a time (those of a tick times the delay,
    at most the credits), twice those of a tick, prefetched entries, and one that is written and dropped.
    """
    delays, kinds = queues.delay, len(queues.delay)
    outputs, inputs = len(queues.of_output), len(queues.of_credit) * model.vcs
    per_tick = queues.outputs + np.bincount(queues.of_host, minlength=kinds)
    credits = np.bincount(queues.of_credit, minlength=kinds) * model.vcs
    per_tick += credits if model.speedup > 1 else np.minimum(credits, outputs)
    per_tick[int(layout.HEADERS)] = inputs if _reads_headers(model) else 0
    longest = per_tick * (delays + 1)
    credited = np.ones(kinds, bool)
    credited[[int(layout.EJECTED), *range(queues.switch_queues_end, queues.host_queues_end)]] = False
    longest[credited] = np.minimum(longest, int(_vc_buffers(topology, model, ports).sum()))[credited]
    longest[int(layout.HEADERS)] = per_tick[int(layout.HEADERS)]
    end = np.cumsum(longest + 2 * per_tick + int(layout.FAR_PREFETCH_DISTANCE) + 2)
    queue = np.zeros(kinds, _QUEUE)
    queue["tick_begin"][1:] = queue["end"][1:] = queue["first"][1:] = end[:-1]
    queue["last"], queue["delay"] = queue["first"] + longest + per_tick, delays
    return queue, int(end[-1])


def single_ports(routes: Routes) -> np.ndarray:
    """Compute ``single_port`` of :class:`WormholeConstants`; empty if routes are not a table."""
    if routes.form != RouteForm.TABLE:
        return np.zeros(0, np.uint8)
    ports = np.zeros(routes.ports.shape[:2], np.uint8)
    for single, port_sets in zip(ports, routes.ports, strict=True):
        for word, mask in enumerate(port_sets.reshape(len(single), -1).T):
            exponent = np.frexp(mask[mask != 0].astype(np.float64))[1]  # exact for powers of two
            single[mask != 0] = WORD * word + exponent - 1
        single[np.bitwise_count(port_sets).reshape(len(single), -1).sum(axis=1) > 1] = layout.MULTIPLE_PORTS
    return ports.T.ravel()


def _upstream_of(scenario: Scenario[Wormhole], ports: Ports) -> Ints:
    """Return the upstream of each input: its wait queue, or the number of outputs + its host."""
    outputs = len(ports.out_input)
    wait_queue = np.arange(outputs)
    if scenario.routes.select == Selection.ADAPTIVE:
        wait_queue = np.repeat(np.arange(scenario.topology.switches), np.diff(ports.out_base))
    return np.where(ports.in_output < 0, outputs - 1 - ports.in_output, wait_queue[ports.in_output])


def _vc_records(scenario: Scenario[Wormhole], ports: Ports, vc_buffers: Ints) -> np.ndarray:
    """Make the records of all VCs, empty; vc_buffers: capacity of each input VC."""
    model = scenario.switching
    inputs = len(ports.in_switch) * model.vcs
    vc = aligned_records(inputs + scenario.topology.hosts * model.vcs, _VC)
    vc["blocked"] = layout.EMPTY | layout.NO_VC
    vc["holder"] = vc["last_requester"] = vc["last_granted"] = NONE
    if scenario.routes.select == Selection.ADAPTIVE:
        vc["last_requester"] = 0
    vc["credits"][:inputs], vc["credits"][inputs:] = vc_buffers, layout.UNLIMITED_CREDITS
    vc["switch"][:inputs] = np.repeat(ports.in_switch, model.vcs)
    vc["upstream"][:inputs] = np.repeat(_upstream_of(scenario, ports), model.vcs)
    vc["allowed_vcs"] = 2**model.vcs - 1
    vc["first_output"][:inputs] = np.repeat(ports.out_base[ports.in_switch], model.vcs)
    return vc


def _output_records(queue_of: Ints) -> np.ndarray:
    """Make the records of all outputs; queue_of: delay queue of each."""
    output = aligned_records(len(queue_of), _OUTPUT)
    output["best_bid"] = 1
    output["last_input"] = NONE
    output["queue"] = queue_of
    return output


def _vc_set_records(ports: Ports, vcs: int, hosts: int) -> np.ndarray:
    """Make the records of the VCs of all outputs, all free."""
    vc_set = aligned_records(len(ports.out_input), _VC_SET)
    first = ports.out_input * vcs
    first[ports.eject] = (len(ports.in_switch) + np.arange(hosts)) * vcs
    vc_set["free"] = 2**vcs - 1
    vc_set["best_bid"] = 1
    vc_set["first"] = first
    vc_set["first_waiting"] = NONE
    return vc_set


def _crossbar_input_records(ports: Ports, inputs_per_port: int, vcs: int) -> np.ndarray:
    """Make the records of crossbar inputs, each with the VC before its first as that served last."""
    crossbar_input = aligned_records(len(ports.in_switch) * inputs_per_port, _CROSSBAR_INPUT)
    crossbar_input["best_bid"] = 1
    port, number = np.divmod(np.arange(len(crossbar_input)), inputs_per_port)
    crossbar_input["vc"] = port * vcs + number - 1
    crossbar_input["output"] = ports.out_base[np.repeat(ports.in_switch, inputs_per_port)] - 1
    return crossbar_input
