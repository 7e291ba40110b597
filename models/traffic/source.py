# SPDX-License-Identifier: Apache-2.0
"""Packet creation at hosts: an arrival process, or the messages of a trace."""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash


class BurstRates(NamedTuple):
    """Chances per tick of a Markov on-off process, two of the three; the load determines the one that is None.

    start, end: that a host begins, or ends, an on-period. rate: that a host in an on-period creates a packet.
    """

    start: float | None = None
    end: float | None = None
    rate: float | None = None

    def complete(self, packets: Fraction) -> tuple[Fraction, Fraction, Fraction]:
        """Return (start, end, rate) of a host from its mean packets per tick.

        Raises
        ------
        ValueError: there are none.

        Parameters
        ----------
        packets: above 0.
        """
        start, end, rate = (None if chance is None else Fraction(chance) for chance in self)
        if rate is not None and rate <= packets:
            raise ValueError(
                f"burst.rate {float(rate):g} must exceed the {float(packets):g} packets per tick of the load"
            )
        if start is None and end is not None and rate is not None:
            start = end * packets / (rate - packets)
        elif end is None and start is not None and rate is not None:
            end = start * (rate - packets) / packets
        elif rate is None and start is not None and end is not None:
            rate = packets * (start + end) / start
        assert start is not None and end is not None and rate is not None
        if not (0 < start <= 1 and 0 <= end <= 1 and 0 < rate <= 1):
            values = f"start {float(start):g}, end {float(end):g}, rate {float(rate):g}"
            raise ValueError(f"{float(packets):g} packets per tick need chances of a burst above 1: {values}")
        if rate * LEAST_BURST < end:
            problem = (
                f"at end {float(end):g} and rate {float(rate):g} fewer than one burst in {LEAST_BURST} has a packet"
            )
            raise ValueError(problem)
        return start, end, rate


LEAST_BURST = 1000
"""On-periods of which at least one has a packet, on average."""


@dataclass(frozen=True)
class Source:
    """Arrival process and lengths of packets.

    arrivals: ``bernoulli``, ``poisson`` or ``onoff``. flits, shares: packet lengths, and the share of packets of each.
    burst: mean packets per on-period, back to back, or the rates of a Markov process (onoff).
    """

    arrivals: str = "bernoulli"
    flits: tuple[int, ...] = (1,)
    shares: tuple[float, ...] = (1.0,)
    burst: float | BurstRates = 8.0

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
    further one waits for the tick after the next delivery. None: any number. size_unit: ``flits`` or ``bytes``, where
    the file names the unit of ``size``.
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
    size_unit: str = ""

    @property
    def content_hash(self) -> str:
        """Hash of all messages."""
        times = [str(time) for time in self.times]
        ordered: list[Ints | int] = [self.after] if (self.after >= 0).any() else []
        ordered += [] if self.outstanding is None else [self.outstanding]
        return content_hash(times, self.in_us, self.when, self.source, self.destination, self.size, *ordered)
