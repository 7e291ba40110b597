# SPDX-License-Identifier: Apache-2.0
"""A fat tree of output-queued switches, simulated event by event in plain Python: an oracle for mode ideal.

It shares nothing with flitlab, and its way up is written for the tree: no routing tables and no engine.
"""

import heapq
import random
from collections.abc import Callable, Sequence

DELAY = 2
"""Ticks from the start of a packet at an output until its header has been read at the next switch."""

Choice = Callable[[random.Random, list[int], int], int]
"""Which of some outputs, given the flits that each has still to send, takes a packet of this length in flits."""


def at_random(rng: random.Random, unsent: list[int], flits: int) -> int:
    """Any output."""
    return rng.randrange(len(unsent))


def at_lowest(rng: random.Random, unsent: list[int], flits: int) -> int:
    """The output with the fewest flits, of several the lowest."""
    return unsent.index(min(unsent))


def at_least(rng: random.Random, unsent: list[int], flits: int) -> int:
    """The output with the fewest flits, of several any."""
    return rng.choice([i for i, left in enumerate(unsent) if left == min(unsent)])


def at_drawn(rng: random.Random, unsent: list[int], flits: int) -> int:
    """Any output, unless another has a packet less and less than half: then one with the fewest flits."""
    drawn, least = rng.randrange(len(unsent)), min(unsent)
    if unsent[drawn] >= least + flits and unsent[drawn] > 2 * least:
        return at_least(rng, unsent, flits)
    return drawn


def latencies(
    k: int, to: Sequence[int], load: float, flits: int, ticks: int, warmup: int, seed: int, choose: Choice
) -> list[int]:
    """Latencies, from creation to tail, of the packets created from ``warmup`` on and delivered before ``ticks``.

    k: ports of a switch. to: the destination of each of the k**3 / 4 hosts. load: flits a tick and host.
    """
    rng, half = random.Random(seed), k // 2
    free: dict[tuple, int] = {}  # tick from which each output is free; outputs: (tier, switch, number)
    found = []
    events = [(_gap(rng, load / flits) - 1, rng.random(), "created", host, 0, 0) for host in range(k**3 // 4)]
    heapq.heapify(events)

    def start(output: tuple, tick: int) -> int:
        """Tick at which a packet that joins the queue of an output is started there."""
        begin = max(free.get(output, 0), tick)
        free[output] = begin + flits
        return begin

    def up(tier: str, switch: int, tick: int) -> tuple:
        """The output upwards that a packet chooses."""
        outputs = [(tier, switch, i) for i in range(half)]
        return outputs[choose(rng, [max(free.get(one, 0) - tick, 0) for one in outputs], flits)]

    while events:
        tick, _, where, host, born, switch = heapq.heappop(events)
        if tick >= ticks:
            break
        target = to[host]
        edge, pod = target // half, target // half**2
        if where == "created":
            at_edge = start(("host", host, 0), tick) + DELAY
            heapq.heappush(events, (at_edge, rng.random(), "edge", host, tick, host // half))
            heapq.heappush(events, (tick + _gap(rng, load / flits), rng.random(), "created", host, 0, 0))
            continue
        if where == "edge" and switch == edge:
            delivered = start(("down", switch, target), tick) + DELAY + flits - 1
            if born >= warmup and delivered < ticks:
                found.append(delivered - born)
            continue
        if where == "edge":
            output = up("edge", switch, tick)
            following = "aggregation", switch // half * half + output[2]
        elif where == "aggregation" and switch // half == pod:
            output, following = ("aggregation down", switch, edge), ("edge", edge)
        elif where == "aggregation":
            output = up("aggregation", switch, tick)
            following = "core", switch % half * half + output[2]
        else:
            output, following = ("core", switch, pod), ("aggregation", pod * half + switch // half)
        read = start(output, tick) + DELAY
        heapq.heappush(events, (read, rng.random(), following[0], host, born, following[1]))
    return found


def _gap(rng: random.Random, rate: float) -> int:
    """Ticks to the next packet of a host that creates one in each tick with a probability."""
    ticks = 1
    while rng.random() >= rate:
        ticks += 1
    return ticks
