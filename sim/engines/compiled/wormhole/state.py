"""What a run of wormhole switching is made of: its constants, its state, and both at tick 0."""

from typing import NamedTuple

import numpy as np

from models.jit import inner
from models.routing.routes import Tables
from models.rules.arrivals import Arrivals
from models.rules.packets import Packets
from models.rules.ports import Ports, make_ports
from models.rules.vc import Rings, make_rings
from models.scenario import Scenario, Switching
from models.topology.graph import Topology
from sim.engines.compiled.records import HOST_RECORD, NOBODY, RECORD, Tally, first_packets, make_tally, unsigned
from sim.engines.compiled.wheel import Wheel, make_wheel, wake
from sim.engines.compiled.wormhole.sets import U

# Fields of a VC record, uint32. It has two sides: the buffer of an input VC, and what its sender knows of it.
# Behind the input VCs come the VCs of the ejection channels, which have no buffer.
FIRST, COUNT, NEXT_FREE, SWITCH, MEMBER, TARGET_VC, OUTPUT, SINCE = range(8)
CREDITS, HOLDER, CHANNEL, DELAY_CLASS, SENDER, SENDER_MEMBER, FEEDER, RANGE = range(8, 16)
VC_RECORD = 16  # one cache line; see ``at``
# FIRST, NEXT_FREE: places in the ring of flits, of the front one and of the next that is sent here. MEMBER: its
# number in its switch. TARGET_VC, OUTPUT: what the front packet has been given, or (OUTPUT) will be.
# RANGE: the first of the output VCs that it may be given, as an index of ``target_vc``.
# SINCE: the tick from which it asks for a VC. HOLDER: the input VC whose packet has it. SENDER, SENDER_MEMBER:
# the switch that sends here and the number of the output VC there. FEEDER: the host that sends here, or NOBODY.
ENDLESS = 1 << 30  # credits for a host

# Flits in a ring: the packet, and whether this is its first or last flit.
HEAD, TAIL, PACKET_AT = 2, 1, 2

# What an input of the crossbar served last.
VC, OUT = 0, 1

# Sets of a switch: input VCs that have a flit, an output VC, credits for it, and whose header has been read;
# input VCs that ask for an output VC; output VCs that are free.
PRESENT, HELD, CREDITED, READ, ASKING, FREE = range(6)
SETS = 8

# Queues of what happens after a fixed delay; behind them one for each delay of a network channel.
INJECTED, RETURNED, HEADERS, DELAYS = np.arange(4)  # not Python ints; see ``records.NOBODY``

# Fields of what a host is sending, uint32.
SENDING, LEFT, ON_VC = range(3)
SENDING_RECORD = 4


@inner
def at(vc, field):
    """Place of a field in the record of a VC."""
    return (U(vc) << U(4)) | U(field)


class Queues(NamedTuple):
    """Input VCs to which something happens after a delay, one queue for each delay.

    entries: uint64 [queues * places], tick << 32 | VC. ends: uint64 [queues * 2], first entry and one past the
    last. delay: int64 [queues]. bits: log2 of places. mask: places less 1.
    """

    entries: np.ndarray
    ends: np.ndarray
    delay: np.ndarray
    bits: np.uint64
    mask: np.uint64


class Constants(NamedTuple):
    """What does not change during a run: times in ticks, tables, and the draws' seed."""

    seed: int
    switches: int
    hosts: int
    vcs: int
    policy: int
    rule: int
    iterations: int
    buffer_flits: int
    header: int
    injection: int
    delivery: int  # from the grant of a flit to its arrival at a host
    credit: int
    size: tuple  # see ``sets``
    ring_bits: np.uint64  # log2 of the places in a ring of flits
    ring: np.uint64  # places in a ring of flits, less 1
    queues: int
    leaving: int  # ticks of the ring of deliveries, less 1
    routes: Tables
    entry: np.ndarray  # uint32 [members]: the input of the crossbar that a VC is read by, named by its last VC
    readers: np.ndarray  # uint64 [members * words]: the VCs of each of those
    first_in: np.ndarray  # uint64 [switches]: first input VC
    first_out: np.ndarray  # uint64 [switches]: first entry in ``target_vc``
    target_vc: np.ndarray  # uint32: output VCs, switch by switch, member by member
    host_switch: np.ndarray
    ports: Ports
    rings: Rings
    arrivals: Arrivals
    packets: Packets


class State(NamedTuple):
    """What changes during a run."""

    packet: np.ndarray  # uint32 [packets, RECORD]
    free: np.ndarray  # uint32 [packets + 1]: a stack of unused records; its height is in the last entry
    vc: np.ndarray  # uint32: records of all VCs, see ``at``
    flits: np.ndarray  # uint32: rings of the input VCs, each of a power of two of places
    turn: np.ndarray  # uint32 [outputs]: the entry that was served last
    vc_turn: np.ndarray  # uint32, as ``target_vc``: by the first of a range, the one that was given last
    served: np.ndarray  # uint32 [input VCs * 2]: by entry, the member VC and the output that were served last
    holders: np.ndarray  # uint64 [outputs * words]: the input VCs that have a VC of it
    sets: np.ndarray  # uint64 [switches * SETS * words]
    allowed: np.ndarray  # uint64 [input VCs * words]: output VCs that its front packet may take
    left: np.ndarray  # uint64 [3 * words]: scratch
    offers: np.ndarray  # uint64 [members * words]: scratch, the outputs offered to each input; empty between ticks
    to_switch: np.ndarray  # uint64: bitmap of switches with flits that can be sent
    to_assign: np.ndarray  # uint64: bitmap of switches with packets that can be given a VC
    granted: np.ndarray  # uint32 [outputs]: VCs whose front flit is sent now << 1 | whether in the first iteration
    fronts: np.ndarray  # uint32 [input VCs + 1]: VCs with a new packet at the front; how many, in the last entry
    queues: Queues
    host: np.ndarray  # int64 [hosts, HOST_RECORD]
    sending: np.ndarray  # uint32 [hosts, SENDING_RECORD]
    leaving: np.ndarray  # uint32 [ticks]: first of the packets whose tail is delivered then
    members: np.ndarray  # int64 [hosts or members]: scratch, who is looked at
    senders: Wheel
    tally: Tally


def build(scenario: Scenario, arrivals: Arrivals, packets: Packets, seed: int) -> tuple[Constants, State]:
    """Constants and the state at tick 0."""
    topology, model = scenario.topology, scenario.switching
    ports, hosts = make_ports(topology), topology.hosts
    vcs, inputs = model.vcs, len(ports.in_switch)
    input_vcs = inputs * vcs
    delays, delay_class = _delays(topology, model)
    target_vc = _output_vcs(ports, vcs, hosts)
    most = vcs * int(max(np.diff(ports.in_base).max(), np.diff(ports.out_base).max()))
    words = -(-most // 64)
    delivery = model.switch + model.ejection
    ticks = _power(delivery + 1)
    queue = _power(_longest_queue(topology, model, ports, delays, delay_class))
    ring = _power(model.buffer_flits)
    width = vcs if model.shared_input else 1
    constants = Constants(
        seed, topology.switches, hosts, vcs, scenario.vc_policy, scenario.routes.select, model.iterations,
        model.buffer_flits, model.header, model.injection, delivery, model.credit,
        (1,) if words == 1 else (0, words), np.uint64(ring.bit_length() - 1), np.uint64(ring - 1), len(delays),
        ticks - 1, scenario.routes.tables(topology), _entries(64 * words, width), _readers(64 * words, words, width),
        (ports.in_base[:-1] * vcs).astype(np.uint64), (ports.out_base[:-1] * vcs).astype(np.uint64),
        target_vc, topology.host_switch.astype(np.uint32), unsigned(ports), make_rings(topology), arrivals, packets,
    )  # fmt: skip

    # A packet in the network has its tail in a buffer or on its way to one or to a host, or is being sent.
    tails = (model.buffer_flits - 1) // int(packets.flits.min()) + 1
    records = input_vcs * tails + hosts * (delivery + 2)
    bitmap = -(-topology.switches // 64)
    outputs = len(ports.out_input)
    state = State(
        packet=np.zeros((records, RECORD), np.uint32),
        free=np.append(np.arange(records)[::-1], records).astype(np.uint32),
        vc=_vc_records(ports, model, hosts, target_vc, delay_class),
        flits=np.zeros(input_vcs * ring, np.uint32),
        turn=np.full(outputs, 64 * words - 1, np.uint32),
        vc_turn=np.full(len(target_vc), 64 * words - 1, np.uint32),
        served=np.full(input_vcs * 2, 64 * words - 1, np.uint32),
        holders=np.zeros(outputs * words, np.uint64),
        sets=_sets(ports, model, words),
        allowed=np.zeros(input_vcs * words, np.uint64),
        left=np.zeros(3 * words, np.uint64),
        offers=np.zeros(64 * words * words, np.uint64),
        to_switch=np.zeros(bitmap, np.uint64),
        to_assign=np.zeros(bitmap, np.uint64),
        granted=np.zeros(outputs, np.uint32),
        fronts=np.zeros(input_vcs + 1, np.uint32),
        queues=Queues(
            np.zeros(len(delays) * queue, np.uint64), np.zeros(len(delays) * 2, np.uint64), delays,
            np.uint64(queue.bit_length() - 1), np.uint64(queue - 1),
        ),
        host=np.zeros((hosts, HOST_RECORD), np.int64),
        sending=np.full((hosts, SENDING_RECORD), NOBODY, np.uint32),
        leaving=np.full(ticks, NOBODY, np.uint32),
        members=np.zeros(max(hosts, 64 * words), np.int64),
        senders=make_wheel(hosts, 256),
        tally=make_tally(topology),
    )  # fmt: skip
    first_packets(constants, state)
    for h in range(hosts):
        wake(state.senders, h, 0)
    return constants, state


def _power(size: int) -> int:
    """The least power of two that is no less."""
    return 1 << int(size - 1).bit_length()


def _delays(topology: Topology, model: Switching) -> tuple[np.ndarray, np.ndarray]:
    """Delays of the queues, int64 [queues], and the queue of each network channel, int64 [channels]."""
    extra, kind = np.unique(topology.delay, return_inverse=True)
    fixed = [model.injection, model.credit, model.header]
    return np.append(fixed, model.switch + model.link + extra).astype(np.int64), kind + DELAYS


def _longest_queue(
    topology: Topology, model: Switching, ports: Ports, delays: np.ndarray, delay_class: np.ndarray
) -> int:
    """Most entries that a queue can have: what a tick can add times its delay, and no more than there is room for."""
    channels = np.bincount(delay_class, minlength=len(delays))
    channels[INJECTED] = topology.hosts
    channels[RETURNED] = len(ports.out_input)
    longest = int((channels * (delays + 1)).max())
    slots = len(ports.in_switch) * model.vcs * model.buffer_flits
    return max(min(longest, slots), len(ports.in_switch) * model.vcs if model.header > 1 else 1)


def _output_vcs(ports: Ports, vcs: int, hosts: int) -> np.ndarray:
    """Numbers of the output VCs, uint32: those of the outputs in order, each with its VCs."""
    first = ports.out_input * vcs
    first[ports.eject] = (len(ports.in_switch) + np.arange(hosts)) * vcs
    return (first[:, None] + np.arange(vcs)).ravel().astype(np.uint32)


def _entries(members: int, width: int) -> np.ndarray:
    member = np.arange(members)
    return (member // width * width + width - 1).astype(np.uint32)


def _readers(members: int, words: int, width: int) -> np.ndarray:
    readers = np.zeros((members, words), np.uint64)
    for entry in range(width - 1, members, width):
        of_it = ((1 << width) - 1) << (entry + 1 - width)
        for w in range(words):
            readers[entry, w] = of_it >> (64 * w) & (2**64 - 1)
    return readers.ravel()


def _vc_records(
    ports: Ports, model: Switching, hosts: int, target_vc: np.ndarray, delay_class: np.ndarray
) -> np.ndarray:
    vcs, inputs = model.vcs, len(ports.in_switch) * model.vcs
    vc = np.full((inputs + hosts * vcs, VC_RECORD), NOBODY, np.uint32)
    vc[:, [FIRST, COUNT, NEXT_FREE]] = 0
    switch = np.repeat(ports.in_switch, vcs)
    vc[:inputs, SWITCH] = switch
    vc[:inputs, MEMBER] = np.arange(inputs) - ports.in_base[switch] * vcs
    vc[:inputs, FEEDER] = np.repeat(np.where(ports.in_output < 0, -1 - ports.in_output, NOBODY), vcs)
    vc[:inputs, CREDITS], vc[inputs:, CREDITS] = model.buffer_flits, ENDLESS
    sender = np.repeat(np.arange(len(ports.network_outs)), np.diff(ports.out_base) * vcs)
    vc[target_vc, SENDER] = sender
    vc[target_vc, SENDER_MEMBER] = np.arange(len(target_vc)) - ports.out_base[sender] * vcs
    for output in np.flatnonzero(ports.out_channel >= 0):
        channel = ports.out_channel[output]
        there = target_vc[output * vcs : (output + 1) * vcs]
        vc[there, CHANNEL], vc[there, DELAY_CLASS] = channel, delay_class[channel]
    return vc.ravel()


def _sets(ports: Ports, model: Switching, words: int) -> np.ndarray:
    """All output VCs are free; without a header delay of two ticks, no VC waits for one."""
    switches = len(ports.network_outs)
    sets = np.zeros((switches, SETS, words), np.uint64)
    for v, outputs in enumerate(np.diff(ports.out_base).tolist()):
        everyone = (1 << (outputs * model.vcs)) - 1
        for w in range(words):
            sets[v, FREE, w] = everyone >> (64 * w) & (2**64 - 1)
    if model.header < 2:
        sets[:, READ] = 2**64 - 1
    return sets.ravel()
