# SPDX-License-Identifier: Apache-2.0
"""Schedules in the XML of MSCCL, the Microsoft collective communication library."""

import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np

from flitlab.models.collective.schedule import ALL, Schedule, ScheduleError

COLLECTIVES = {
    "allgather": "all_gather", "allreduce": "all_reduce", "alltoall": "all_to_all", "reducescatter": "reduce_scatter",
    "reduce_scatter": "reduce_scatter",
}  # fmt: skip
"""Names of collectives there and here."""

STEPS = {
    "s": (False, False, True), "r": (True, False, False), "rrc": (True, True, False), "rcs": (True, False, True),
    "rrs": (True, True, True), "rrcs": (True, True, True), "cpy": (False, False, False), "re": (False, True, False),
    "nop": (False, False, False),
}  # fmt: skip
"""Type of a step -> whether it receives, reduces and sends."""

BUFFERS = ("i", "o", "s")
"""Input, output and scratch."""

MOST_CHUNKS = 10_000_000
"""The most chunks of all ranks."""


class Slot(NamedTuple):
    """A place for a chunk in one of the :data:`BUFFERS` of a rank."""

    rank: int
    buffer: str
    offset: int


class Held(NamedTuple):
    """What a slot holds: a chunk, the step from which on it can be sent, and the ranks that it sums, a bit each."""

    chunk: int
    step: int
    ranks: int


@dataclass
class _Block:
    """A thread block: it takes its steps in order."""

    rank: int
    name: str
    send: int
    receive: int
    channel: int
    steps: list[dict[str, str]]
    taken: list[int] = field(default_factory=list)
    """The step of the schedule after each step that is done."""

    @property
    def where(self) -> str:
        return f"gpu {self.rank}, tb {self.name}, step {len(self.taken)}"


def parse_msccl(text: bytes) -> Schedule:
    """Return the schedule of an ``<algo>``: the sends of its thread blocks, each in the first step that it can be.

    Chunks are followed through buffers, so that copies and scratch buffers do not matter. At the end each rank must
    have what it needs in its output, each rank's part once; what is sent is checked as of any schedule.

    Parameters
    ----------
    text: the file.

    Raises
    ------
    ScheduleError: it is not such XML, of another collective, or some steps never end.

    Source: Cowan et al. 2023, doi:10.1145/3575693.3575724; msccl/language of github.com/microsoft/msccl-tools.
    """
    try:
        algo = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ScheduleError(f"line {error.position[0]}: not XML: {error}") from None
    if algo.tag != "algo":
        raise ScheduleError(f"<{algo.tag}> where <algo> is expected")
    kind = COLLECTIVES.get(algo.get("coll", ""))
    if kind is None:
        problem = (
            f"coll {algo.get('coll')!r}" if "coll" in algo.attrib else "<algo> needs coll, the name of its collective"
        )
        raise ScheduleError(f"{problem}: choices are {', '.join(COLLECTIVES)}")
    return _Run(algo, kind).schedule()


class _Run:
    """An execution of all thread blocks."""

    def __init__(self, algo: ElementTree.Element, kind: str) -> None:
        self.kind, self.ranks, per_loop = kind, _whole(algo, "ngpus", 2), _whole(algo, "nchunksperloop", 1)
        self.in_place = algo.get("inplace") == "1"
        if kind != "all_reduce" and per_loop % self.ranks:
            raise ScheduleError(f"nchunksperloop {per_loop} is no multiple of ngpus {self.ranks}")
        self.parts = per_loop if kind == "all_reduce" else per_loop // self.ranks
        of_rank = self.parts if kind == "all_gather" else per_loop
        if of_rank * self.ranks > MOST_CHUNKS:
            raise ScheduleError(f"{of_rank * self.ranks:,} chunks of all ranks; at most {MOST_CHUNKS:,} are read")
        self.held = {
            self._slot(rank, "i", offset): Held(self._chunk(rank, offset), 0, 1 << rank)
            for rank in range(self.ranks)
            for offset in range(of_rank)
        }
        for gpu in algo.findall("gpu"):
            if _whole(gpu, "id") >= self.ranks:
                raise ScheduleError(f"gpu {gpu.get('id')} where ngpus is {self.ranks}")
        self.messages: dict[tuple[int, int, int], deque[list[Held]]] = defaultdict(deque)
        self.sends: list[tuple[int, int, int, int]] = []
        self.blocks: dict[tuple[int, int], _Block] = {}
        for gpu in algo.findall("gpu"):
            for tb in gpu.findall("tb"):
                rank, number = _whole(gpu, "id"), _whole(tb, "id")
                if (rank, number) in self.blocks:
                    raise ScheduleError(f"gpu {rank}, tb {number} is there twice")
                self.blocks[rank, number] = _Block(
                    rank, str(number), _whole(tb, "send", -1), _whole(tb, "recv", -1), _whole(tb, "chan", 0),
                    [dict(step.attrib) for step in tb.findall("step")],
                )  # fmt: skip

    def _chunk(self, rank: int, offset: int) -> int:
        """Return the chunk that a rank has at a place of its input."""
        match self.kind:
            case "all_gather":
                return rank * self.parts + offset
            case "all_to_all":
                return rank * self.ranks * self.parts + offset
            case _:
                return offset  # a part of it, which is reduced

    def _slot(self, rank: int, buffer: str, offset: int) -> Slot:
        """Return a slot; in place, input and output share some."""
        if self.in_place and self.kind == "all_gather" and buffer == "i":
            return Slot(rank, "o", rank * self.parts + offset)
        if self.in_place and buffer == "o" and self.kind != "all_gather":
            first = rank * self.parts if self.kind == "reduce_scatter" else 0
            return Slot(rank, "i", first + offset)
        return Slot(rank, buffer, offset)

    def schedule(self) -> Schedule:
        """Take all steps. Raises ``ScheduleError`` if some cannot be taken."""
        waiting = list(self.blocks.values())
        while waiting:
            before = sum(len(block.taken) for block in waiting)
            for block in waiting:
                while len(block.taken) < len(block.steps) and self._take(block):
                    pass
            left = [block for block in waiting if len(block.taken) < len(block.steps)]
            if left and sum(len(block.taken) for block in waiting) == before:
                raise ScheduleError(f"{left[0].where} never ends: what it waits for is not sent")
            waiting = left
        start, goal = self._pieces()
        self._check_outputs(start, goal)
        kept = np.flatnonzero((start != goal) | (start == ALL))  # what a rank has for itself is not sent
        number = np.full(len(start), -1)
        number[kept] = np.arange(len(kept))
        rows = np.array(sorted(self.sends, key=lambda row: row[3]), np.int64).reshape(-1, 4)
        chunk, source, target, step = (np.ascontiguousarray(column) for column in rows.T)
        if (number[chunk] < 0).any():
            own = int(start[chunk[number[chunk] < 0][0]])
            raise ScheduleError(f"rank {own} sends what it has for itself")
        start, goal, amount = start[kept], goal[kept], np.ones(len(kept), np.int64)
        return Schedule(self.kind, self.ranks, start, goal, amount, self.parts, number[chunk], source, target, step)

    def _pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which rank has each chunk at first, and which one needs it, int64 [chunks]."""
        ranks = np.arange(self.ranks)
        match self.kind:
            case "all_gather":
                start = np.repeat(ranks, self.parts)
                return start, np.full(len(start), ALL)
            case "all_reduce":
                return np.full(self.parts, ALL), np.full(self.parts, ALL)
            case "reduce_scatter":
                goal = np.repeat(ranks, self.parts)
                return np.full(len(goal), ALL), goal
            case _:
                return np.repeat(ranks, self.ranks * self.parts), np.tile(np.repeat(ranks, self.parts), self.ranks)

    def _check_outputs(self, start: np.ndarray, goal: np.ndarray) -> None:
        """Raise ``ScheduleError`` where an output lacks what its rank needs from others. start, goal: of the chunks."""
        every = (1 << self.ranks) - 1
        for rank in range(self.ranks):
            needed = np.flatnonzero((goal == ALL) | (goal == rank)).tolist()
            for offset, chunk in enumerate(needed):
                held = self.held.get(self._slot(rank, "o", offset))
                of = every if start[chunk] == ALL else 1 << int(start[chunk])
                if held is None and start[chunk] == rank and not self.in_place:
                    continue  # its own, which is not sent: copied by the caller
                if held is None or held.chunk != chunk:
                    there = "nothing" if held is None else f"chunk {held.chunk}"
                    raise ScheduleError(f"gpu {rank} ends with {there} in o[{offset}], where chunk {chunk} belongs")
                if held.ranks != of:
                    lacking = next(other for other in range(self.ranks) if (held.ranks ^ of) >> other & 1)
                    raise ScheduleError(f"gpu {rank} ends without the part of gpu {lacking} in o[{offset}]")

    def _take(self, block: _Block) -> bool:
        """Take the next step of a block, if what it waits for is done. Returns whether it was taken."""
        step = block.steps[len(block.taken)]
        if step.get("type") not in STEPS:
            raise ScheduleError(f"{block.where}: type {step.get('type')!r}; choices are {', '.join(STEPS)}")
        if step.get("s") != str(len(block.taken)):
            raise ScheduleError(f"{block.where}: s {step.get('s')!r}, but steps are in the order of their numbers")
        receives, reduces, sends = STEPS[step["type"]]
        at = block.taken[-1] if block.taken else 0
        dependency = self._number(block, step, "depid"), self._number(block, step, "deps")
        if dependency[0] >= 0:
            other = self.blocks.get((block.rank, dependency[0]))
            if other is None or not 0 <= dependency[1] < len(other.steps):
                raise ScheduleError(f"{block.where}: depends on tb {dependency[0]}, step {dependency[1]}, of none")
            if len(other.taken) <= dependency[1]:
                return False
            at = max(at, other.taken[dependency[1]])
        if step["type"] == "nop":
            block.taken.append(at)
            return True
        count = self._number(block, step, "cnt", 1)
        source, target = (self._slots(block, step, end, count) for end in ("src", "dst"))
        if receives:
            queue = self.messages[block.receive, block.rank, block.channel]
            if not queue:
                return False
            held = queue.popleft()
            if len(held) != count:
                raise ScheduleError(f"{block.where}: receives {count} chunks where {len(held)} are sent")
        else:
            held = [self._of(block, slot) for slot in source]
        if reduces:
            others = [self._of(block, slot) for slot in (source if receives else target)]
            held = [self._sum(block, one, other) for one, other in zip(held, others, strict=True)]
        at = max([at, *(one.step for one in held)])
        held = [one._replace(step=at) for one in held]
        if step["type"] not in ("s", "rrs"):
            self.held.update(zip(target, held, strict=True))
        if sends:
            if not 0 <= block.send < self.ranks:
                raise ScheduleError(f"{block.where}: sends to gpu {block.send}")
            self.sends += [(one.chunk, block.rank, block.send, at) for one in held]
            arrived = [one._replace(step=at + 1) for one in held]
            self.messages[block.rank, block.send, block.channel].append(arrived)
        block.taken.append(at + sends)
        return True

    def _slots(self, block: _Block, step: dict[str, str], end: Literal["src", "dst"], count: int) -> list[Slot]:
        buffer, first = step.get(f"{end}buf", ""), self._number(block, step, f"{end}off", 0)
        if buffer not in BUFFERS:
            raise ScheduleError(f"{block.where}: {end}buf {buffer!r}; choices are {', '.join(BUFFERS)}")
        return [self._slot(block.rank, buffer, first + one) for one in range(count)]

    def _number(self, block: _Block, step: dict[str, str], name: str, least: int = -1) -> int:
        """Return an attribute of a step as a whole number, of at most :data:`MOST_CHUNKS`."""
        text = step.get(name, "")
        if not re.fullmatch(r"-?[0-9]+", text) or len(text) > 12 or not least <= int(text) <= MOST_CHUNKS:
            raise ScheduleError(f"{block.where}: {name} {text[:40]!r} must be a whole number from {least}")
        return int(text)

    def _of(self, block: _Block, slot: Slot) -> Held:
        if slot not in self.held:
            raise ScheduleError(f"{block.where}: nothing is in {slot.buffer}[{slot.offset}] then")
        return self.held[slot]

    def _sum(self, block: _Block, one: Held, other: Held) -> Held:
        if one.chunk != other.chunk:
            raise ScheduleError(f"{block.where}: adds chunks {one.chunk} and {other.chunk}, which are parts of others")
        if one.ranks & other.ranks:
            twice = (one.ranks & other.ranks).bit_length() - 1
            raise ScheduleError(f"{block.where}: adds the part of gpu {twice} twice")
        return Held(one.chunk, max(one.step, other.step), one.ranks | other.ranks)


def _whole(element: ElementTree.Element, name: str, least: int = 0) -> int:
    """Return an attribute as a whole number of at least ``least``."""
    text = element.get(name, "").strip()
    if not re.fullmatch("-?[0-9]{1,12}", text):
        raise ScheduleError(f"<{element.tag}> needs a whole number {name}, not {element.get(name)!r}")
    value = int(text)
    if value < least:
        raise ScheduleError(f"<{element.tag}>: {name} {value} must be {least} or more")
    return value
