# SPDX-License-Identifier: Apache-2.0
"""Sessions and programs during which a multiple of 2**32 ticks passes, as records keep the low 32 bits of ticks."""

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from flitlab.models.application.program import Op, Program
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.spray import Spray
from flitlab.models.transport.fabric import Fabric, SpraySession
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import Queues, Session
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.engines.start import start
from tests.programs import Operation, program
from tests.scenarios import build, line

WRAP = 1 << 32
"""Ticks after which their low 32 bits are the same again."""

STEP = 250_000
"""Ticks after which a program is compared."""


def late_start(number: int, length: int) -> int:
    """A tick less than ``length`` ticks before a multiple of 2**32."""
    rng = Random(number)
    return rng.randint(1, 3) * WRAP - rng.randrange(1, length)


def late_session(case: Session, window: tuple[float, float], number: int) -> tuple[Session, tuple[float, float]]:
    """A session that begins late, and the window of which 2**32 ticks are a part."""
    first = late_start(number, case.ticks(window[1]))
    changes = tuple(replace(change, tick=change.tick + first) for change in case.changes)
    begin, end = (seconds + first * case.tick_s for seconds in window)
    return replace(case, start=case.start + first, changes=changes), (begin, end)


def late_spray(case: SpraySession, number: int, length: int) -> tuple[SpraySession, int]:
    """A session of sprayed packets that begins late, and the tick at which it does."""
    first = late_start(number, length)
    changes = tuple(replace(change, tick=change.tick + first) for change in case.changes)
    return replace(case, flows=replace(case.flows, start=case.flows.start + first), changes=changes), first


def late_program(mode: str, number: int) -> tuple[Scenario, int]:
    """A program over datagrams or sprayed packets whose ranks calculate first, and the tick at which they have."""
    rng = Random(number)
    topology = rng.choice([line(3, hosts=2), build("rrg", hosts=1, n=6, degree=3, seed=4)])
    routing = {"kind": "ksp", "k": 3} if topology.kind == "rrg" else {"kind": "ecmp", "ways": 8, "routed": "source"}
    if mode == "spray" and topology.kind != "rrg":
        routing = {"kind": "ecmp"}
    spec = make("routing", **routing)
    given: Any = _datagram(rng, spec) if mode == "datagram" else _spray(rng)
    tick_ns = Fraction(given.tick_ns(topology, None))
    first = late_start(number, rng.choice([20_000, 200_000]))
    work = _program(rng, int(first * tick_ns))
    host = np.array(rng.sample(range(6), work.ranks))
    messages = given.messages(topology, rng.choice([0, 2000, 1 << 40]), 0.0)
    workload = Workload(work, host, messages)
    return Scenario(Instance(topology, traffic_of(work, host, topology), spec.build(topology)), given, workload), first


def _datagram(rng: Random, routing: Any) -> Datagram:
    kind = rng.choice(["tcp", "tcp", "mptcp", "dctcp", "none"])
    keys: dict = {"rate": 0.3} if kind == "none" else {
        "subflows": rng.randint(1, 3), "ack_path": rng.choice(["instant", "pure_delay", "reverse_path"]),
        "min_rto_ms": rng.choice([1.0, 5.0]), "init_window": rng.choice([2, 10]),
    }  # fmt: skip
    room = 200_000 if kind == "none" else rng.choice([2000, 5000, 100_000])
    queues = Queues(queue_bytes=room, random_drop=kind != "none", link_us=rng.choice([0.0, 10.0, 300.0]))
    return Datagram(make("transport", kind=kind, **keys), queues, routing, PathDraw.WITH_REPLACEMENT)


def _spray(rng: Random) -> Spray:
    kind = rng.choice(["nscc", "rccc", "nscc_rccc", "ndp", "dctcp", "constant"])
    fabric = Fabric(
        mtu_bytes=rng.choice([300, 1500, 4150]), link_us=rng.choice([0.0, 0.3, 5.0]),
        queue_bytes=rng.choice([None, 4150, 20_000]), trim=rng.random() < 0.5,
    )  # fmt: skip
    return Spray(make("transport", kind=kind, paths=rng.choice([1, 8])), fabric)


def _program(rng: Random, wait_ns: int) -> Program:
    """Ranks that calculate for ``wait_ns`` and then send each other messages, in turn or at once."""
    count = rng.randint(2, 5)
    ranks: list[list[Operation]] = [[(Op.CALC, wait_ns, -1, 0, 0, [])] for _ in range(count)]

    def put(rank: int, kind: int, amount: int, peer: int) -> None:
        ranks[rank].append((kind, amount, peer, 0, 0, [(rng.randrange(len(ranks[rank])), 0)]))

    for _ in range(rng.randint(3, 12)):
        source, target = rng.sample(range(count), 2)
        size = rng.choice([0, 1, 1000, 7000, 40_000, 40_000])
        put(source, Op.SEND, size, target)
        put(target, Op.RECV, size, source)
    return program(ranks)


def check_program(mode: str, number: int) -> Any:
    """Assert that both engines do the same with a late program, which ends; the run."""
    case, first = late_program(mode, number)
    run = start("both", case, 1.0, number)
    for tick in range(first, first + 4000 * STEP, STEP):
        run.advance(tick)
        if run.done():
            run.execution()  # compares
            run.carried()
            return run
    raise AssertionError("the program does not come to its end")
