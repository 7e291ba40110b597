# SPDX-License-Identifier: Apache-2.0
"""Partitioning of a network for conservative parallel simulation of virtual cut-through.

Per-switch and per-host arrays are shared; packet pools, calendars, timing wheels and counters are per partition. A VC
of a cut edge has a second record behind those of all input VCs, its remote copy (see ``exchange``).
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.histogram import BUCKETS
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.base import HOP_BUCKETS, Scalar
from flitlab.sim.engines.compiled.calendar_queue import BLOCK_ENTRIES, list_events, make_calendar_queue, schedule_events
from flitlab.sim.engines.compiled.mailbox import Mailboxes, make_mailboxes
from flitlab.sim.engines.compiled.messages import Program
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.ranks import partition_ranks
from flitlab.sim.engines.compiled.records import NONE, RunCounters
from flitlab.sim.engines.compiled.timing_wheel import make_timing_wheel, schedule_all
from flitlab.sim.engines.compiled.vct.state import (
    VctConstants,
    VctState,
    fill_downstream_inputs_and_channels,
    make_empty_vc_records,
    make_queue_of_returning_credits,
    max_packets_ejecting_per_host,
)
from flitlab.sim.engines.partitions import lookahead


class _PartitionMap(NamedTuple):
    """Partition of every switch, input, output and host, int64 each, and the cut edges.

    cut_outputs: int64, outputs that lead to another partition.
    """

    switch: Ints
    input: Ints
    output: Ints
    host: Ints
    cut_outputs: Ints


def _assign_switches_to_partitions(const: VctConstants, partitions: int) -> _PartitionMap:
    """Partition the switches, in their order, into parts with about equally many outputs.

    Topologies number neighbours in a grid, a group or a pod consecutively.
    """
    ports = const.net.ports
    outputs = len(ports.out_input)
    first_switch = np.searchsorted(ports.out_base[:-1], outputs * np.arange(1, partitions) / partitions)
    switch = np.searchsorted(first_switch, np.arange(const.net.switches), side="right").astype(np.int64)
    of_input = switch[ports.in_switch]
    of_output = np.repeat(switch, np.diff(ports.out_base).astype(np.int64))
    network = np.flatnonzero(ports.out_input != NONE)
    cut_outputs = network[of_output[network] != of_input[ports.out_input[network]]]
    host = switch[const.net.host_switch]
    return _PartitionMap(switch=switch, input=of_input, output=of_output, host=host, cut_outputs=cut_outputs)


def inputs_of_partitions(const: VctConstants, partitions: int) -> Ints:
    """Return the first input of each partition, and the number of inputs: int64 [partitions + 1].

    Parameters
    ----------
    const: constants of the run.
    partitions: how many.
    """
    of_input = _assign_switches_to_partitions(const, partitions).input[: int(const.net.ports.in_base[-1])]
    return np.searchsorted(of_input, np.arange(partitions + 1)).astype(np.int64)


def split_state_into_partitions(
    scenario: Scenario[Vct], const: VctConstants, merged: VctState, partitions: int
) -> tuple[VctConstants, VctState, list[VctState]]:
    """Partition a run at tick 0.

    Parameters
    ----------
    scenario: of the run; its least delay between partitions is the lookahead.
    const, merged: constants and state of the run.
    partitions: how many.

    Returns
    -------
    (constants of all partitions, merged state, state of each partition). Shared arrays are those of the merged state.
    """
    partition_map = _assign_switches_to_partitions(const, partitions)
    vc, remote_partition = _append_remote_copies_of_vcs_at_cut_edges(const, merged.vc, partition_map)
    shared_state = merged._replace(vc=vc[: len(merged.vc)], remote_partition=remote_partition[: len(merged.vc)])
    mailboxes = _make_mailboxes_of_sufficient_size(const, partition_map, partitions, lookahead(scenario))
    pools = _split_packet_pool_into_partitions(const, merged.pool, partition_map, partitions)
    const = _redirect_outputs_to_remote_copies(const, partition_map)
    fill_downstream_inputs_and_channels(merged.output, const.net.ports)
    programs = (
        [None] * partitions
        if merged.program is None
        else _split_program_into_partitions(merged.program, partition_map, partitions)
    )
    ticks, records = merged.output_wheel.mask + 1, len(merged.pool.packet)
    states = []
    for partition in range(partitions):
        state = merged._replace(
            pool=pools[partition],
            vc=vc,
            remote_partition=remote_partition,
            returning_credits=make_queue_of_returning_credits(
                ticks, len(merged.returning_credits.free) * int(BLOCK_ENTRIES)
            ),
            arriving=make_calendar_queue(ticks, records),
            ejecting=make_calendar_queue(ticks, records),
            members=np.zeros_like(merged.members),
            cursor=np.zeros_like(merged.cursor),
            candidate=np.zeros_like(merged.candidate),
            output_wheel=make_timing_wheel(len(partition_map.output), merged.output_wheel.mask + 1),
            host_wheel=make_timing_wheel(len(partition_map.host), merged.host_wheel.mask + 1),
            mailboxes=mailboxes[partition],
            program=programs[partition],
            counters=_make_counters_of_partition(merged.counters),
        )
        schedule_all(state.host_wheel, np.flatnonzero(partition_map.host == partition), 0)
        states.append(state)
    return const, shared_state, states


def _redirect_outputs_to_remote_copies(const: VctConstants, partition_map: _PartitionMap) -> VctConstants:
    """Return the constants with cut outputs leading to remote copies."""
    ports = const.net.ports
    inputs = len(ports.in_switch)
    out_input = ports.out_input.copy()
    out_input[partition_map.cut_outputs] = inputs + np.arange(len(partition_map.cut_outputs))
    in_switch = np.concatenate([ports.in_switch, ports.in_switch[ports.out_input[partition_map.cut_outputs]]])
    return const._replace(net=const.net._replace(ports=ports._replace(out_input=out_input, in_switch=in_switch)))


def _pair_vcs_of_cut_edges_with_remote_copies(const: VctConstants, partition_map: _PartitionMap) -> tuple[Ints, Ints]:
    """List both records of every VC of a cut edge: (local, remote), int64 [VCs] each."""
    entry = const.net.ports.out_input[partition_map.cut_outputs].astype(np.int64)
    local = (entry[:, None] * const.vcs + np.arange(const.vcs)).ravel()
    return local, len(const.net.ports.in_switch) * const.vcs + np.arange(len(local))


def _append_remote_copies_of_vcs_at_cut_edges(
    const: VctConstants, records: np.ndarray, partition_map: _PartitionMap
) -> tuple[np.ndarray, np.ndarray]:
    """Copy the records of all input VCs, and append remote copies: (VC records, uint8 remote partitions)."""
    local, remote = _pair_vcs_of_cut_edges_with_remote_copies(const, partition_map)
    vc = make_empty_vc_records(len(records) + len(remote))
    remote_partition = np.zeros(len(vc), np.uint8)
    vc[: len(records)] = records
    vc["switch"][remote] = vc["switch"][local]
    feeding_partition = np.repeat(partition_map.output[partition_map.cut_outputs], const.vcs)
    remote_partition[remote], vc["remote_copy"][remote] = partition_map.input[local // const.vcs] + 1, local
    remote_partition[local], vc["remote_copy"][local] = feeding_partition + 1, remote
    return vc, remote_partition


def _make_mailboxes_of_sufficient_size(
    const: VctConstants, partition_map: _PartitionMap, partitions: int, window: int
) -> list[Mailboxes]:
    """Make mailboxes that hold all entries of a lookahead window of ``window`` ticks."""
    shortest = int(const.net.packets.flits.min())
    packets_per_vc = const.buffer_flits // shortest
    mailbox_of_channel = (
        partition_map.output[partition_map.cut_outputs] * partitions
        + partition_map.input[const.net.ports.out_input[partition_map.cut_outputs]]
    )
    channels = int(np.bincount(mailbox_of_channel, minlength=1).max())
    grants = -(-window // shortest)
    credits, deliveries = (
        channels * const.vcs * min(grants, packets_per_vc),
        int(np.bincount(partition_map.host).max()) * grants,
    )
    return make_mailboxes(partitions, window, channels * min(grants, const.vcs * packets_per_vc), credits + deliveries)


def _split_packet_pool_into_partitions(
    const: VctConstants, pool: Pool, partition_map: _PartitionMap, partitions: int
) -> list[Pool]:
    """Give each partition packet records for its buffers and for the packets ejecting to its hosts."""
    packets = const.vcs * (const.input_buffers // int(const.net.packets.flits.min()))
    share = np.bincount(partition_map.input, packets, partitions).astype(np.int64)
    share += np.bincount(partition_map.host, max_packets_ejecting_per_host(const), partitions).astype(np.int64)
    last = np.cumsum(share)
    free = [np.append(np.arange(end - 1, end - size - 1, -1), size) for end, size in zip(last, share, strict=True)]
    return [pool._replace(free=unused.astype(np.uint32)) for unused in free]


def _split_program_into_partitions(program: Program, partition_map: _PartitionMap, partitions: int) -> list[Program]:
    """Give each partition the ranks of its hosts."""
    rank_parts = partition_ranks(program.ranks, partition_map.host[program.host], partitions)
    return [program._replace(ranks=ranks, last_active=np.zeros_like(program.last_active)) for ranks in rank_parts]


def _make_counters_of_partition(merged_counters: RunCounters) -> RunCounters:
    """Make the counters of a partition: shared where one partition counts an entry, its own elsewhere."""
    return merged_counters._replace(
        scalars=np.zeros(len(Scalar), np.int64),
        histogram=np.zeros(BUCKETS, np.int64),
        hops=np.zeros(HOP_BUCKETS, np.int64),
        deflections=np.zeros(HOP_BUCKETS, np.int64),
        by_src_host=np.zeros_like(merged_counters.by_src_host),
        log=np.zeros_like(merged_counters.log),
    )


def merge_partition_states(const: VctConstants, merged: VctState, states: list[VctState]) -> VctState:
    """Merge the packets and the returning credits of all partitions, between ticks.

    Parameters
    ----------
    const, merged: constants and merged state.
    states: of the partitions.

    Returns
    -------
    The merged state, with all packets and credits.
    """
    credits = make_queue_of_returning_credits(
        merged.returning_credits.mask + 1, len(merged.returning_credits.free) * int(BLOCK_ENTRIES)
    )
    for state in states:
        schedule_events(credits, *list_events(state.returning_credits))
    unused = [state.pool.free[: state.pool.free[-1]] for state in states]
    free = np.concatenate([*unused, np.array([sum(map(len, unused))], np.uint32)])
    return merged._replace(pool=merged.pool._replace(free=free), returning_credits=credits)
