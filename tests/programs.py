# SPDX-License-Identifier: Apache-2.0
"""Small programs for tests, written down or drawn at random."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from flitlab.models.application.matching import match
from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Op, Program, Step

Operation = tuple[int, int, int, int, int, Sequence[tuple[int, int]]]
"""(kind, amount, peer, tag, cpu, [(operation of the same rank that it waits for, whether only for its start), ...])."""


def messages(**changes) -> Messages:
    """Packets of 4 flits of 8 bytes, ticks of a nanosecond; ``changes`` override."""
    keys = {
        "packet_bytes": 32, "flit_bytes": 8, "header_flits": 0, "packet_flits": 4, "whole": False,
        "rendezvous": 1 << 40, "overhead": 0, "tick_ns": Fraction(1),
    }  # fmt: skip
    return Messages(**{**keys, **changes})


def program(ranks: Sequence[Sequence[Operation]], steps: tuple[Step, ...] = (Step("all"),)) -> Program:
    """From the operations of each rank."""
    start = np.cumsum([0, *map(len, ranks)]).astype(np.int64)
    rows = [operation for rank in ranks for operation in rank]
    dependents: list[list[int]] = [[] for _ in rows]
    for r, rank in enumerate(ranks):
        for o, operation in enumerate(rank, start=int(start[r])):
            for other, early in operation[5]:
                dependents[start[r] + other].append(2 * o + early)
    types = (np.int8, np.int64, np.int32, np.int32, np.int16)
    kind, amount, peer, tag, cpu = (np.array([row[i] for row in rows], dtype) for i, dtype in enumerate(types))
    return Program(
        start=start, kind=kind, amount=amount, peer=peer, tag=tag, cpu=cpu,
        step=np.zeros(len(rows), np.int32), partner=match(start, kind, peer, tag),
        need=np.array([len(row[5]) for row in rows], np.int32),
        after=np.cumsum([0, *map(len, dependents)]).astype(np.int64),
        successor=np.array([waiting for row in dependents for waiting in row], np.int64),
        steps=steps,
    )  # fmt: skip


@st.composite
def programs(draw, most_ranks: int = 4, most_operations: int = 12, most_bytes: int = 5000, any_order: bool = False):
    """Programs whose sends and receives match; ``any_order`` lets operations depend on later ones, so on themselves.

    Otherwise operations depend on earlier ones of a common order in which every receive comes after its send: such
    programs never wait for themselves, as long as no message needs a rendezvous.
    """
    count = draw(st.integers(1, most_ranks))
    ranks: list[list[Operation]] = [[] for _ in range(count)]
    number, size, bit = st.integers(0, count - 1), st.integers(0, most_bytes), st.integers(0, 1)

    def needs(operations: int) -> list[tuple[int, int]]:
        return draw(st.lists(st.tuples(st.integers(0, operations - 1), bit), max_size=2)) if operations else []

    def put(rank: int, kind: int, amount: int, peer: int, tag: int) -> None:
        ranks[rank].append((kind, amount, peer, tag, draw(bit), needs(len(ranks[rank]))))

    for _ in range(draw(st.integers(0, most_operations))):
        if draw(st.booleans()):
            put(draw(number), Op.CALC, draw(size), -1, 0)
        else:
            source, target, amount, tag = draw(number), draw(number), draw(size), draw(bit)
            put(source, Op.SEND, amount, target, tag)
            put(target, Op.RECV, amount, source, tag)
    if any_order:
        ranks = [[(*operation[:5], needs(len(rank))) for operation in rank] for rank in ranks]
    return program(ranks)
