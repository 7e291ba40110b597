# SPDX-License-Identifier: Apache-2.0
"""Matching of sends and receives, and validation of program arrays."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flitlab.models.application.program import Op, Program
from flitlab.models.arrays import Int, Integers, Ints, Ints32, scratch
from flitlab.models.jit import device_function
from flitlab.models.registry import SpecError

BLOCK = 1 << 20
"""Messages that are sorted together, unless one rank receives more."""

DTYPES = {
    "start": np.dtype(np.int64), "kind": np.dtype(np.int8), "amount": np.dtype(np.int64),
    "peer": np.dtype(np.int32), "tag": np.dtype(np.int32), "cpu": np.dtype(np.int16),
    "step": np.dtype(np.int32), "partner": np.dtype(np.int64), "need": np.dtype(np.int32),
    "after": np.dtype(np.int64), "successor": np.dtype(np.int64),
}  # fmt: skip
"""The arrays of a program and their types."""


class _Arrays(NamedTuple):
    """The arrays of a program for compiled code; names and types are those of :data:`DTYPES`."""

    start: Ints
    kind: Integers
    amount: Ints
    peer: Ints32
    tag: Ints32
    cpu: Integers
    step: Ints32
    partner: Ints
    need: Ints32
    after: Ints
    successor: Ints


_OUT = ("calculates", "sends", "receives")


class ProgramError(SpecError):
    """A program that cannot run.

    operations: their numbers, so that the reader of a file can name the lines.
    """

    def __init__(self, message: str, operations: Sequence[Int] = ()):
        super().__init__(message)
        self.operations = tuple(int(operation) for operation in operations)


@device_function
def _bad_peer(kind: Integers, peer: Integers, ranks: int) -> int:
    """The first send or receive whose other end does not exist, or -1."""
    for o in range(len(kind)):
        if kind[o] != Op.CALC and not 0 <= peer[o] < ranks:
            return o
    return -1


@device_function
def _count(kind: Integers, peer: Integers, first: Ints) -> None:
    """first: int64 [ranks + 1], zeros; first[b + 1] becomes the number of sends to ranks up to b."""
    for o in range(len(kind)):
        if kind[o] == Op.SEND:
            first[peer[o] + 1] += 1
    for b in range(len(first) - 1):
        first[b + 1] += first[b]


@device_function
def _gather(kind: Integers, peer: Integers, cursor: Ints, sends: Ints) -> None:
    """Write the sends to rank b, in order, into ``sends`` from cursor[b] on; cursor[b] advances."""
    for o in range(len(kind)):
        if kind[o] == Op.SEND:
            sends[cursor[peer[o]]] = o
            cursor[peer[o]] += 1


def match(start: Ints, kind: Integers, peer: Ints32, tag: Ints32) -> Ints:
    """The partner of each operation: the receive of a send and the send of a receive, -1 of a calculation.

    The k-th send of rank a to rank b with a tag matches the k-th receive of rank b from rank a with that tag. All
    arrays may be mapped files (:func:`~flitlab.models.arrays.scratch`).

    Parameters
    ----------
    start, kind, peer, tag: arrays of a :class:`~flitlab.models.application.program.Program`.

    Returns
    -------
    int64 [operations].

    Raises
    ------
    ProgramError: a rank does not exist, or a send or receive has no partner.
    """
    ranks = len(start) - 1
    invalid = _bad_peer(kind, peer, ranks)
    if invalid >= 0:
        preposition = "to" if kind[invalid] == Op.SEND else "from"
        operation_name = describe(start, invalid)
        raise ProgramError(
            f"{operation_name} {_OUT[kind[invalid]]} {preposition} rank {peer[invalid]}; ranks are 0..{ranks - 1}",
            [invalid],
        )
    first = np.zeros(ranks + 1, np.int64)
    _count(kind, peer, first)
    sends = scratch(int(first[-1]), np.int64)
    _gather(kind, peer, first[:-1].copy(), sends)
    partner = scratch(len(kind), np.int64, fill=-1)
    for low, high in _blocks(first + start):
        send = sends[first[low] : first[high]]
        receive = start[low] + np.flatnonzero(kind[start[low] : start[high]] == Op.RECV)
        sent = np.stack([peer[send], _rank(start, send), tag[send]])
        received = np.stack([_rank(start, receive), peer[receive], tag[receive]])
        by_sent, by_received = np.lexsort(sent[::-1]), np.lexsort(received[::-1])
        sent, received = sent[:, by_sent], received[:, by_received]
        send, receive = send[by_sent], receive[by_received]
        if not np.array_equal(sent, received):
            raise _unmatched(start, sent, received, send, receive)
        partner[send], partner[receive] = receive, send
    return partner


def describe(start: Ints, operation: Int) -> str:
    """The name of an operation in messages: its number within its rank, from 0.

    Parameters
    ----------
    start: int64 [ranks + 1], as in a program.
    operation: number of the operation.
    """
    rank = int(np.searchsorted(start, operation, side="right")) - 1
    return f"operation {operation - start[rank]} of rank {rank}"


def _rank(start: Ints, operations: Ints) -> Ints:
    """The rank of each operation."""
    return np.searchsorted(start, operations, side="right") - 1


def _blocks(load: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of ranks, each of one rank or of at most BLOCK operations. load: cumulative loads, [ranks + 1]."""
    low = 0
    while low < len(load) - 1:
        high = int(np.searchsorted(load, load[low] + BLOCK, side="right")) - 1
        high = max(high, low + 1)
        yield low, high
        low = high


def _unmatched(start: Ints, sent: Ints, received: Ints, send: Ints, receive: Ints) -> ProgramError:
    """The error for the first (destination, source, tag) with different numbers of sends and receives."""
    keys, group = np.unique(np.concatenate([sent, received], axis=1), axis=1, return_inverse=True)
    group = group.ravel()
    sends = np.bincount(group[: len(send)], minlength=keys.shape[1])
    receives = np.bincount(group[len(send) :], minlength=keys.shape[1])
    worst = int(np.flatnonzero(sends != receives)[0])
    target, source, tag = keys[:, worst]
    both = min(sends[worst], receives[worst])
    members = send[group[: len(send)] == worst], receive[group[len(send) :] == worst]
    unmatched = members[0][both] if sends[worst] > both else members[1][both]
    problem = "the send is never received" if sends[worst] > both else "no send is left for the receive"
    counts = f"rank {source} sends {sends[worst]} to rank {target} with tag {tag}, which receives {receives[worst]}"
    return ProgramError(f"{describe(start, unmatched)}: {problem}: {counts}", [unmatched])


@device_function
def _fault(p: _Arrays, steps: int, seen: Ints32) -> tuple[int, Int]:
    """The first error of a program with arrays of the right shapes: (number in _FAULTS, operation), or (-1, -1).

    p: :class:`_Arrays`. steps: their number. seen: int32 [operations], zeros; counts the dependencies of each
    operation.
    """
    ranks = len(p.start) - 1
    for r in range(ranks):
        if p.start[r] > p.start[r + 1]:
            return 0, p.start[r]
    for r in range(ranks):
        for o in range(p.start[r], p.start[r + 1]):
            message = p.kind[o] == Op.SEND or p.kind[o] == Op.RECV
            if not message and p.kind[o] != Op.CALC:
                return 1, o
            if p.amount[o] < 0 or p.cpu[o] < 0 or p.tag[o] < 0:
                return 2, o
            if not 0 <= p.step[o] < steps:
                return 3, o
            if not message and (p.peer[o] != -1 or p.partner[o] != -1):
                return 4, o
            if p.after[o] > p.after[o + 1] or p.after[o + 1] > len(p.successor):
                return 5, o
            for k in range(p.after[o], p.after[o + 1]):
                waiting = p.successor[k] >> 1
                if not p.start[r] <= waiting < p.start[r + 1]:
                    return 6, o
                seen[waiting] += 1
    for o in range(len(p.kind)):
        if seen[o] != p.need[o]:
            return 7, o
    return -1, -1


_FAULTS = (
    "the operations of its rank begin after those of the next",
    "it is neither a calculation nor a send nor a receive",
    "its amount, its processor or its tag is negative",
    "it belongs to a step that does not exist",
    "it is a calculation that has a peer or a partner",
    "the dependencies on it do not follow those on the operation before",
    "an operation of another rank depends on it",
    "its number of dependencies differs from need",
)


@device_function
def _differ(one: Ints, other: Ints) -> bool:
    """Whether two arrays of the same length differ."""
    count = 0
    for o in range(len(one)):
        count += one[o] != other[o]
    return count > 0


@device_function
def _unequal(kind: Integers, amount: Ints, partner: Ints) -> int:
    """The first send whose receive has another size, or -1."""
    for o in range(len(kind)):
        if kind[o] == Op.SEND and amount[o] != amount[partner[o]]:
            return o
    return -1


def check(program: Program) -> None:
    """Raise :class:`ProgramError` unless the arrays of a program are valid.

    It checks types, shapes, ranges, dependencies within a rank, partners, and the sizes of receives. Cyclic waits are
    found by :mod:`flitlab.models.application.order`.

    Parameters
    ----------
    program: the program.
    """
    for name, length in _lengths(program).items():
        array = getattr(program, name)
        if array.ndim != 1 or len(array) != length or array.dtype != DTYPES[name]:
            expected = f"{DTYPES[name]} [{length}]"
            raise ProgramError(f"{name} is {array.dtype} {list(array.shape)}, expected {expected}")
    ends = [program.start[0], program.start[-1] - program.operations, program.after[0]]
    if any(ends) or program.after[-1] != len(program.successor):
        raise ProgramError("start and after must lead from 0 to the number of operations and of dependencies")
    arrays = _Arrays(**{name: getattr(program, name) for name in DTYPES})
    seen = scratch(program.operations, np.int32)
    fault, operation = _fault(arrays, len(program.steps), seen)
    if fault >= 0:
        raise ProgramError(f"{describe(program.start, operation)}: {_FAULTS[fault]}", [operation])
    if _differ(match(program.start, program.kind, program.peer, program.tag), program.partner):
        raise ProgramError("partner is not what follows from ranks and tags")
    check_sizes(program.start, program.kind, program.amount, program.partner)


def check_sizes(start: Ints, kind: Integers, amount: Ints, partner: Ints) -> None:
    """Check that each receive has the size of its message.

    Parameters
    ----------
    start, kind, amount, partner: arrays of a :class:`~flitlab.models.application.program.Program`.

    Raises
    ------
    ProgramError: a size differs.
    """
    send = _unequal(kind, amount, partner)
    if send >= 0:
        receive = partner[send]
        raise ProgramError(
            f"{describe(start, receive)} receives {amount[receive]} bytes, but {describe(start, send)}, "
            f"which it belongs to, sends {amount[send]}",
            [receive, send],
        )


def _lengths(program: Program) -> dict[str, int]:
    per_operation = dict.fromkeys(DTYPES, program.operations)
    return per_operation | {
        "start": max(len(program.start), 2),
        "after": program.operations + 1,
        "successor": len(program.successor),
    }
