# SPDX-License-Identifier: Apache-2.0
"""A trace as a program: each message is a packet that is created at its tick, or after the delivery of another one."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Op, Program, SendWindow, Step
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints, Ints32
from flitlab.models.hashing import content_hash
from flitlab.models.registry import SpecError
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.traffic.source import Recorded

MAX_ROWS = 10_000_000
"""Most packets of a trace, repetitions included."""

MAX_FLITS = 1_000_000
"""Flits of the longest packet."""

_EAGER = 1 << 62


@dataclass(frozen=True, eq=False)
class TraceProgram(Program):
    """The program of a trace with n rows.

    Operations 0 .. n - 1 are the sends of the rows and n .. 2 n - 1 their receives. The others calculate from one tick
    of the trace to the next, and release the sends of that tick. So operations that become ready in a tick are in the
    order of the file. Host h is rank h, which sends, and rank hosts + h, which receives; the calculations are those of
    a last rank. Unlike in other programs, an operation may depend on those of other ranks.

    rank_of: int32 [operations]. classes: of each row, or empty.
    """

    rank_of: Ints32 = field(kw_only=True)
    classes: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def rows(self) -> int:
        """The number of packets."""
        return int((self.kind == Op.SEND).sum())

    @cached_property
    def rank(self) -> Ints32:
        """The rank of each operation, int32 [operations]."""
        return self.rank_of

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        return content_hash("trace", super().content_hash, self.rank_of, list(self.classes))


def trace_workload(recorded: Recorded, hosts: int, ticks: int | None, one_length: bool) -> Workload:
    """Make the work of hosts that follow a trace.

    Parameters
    ----------
    recorded: the messages, in flits.
    hosts: of the network.
    ticks: the end of the run, up to which a trace repeats; None: the end of the trace.
    one_length: whether all packets must have the same length.

    Returns
    -------
    A workload whose program is a :class:`TraceProgram`.

    Raises
    ------
    SpecError
        The trace cannot be followed: its times are no ticks, or descend; a packet without flits, or after a later one.
        The message has file and line.
    """
    _validate(recorded, one_length)
    tick = np.array([int(time) for time in recorded.times], np.int64)[recorded.when]
    source, destination, flits, after = recorded.source, recorded.destination, recorded.size, recorded.after
    classes = recorded.classes
    if recorded.repeat:
        if ticks is None:
            raise SpecError("a trace that repeats has no end: measure.max_ticks is missing", key="repeat")
        rows, period = len(tick), int(tick[-1]) + 1
        times = -(-ticks // period)
        if times * rows > MAX_ROWS:
            problem = f"{times * rows:,} packets in {ticks:,} ticks are too many; at most {MAX_ROWS:,} are sent"
            raise SpecError(problem, key="repeat")
        nth = np.repeat(np.arange(times), rows)
        tick = np.tile(tick, times) + nth * period
        after = np.tile(after, times) + np.where(np.tile(after, times) >= 0, nth * rows, 0)
        source, destination, flits = (np.tile(column, times) for column in (source, destination, flits))
        classes *= times
    longest = int(flits.max())
    messages = Messages(
        packet_bytes=longest, flit_bytes=1, header_flits=0, packet_flits=longest, whole=False, rendezvous=_EAGER,
        overhead=0, tick_ns=Fraction(1), confirmed=True, notice=1,
    )  # fmt: skip
    host = np.concatenate([np.arange(hosts), np.arange(hosts), [0]])
    program = _program(tick, source, destination, flits, after, classes, hosts)
    if recorded.outstanding is not None:
        program = _with_window(program, recorded.outstanding)
    return Workload(program, host, messages)


def _program(
    tick: Ints, source: Ints, destination: Ints, flits: Ints, after: Ints, classes: tuple[str, ...], hosts: int
) -> TraceProgram:
    """Make the program of rows, whose columns are int64 [rows]; after: a row, or -1."""
    rows, ranks = len(tick), 2 * hosts + 1
    begins = np.unique(np.append(tick, 0))  # the calculations end there, but for the first
    sends, receives, timers = np.arange(rows), rows + np.arange(rows), 2 * rows + np.arange(len(begins) - 1)
    timed, following = np.flatnonzero(tick > 0), np.flatnonzero(after >= 0)
    timer = timers[0] + np.searchsorted(begins, tick[timed]) - 1 if len(timers) else timed
    before = np.concatenate([after[following], timer, timers[:-1]])
    later = np.concatenate([following, timed, timers[1:]])
    order, operations = np.lexsort([later, before]), 2 * rows + len(timers)

    def columns(of_sends: Ints, of_receives: Ints, of_timers: Ints, kind: type[np.generic]) -> np.ndarray:
        return np.concatenate([of_sends, of_receives, of_timers]).astype(kind)

    none = np.full(len(timers), -1)
    return TraceProgram(
        start=np.append(np.zeros(ranks, np.int64), operations),
        kind=np.repeat([Op.SEND, Op.RECV, Op.CALC], [rows, rows, len(timers)]).astype(np.int8),
        amount=columns(flits, flits, np.diff(begins), np.int64),
        peer=columns(hosts + destination, source, none, np.int32),
        tag=np.zeros(operations, np.int32),
        cpu=np.zeros(operations, np.int16),
        step=np.zeros(operations, np.int32),
        partner=columns(receives, sends, none, np.int64),
        need=np.bincount(later, minlength=operations).astype(np.int32),
        after=np.append(0, np.cumsum(np.bincount(before, minlength=operations))).astype(np.int64),
        successor=2 * later[order],
        steps=(Step("trace"),),
        rank_of=columns(source, hosts + destination, np.full(len(timers), ranks - 1), np.int32),
        classes=classes,
    )


def _with_window(program: TraceProgram, outstanding: int) -> TraceProgram:
    """The program with a limit of outstanding packets per host: the others wait for the end of earlier sends."""
    source = program.rank[: program.rows].astype(np.int64)
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], np.arange(program.ranks))
    nth = np.empty_like(order)  # of each row among those of its host
    nth[order] = np.arange(len(order)) - first[source[order]]
    waiting, following = np.full(program.ranks, -1, np.int64), np.full(program.operations, -1, np.int64)
    opens = np.flatnonzero(nth == outstanding)
    waiting[source[opens]] = opens
    follows = source[order[1:]] == source[order[:-1]]
    following[order[:-1][follows]] = order[1:][follows]
    need = program.need.copy()
    need[np.flatnonzero(nth >= outstanding)] += 1
    return replace(program, need=need, window=SendWindow(waiting, following))


def _validate(recorded: Recorded, one_length: bool) -> None:
    """Raise ``SpecError`` for the first row of a trace that cannot be followed."""
    if recorded.in_us:
        raise SpecError("has times in microseconds; the first column must be tick", key="path")
    if recorded.size_unit == "bytes":
        raise SpecError("has sizes in bytes; the column must be flits", key="path")
    tick = np.array([min(int(time), LONGEST_RUN) for time in recorded.times], np.int64)[recorded.when]
    rows = np.arange(len(tick))
    errors = [
        (tick >= LONGEST_RUN, f"is later than the last tick of a run, {LONGEST_RUN - 1:,}"),
        (np.append(False, np.diff(tick) < 0), "is earlier than the row before it; ticks must ascend"),
        (recorded.size < 1, "has no flits"),
        (recorded.size > MAX_FLITS, f"has more than {MAX_FLITS:,} flits"),
        (recorded.after >= rows, "is after a row that is not before it"),
    ]
    if one_length:
        one = recorded.size != recorded.size[0]
        errors.append((one, "has another length than row 0: with deflection all packets have one length"))
    first = [(int(np.flatnonzero(wrong)[0]), problem) for wrong, problem in errors if wrong.any()]
    if len(rows) > MAX_ROWS:
        first.append((MAX_ROWS, f"is one too many; at most {MAX_ROWS:,} packets are sent"))
    if first:
        row, problem = min(first)
        raise SpecError(f"{recorded.path}:{recorded.line[row]}: row {row} {problem}", key="path")
