# SPDX-License-Identifier: Apache-2.0
"""Programs that follow a schedule: its sends in its order, and never more than a few of them under way to a peer."""

import numpy as np

from flitlab.models.application.builder import LIMIT
from flitlab.models.application.program import CALC, RECV, SEND, Program, Step
from flitlab.models.arrays import Ints, to_integers
from flitlab.models.collective.schedule import Schedule, complete_sends
from flitlab.models.registry import SpecError

_EARLY = 1


def chunk_bytes(schedule: Schedule, piece: int) -> Ints:
    """int64 [chunks]: bytes of each, where every piece of the data has ``piece``; as equal as bytes allow."""
    key = (schedule.start + 1) * (schedule.ranks + 1) + schedule.goal + 1
    order = np.argsort(key, kind="stable")
    amount = schedule.amount[order]
    ends = np.cumsum(amount)
    is_first_of_piece = np.diff(key[order], prepend=-1) != 0
    ends -= np.repeat(
        (ends - amount)[is_first_of_piece], np.diff(np.append(np.flatnonzero(is_first_of_piece), len(ends)))
    )
    sizes = np.empty(len(order), np.int64)
    sizes[order] = ends * piece // schedule.parts - (ends - amount) * piece // schedule.parts
    return sizes


def build_program(
    schedule: Schedule, piece: int, window: int, algorithm: str = "", size: int = 0, ns_per_byte: float = 0.0
) -> Program:
    """The program of a schedule whose pieces have ``piece`` bytes.

    A send waits for the receives of its chunks; for the send before it from the same rank to the same peer to have
    begun; and for that of ``window`` sends before to be done. Where that means delivered (``messages: {confirmed:
    true}``), no more than ``window`` messages to a peer are under way. The tag of a message is its number.

    algorithm, size: as results show them. ns_per_byte: nanoseconds that it takes to reduce a byte with another.
    Raises ``SpecError`` for more operations than a program may have.
    """
    total = 2 * schedule.sends
    if total > LIMIT:
        raise SpecError(
            f"the schedule has {total:,} operations, more than {LIMIT:,}; cut it into fewer chunks", "chunks"
        )
    messages = _Messages(schedule, piece, ns_per_byte)
    pairs = messages.by_chunks(), messages.by_peer(window, 0), messages.by_peer(1, _EARLY), messages.reductions()
    before, after = zip(*pairs, strict=True)
    predecessor, successor = np.concatenate(before), np.concatenate(after)
    predecessor, successor = np.unique(np.stack([predecessor, successor], axis=1), axis=0).T
    return messages.program(predecessor, successor, Step(schedule.kind, algorithm, size, schedule.ranks))


class _Messages:
    """The operations of a schedule: a send and a receive of each message and, where that takes time, a reduction.

    size, ns: int64 [sends], bytes of the message and nanoseconds of its reduction. kind, rank, number: int64
    [operations], what, whose and of which message they are. send, receive, taken: int64 [sends], operations; ``usable``
    is the one after which a message is of use, the receive or the reduction.
    """

    def __init__(self, schedule: Schedule, piece: int, ns_per_byte: float) -> None:
        self.schedule = schedule
        count = schedule.sends
        self.size = chunk_bytes(schedule, piece)[schedule.chunk]
        added = np.where(complete_sends(schedule), 0, self.size) if ns_per_byte else np.zeros(count)
        self.ns = to_integers("gflops", np.rint(added * ns_per_byte))
        every = np.arange(count)
        reducing = every[self.ns > 0]
        rank = np.concatenate([schedule.source, schedule.target, schedule.target[reducing]])
        number = np.concatenate([every, every, reducing])
        kind = np.repeat(np.array([SEND, RECV, CALC], np.int8), [count, count, len(reducing)])
        order = np.lexsort((kind == CALC, schedule.step[number], rank))
        self.kind, self.rank, self.number = kind[order], rank[order], number[order]
        operation = np.empty(len(order), np.int64)
        operation[order] = np.arange(len(order))
        self.send, self.receive = operation[:count], operation[count : 2 * count]
        self.usable = self.receive.copy()
        self.usable[reducing] = operation[2 * count :]

    def by_chunks(self) -> tuple[Ints, Ints]:
        """Pairs of what is taken in and the sends of the same chunk by the same rank in later steps."""
        s = self.schedule
        steps = int(s.step.max(initial=0)) + 1
        receive_key = (s.target * s.chunks + s.chunk) * steps + s.step
        receive_order = np.argsort(receive_key)
        low = np.searchsorted(receive_key[receive_order], (s.source * s.chunks + s.chunk) * steps)
        count = np.searchsorted(receive_key[receive_order], (s.source * s.chunks + s.chunk) * steps + s.step) - low
        which = np.repeat(low, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return 2 * self.usable[receive_order[which]], np.repeat(self.send, count)

    def reductions(self) -> tuple[Ints, Ints]:
        """Pairs of a receive and the reduction that follows it."""
        some = self.usable != self.receive
        return 2 * self.receive[some], self.usable[some]

    def by_peer(self, distance: int, early: int) -> tuple[Ints, Ints]:
        """Pairs of sends to the same peer, the second ``distance`` after the first; early: it waits for its begin."""
        s = self.schedule
        rank_pair = s.source * s.ranks + s.target
        order = np.lexsort((s.step, rank_pair))
        same_pair = rank_pair[order[distance:]] == rank_pair[order[:-distance]]
        return 2 * self.send[order[:-distance][same_pair]] + early, self.send[order[distance:][same_pair]]

    def program(self, predecessor: Ints, successor: Ints, step: Step) -> Program:
        """The program in which operations wait for others. waited: 2 * operation + early, ascending."""
        is_send, is_calc = self.kind == SEND, self.kind == CALC
        peer = np.where(is_send, self.schedule.target[self.number], self.schedule.source[self.number])
        partner = np.where(is_send, self.receive[self.number], self.send[self.number])
        operations = len(self.kind)
        return Program(
            start=np.searchsorted(self.rank, np.arange(self.schedule.ranks + 1)).astype(np.int64),
            kind=self.kind,
            amount=np.where(is_calc, self.ns[self.number], self.size[self.number]),
            peer=np.where(is_calc, -1, peer).astype(np.int32),
            tag=np.where(is_calc, 0, self.number).astype(np.int32),
            cpu=np.zeros(operations, np.int16),
            step=np.zeros(operations, np.int32),
            partner=np.where(is_calc, -1, partner),
            need=np.bincount(successor, minlength=operations).astype(np.int32),
            after=np.searchsorted(predecessor >> 1, np.arange(operations + 1)).astype(np.int64),
            successor=2 * successor + (predecessor & _EARLY),
            steps=(step,),
        )
