# SPDX-License-Identifier: Apache-2.0
"""A network cut into regions, each of which a thread simulates, for one run of virtual cut-through.

Regions share all arrays of which every entry belongs to one switch or host; each has its own packets, wheels and
counters. A VC between two regions has a second record, behind those of all input VCs, in the region that feeds it (see
``exchange``), and the output that feeds it leads there.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.histogram import BUCKETS
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.base import HOP_BUCKETS, SCALARS
from flitlab.sim.engines.compiled.due import FULL, listed, make_due, put_all
from flitlab.sim.engines.compiled.mail import Mail, make_mail
from flitlab.sim.engines.compiled.messages import Program
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.ranks import divided
from flitlab.sim.engines.compiled.records import NOBODY, Tally
from flitlab.sim.engines.compiled.vct.state import (
    VctConstants,
    VctState,
    make_credits,
    make_vcs,
    most_leaving,
    set_ends,
)
from flitlab.sim.engines.compiled.wheel import make_wheel, wake_all
from flitlab.sim.engines.partitions import lookahead


class _Cut(NamedTuple):
    """Where a network is cut.

    switch, input, output, host: int64, the region of each. crossing: outputs that lead to another region.
    """

    switch: Ints
    input: Ints
    output: Ints
    host: Ints
    crossing: Ints


def _cut(const: VctConstants, regions: int) -> _Cut:
    """Cut switches, in their order, into regions with about as many outputs each.

    Families number switches such that neighbours in a grid, a group or a pod stand together.
    """
    ports = const.net.ports
    outputs = len(ports.out_input)
    first = np.searchsorted(ports.out_base[:-1], outputs * np.arange(1, regions) / regions)
    switch = np.searchsorted(first, np.arange(const.net.switches), side="right").astype(np.int64)
    of_input = switch[ports.in_switch]
    of_output = np.repeat(switch, np.diff(ports.out_base).astype(np.int64))
    network = np.flatnonzero(ports.out_input != NOBODY)
    crossing = network[of_output[network] != of_input[ports.out_input[network]]]
    host = switch[const.net.host_switch]
    return _Cut(switch=switch, input=of_input, output=of_output, host=host, crossing=crossing)


def split(
    scenario: Scenario[Vct], const: VctConstants, whole: VctState, regions: int
) -> tuple[VctConstants, VctState, list[VctState]]:
    """Cut a run at tick 0 into regions: (their constants, the state of all, the state of each).

    The arrays that the regions share are those of the state of all.
    """
    cut = _cut(const, regions)
    vc, lane = _with_twins(const, whole.vc, cut)
    together = whole._replace(vc=vc[: len(whole.vc)], lane=lane[: len(whole.vc)])
    mails = _mails(const, cut, regions, lookahead(scenario))
    pools = _pools(const, whole.pool, cut, regions)
    const = _with_borders(const, cut)
    set_ends(whole.rows, const.net.ports)
    programs = [None] * regions if whole.program is None else _programs(whole.program, cut, regions)
    ticks, records = whole.outputs.mask + 1, len(whole.pool.packet)
    states = []
    for region in range(regions):
        state = whole._replace(
            pool=pools[region],
            vc=vc,
            lane=lane,
            credits=make_credits(ticks, len(whole.credits.free) * int(FULL)),
            arriving=make_due(ticks, records),
            leaving=make_due(ticks, records),
            members=np.zeros_like(whole.members),
            cursor=np.zeros_like(whole.cursor),
            offer=np.zeros_like(whole.offer),
            outputs=make_wheel(len(cut.output), whole.outputs.mask + 1),
            senders=make_wheel(len(cut.host), whole.senders.mask + 1),
            mail=mails[region],
            program=programs[region],
            tally=_tally(whole.tally),
        )
        wake_all(state.senders, np.flatnonzero(cut.host == region), 0)
        states.append(state)
    return const, together, states


def _with_borders(const: VctConstants, cut: _Cut) -> VctConstants:
    """Return the constants with outputs that lead to another region leading to the twins."""
    ports = const.net.ports
    inputs = len(ports.in_switch)
    out_input = ports.out_input.copy()
    out_input[cut.crossing] = inputs + np.arange(len(cut.crossing))
    in_switch = np.concatenate([ports.in_switch, ports.in_switch[ports.out_input[cut.crossing]]])
    return const._replace(net=const.net._replace(ports=ports._replace(out_input=out_input, in_switch=in_switch)))


def _twins(const: VctConstants, cut: _Cut) -> tuple[Ints, Ints]:
    """List the two records of every VC between regions: (at its switch, where it is fed); int64."""
    entry = const.net.ports.out_input[cut.crossing].astype(np.int64)
    own = (entry[:, None] * const.vcs + np.arange(const.vcs)).ravel()
    return own, len(const.net.ports.in_switch) * const.vcs + np.arange(len(own))


def _with_twins(const: VctConstants, records: np.ndarray, cut: _Cut) -> tuple[np.ndarray, np.ndarray]:
    """Copy the records of all input VCs, and add the twins of those between regions: (VC, uint8, their lanes)."""
    own, twin = _twins(const, cut)
    vc = make_vcs(len(records) + len(twin))
    lane = np.zeros(len(vc), np.uint8)
    vc[: len(records)] = records
    vc["switch"][twin] = vc["switch"][own]
    feeding = np.repeat(cut.output[cut.crossing], const.vcs)
    lane[twin], vc["twin"][twin] = cut.input[own // const.vcs] + 1, own
    lane[own], vc["twin"][own] = feeding + 1, twin
    return vc, lane


def _mails(const: VctConstants, cut: _Cut, regions: int, window: int) -> list[Mail]:
    """Make the boxes between regions, with room for all that can be granted in ``window`` ticks."""
    shortest = int(const.net.packets.flits.min())
    slots = const.buffer_flits // shortest
    ends = cut.output[cut.crossing] * regions + cut.input[const.net.ports.out_input[cut.crossing]]
    channels = int(np.bincount(ends, minlength=1).max())
    grants = -(-window // shortest)
    rooms, deliveries = channels * const.vcs * min(grants, slots), int(np.bincount(cut.host).max()) * grants
    return make_mail(regions, window, channels * min(grants, const.vcs * slots), rooms + deliveries)


def _pools(const: VctConstants, pool: Pool, cut: _Cut, regions: int) -> list[Pool]:
    """Give each region its share of the records: what its buffers hold, and what is leaving to its hosts."""
    slots = const.buffer_flits // int(const.net.packets.flits.min())
    share = np.bincount(cut.input, minlength=regions) * const.vcs * slots
    share += np.bincount(cut.host, most_leaving(const), regions).astype(np.int64)
    last = np.cumsum(share)
    free = [np.append(np.arange(end - 1, end - size - 1, -1), size) for end, size in zip(last, share, strict=True)]
    return [pool._replace(free=unused.astype(np.uint32)) for unused in free]


def _programs(program: Program, cut: _Cut, regions: int) -> list[Program]:
    """Give each region the ranks whose hosts are in it."""
    parts = divided(program.ranks, cut.host[program.host], regions)
    return [program._replace(ranks=ranks, active=np.zeros_like(program.active)) for ranks in parts]


def _tally(shared: Tally) -> Tally:
    """Make the tally of a region: it shares what each entry of which one region counts."""
    return shared._replace(
        scalars=np.zeros(SCALARS, np.int64),
        histogram=np.zeros(BUCKETS, np.int64),
        hops=np.zeros(HOP_BUCKETS, np.int64),
        deflections=np.zeros(HOP_BUCKETS, np.int64),
        by_source=np.zeros_like(shared.by_source),
        log=np.zeros_like(shared.log),
    )


def fold(const: VctConstants, whole: VctState, states: list[VctState]) -> VctState:
    """Return the state of all regions between ticks, with the packets of each, and the room that returns."""
    credits = make_credits(whole.credits.mask + 1, len(whole.credits.free) * int(FULL))
    for state in states:
        put_all(credits, *listed(state.credits))
    unused = [state.pool.free[: state.pool.free[-1]] for state in states]
    free = np.concatenate([*unused, np.array([sum(map(len, unused))], np.uint32)])
    return whole._replace(pool=whole.pool._replace(free=free), credits=credits)
