# SPDX-License-Identifier: Apache-2.0
"""The messages of a trace."""

from dataclasses import dataclass
from fractions import Fraction

from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash


@dataclass(frozen=True, eq=False)
class Recorded:
    """The messages of a trace, in its order.

    times: the distinct start times, ascending, in microseconds if ``in_us``, else in ticks. when: int64 [messages],
    index of each message's start in ``times``. source, destination: int64 [messages], hosts. size: int64 [messages],
    bytes or flits.
    """

    times: tuple[Fraction, ...]
    in_us: bool
    when: Ints
    source: Ints
    destination: Ints
    size: Ints

    @property
    def content_hash(self) -> str:
        """Hash of all messages."""
        times = [str(time) for time in self.times]
        return content_hash(times, self.in_us, self.when, self.source, self.destination, self.size)
