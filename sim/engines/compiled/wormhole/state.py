# SPDX-License-Identifier: Apache-2.0
"""What a run of wormhole switching is made of: its constants, its state, and both at tick 0.

VCs are numbered input by input in the order of :mod:`flitlab.models.rules.ports`; behind the input VCs come those at
the hosts' end of the ejection channels. The sending and the receiving side of a VC share its record.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.arrivals import Arrivals
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.ports import Ports, input_delays, make_ports
from flitlab.models.rules.tables import ADAPTIVE, TABLE, Tables
from flitlab.models.rules.vc import Rings, last_resorts, make_rings
from flitlab.models.scenario import Scenario
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.compiled.memory import aligned_records
from flitlab.sim.engines.compiled.messages import Program, make_program
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import (
    HOST,
    NONE,
    PACKET,
    Net,
    RunCounters,
    draw_first_packets,
    make_counters,
    make_net,
)
from flitlab.sim.engines.compiled.timing_wheel import TimingWheel, make_timing_wheel, schedule_all

U = np.uint64
ONE = U(1)

PREFETCH_DISTANCE = U(12)
"""How many entries of a list ahead memory is asked for; whatever stands behind the last one was an entry before."""

FAR_PREFETCH_DISTANCE = U(32)
"""The same, where what is asked for says what to ask for ``PREFETCH_DISTANCE`` entries ahead."""

# Why the front flit of an input VC cannot be sent: there is none, its packet has no output VC, that has no credit,
# its header has not been read.
EMPTY, NO_VC, NO_CREDIT, UNREAD = U(1), U(2), U(4), U(8)

# Requests: an input VC and, above, the output that its front packet goes to.
OUTPUT_SHIFT, VC_MASK = U(32), U(0xFFFFFFFF)

# Flits: the packet, and whether this is its first or last flit.
TAIL, HEAD, PACKET_SHIFT = U(1), U(2), U(2)

VC_BITS = 26
"""Bits of the number of an input VC: the records of more would take 4 GiB."""

CROSSBAR_SHIFT = U(VC_BITS + 8)
"""Bits to drop of the product that gives the input of the crossbar; no more than 64 VCs share one, so it is exact."""

_NEAR_CACHE_BYTES = 1 << 19
"""Bytes of VCs' records up to which a network is taken to fit into a cache near the core."""

UNLIMITED_CREDITS = 1 << 30
"""Credits for a host."""

MULTIPLE_PORTS = U(255)
"""Instead of a port, where routes allow several."""

# Queues of what happens after a fixed delay: credits that return, headers that are read, flits on their way to hosts,
# to switches from hosts, and to switches over network channels, one for each delay of such a channel. Where hosts'
# channels have delays of their own there is one more queue for each of these: behind the last of the network those of
# flits from hosts, then those of flits to hosts. Then comes one for each further delay that credits have.
RETURNED, HEADERS, EJECTED, INJECTED, NETWORK = np.arange(5, dtype=np.uint64)

_VC = np.dtype(
    [
        ("front", np.uint32),  # places in the buffer, from 0 when it is empty: of the front flit, which is ``flit``,
        ("landed", np.uint32),  # and of the next that arrives
        ("flit", np.uint32),  # the front one
        ("blocked", np.uint32),  # reasons why the front flit cannot be sent
        ("output", np.uint32),  # that the front packet goes to
        ("next_vc", np.uint32),  # the VC there that it has been given
        ("credits", np.uint32),  # flits that may be sent here
        ("holder", np.uint32),  # the input VC whose packet has it, or NOBODY
        (
            "last_requester",
            np.uint32,
        ),  # the input VC that it was last given to; if routing is adaptive, ``carried`` when the
        # packet that it was last given to has been sent
        ("last_granted", np.uint32),  # the VC that was last given to the packet at its front
        ("switch", np.uint32),  # whose input it is
        ("upstream", np.uint32),  # the line in which packets wait for it, or ``wait_queues`` + its host
        ("allowed_vcs", np.uint64),  # VCs of the output that the front packet may take
        ("carried", np.uint32),  # flits sent here so far
        ("first_output", np.uint32),  # first output of its switch
    ]
)
_OUTPUT = np.dtype(
    [
        ("best_bid", np.uint64),  # who asks for it, or the best bid (see ``bids``)
        ("last_input", np.uint32),  # the input that was served last
        ("queue", np.uint32),  # of flits that are sent through it
    ]
)
_VC_SET = np.dtype(
    [
        ("free", np.uint64),  # VCs of the output that no packet has
        ("best_bid", np.uint64),  # who asks for them (see ``bids``)
        ("first", np.uint32),  # the first VC of all
        ("first_waiting", np.uint32),  # the first in the line of the same number of those who wait for a VC, or NOBODY
        ("last", np.uint32),  # and the last, if there is one
        ("unused", np.uint32),
    ]
)
_CROSSBAR_INPUT = np.dtype(
    [
        ("best_bid", np.uint64),  # who asks, or the best bid (see ``bids``)
        ("vc", np.uint32),  # that was served last
        ("output", np.uint32),  # the same
    ]
)
_QUEUE = np.dtype(
    [
        ("begun", np.uint64),  # places in ``WormholeState.entries``: of the first entry that was added in this tick,
        ("end", np.uint64),  # one past the last,
        ("first", np.uint64),  # the first place of all,
        ("last", np.uint64),  # and the last at which the entries of a tick may begin
        ("delay", np.int64),
    ]
)
_INJECTING = np.dtype(
    [
        ("packet", np.uint32),
        ("flits_left", np.uint32),
        ("vc", np.uint32),  # also that of the last packet
        ("queue", np.uint32),  # of the flits that are sent
    ]
)


class WormholeConstants(NamedTuple):
    """The constants of a run of wormhole switching; times are in ticks."""

    net: Net
    vcs: int  # of an input
    policy: int  # which VCs a packet may take: ANY ... (flitlab.models.routing.routes)
    reserved_vcs: int  # of the VCs, the first ones that are taken only if no other has room
    rule: int  # how one of several ways is chosen: RANDOM ...
    iterations: int  # of both allocations, in a tick
    buffer_flits: int  # room of an input VC
    header_ticks: int
    returning: np.ndarray | None  # uint32 [input VCs]: the queue of the credits of each; None where all are in one
    ejected: np.uint64  # the first queue behind those of flits on their way to switches,
    returned: np.uint64  # and behind those of flits on their way to hosts
    inputs: np.uint64  # input VCs
    buffer_mask: np.uint64  # places in a buffer, less 1
    ticks: np.uint64  # log2 of the ticks of ``WormholeState.due``
    wait_queues: np.uint64  # in which packets wait for a VC, as many as outputs
    ready_capacity: np.uint64  # places in each part of ``WormholeState.ready``, enough for all input VCs
    entries: np.uint64  # inputs of crossbars in 2**ENTRIES_AT input VCs, rounded up
    exceeds_cache: (
        bool  # whether its records do not fit into a cache near the core, so that it pays to ask for them early
    )
    routes: Tables
    single_port: np.ndarray  # uint8 [switches * switches]: at v * switches + t, the port of v towards t, or SEVERAL
    switch: np.ndarray  # uint32 [input VCs]
    rings: Rings


class WormholeState(NamedTuple):
    """The state of a run of wormhole switching: all that changes."""

    pool: Pool
    vc: np.ndarray  # records of all VCs
    output: np.ndarray  # records of all outputs, as the crossbar sees them
    vc_set: np.ndarray  # records of the VCs of all outputs, as packets that want one see them
    crossbar_input: np.ndarray  # records of all inputs of crossbars
    flits: np.ndarray  # uint32 [places * input VCs]: buffers but for front flits; the first places, mostly in use,
    # together
    best_offer: np.ndarray  # uint64 [VCs]: bid of the input VC to which a VC offers itself
    ready: np.ndarray  # uint64 [3 * const.spare]: requests of those whose front flit can be sent in this tick, in the
    # next (the first two parts, in turn), and scratch; how many, in the last entry
    bids: np.ndarray  # uint64 [input VCs]: scratch, of those of them who ask for the same as another
    new_heads: np.ndarray  # uint64 [more than input VCs]: head << 32 | the VC to whose front it has come; how many, in
    # the last entry
    contenders: np.ndarray  # uint64 [input VCs + 1]: requests of who asks for VCs, some of them free; how many, in the
    # last entry
    next_waiting: np.ndarray  # uint32 [input VCs]: the next that waits for a VC in the same line
    to_retry: np.ndarray  # uint64: bitmap of lines in which a packet may be given a VC
    member_bits: np.ndarray  # uint64: scratch, a bitmap of input VCs
    members: np.ndarray  # uint32 [more than VCs, lines or hosts]: scratch, a bitmap as a list
    queue: np.ndarray  # records of all queues
    entries: np.ndarray  # uint64: flit << 32 | VC; those of a queue together, and those of a tick in a row
    due: np.ndarray  # uint64 [queues << const.ticks]: by tick, the entries that come out then: first << 32 | end
    host: np.ndarray  # HOST [hosts]
    injecting: np.ndarray  # records of what the hosts are sending
    active_hosts: Ints  # int64 [hosts + 1]: scratch, who is looked at
    host_wheel: TimingWheel
    program: Program | None
    counters: RunCounters


def build(
    scenario: Scenario[Wormhole], arrivals: Arrivals, packets: Packets, seed: int
) -> tuple[WormholeConstants, WormholeState]:
    """Make the constants and the state of a run at tick 0.

    arrivals, packets: what hosts send. seed: of all draws.
    """
    ports = make_ports(scenario.topology)
    queues = _queues(scenario.topology, scenario.switching, ports)
    constants = _constants(scenario, arrivals, packets, seed, ports, queues)
    state = _state(scenario, constants, ports, queues)
    draw_first_packets(constants, state)
    schedule_all(state.host_wheel, np.arange(scenario.topology.hosts), 0)
    return constants, state


def _constants(
    scenario: Scenario[Wormhole], arrivals: Arrivals, packets: Packets, seed: int, ports: Ports,
    queues: "_Queues",
) -> WormholeConstants:  # fmt: skip
    """Make the constants of a run."""
    topology, model = scenario.topology, scenario.switching
    inputs, outputs = len(ports.in_switch) * model.vcs, len(ports.out_input)
    tables = scenario.routes.tables(topology, model.vc_policy)
    return WormholeConstants(
        net=make_net(topology, ports, arrivals, packets, seed),
        vcs=model.vcs,
        policy=model.vc_policy,
        reserved_vcs=last_resorts(tables, model.vc_policy),
        rule=scenario.routes.select,
        iterations=model.iterations,
        buffer_flits=model.buffer_flits,
        header_ticks=model.header,
        returning=np.repeat(queues.of_credit, model.vcs).astype(np.uint32) if queues.of_credit.any() else None,
        ejected=U(queues.ejected),
        returned=U(queues.returned),
        inputs=U(inputs),
        buffer_mask=U((1 << _bits(model.buffer_flits)) - 1),
        ticks=U(_bits(int(queues.delay.max()) + 1)),
        wait_queues=U(outputs),
        ready_capacity=U(inputs) + FAR_PREFETCH_DISTANCE + ONE,
        entries=U(-(-(1 << int(CROSSBAR_SHIFT)) // (model.vcs if model.shared_input else 1))),
        exceeds_cache=inputs * _VC.itemsize > _NEAR_CACHE_BYTES,
        routes=tables,
        single_port=single_ports(scenario.routes),
        switch=np.repeat(ports.in_switch, model.vcs).astype(np.uint32),
        rings=make_rings(topology),
    )


def _state(
    scenario: Scenario[Wormhole], constants: WormholeConstants, ports: Ports, queues: "_Queues"
) -> WormholeState:
    """Make the state of a run in which no host has sent anything."""
    model, hosts = scenario.switching, scenario.topology.hosts
    inputs, outputs = int(constants.inputs), len(ports.out_input)
    queue, entry_count = _queue_records(model, queues)
    width = model.vcs if model.shared_input else 1
    # A packet in the network has its tail in a buffer or on its way to one or to a host, or is being sent.
    packets_per_vc = (model.buffer_flits - 1) // int(constants.net.packets.flits.min()) + 1
    to_host = queues.delay[queues.of_output[ports.eject]]
    records = inputs * packets_per_vc + int((to_host + 2).sum())
    injecting = np.zeros(hosts, _INJECTING)
    injecting["packet"], injecting["vc"] = NONE, (ports.inject + 1) * model.vcs - 1
    injecting["queue"] = queues.of_host
    return WormholeState(
        pool=make_pool(records, PACKET),
        vc=_vc_records(scenario, ports),
        output=_output_records(queues.of_output),
        vc_set=_vc_set_records(ports, model.vcs, hosts),
        crossbar_input=_crossbar_input_records(ports, width, model.vcs),
        flits=np.zeros(inputs * (int(constants.buffer_mask) + 1), np.uint32),
        best_offer=np.zeros(inputs + hosts * model.vcs, np.uint64),
        ready=np.zeros(3 * int(constants.ready_capacity), np.uint64),
        bids=np.zeros(inputs, np.uint64),
        new_heads=np.zeros(inputs + 2 + int(FAR_PREFETCH_DISTANCE), np.uint64),
        contenders=np.zeros(inputs + 1, np.uint64),
        next_waiting=np.zeros(inputs, np.uint32),
        to_retry=np.zeros(-(-outputs // 64), np.uint64),
        member_bits=np.zeros(-(-inputs // 64), np.uint64),
        members=np.zeros(max(inputs, outputs) + 4, np.uint32),
        queue=queue,
        entries=np.zeros(entry_count, np.uint64),
        due=np.zeros(len(queues.delay) << int(constants.ticks), np.uint64),
        host=aligned_records(hosts, HOST),
        injecting=injecting,
        active_hosts=np.zeros(hosts + 1, np.int64),
        host_wheel=make_timing_wheel(hosts, 256),
        program=make_program(scenario),
        counters=make_counters(scenario.topology),
    )


def _bits(size: int) -> int:
    """Find the log2 of the least power of two that is no less than ``size``."""
    return int(size - 1).bit_length()


class _Queues(NamedTuple):
    """Which queue entries go to, all int64.

    delay: [queues], ticks. of_output: [outputs], of flits that are sent through it. of_host: [hosts], of flits that it
    sends. of_credit: [inputs], of the credits for its VCs. ejected, returned: as in :class:`WormholeConstants`.
    """

    delay: Ints
    of_output: Ints
    of_host: Ints
    of_credit: Ints
    ejected: int
    returned: int


def _queues(topology: Topology, model: Wormhole, ports: Ports) -> _Queues:
    """Make the queues that a network needs."""
    extra, kind = np.unique(topology.delay, return_inverse=True)
    fixed = [model.credit, model.header, model.switch + model.ejection, model.injection]
    ejected = int(NETWORK) + len(extra)
    access_delays, of_access = _distinct_delays(topology.access_delay)
    ejected += len(access_delays)
    returned = ejected + len(access_delays)
    credit_delays, of_credit = _distinct_delays(
        input_delays(ports, model.credit_delays(topology), topology.access_delay)
    )
    of_output = np.full(len(ports.out_channel), int(EJECTED))
    network_outputs = ports.out_channel >= 0
    of_output[network_outputs] = int(NETWORK) + kind[ports.out_channel[network_outputs]]
    of_output[ports.eject] = np.where(of_access < 0, int(EJECTED), ejected + of_access)
    return _Queues(
        delay=np.concatenate(
            [
                fixed,
                model.switch + model.link + extra,
                model.injection + access_delays,
                fixed[2] + access_delays,
                model.credit + credit_delays,
            ]
        ).astype(np.int64),
        of_output=of_output,
        of_host=np.where(of_access < 0, int(INJECTED), ejected - len(access_delays) + of_access),
        of_credit=np.where(of_credit < 0, int(RETURNED), returned + of_credit),
        ejected=ejected,
        returned=returned,
    )


def _distinct_delays(delays: Ints) -> tuple[Ints, Ints]:
    """List the delays above 0, and where in that list each is, -1 for 0; int64."""
    access_delays = np.unique(delays[delays > 0])
    return access_delays, np.where(delays > 0, np.searchsorted(access_delays, delays), -1)


def _queue_records(model: Wormhole, queues: _Queues) -> tuple[np.ndarray, int]:
    """Make the records of all queues, empty, and count the places that they need.

    The entries of a tick are in a row. So there is room for as many as there can be, which is what a tick can add times
    the delay and no more than there are credits for, and twice what a tick can add; also for entries that are read
    ahead, and for one that is written and not kept.
    """
    delays, kinds = queues.delay, len(queues.delay)
    outputs, inputs = len(queues.of_output), len(queues.of_credit) * model.vcs
    per_tick = np.bincount(queues.of_output, minlength=kinds) + np.bincount(queues.of_host, minlength=kinds)
    per_tick += np.minimum(np.bincount(queues.of_credit, minlength=kinds) * model.vcs, outputs)
    per_tick[int(HEADERS)] = inputs if model.header > 1 else 0
    longest = per_tick * (delays + 1)
    credited = np.ones(kinds, bool)
    credited[[int(EJECTED), *range(queues.ejected, queues.returned)]] = False
    longest[credited] = np.minimum(longest, inputs * model.buffer_flits)[credited]
    longest[int(HEADERS)] = per_tick[int(HEADERS)]
    end = np.cumsum(longest + 2 * per_tick + int(FAR_PREFETCH_DISTANCE) + 2)
    queue = np.zeros(kinds, _QUEUE)
    queue["begun"][1:] = queue["end"][1:] = queue["first"][1:] = end[:-1]
    queue["last"], queue["delay"] = queue["first"] + longest + per_tick, delays
    return queue, int(end[-1])


def single_ports(routes: Routes) -> np.ndarray:
    """Find the ``single_port`` of :class:`WormholeConstants`; it is empty if routes are not a table."""
    if routes.form != TABLE:
        return np.zeros(0, np.uint8)
    ports = np.zeros(routes.ports.shape, np.uint8)
    for single, port_set in zip(ports, routes.ports, strict=True):
        single[:] = np.maximum(np.frexp(port_set.astype(np.float64))[1] - 1, 0)  # exact for powers of two
        single[port_set & (port_set - ONE) != 0] = MULTIPLE_PORTS
    return ports.T.ravel()


def _upstream_of(scenario: Scenario[Wormhole], ports: Ports) -> Ints:
    """Find who sends to each input: the line in which packets wait for it, or as many as outputs + its host."""
    outputs = len(ports.out_input)
    wait_queue = np.arange(outputs)
    if scenario.routes.select == ADAPTIVE:
        wait_queue = np.repeat(np.arange(scenario.topology.switches), np.diff(ports.out_base))
    return np.where(ports.in_output < 0, outputs - 1 - ports.in_output, wait_queue[ports.in_output])


def _vc_records(scenario: Scenario[Wormhole], ports: Ports) -> np.ndarray:
    """Make the records of all VCs, empty."""
    model = scenario.switching
    inputs = len(ports.in_switch) * model.vcs
    vc = aligned_records(inputs + scenario.topology.hosts * model.vcs, _VC)
    vc["blocked"] = EMPTY | NO_VC
    vc["holder"] = vc["last_requester"] = vc["last_granted"] = NONE
    if scenario.routes.select == ADAPTIVE:
        vc["last_requester"] = 0
    vc["credits"][:inputs], vc["credits"][inputs:] = model.buffer_flits, UNLIMITED_CREDITS
    vc["switch"][:inputs] = np.repeat(ports.in_switch, model.vcs)
    vc["upstream"][:inputs] = np.repeat(_upstream_of(scenario, ports), model.vcs)
    vc["allowed_vcs"] = 2**model.vcs - 1
    vc["first_output"][:inputs] = np.repeat(ports.out_base[ports.in_switch], model.vcs)
    return vc


def _output_records(queue_of: Ints) -> np.ndarray:
    """Make the records of all outputs as the crossbar sees them; queue_of: of each."""
    output = aligned_records(len(queue_of), _OUTPUT)
    output["best_bid"] = 1
    output["last_input"] = NONE
    output["queue"] = queue_of
    return output


def _vc_set_records(ports: Ports, vcs: int, hosts: int) -> np.ndarray:
    """Make the records of the VCs of all outputs, which are all free."""
    vc_set = aligned_records(len(ports.out_input), _VC_SET)
    first = ports.out_input * vcs
    first[ports.eject] = (len(ports.in_switch) + np.arange(hosts)) * vcs
    vc_set["free"] = 2**vcs - 1
    vc_set["best_bid"] = 1
    vc_set["first"] = first
    vc_set["first_waiting"] = NONE
    return vc_set


def _crossbar_input_records(ports: Ports, width: int, vcs: int) -> np.ndarray:
    """Make the records of the inputs of crossbars; width: VCs that share one."""
    inputs_per_port = vcs // width
    crossbar_input = aligned_records(len(ports.in_switch) * inputs_per_port, _CROSSBAR_INPUT)
    crossbar_input["best_bid"] = 1
    crossbar_input["vc"] = np.arange(len(crossbar_input)) * width - 1
    crossbar_input["output"] = ports.out_base[np.repeat(ports.in_switch, inputs_per_port)] - 1
    return crossbar_input
