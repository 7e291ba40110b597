# SPDX-License-Identifier: Apache-2.0
"""What no run may create or lose: packets, in every switching mode, and buffer space, in the modes with credits.

The packets in a network and the flits in its buffers are counted in the state of the engine, not with its counters.
"""

from functools import singledispatch
from itertools import chain
from typing import Any

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.rules.ports import input_delays, make_ports
from flitlab.models.switching.dynamic_topology import Draining
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compare import BothRun
from flitlab.sim.engines.compiled import vct, wormhole
from flitlab.sim.engines.compiled.calendar_queue import list_events
from flitlab.sim.engines.compiled.engine import CompiledRun
from flitlab.sim.engines.compiled.records import in_flight_packets
from flitlab.sim.engines.compiled.timeline_run import linked_lists
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.packets import PacketRun
from flitlab.sim.engines.reference.clock import Phase
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.vct import VctInputVC, VctNetwork
from flitlab.sim.engines.reference.wormhole import WormholeInputVC, WormholeNetwork
from flitlab.sim.engines.transport import datagram, spray


def assert_conserved(run: Any, case: Any) -> None:
    """Assert that everything created is delivered, in flight or dropped, once, and that no buffer space is lost."""
    if hasattr(run, "counters"):
        _transport_conserved(run.counters(), run)
    elif not hasattr(run, "progress"):  # of fluids, which have no packets
        work = case.work
        longest = work.messages.packet_flits if isinstance(work, Workload) else max(work.flits)
        if getattr(case.switching, "rule", "pool") != "pool":
            longest *= case.switching.vcs  # a channel is granted to a packet a VC, which are then sent
        _packets_conserved(run, longest)
        if isinstance(case.switching, Draining):
            _buffers_conserved(run, case)


def _packets_conserved(run: Any, longest: int) -> None:
    counted, log = run.snapshot(), run.log()
    total, present = counted.scalars, counted.present.sources
    in_flight = total[Scalar.SENT_PACKETS] - total[Scalar.DELIVERED_PACKETS] - total[Scalar.DROPPED_PACKETS]
    for engine in engines(run):
        assert in_flight == packets_in_network(engine)
    assert total[Scalar.CREATED_PACKETS] >= total[Scalar.SENT_PACKETS] and in_flight >= 0 and (present >= 0).all()
    assert in_flight <= present.sum() and (in_flight > 0) == (present.sum() > 0)
    assert total[Scalar.CREATED_FLITS] == counted.created.sum()
    assert counted.created.sum() == total[Scalar.DELIVERED_FLITS] + run.backlog().sum() + total[Scalar.DROPPED_FLITS]
    for flows in (counted.delivered, counted.present):
        assert flows.pairs.total == flows.sources.sum() == flows.destinations.sum()
    assert total[Scalar.DELIVERED_FLITS] == counted.delivered.pairs.total
    assert (
        total[Scalar.DELIVERED_PACKETS] == counted.histogram.sum() == len(np.unique(log.identity)) == len(log.identity)
    )
    assert total[Scalar.NETWORK_LATENCY] <= total[Scalar.LATENCY]
    channel_flits = counted.channel_flits  # a flit per tick, and the rest of what was granted
    assert channel_flits.max(initial=0) <= counted.tick + longest - 1
    if not isinstance(engines(run)[0], PacketRun):  # which counts no grants
        assert channel_flits.sum() <= total[Scalar.GRANTS] * longest


def engines(run: Any) -> list[Any]:
    """The runs of which a run consists: both in lock-step, or itself."""
    return [run._compiled, run._reference] if isinstance(run, BothRun) else [run]


@singledispatch
def packets_in_network(run: Any) -> int:
    """Packets that have left their source queues and are neither delivered nor dropped, as the state has them."""
    raise NotImplementedError(type(run))


@packets_in_network.register
def _(run: CompiledRun) -> int:
    return int((in_flight_packets(run._merged_state())[2] > 0).sum())  # records of no flits stand for no packet


@packets_in_network.register
def _(run: Network) -> int:
    return len(run.sent())


@packets_in_network.register
def _(run: PacketRun) -> int:
    return int((run._sent() & ~run._gone()).sum())


def _buffers_conserved(run: Any, case: Any) -> None:
    topology, switching = case.topology, case.switching
    sizes = input_delays(make_ports(topology), *np.split(switching.buffers_of(topology), [topology.channels]))
    size = np.repeat(sizes, switching.vcs)
    counts = [buffer_space(engine) for engine in engines(run)]
    for credits, returning, used in counts:
        assert min(credits.min(), returning.min(), used.min()) >= 0
        np.testing.assert_array_equal(credits + returning + used, size)
    np.testing.assert_array_equal(counts[0], counts[-1])


@singledispatch
def buffer_space(run: Any) -> np.ndarray:
    """Credits at the sender, credits in flight to it, and flits in the buffer or in flight to it.

    Returns int64 [3, input VCs], in the order of :mod:`flitlab.models.rules.ports`.
    """
    raise NotImplementedError(type(run))


def _returning(run: Network, restore: Any, single: bool) -> dict[Any, int]:
    """The flits of the credits in flight to the sender of each input VC.

    restore: what is called with their number when they arrive, or, if ``single``, for each.
    """
    flits = dict[Any, int]()
    for call, value in chain(*run.clock.calls[Phase.CREDITS].values()):
        if getattr(call, "__func__", None) is restore:
            flits[call.__self__] = flits.get(call.__self__, 0) + (1 if single else value)
    return flits


@buffer_space.register
def _(run: VctNetwork) -> np.ndarray:
    vcs, returning = sorted(run.input_vcs, key=lambda vc: vc.index), _returning(run, VctInputVC.restore, False)
    used = {vc: sum(packet.flits for packet in vc.queue) for vc in vcs}
    for packet in run.sent():
        if packet.in_flight and packet.receiver is not None:
            used[packet.receiver] += packet.flits
    assert all(vc.returning == returning.get(vc, 0) for vc in vcs)
    return np.array([[vc.credits, vc.returning, used[vc]] for vc in vcs]).T


@buffer_space.register
def _(run: WormholeNetwork) -> np.ndarray:
    vcs, returning = [vc for s in run.switches for vc in s.input_vcs], _returning(run, WormholeInputVC.restore, True)
    return np.array(
        [[vc.upstream.credits, returning.get(vc, 0), len(vc.flits) + len(vc.upstream.in_flight)] for vc in vcs]
    ).T


@buffer_space.register
def _(run: CompiledRun) -> np.ndarray:
    return {vct: _vct_space, wormhole: _wormhole_space}[run._kernel](run, run._merged_state())


def _vct_space(run: CompiledRun, state: Any) -> np.ndarray:
    index, packet = state.vc["credit_index"].astype(np.int64), state.pool.packet
    space = np.zeros((3, len(index)), np.int64)
    space[0] = state.free_flits[index] & 0x7FFFFFFF  # the upper bit: whether the sender awaits credits
    returns, returning = list_events(state.returning_credits)[0], np.zeros(len(state.free_flits), np.int64)
    np.add.at(returning, returns & 0xFFFFFFFF, returns >> 32)
    space[1] = returning[index]
    stored = linked_lists(state.vc["head_packet"], packet["next"])[1]
    for packets in (stored, list_events(state.arriving)[0]):
        np.add.at(space[2], packet["input_vc"][packets].astype(np.int64), packet["flits"][packets].astype(np.int64))
    return space


def _wormhole_space(run: CompiledRun, state: Any) -> np.ndarray:
    const, vc = run._constants, state.vc[: int(run._constants.input_vcs)]
    space = np.stack([vc["credits"], np.zeros(len(vc)), vc["write_index"] - vc["read_index"]]).astype(np.int64)
    bits = int(const.due_bits)
    for number, queue in enumerate(state.queue):
        row = 2 if layout.INJECTED <= number < const.switch_queues_end else 1
        if row == 2 or number == layout.RETURNED or number >= const.host_queues_end:
            ticks = (run._tick + np.arange(int(queue["delay"]))) & ((1 << bits) - 1)
            for due in state.due[number << bits | ticks].tolist():
                entries = state.entries[due >> 32 : due & 0xFFFFFFFF].astype(np.int64) & 0xFFFFFFFF
                np.add.at(space[row], entries[entries < len(vc)], 1)  # others are credits of hosts
    if state.crossbar is not None:
        for row, name in ((2, "queue"), (1, "credit")):
            np.add.at(space[row], _waiting(state.crossbar, name), 1)
    return space


def _waiting(crossbar: Any, name: str) -> np.ndarray:
    """VCs of the entries of the ring buffers of a crossbar: flits in output queues, or credits."""
    start, head, count = (getattr(crossbar, f"{name}_{field}") for field in ("start", "head", "count"))
    vcs = [
        getattr(crossbar, name)[start[i] + (head[i] + np.arange(count[i])) % (start[i + 1] - start[i])]
        for i in range(len(count)) if start[i + 1] > start[i]
    ]  # fmt: skip
    return (np.concatenate(vcs) & np.uint64(0xFFFFFFFF)).astype(np.int64)


@singledispatch
def _transport_conserved(counters: Any, run: Any) -> None:
    raise NotImplementedError(type(counters))


@_transport_conserved.register
def _(counters: datagram.Counters, run: Any) -> None:
    of, count, session = counters.subflow, datagram.SubflowCount, run.session
    np.testing.assert_array_equal(of[:, count.SENT], of[:, count.ARRIVED] + of[:, count.DROPPED] + run.in_flight())
    _, subflow, number = run.trace()
    distinct = np.unique(subflow << 40 | number) >> 40
    np.testing.assert_array_equal(of[:, count.ARRIVED], np.bincount(subflow, minlength=len(of)))
    np.testing.assert_array_equal(of[:, count.RECEIVED], np.bincount(distinct, minlength=len(of)))
    if session.program is None:
        sizes, received = session.flows.packets, np.add.reduceat(of[:, count.RECEIVED], session.first[:-1])
        np.testing.assert_array_equal((received == sizes) & (sizes > 0), counters.finished >= 0)


@_transport_conserved.register
def _(counters: spray.Counters, run: Any) -> None:
    of, count, flows = counters.flow, spray.FlowCount, run.session.flows
    assert (of[:, count.RECEIVED] <= of[:, count.SENT]).all()
    if run.session.program is None:
        wire = flows.bytes + flows.packets * run.session.rules.header
        assert (of[:, count.RECEIVED] <= wire).all()
        np.testing.assert_array_equal(of[:, count.COMPLETE] >= 0, of[:, count.RECEIVED] == wire)
    ended = of[:, count.FINISHED] >= 0
    assert (of[ended, count.FINISHED] > of[ended, count.COMPLETE]).all() and (of[ended, count.COMPLETE] >= 0).all()
