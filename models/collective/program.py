# SPDX-License-Identifier: Apache-2.0
"""Programs that execute a schedule, with a window of messages per pair of ranks."""

import numpy as np

from flitlab.models.application.builder import LIMIT
from flitlab.models.application.program import Op, Program, Step
from flitlab.models.arrays import Ints, to_integers
from flitlab.models.collective.schedule import Schedule, complete_sends
from flitlab.models.registry import SpecError

_EARLY = 1


def chunk_bytes(schedule: Schedule, piece: int) -> Ints:
    """Return the size of each chunk in bytes, int64 [chunks], where a piece has ``piece`` bytes; sizes differ by at
    most 1.
    """
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
    """Build the program that executes a schedule.

    A send waits for the receives of its chunk; for the previous send to the same peer to have begun; and for the send
    ``window`` before it to be done. If done means delivered (``messages: {confirmed: true}``), at most ``window``
    messages per peer are in flight. The tag of a message is its number.

    Parameters
    ----------
    schedule: what each rank sends.
    piece: bytes of a piece of the data.
    window: messages per pair of ranks.
    algorithm, size: labels for results.
    ns_per_byte: nanoseconds to reduce a byte.

    Raises
    ------
    SpecError: the program has more operations than allowed (key: chunks).
    """
    total = 2 * schedule.sends
    if total > LIMIT:
        raise SpecError(
            f"the schedule has {total:,} operations, more than {LIMIT:,}; cut it into fewer chunks", "chunks"
        )
    messages = _Messages(schedule, piece, ns_per_byte)
    pairs = messages.by_chunks(), messages.by_peer(window, 0), messages.by_peer(1, _EARLY), messages.reductions()
    predecessors, successors = zip(*pairs, strict=True)
    predecessor, successor = np.concatenate(predecessors), np.concatenate(successors)
    predecessor, successor = np.unique(np.stack([predecessor, successor], axis=1), axis=0).T
    return messages.program(predecessor, successor, Step(schedule.kind, algorithm, size, schedule.ranks))


class _Messages:
    """The operations of a schedule: a send and a receive per message and, where it takes time, a reduction.

    size, ns: int64 [sends], bytes of the message and nanoseconds of its reduction. kind, rank, number: [operations],
    type, rank and message of each operation. send, receive, usable: int64 [sends], operations; ``usable`` is the one
    after which the data can be used, the receive or the reduction.
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
        kind = np.repeat(np.array([Op.SEND, Op.RECV, Op.CALC], np.int8), [count, count, len(reducing)])
        order = np.lexsort((kind == Op.CALC, schedule.step[number], rank))
        self.kind, self.rank, self.number = kind[order], rank[order], number[order]
        operation = np.empty(len(order), np.int64)
        operation[order] = np.arange(len(order))
        self.send, self.receive = operation[:count], operation[count : 2 * count]
        self.usable = self.receive.copy()
        self.usable[reducing] = operation[2 * count :]

    def by_chunks(self) -> tuple[Ints, Ints]:
        """Return pairs of an operation after which data is usable, and a later send of the same chunk by the same
        rank.
        """
        s = self.schedule
        steps = int(s.step.max(initial=0)) + 1
        receive_key = (s.target * s.chunks + s.chunk) * steps + s.step
        receive_order = np.argsort(receive_key)
        low = np.searchsorted(receive_key[receive_order], (s.source * s.chunks + s.chunk) * steps)
        count = np.searchsorted(receive_key[receive_order], (s.source * s.chunks + s.chunk) * steps + s.step) - low
        which = np.repeat(low, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return 2 * self.usable[receive_order[which]], np.repeat(self.send, count)

    def reductions(self) -> tuple[Ints, Ints]:
        """Return pairs of a receive and the reduction that follows it."""
        some = self.usable != self.receive
        return 2 * self.receive[some], self.usable[some]

    def by_peer(self, distance: int, early: int) -> tuple[Ints, Ints]:
        """Return pairs of sends to the same peer, ``distance`` sends apart. early: the second waits for the begin of
        the first.
        """
        s = self.schedule
        rank_pair = s.source * s.ranks + s.target
        order = np.lexsort((s.step, rank_pair))
        same_pair = rank_pair[order[distance:]] == rank_pair[order[:-distance]]
        return 2 * self.send[order[:-distance][same_pair]] + early, self.send[order[distance:][same_pair]]

    def program(self, predecessor: Ints, successor: Ints, step: Step) -> Program:
        """Build the program. predecessor: 2 * operation + early, ascending; successor: the operation that waits for
        it.
        """
        is_send, is_calc = self.kind == Op.SEND, self.kind == Op.CALC
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
