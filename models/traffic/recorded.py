# SPDX-License-Identifier: Apache-2.0
"""Messages of a trace, one by one."""

from dataclasses import dataclass
from fractions import Fraction

from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash


@dataclass(frozen=True, eq=False)
class Recorded:
    """The messages of a trace, in its order.

    times: at which some start, ascending, in microseconds or, unless ``in_us``, ticks. when: int64 [messages], place of
    the time of each among them. source, destination: hosts; size: bytes, or flits; int64 [messages].
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
