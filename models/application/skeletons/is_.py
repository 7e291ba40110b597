# SPDX-License-Identifier: Apache-2.0
"""NPB IS: integer sort."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import all_to_all_v, collective
from flitlab.models.application.skeletons.nas import Letter, NasBenchmark
from flitlab.models.application.skeletons.skeleton import everyone, is_power_of_two
from flitlab.models.registry import register

TESTED = 5
"""Keys whose places are checked in every iteration; they travel with the bucket sizes."""


@register("application", "is")
class Is(NasBenchmark):
    """NPB IS: keys of 4 bytes are sorted into buckets.

    An iteration: an all-reduce of the sizes of 1024 buckets (class S: 512) and 5 test keys, 4 bytes each, an all-to-all
    of 4 bytes, and one of keys, 4 keys / p^2 bytes a pair: buckets are dealt out so that all ranks get nearly equally
    many. algorithm: of the all-to-all of keys, ``scattered``, ``linear`` or ``pairwise``. Operations: one a key and
    iteration, half of them before the first message and half after the last.

    Example: ``application: {kind: is, class: A, ranks: 64, iterations: 3}``

    Source: NPB 3.3, IS (``is.c``: ``rank``).
    """

    rule: ClassVar[str] = "a power of two, at most 1024 (class S: 128)"
    loop: ClassVar[dict[str, int]] = dict.fromkeys("SWABCD", 10)
    keys: ClassVar[dict[str, int]] = {"S": 2**16, "W": 2**20, "A": 2**23, "B": 2**25, "C": 2**27, "D": 2**31}

    class_: Letter = Field("A", alias="class")
    """Class of the benchmark: its size."""
    algorithm: str | None = None
    """Algorithm of the all-to-all of keys. null: as an MPI library chooses."""

    def allows(self, ranks: int) -> bool:
        return is_power_of_two(ranks) and ranks <= (128 if self.class_ == "S" else 1024)

    def iterate(self, builder: Builder) -> None:
        ranks, keys, groups = builder.ranks, self.keys[self.class_], everyone(builder)
        half = self.time(keys / ranks / 2)
        buckets = 512 if self.class_ == "S" else 1024
        builder.begin("count")
        builder.calculate(half)
        size = 4 * (buckets + TESTED)
        collective(builder, "all_reduce", groups, size, ns_per_byte=2 * self.ns_per_byte, label="bucket_sizes")
        collective(builder, "all_to_all", groups, 4, label="key_counts")
        sizes = np.full((ranks, ranks), 4 * keys // ranks**2)
        all_to_all_v(builder, groups, sizes, self.algorithm, label="keys")
        builder.begin("rank")
        builder.calculate(half)
