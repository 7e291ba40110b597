# SPDX-License-Identifier: Apache-2.0
"""Packet creation at hosts: an arrival process, or the messages of a trace."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash


@dataclass(frozen=True)
class Source:
    """Arrival process and lengths of packets.

    arrivals: ``bernoulli``, ``poisson`` or ``onoff``. flits, shares: packet lengths, and the share of packets of each.
    burst: mean packets per on-period (onoff).
    """

    arrivals: str = "bernoulli"
    flits: tuple[int, ...] = (1,)
    shares: tuple[float, ...] = (1.0,)
    burst: float = 8.0

    @property
    def mean_flits(self) -> float:
        """Mean packet length in flits."""
        return float(np.dot(self.flits, self.shares) / sum(self.shares))


@dataclass(frozen=True, eq=False)
class Recorded:
    """The messages of a trace, in its order.

    times: the distinct start times, ascending, in microseconds if ``in_us``, else in ticks. when: int64 [messages],
    index of each message's start in ``times``. source, destination: int64 [messages], hosts. size: int64 [messages],
    bytes or flits. after: int64 [messages], the message whose delivery each awaits, or -1. classes: the class of each,
    or empty. repeat: whether the trace begins again after its last tick. path, line: the file, and int64 [messages],
    the line of each, for messages. outstanding: packets of a host that are created and not delivered, at most; a
    further one waits for the tick after the next delivery. None: any number.
    """

    times: tuple[Fraction, ...]
    in_us: bool
    when: Ints
    source: Ints
    destination: Ints
    size: Ints
    after: Ints
    classes: tuple[str, ...]
    repeat: bool
    path: str
    line: Ints
    outstanding: int | None = None

    @property
    def content_hash(self) -> str:
        """Hash of all messages."""
        times = [str(time) for time in self.times]
        ordered: list[Ints | int] = [self.after] if (self.after >= 0).any() else []
        ordered += [] if self.outstanding is None else [self.outstanding]
        return content_hash(times, self.in_us, self.when, self.source, self.destination, self.size, *ordered)
