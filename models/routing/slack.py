# SPDX-License-Identifier: Apache-2.0
"""Weighted next hops that load channels exactly as the weighted paths that they replace.

A packet has a ``budget`` of channels, and each that it takes lowers the budget by one. Its slack is the budget above
the distance, so it reaches its destination in time and without a loop, whatever switches draw. The source draws the
slack. Where paths of one slack meet on the way to one destination, their next hops are weighted by flow. Then the flow
through every switch, destination and slack equals that of the paths, and so does every channel's load.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints, sums
from flitlab.models.routing.route_set import PathTable
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


class SlackTable(NamedTuple):
    """Weighted next hops, sorted by target, switch, slack and channel; and the slack that sources draw.

    target, switch, slack, channel: int64 [entries]. weight: float64 [entries], sum 1 per target, switch and slack.
    first_source, first_target, first_slack: int64 [draws], first_weight: float64 [draws], sum 1 per pair.
    """

    target: Ints
    switch: Ints
    slack: Ints
    channel: Ints
    weight: Floats
    first_source: Ints
    first_target: Ints
    first_slack: Ints
    first_weight: Floats


def slack_table(topology: Topology, table: PathTable, demand: Floats) -> SlackTable:
    """The weighted next hops of a table of paths.

    The loads are equal under the given demand. Next hops that only pairs without demand take are weighted as if each of
    these pairs had the same demand.

    Parameters
    ----------
    topology: the network.
    table: the paths.
    demand: float64 [switches, switches], at least 0.
    """
    n, steps = topology.switches, distances(topology)
    length = np.diff(table.path_start)
    pair = np.repeat(np.arange(n * n), np.diff(table.pair_start))
    share = table.shares
    source, target = np.divmod(pair, n)
    first = length - steps[source, target]
    switches, entries = source.copy(), []
    for hop in range(int(length.max(initial=0))):
        path = np.flatnonzero(length > hop)
        channel = topology.out_start[switches[path]] + table.port[table.path_start[path] + hop]
        slack = length[path] - hop - steps[switches[path], target[path]]
        entries.append(np.column_stack([target[path], switches[path], slack, channel, path]))
        switches[path] = topology.dst[channel]
    every = np.concatenate([np.zeros((0, 5), np.int64), *entries])
    path = every[:, 4]
    keys, flow, equal_flow = _summed(every[:, :4], (share * demand.ravel()[pair])[path], share[path])
    weight = _weights(keys[:, :3], flow, equal_flow)
    drawn, draw_weight, _ = _summed(np.column_stack([source, target, first]), share, share)
    target, switch, slack, channel = np.ascontiguousarray(keys.T)
    draw_source, draw_target, drawn_slack = np.ascontiguousarray(drawn.T)
    return SlackTable(target, switch, slack, channel, weight, draw_source, draw_target, drawn_slack, draw_weight)


def _summed(keys: Ints, flow: Floats, equal_flow: Floats) -> tuple[Ints, Floats, Floats]:
    """Merge equal rows of keys [entries, k], in ascending order, and sum both numbers."""
    size = keys.max(axis=0, initial=0) + 1
    _, first, row_index = np.unique(
        np.ravel_multi_index(tuple(keys.T), tuple(size)), return_index=True, return_inverse=True
    )
    return keys[first], sums(row_index, flow, len(first)), sums(row_index, equal_flow, len(first))


def _weights(state: Ints, flow: Floats, equal_flow: Floats) -> Floats:
    """The share of each entry in the flow of its state, float64 [entries]; equal states are adjacent rows."""
    is_first = np.ones(len(state), bool)
    is_first[1:] = (state[1:] != state[:-1]).any(axis=1)
    state_index = np.cumsum(is_first) - 1
    total = sums(state_index, flow, int(is_first.sum()))
    state_flow: Floats = np.where(total[state_index] > 0, flow, equal_flow)
    weights: Floats = state_flow / sums(state_index, state_flow, len(total))[state_index]
    return weights
