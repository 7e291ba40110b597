# SPDX-License-Identifier: Apache-2.0
"""The bucket algorithm: ranks form a torus, and every direction of every dimension carries a part of the data.

A part is gathered round the rings of one dimension, then the result round those of the next one, and so on. Each part
starts in another dimension and has its own direction, so that all channels of a torus are busy in every round. On a
torus with equal sides and a rank on every switch this is optimal. With different sides, parts would meet in a dimension
and leave another one idle. There the data is cut into more parts, some of which start later.

Source: Jain and Sabharwal, Optimal bucket algorithms for large MPI collectives on torus interconnects, ICS 2010 (equal
sides).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from flitlab.models.application.collectives.communicator import Communicator, shares
from flitlab.models.arrays import Floats, Ints

STARTS = 64
"""Approximate number of rounds, evenly spaced, in which a part may start."""

TINY = 1e-9
"""Shares of the data up to this count as none."""

Messages = tuple[Ints, Ints, Ints]
"""Sources, targets and bytes of messages, int64 each."""


def all_gather(comm: Communicator, size: int) -> None:
    """Each side of the torus takes a round less than it has members: p - 1 rounds for a ring.

    With different sides there are twice as many rounds.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    for source, target, length in _joint(comm.dims, np.full(comm.size, size)):
        comm.exchange(source, target, length)


def reduce_scatter(comm: Communicator, size: int) -> None:
    """The reversed all-gather: data from all members is reduced on its way to each.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    for source, target, length in reversed(_joint(comm.dims, np.diff(shares(size, comm.size)))):
        comm.exchange(target, source, length)
        comm.reduce(comm.members, np.bincount(source, length, comm.size))


def all_reduce(comm: Communicator, size: int) -> None:
    """Reduce-scatter, then all-gather of the results.

    Parameters
    ----------
    comm: the communicator.
    size: bytes.
    """
    reduce_scatter(comm, size)
    for source, target, length in _joint(comm.dims, np.diff(shares(size, comm.size))):
        comm.exchange(source, target, length)


def _joint(dims: tuple[int, ...], length: Ints) -> list[Messages]:
    """The messages of each round of an all-gather; parts for the same neighbour travel together."""
    members = np.arange(len(length))
    grid = members.reshape(dims)
    rounds = []
    for sizes in _carried(dims, length):
        targets = [np.roll(grid, -direction, axis).ravel() for axis, direction in sizes]
        rounds.append((np.tile(members, len(sizes)), np.concatenate(targets), np.concatenate(list(sizes.values()))))
    return rounds


def _carried(dims: tuple[int, ...], length: Ints) -> list[dict[tuple[int, int], Ints]]:
    """For each round: dimension and direction -> bytes that each member sends to its neighbour there."""
    data_parts = parts(dims, length)
    rounds: list[dict[tuple[int, int], Ints]] = [
        {} for _ in range(_rounds(dims) + max(part.start for part in data_parts))
    ]
    for part in data_parts:
        for t, (axis, size) in enumerate(part_rounds(dims, part), part.start):
            key = axis, part.direction if dims[axis] > 2 else 1  # in a ring of two both directions are one
            rounds[t][key] = rounds[t].get(key, np.zeros_like(size)) + size
    return [sizes for sizes in rounds if sizes]


def _rounds(dims: tuple[int, ...]) -> int:
    return sum(dims) - len(dims)


class DataPart(NamedTuple):
    """A part of all members' data.

    start: its first round. first: its first dimension. direction: 1 or -1. size: bytes of each member's data in the
    part, int64 [p].
    """

    start: int
    first: int
    direction: int
    size: Ints


def parts(dims: tuple[int, ...], length: Ints) -> list[DataPart]:
    """All parts of the data.

    Parameters
    ----------
    dims: sides of the torus.
    length: int64 [p], bytes of each member.

    Returns
    -------
    The parts.
    """
    directions = (1, -1) if max(dims) > 2 else (1,)
    weight = weights(dims)
    kinds = [(start, first, direction) for start, first in np.argwhere(weight > 0).tolist() for direction in directions]
    ends = np.rint(np.outer(np.cumsum([weight[kind[:2]] for kind in kinds]) / len(directions), length)).astype(np.int64)
    ends[-1] = length
    sizes = np.diff(ends, axis=0, prepend=0)
    return [DataPart(*kind, size) for kind, size in zip(kinds, sizes, strict=True)]


def part_rounds(dims: tuple[int, ...], part: DataPart) -> Iterator[tuple[int, Ints]]:
    """Each round of the all-gather of one part: the dimension, and the bytes that each member sends, int64 [p]."""
    have = part.size.reshape(dims)
    for axis in _order(dims, part.first):
        for k in range(dims[axis] - 1):
            yield axis, np.roll(have, part.direction * k, axis).ravel()
        have = np.broadcast_to(have.sum(axis, keepdims=True), dims)


def _order(dims: tuple[int, ...], first: int) -> list[int]:
    return [*range(first, len(dims)), *range(first)]


@lru_cache
def weights(dims: tuple[int, ...]) -> Floats:
    """The share of the data that starts in each round and dimension, float64 [rounds, dimensions].

    With equal sides: all in the first round, in equal parts. Otherwise a linear program minimises the total time of the
    rounds, each as long as its busiest channel, for twice as many rounds.
    """
    count, rounds = len(dims), _rounds(dims)
    if len(set(dims)) == 1:
        return np.full((1, count), 1 / count)
    starts = range(0, rounds + 1, -(-rounds // STARTS))
    above, cost = _program(dims, starts)
    shares_only = (cost == 0).astype(float)[None]
    solution = linprog(cost, above, np.zeros(above.shape[0]), shares_only, [1.0]).x[: count * len(starts)]
    weight = np.zeros((rounds + 1, count))
    weight[starts.start : starts.stop : starts.step] = np.where(solution > TINY, solution, 0.0).reshape(-1, count)
    normal: Floats = weight / weight.sum()
    return normal


def _program(dims: tuple[int, ...], starts: range) -> tuple[csr_array, Floats]:
    """Rows that must not be positive, and costs, of the linear program.

    Columns are the shares by start and first dimension, then the times of the rounds. A row is a dimension in a round:
    the load of its channels less the time of the round.
    """
    count, last = len(dims), _rounds(dims) + starts[-1]
    rows, columns, values = [], [], []
    for number, start in enumerate(starts):
        for first in range(count):
            t, have = start, 1.0
            for axis in _order(dims, first):
                rows += [count * (t + k) + axis for k in range(dims[axis] - 1)]
                columns += [count * number + first] * (dims[axis] - 1)
                values += [have / (2 if dims[axis] > 2 else 1)] * (dims[axis] - 1)
                t, have = t + dims[axis] - 1, have * dims[axis]
    used = count * len(starts)
    rows += range(count * last)
    columns += [used + k // count for k in range(count * last)]
    values += [-1.0] * (count * last)
    shape = (count * last, used + last)
    return csr_array((values, (rows, columns)), shape=shape), np.repeat([0.0, 1.0], [used, last])
