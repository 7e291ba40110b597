# SPDX-License-Identifier: Apache-2.0
"""Traffic in the background of other jobs."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder, MessageSet
from flitlab.models.application.skeletons.collective import Bytes
from flitlab.models.application.skeletons.skeleton import Skeleton
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register
from flitlab.models.traffic.draw import generator, random_cycle


@register("application", "background")
class Background(Skeleton):
    """Messages that are sent whatever else happens: every rank sends ``gbps`` on average for ``for_us`` microseconds.

    Messages of ``size_bytes`` come at the times of a Poisson process of each rank, ``to: random`` to another rank that
    is drawn for each, or ``to: permutation`` always to the same one, of which no other rank sends to it. No rank waits
    for a message, but messages that a host cannot send at once are sent one after another. ``seed`` draws times and
    ranks. It ends, so ``for_us`` should be more than the jobs take that it is to be in the background of.

    Example: ``application: {kind: background, gbps: 10, size_bytes: 4096, for_us: 50}``

    Source: open-loop sources, as in Dally and Towles, Principles and Practices of Interconnection Networks, chapter 23.
    """

    rule: ClassVar[str] = "at least 2"

    gbps: Annotated[float, Field(gt=0, le=1e6)] = 10.0
    """Rate of each rank, on average."""
    size_bytes: Bytes = 4096
    """Bytes of a message."""
    for_us: Annotated[float, Field(gt=0, le=1e9)] = 100.0
    """Time for which ranks send."""
    to: Literal["random", "permutation"] = "random"
    """Another rank for each message, or always the same one."""
    seed: int = Field(default=1, ge=0)
    """Of times and ranks."""

    def allows(self, ranks: int) -> bool:
        return ranks >= 2

    def extent(self, ranks: int) -> tuple[int, int]:
        return 1, 1

    def iterate(self, builder: Builder) -> None:
        rng = generator(self.seed)
        each = 1000 * self.for_us * self.gbps / (8 * max(self.size_bytes, 1))
        builder.expect(int(4 * each * builder.ranks))
        count = rng.poisson(each, builder.ranks)
        source = np.repeat(np.arange(builder.ranks), count)
        time = np.floor(rng.random(len(source)) * 1000 * self.for_us).astype(np.int64)
        order = np.lexsort((time, source))
        time = time[order]
        gap = np.diff(time, prepend=0)
        begin = np.cumsum(count) - count
        gap[begin[count > 0]] = time[begin[count > 0]]
        target = self._targets(rng, source, builder.ranks)
        builder.begin("background", size=self.size_bytes)
        sent: list[MessageSet] = []
        for k in range(int(count.max(initial=0))):
            indices = begin[count > k] + k
            with builder.on(1):
                builder.calculate(gap[indices], source[indices])
                due = builder.moment()
            builder.wait(due, source[indices])
            sent.append(builder.declare(source[indices], target[indices], self.size_bytes))
            builder.send(sent[-1])
        with builder.on(2):
            builder.receive(MessageSet.joined(sent))

    def _targets(self, rng: np.random.Generator, source: Ints, ranks: int) -> Ints:
        """The rank to which each message goes, that of ``source`` never."""
        if self.to == "permutation":
            return random_cycle(rng, ranks)[source]
        other = rng.integers(0, ranks - 1, len(source))
        return other + (other >= source)

    def notes(self, ranks: int) -> Notes:
        return {"for_us": self.for_us}
