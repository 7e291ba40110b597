# SPDX-License-Identifier: Apache-2.0
"""Kernels of the NAS Parallel Benchmarks: CG, FT, IS and MG."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import log, prod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import all_to_all_v, collective
from flitlab.models.application.collectives.communicator import distances
from flitlab.models.application.program import Program
from flitlab.models.application.skeletons.nas import Letter, NasBenchmark
from flitlab.models.application.skeletons.skeleton import everyone, is_power_of_two
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError, register

INNER = 25
"""Conjugate-gradient iterations of an iteration of the program."""

TESTED = 5
"""Keys whose places are checked in every iteration; they travel with the bucket sizes."""

RESTRICT, SMOOTH, RESIDUAL, PROLONGATE = 3.0, 19.0, 19.0, 2.5
"""Operations a point of the finer level as the program's comments count them (a coarse point: 24 and 20)."""


@register("application", "cg")
class Cg(NasBenchmark):
    """NPB CG: rows x cols ranks, cols = rows or 2 rows, have the blocks of a sparse matrix of ``order`` rows.

    A product with the matrix: its partial sums, 8 order / cols bytes, are added up by log2 cols exchanges within the
    row of ranks, then exchanged with the transposed rank. A scalar product: log2 cols exchanges of 8 bytes. An
    iteration of the program has 25 iterations of the method (a matrix product and two scalar products each), another
    matrix product, and three scalar products, two of them in one message. Operations: with z = nonzer (nonzer + 1),
    2 order (3 + z + 25 (5 + z) + 3) an iteration, 2 order z of them in a matrix product.

    Example: ``application: {kind: cg, class: B, ranks: 256, iterations: 1}``

    Source: NPB 3.3, CG (``cg.f``: ``setup_submatrix_info``, ``conj_grad``).
    """

    rule: ClassVar[str] = "a power of two, not above the matrix's order"
    loop: ClassVar[dict[str, int]] = {"S": 15, "W": 15, "A": 15, "B": 75, "C": 75, "D": 100}
    order: ClassVar[dict[str, int]] = {"S": 1400, "W": 7000, "A": 14000, "B": 75000, "C": 150000, "D": 1500000}
    nonzer: ClassVar[dict[str, int]] = {"S": 7, "W": 8, "A": 11, "B": 13, "C": 15, "D": 21}

    def allows(self, ranks: int) -> bool:
        return is_power_of_two(ranks) and ranks <= self.order[self.class_]

    def iterate(self, builder: Builder) -> None:
        self._add_up(builder, 8, 1)
        for _ in range(INNER):
            self._matrix_product(builder)
            self._add_up(builder, 8, 1)
            self._add_up(builder, 8, 4)
        self._matrix_product(builder)
        self._add_up(builder, 8, 2)
        self._add_up(builder, 16, 3)

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": list(cg_grid(ranks)), "inner iterations": INNER}

    def _matrix_product(self, builder: Builder) -> None:
        order, nonzer = self.order[self.class_], self.nonzer[self.class_]
        rows, cols = cg_grid(builder.ranks)
        size = 8 * order // cols
        builder.begin("matrix_product", "recursive_doubling", size, cols)
        builder.calculate(self.time(2 * order * nonzer * (nonzer + 1) / builder.ranks))
        _within_rows(builder, size, reversed(_halves(cols)))
        builder.begin("transpose", size=size)
        builder.exchange(np.arange(builder.ranks), transposed(rows, cols), size)

    def _add_up(self, builder: Builder, size: int, operations: int) -> None:
        """A scalar product, and ``2 * operations`` operations on each entry of a vector."""
        cols = cg_grid(builder.ranks)[1]
        builder.begin("scalar_product", "recursive_doubling", size, cols)
        builder.calculate(self.time(2 * operations * self.order[self.class_] / builder.ranks))
        _within_rows(builder, size, _halves(cols))


def cg_grid(ranks: int) -> tuple[int, int]:
    """(rows, cols) of a power of two."""
    rows = 1 << (ranks.bit_length() - 1) // 2
    return rows, ranks // rows


def transposed(rows: int, cols: int) -> Ints:
    """The rank with the transposed block, or blocks: int64 [ranks]."""
    rank, wide = np.arange(rows * cols), cols // rows
    pair = rank // wide
    return wide * (pair % rows * rows + pair // rows) + rank % wide


def _halves(cols: int) -> list[int]:
    """Distances of partners in the order of the summation."""
    return distances(cols)[::-1]


def _within_rows(builder: Builder, size: int, order: Iterable[int]) -> None:
    """Exchanges with ranks of the same row, at distances in an order."""
    rank = np.arange(builder.ranks)
    for distance in order:
        builder.exchange(rank, rank ^ distance, size)


Side = Annotated[int, Field(ge=1)]


@register("application", "ft")
class Ft(NasBenchmark):
    """NPB FT: transforms of nx x ny x nz complex numbers of 16 bytes.

    An iteration: a third of the transform, a transposition, the rest, and a reduction of the 16-byte checksum. While
    there are no more ranks than planes, it is an all-to-all of all ranks, 16 nx ny nz / p^2 bytes a pair. For more,
    ranks are a ``grid`` of np1 x np2, and there are two: within the groups of np2 ranks next to each other, then,
    after another third, within those of np1, 16 nx ny nz / (p np) bytes a pair in groups of np. grid: by default as
    square as possible; the program takes [nz, p / nz] unless told otherwise. algorithm: of the all-to-all, by default
    as an MPI library chooses. Before the loop, the first transform. Operations: with N = nx ny nz, N (14.8157 + 7.19641
    ln N) before the loop and N (5.23518 + 7.21113 ln N) an iteration, in three equal parts.

    Example: ``application: {kind: ft, class: A, ranks: 64, iterations: 2}``

    Source: NPB 3.3, FT (``ft.f``: ``setup``, ``fft``, ``transpose_x_yz``).
    """

    rule: ClassVar[str] = "a power of two that divides the transform's planes or lines"
    loop: ClassVar[dict[str, int]] = {"S": 6, "W": 6, "A": 6, "B": 20, "C": 20, "D": 25}
    points: ClassVar[dict[str, tuple[int, int, int]]] = {
        "S": (64, 64, 64), "W": (128, 128, 32), "A": (256, 256, 128), "B": (512, 256, 256), "C": (512, 512, 512),
        "D": (2048, 1024, 1024),
    }  # fmt: skip

    class_: Letter = Field("A", alias="class")
    """Class of the benchmark: its size."""
    grid: tuple[Side, Side] | None = None
    """Grid of ranks, for more ranks than planes. null: as square as possible."""
    algorithm: str | None = None
    """Algorithm of the all-to-all. null: as an MPI library chooses."""

    def program(self, hosts: int) -> Program:
        if self.grid is not None and not self._fits(self.grid):
            raise SpecError("must be powers of two, np1 up to min(nx, ny) and np2 up to min(ny, nz)", "grid")
        if self.grid is not None and self.ranks not in (None, prod(self.grid)):
            raise SpecError(f"has {prod(self.grid)} ranks, not {self.ranks}", "grid")
        return super().program(hosts)

    def allows(self, ranks: int) -> bool:
        layout = self.layout(ranks)
        return prod(layout) == ranks and self._fits(layout)

    def layout(self, ranks: int) -> tuple[int, int]:
        """np1 x np2; np1 is 1 where every rank has whole planes."""
        if self.grid is not None:
            return self.grid
        _, ny, nz = self.points[self.class_]
        if ranks <= min(ny, nz):
            return 1, ranks
        np2 = 1 << (ranks.bit_length() - 1) // 2
        return ranks // np2, np2

    def prepare(self, builder: Builder) -> None:
        total = self._total()
        self._transform(builder, total * (14.8157 + 7.19641 * log(total)))

    def iterate(self, builder: Builder) -> None:
        total = self._total()
        self._transform(builder, total * (5.23518 + 7.21113 * log(total)))
        collective(builder, "reduce", everyone(builder), 16, ns_per_byte=self.ns_per_byte, label="checksum")

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": list(self.layout(ranks))}

    def _fits(self, layout: tuple[int, int]) -> bool:
        nx, ny, nz = self.points[self.class_]
        powers = all(map(is_power_of_two, layout))
        return powers and layout[0] <= min(nx, ny) and layout[1] <= min(ny, nz)

    def _total(self) -> int:
        return prod(self.points[self.class_])

    def _transform(self, builder: Builder, operations: float) -> None:
        np1, np2 = self.layout(builder.ranks)
        ranks = np.arange(builder.ranks).reshape(np1, np2)
        part = self.time(operations / builder.ranks / 3)
        for groups, parts in ((ranks, 1), (ranks.T, 1 if np1 > 1 else 2)):
            builder.begin("fft")
            builder.calculate(parts * part)
            if groups.shape[1] > 1:
                size = 16 * self._total() // builder.ranks // groups.shape[1]
                collective(builder, "all_to_all", groups, size, self.algorithm, label="transpose")
        if np1 > 1:
            builder.begin("fft")
            builder.calculate(part)


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


@register("application", "mg")
class Mg(NasBenchmark):
    """NPB MG: V-cycles on a periodic grid of n^3 points, n = 2^levels, over a 3-D grid of ranks.

    An iteration: down to the level of 2^3 points and up again, then a residual. Every operator at a level ends with an
    exchange of all six faces, two at a time; a face has 8 bytes a point. On levels with fewer points than ranks a
    side, only every s-th rank of that side has points, s = 2, 4, ..., its neighbours are s apart, and on the way up it
    gives those between a layer. Operations: 58 n^3 an iteration, divided among operators as the program's comments
    count them and among levels by points.

    Example: ``application: {kind: mg, class: B, ranks: 64, iterations: 2}``

    Source: NPB 3.3, MG (``mg.f``: ``setup``, ``mg3P``, ``comm3``, ``comm3_ex``).
    """

    rule: ClassVar[str] = "a power of two, not more ranks a side than points"
    loop: ClassVar[dict[str, int]] = {"S": 4, "W": 4, "A": 4, "B": 20, "C": 20, "D": 50}
    levels: ClassVar[dict[str, int]] = {"S": 5, "W": 7, "A": 8, "B": 8, "C": 9, "D": 10}

    def allows(self, ranks: int) -> bool:
        return is_power_of_two(ranks) and max(mg_grid(ranks)) <= 1 << self.levels[self.class_]

    def iterate(self, builder: Builder) -> None:
        top = self.levels[self.class_]
        levels = [MultigridLevel(mg_grid(builder.ranks), k) for k in range(top + 1)]
        unit = self.time(58 * 8**top / _weight(top))

        def operate(name: str, cost: float, level: MultigridLevel) -> None:
            builder.begin(name, size=level.face(2))
            builder.calculate(cost * unit * 8**level.number / len(level.active), level.active)

        for coarser in levels[top - 1 : 0 : -1]:
            operate("restrict", RESTRICT * 8, coarser)
            coarser.exchange(builder)
        operate("smooth", SMOOTH, levels[1])
        levels[1].exchange(builder)
        for level in levels[2:]:
            operate("prolongate", PROLONGATE, level)
            level.spread(builder)
            operate("residual", RESIDUAL, level)
            level.exchange(builder)
            operate("smooth", SMOOTH, level)
            level.exchange(builder)
        operate("residual", RESIDUAL, levels[top])
        levels[top].exchange(builder)

    def notes(self, ranks: int) -> Notes:
        return super().notes(ranks) | {"grid": list(mg_grid(ranks))}


def mg_grid(ranks: int) -> tuple[int, int, int]:
    """Ranks a side of a power of two, as the program divides them; the first changes fastest."""
    log = ranks.bit_length() - 1
    x, y = log // 3, (log - log // 3) // 2
    return 1 << x, 1 << y, 1 << (log - x - y)


def _weight(top: int) -> float:
    """Operations of a V-cycle and a residual, by the counts of the operators."""
    ups = sum(8**k for k in range(2, top + 1))
    flops: float = (RESTRICT + PROLONGATE + RESIDUAL + SMOOTH) * ups + SMOOTH * 8 + RESIDUAL * 8**top
    return flops


@dataclass(frozen=True)
class MultigridLevel:
    """The grid of (2^number)^3 points over ``sides`` of ranks."""

    sides: tuple[int, int, int]
    number: int

    @cached_property
    def stride(self) -> list[int]:
        """Distance between ranks with points, for each side."""
        return [max(1, side >> self.number) for side in self.sides]

    @cached_property
    def local(self) -> list[int]:
        """Points a side of a rank that has some."""
        return [max(1, (1 << self.number) // side) for side in self.sides]

    @cached_property
    def place(self) -> Ints:
        """int64 [3, ranks]: coordinates."""
        x, y, _ = self.sides
        rank = np.arange(prod(self.sides))
        return np.stack([rank % x, rank // x % y, rank // (x * y)])

    @cached_property
    def active(self) -> np.ndarray:
        """Ranks that have points."""
        has = [place % stride == stride - 1 for place, stride in zip(self.place, self.stride, strict=True)]
        return np.flatnonzero(np.logical_and.reduce(has))

    def face(self, axis: int) -> int:
        """Bytes of a face across an axis."""
        return 8 * prod(self.local) // self.local[axis]

    def neighbour(self, rank: np.ndarray, axis: int, direction: int) -> Ints:
        """The next rank with points along an axis.

        Parameters
        ----------
        rank: int64, ranks.
        axis: 0, 1 or 2.
        direction: 1 or -1.

        Returns
        -------
        int64, as ``rank``.
        """
        place = self.place[:, rank].copy()
        place[axis] = (place[axis] + direction * self.stride[axis]) % self.sides[axis]
        x, y, _ = self.sides
        ranks: Ints = place[0] + x * (place[1] + y * place[2])
        return ranks

    def exchange(self, builder: Builder) -> None:
        """All faces to the neighbours, axis by axis."""
        for axis in range(3):
            both = np.concatenate([self.neighbour(self.active, axis, direction) for direction in (1, -1)])
            builder.exchange(np.tile(self.active, 2), both, self.face(axis))

    def spread(self, builder: Builder) -> None:
        """Data for ranks without points at the next coarser level: two layers forward and one back.

        Parameters
        ----------
        builder: collects the rounds.
        """
        for axis in range(3):
            if self.sides[axis] >> (self.number - 1) < 2:
                continue
            gives = self.active[self.place[axis, self.active] % (2 * self.stride[axis]) == 2 * self.stride[axis] - 1]
            layer = 8 * prod(n + 2 for n in self.local) // (self.local[axis] + 2)
            both = np.concatenate([self.neighbour(gives, axis, direction) for direction in (1, -1)])
            builder.exchange(np.tile(gives, 2), both, np.repeat([2 * layer, layer], len(gives)))
