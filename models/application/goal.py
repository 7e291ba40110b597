# SPDX-License-Identifier: Apache-2.0
"""GOAL text, the schedule format of LogGOPSim and ATLAHS.

    num_ranks 2
    rank 0 {
      l1: calc 100              // nanoseconds; any operation may name its processor: cpu 1
      l2: send 10b to 1 tag 7
      l2 requires l1            // l2 begins after l1 is done; irequires: after l1 has begun
    }
    rank 1 {
      recv 10b from 0 tag 7
    }

Source: Hoefler, Schneider, Lumsdaine 2010, LogGOPSim, doi:10.1145/1851476.1851564 (its ``txt2bin`` defines the
grammar); Hoefler, Siebert, Lumsdaine 2009, Group Operation Assembly Language, doi:10.1109/ICPP.2009.70.
"""

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flitlab.models.application import goal_text as g
from flitlab.models.application.matching import ProgramError, check_sizes, match
from flitlab.models.application.order import check_order
from flitlab.models.application.program import Program, Step
from flitlab.models.arrays import Bytes, Int, Integers, Ints, Ints32, scratch
from flitlab.models.files import replacing
from flitlab.models.jit import device_function, inline
from flitlab.models.registry import SpecError

MOST_RANKS = 1_000_000
"""The most ranks of a file."""

BLOCK = 1 << 16
"""Operations that are written together."""

EAGER = np.iinfo(np.int64).max
"""A rendezvous threshold above every message."""


class _Arrays(NamedTuple):
    """Arrays of a program (:class:`~flitlab.models.application.program.Program`): all operations and dependencies.

    kind, amount, peer, tag, cpu: 8, 64, 32, 32 and 16 bits.
    """

    kind: Integers
    amount: Ints
    peer: Ints32
    tag: Ints32
    cpu: Integers
    need: Ints32
    after: Ints
    successor: Ints


class _Labels(NamedTuple):
    """Labels of the operations of a rank.

    table: int64 [mask + 1], a hash table, 1 + an operation, 0 where free. offset: int64 [operations], where each
    label begins.
    """

    table: Ints
    mask: int
    offset: Ints


class _Spare(NamedTuple):
    """Arrays large enough for any rank: those of :class:`_Labels`, and of :func:`_link`."""

    table: Ints
    offset: Ints
    waiting: Ints
    awaited: Ints
    cursor: Ints


@device_function
def _survey(
    text: Bytes, offset: int, begin: Ints, end: Ints, operations: Ints, dependencies: Ints, nics: Ints, field: Ints
) -> tuple[int, int]:
    """Locate the ranks in a text, after num_ranks; returns (error, offset), error -1 if there is none.

    begin, end: int64 [ranks], all -1; become the offsets between the braces. operations, dependencies: int64 [ranks],
    zeros; become the numbers of statements. nics: int64 [1], operations that name a nic.
    """
    rank, ranks = -1, len(begin)
    while True:
        before = offset
        kind, offset = g.statement(text, offset, field)
        if kind >= g.WRONG:
            return kind - g.WRONG, offset
        if kind == g.END:
            return (g.NOT_CLOSED if rank >= 0 else -1), offset - 1
        if kind == g.COUNT:
            return g.COUNT_TWICE, offset - 1
        if kind == g.OPEN:
            if rank >= 0:
                return g.INSIDE, offset - 1
            rank = field[g.NUMBER]
            if rank >= ranks:
                return g.NO_SUCH_RANK, offset - 1
            if begin[rank] >= 0:
                return g.RANK_TWICE, offset - 1
            begin[rank] = offset
            continue
        if rank < 0:
            return (g.NOT_OPEN if kind == g.CLOSE else g.OUTSIDE), offset - 1
        if kind == g.CLOSE:
            end[rank] = before
            rank = -1
        elif kind == g.OPERATION:
            if field[g.PEER] >= ranks:
                return g.NO_SUCH_RANK, offset - 1
            operations[rank] += 1
            nics[0] += field[g.NIC] > 0
        else:
            dependencies[rank] += 1


@inline
def _slot(text: Bytes, at: int, end: int, labels: _Labels) -> Int:
    """The slot of the label text[at:end] in the hash table, or the free slot for it."""
    table, mask = labels.table, labels.mask
    code = np.uint64(0)
    for i in range(at, end):
        code = code * np.uint64(0x100000001B3) ^ np.uint64(text[i])
    slot = np.int64((code ^ (code >> np.uint64(29))) & np.uint64(mask))
    while table[slot] > 0:
        other, i = labels.offset[table[slot] - 1], at
        while i < end and text[other + i - at] == text[i]:
            i += 1
        if i == end and g.SYMBOL[text[other + end - at]] == 0:
            break
        slot = (slot + 1) & mask
    return slot


@device_function
def _read_operations(
    text: Bytes, offset: int, end: int, first: int, arrays: _Arrays, labels: _Labels, field: Ints
) -> tuple[int, int]:  # fmt: skip
    """Read the operations of a rank, numbered from ``first``; returns (error, offset), error -1 if there is none.

    arrays, labels: filled.
    """
    labels.table[: labels.mask + 1] = 0
    count = 0
    while offset < end:
        kind_read, offset = g.statement(text, offset, field)
        if kind_read != g.OPERATION:
            continue
        o = first + count
        arrays.kind[o], arrays.amount[o], arrays.peer[o] = field[g.KIND], field[g.AMOUNT], field[g.PEER]
        arrays.tag[o], arrays.cpu[o] = field[g.TAG], field[g.CPU]
        if field[g.LABEL] >= 0:
            slot = _slot(text, field[g.LABEL], field[g.LABEL_END], labels)
            if labels.table[slot] > 0:
                return g.LABEL_TWICE, field[g.LABEL]
            labels.table[slot] = count + 1
            labels.offset[count] = field[g.LABEL]
        count += 1
    return -1, offset


@device_function
def _dependencies(
    text: Bytes, offset: int, end: int, labels: _Labels, waiting: Ints, awaited: Ints, field: Ints
) -> tuple[int, int]:  # fmt: skip
    """Read the dependencies of a rank; returns (error, offset), error -1 if there is none.

    waiting: 2 * waiting operation + early; awaited: the operation waited for; both numbered within the rank.
    """
    table, count = labels.table, 0
    while offset < end:
        kind, offset = g.statement(text, offset, field)
        if kind != g.DEPENDENCY:
            continue
        one = _slot(text, field[g.LABEL], field[g.LABEL_END], labels)
        other = _slot(text, field[g.OTHER], field[g.OTHER_END], labels)
        if table[one] == 0 or table[other] == 0:
            return g.UNKNOWN, field[g.LABEL if table[one] == 0 else g.OTHER]
        waiting[count] = 2 * (table[one] - 1) + field[g.EARLY]
        awaited[count] = table[other] - 1
        count += 1
    return -1, offset


@device_function
def _link(
    first: int, operations: int, dependencies: int, waiting: Ints, awaited: Ints, cursor: Ints, arrays: _Arrays
) -> None:  # fmt: skip
    """Enter the dependencies of a rank, whose operations begin at ``first``, into a program's arrays.

    arrays: after[first] is known. waiting, awaited: of :func:`_dependencies`. cursor: int64 [operations of the rank at
    least], scratch.
    """
    need, after, successor = arrays.need, arrays.after, arrays.successor
    cursor[:operations] = 0
    for d in range(dependencies):
        cursor[awaited[d]] += 1
        need[first + (waiting[d] >> 1)] += 1
    for o in range(operations):
        after[first + o + 1] = after[first + o] + cursor[o]
        cursor[o] = after[first + o]
    for d in range(dependencies):
        o = awaited[d]
        successor[cursor[o]] = 2 * first + waiting[d]
        cursor[o] += 1


@device_function
def _fill(
    text: Bytes, begin: Ints, end: Ints, start: Ints, dependencies: Ints, arrays: _Arrays, spare: _Spare, field: Ints
) -> tuple[int, int]:
    """Read all ranks into the arrays of a program; returns (error, offset), error -1 if there is none."""
    table, label_offset, waiting, awaited, cursor = spare
    for r in range(len(begin)):
        first, operations = start[r], start[r + 1] - start[r]
        mask = 1
        while mask < 2 * operations:
            mask *= 2
        labels = _Labels(table, mask - 1, label_offset)
        fault, offset = _read_operations(text, begin[r], end[r], first, arrays, labels, field)
        if fault < 0:
            fault, offset = _dependencies(text, begin[r], end[r], labels, waiting, awaited, field)
        if fault >= 0:
            return fault, offset
        _link(first, operations, dependencies[r], waiting, awaited, cursor, arrays)
    return -1, 0


@device_function
def _operation_end(text: Bytes, offset: int, operation: int, field: Ints) -> int:
    """The offset of the end of an operation, numbered from 0 after an offset."""
    while True:
        kind, offset = g.statement(text, offset, field)
        if kind == g.OPERATION:
            if operation == 0:
                return offset - 1
            operation -= 1


def read_goal(path: Path) -> Program:
    """The program of a GOAL file.

    Memory holds the labels and dependencies of one rank; the program itself may be larger than memory
    (:func:`~flitlab.models.arrays.scratch`). All operations belong to one step. ``nic`` is read and noted
    but has no effect, as a host has one. Raises ``SpecError``, if possible with the line, for invalid GOAL, unknown or
    duplicate labels, sends and receives without partner or of different sizes, cyclic waits, and wildcards (-1).
    """
    text = _text(path)
    field = np.zeros(g.FIELDS, np.int64)
    statement_kind, offset = g.statement(text, 0, field)
    if statement_kind != g.COUNT or not 1 <= field[g.NUMBER] <= MOST_RANKS:
        raise _text_error(path, text, statement_kind - g.WRONG if statement_kind > g.WRONG else g.NO_COUNT, offset)
    ranks = int(field[g.NUMBER])
    begin, end = np.full((2, ranks), -1)
    operations, dependencies = np.zeros((2, ranks), np.int64)
    nics = np.zeros(1, np.int64)
    fault, offset = _survey(text, offset, begin, end, operations, dependencies, nics, field)
    if fault >= 0:
        raise _text_error(path, text, fault, offset)
    missing = np.flatnonzero(begin < 0)
    if len(missing):
        raise SpecError(f"{path}: rank {missing[0]} is missing; num_ranks is {ranks}", "path")
    start = np.concatenate([[0], np.cumsum(operations)])
    total = int(start[-1])
    arrays = _Arrays(
        scratch(total, np.int8), scratch(total, np.int64), scratch(total, np.int32), scratch(total, np.int32),
        scratch(total, np.int16), scratch(total, np.int32), scratch(total + 1, np.int64),
        scratch(int(dependencies.sum()), np.int64),
    )  # fmt: skip
    most, linked = int(operations.max()), int(dependencies.max())
    table = 1 << max(0, (2 * most - 1).bit_length())
    spare = _Spare(*(scratch(size, np.int64) for size in (table, most, linked, linked, most)))
    fault, offset = _fill(text, begin, end, start, dependencies, arrays, spare, field)
    if fault >= 0:
        raise _text_error(path, text, fault, offset)
    kind, amount, peer, tag, cpu, need, after, successor = arrays
    try:
        partner = match(start, kind, peer, tag)
        check_sizes(start, kind, amount, partner)
        notes = {"nics": f"{nics[0]} operations name another nic than 0; every host has one"} if nics[0] else {}
        program = Program(
            start, kind, amount, peer, tag, cpu, scratch(total, np.int32), partner, need, after, successor,
            steps=(Step(path.stem, ranks=ranks),), notes=notes, source=str(path.absolute()),
        )  # fmt: skip
        check_order(program, EAGER)
    except ProgramError as error:
        raise SpecError(_located(path, text, error, begin, start), "path") from None
    return program


def label_of(program: Program, operation: int) -> str:
    """The label of an operation in the program's source file; '' where it has none, or the file is gone."""
    path, field = Path(program.source), np.zeros(g.FIELDS, np.int64)
    if not program.source or not path.is_file():
        return ""
    rank, text = int(program.rank[operation]), _text(path)
    _, offset = g.statement(text, 0, field)
    begin, end = np.full((2, program.ranks), -1)
    counts = np.zeros((3, program.ranks), np.int64)
    fault, _ = _survey(text, offset, begin, end, counts[0], counts[1], counts[2], field)
    if fault >= 0 or not np.array_equal(counts[0], np.diff(program.start)):  # it is another file now
        return ""
    _operation_end(text, begin[rank], operation - int(program.start[rank]), field)
    return text[field[g.LABEL] : field[g.LABEL_END]].tobytes().decode() if field[g.LABEL] >= 0 else ""


def _text(path: Path) -> np.ndarray:
    if not path.is_file():
        raise SpecError(f"{path}: no such file", "path")
    if not path.stat().st_size:
        raise SpecError(f"{path}: is empty", "path")
    text = np.asarray(np.memmap(path, np.uint8, "r"))
    if text[:2].tobytes() in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise SpecError(f"{path}: is UTF-16; save it as UTF-8", "path")
    return text[len(codecs.BOM_UTF8) :] if text[:3].tobytes() == codecs.BOM_UTF8 else text


def _line(text: np.ndarray, offset: int) -> int:
    """The line number of an offset."""
    block = 1 << 24
    return 1 + sum(
        int(np.count_nonzero(text[i : min(i + block, offset)] == g.NEWLINE)) for i in range(0, offset, block)
    )


def _text_error(path: Path, text: np.ndarray, fault: int, offset: int) -> SpecError:
    offset = max(0, min(int(offset), len(text) - 1))
    around = text[max(0, offset - 200) : offset + 200].tobytes()
    column = min(offset, 200)
    before, after = around[:column].rsplit(b"\n", 1)[-1], around[column:].split(b"\n", 1)[0]
    line = (before + after).decode("utf-8", "replace").strip()
    return SpecError(f"{path}:{_line(text, offset)}: {line!r}: {g.FAULTS[fault]}", "path")


def _located(path: Path, text: np.ndarray, error: ProgramError, begin: np.ndarray, start: np.ndarray) -> str:
    """The message of an error with the lines of its operations."""
    field = np.zeros(g.FIELDS, np.int64)
    lines = []
    for operation in error.operations[:3]:
        rank = int(np.searchsorted(start, operation, side="right")) - 1
        lines.append(_line(text, int(_operation_end(text, begin[rank], operation - start[rank], field))))
    if not lines:
        return f"{path}: {error}"
    also = f" (see also line {' and '.join(map(str, lines[1:]))})" if len(lines) > 1 else ""
    return f"{path}:{lines[0]}: {error}{also}"


def write_goal(program: Program, path: Path) -> None:
    """Write a program as GOAL; :func:`read_goal` restores the same arrays, without the steps.

    It is written in blocks, so the program may be larger than memory. Raises ``OSError``.
    """
    with replacing(path) as binary:
        file = codecs.getwriter("ascii")(binary)
        file.write(f"num_ranks {program.ranks}\n")
        for rank, (low, high) in enumerate(zip(program.start[:-1].tolist(), program.start[1:].tolist(), strict=True)):
            file.write(f"\nrank {rank} {{\n")
            for first in range(low, high, BLOCK):
                file.writelines(_operation_lines(program, low, first, min(first + BLOCK, high)))
            for first in range(low, high, BLOCK):
                file.writelines(_dependency_lines(program, low, first, min(first + BLOCK, high)))
            file.write("}\n")


def _operation_lines(program: Program, base: int, first: int, last: int) -> Sequence[str]:
    part = slice(first, last)
    columns = (getattr(program, name)[part].tolist() for name in ("kind", "amount", "peer", "tag", "cpu"))
    verbs = ("calc {}", "send {}b to {} tag {}", "recv {}b from {} tag {}")
    return [
        f"l{number}: {verbs[kind].format(amount, peer, tag)}{f' cpu {cpu}' if cpu else ''}\n"
        for number, (kind, amount, peer, tag, cpu) in enumerate(zip(*columns, strict=True), start=first - base)
    ]


def _dependency_lines(program: Program, base: int, first: int, last: int) -> Sequence[str]:
    counts = np.diff(program.after[first : last + 1])
    awaited = np.repeat(np.arange(first - base, last - base), counts).tolist()
    waiting = program.successor[program.after[first] : program.after[last]] - 2 * base
    return [
        f"l{waits >> 1} {'irequires' if waits & 1 else 'requires'} l{number}\n"
        for waits, number in zip(waiting.tolist(), awaited, strict=True)
    ]
