# SPDX-License-Identifier: Apache-2.0
"""A training step of a large neural network."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder, MessageSet
from flitlab.models.application.collectives.choose import BEST, collective
from flitlab.models.application.program import Program
from flitlab.models.application.skeletons.skeleton import Skeleton
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError, register

COMPUTE, REDUCE, FORTH, BACK = range(4)
"""Threads: calculations, reductions of gradients, messages to the next stage, messages to the previous stage."""

UPDATE = 10
"""Operations of an optimiser per parameter."""

Count = Annotated[int, Field(ge=1, le=1_000_000)]


@register("application", "training")
class Training(Skeleton):
    """Training steps of a transformer under data, tensor, pipeline and expert parallelism at once.

    ranks = tensor * data * pipeline, tensor groups next to each other, then data, then stages. Each stage has layers /
    pipeline layers. A microbatch of ``batch`` sequences passes a layer forward in two halves, attention (8 n h^2 + 4 n
    s h operations, n = batch * sequence tokens, h hidden, s sequence) and feed-forward (16 n h^2). After each half the
    tensor group all-reduces n h values (``sequence_parallel``: all-gather before, reduce-scatter after). With
    ``experts`` > 1, groups of that many ranks of the data dimension have an expert each: an all-to-all takes ``top``
    copies of every token to its experts before the feed-forward half, another brings them back. Backward is the same in
    reverse with twice the operations. Stages pass n h values per microbatch to the next, or the previous one, in the
    order of the ``schedule``. During the backward pass of the last microbatch, the gradients of every ``bucket`` layers
    (12 h^2 parameters a layer, without experts) are all-reduced in the data dimension, in parallel to the calculations;
    then follows the update.

    Example: ``application: {kind: training, tensor: 4, pipeline: 4, microbatches: 8, ranks: 64}``

    Source: Narayanan et al. 2021, doi:10.1145/3458817.3476209 (schedules, operations); Li et al. 2020,
    doi:10.14778/3415478.3415530 (buckets); Korthikanti et al. 2022, arXiv:2205.05198 (sequence parallelism); Lepikhin
    et al. 2020, arXiv:2006.16668 (experts).
    """

    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 200_000.0
    """Rate at which a rank computes."""
    tensor: Count = 2
    """Ranks of a tensor group."""
    pipeline: Count = 2
    """Stages of the pipeline."""
    data: Count | None = None
    """Copies of the model. null: as many as there are ranks for."""
    experts: Count = 1
    """Experts of a group of ranks; 1: none."""
    top: Count = 2
    """Experts that a token goes to."""
    layers: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Layers of the model."""
    hidden: Count = 2048
    """Values of a token."""
    sequence: Count = 1024
    """Tokens of a sequence."""
    batch: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Sequences of a microbatch."""
    microbatches: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Microbatches of a step."""
    schedule: Literal["1f1b", "gpipe"] = "1f1b"
    """Order of forward and backward passes."""
    sequence_parallel: bool = False
    """All-gather and reduce-scatter in the place of all-reduce in tensor groups."""
    bucket: Count = 1
    """Layers whose gradients are reduced together."""
    bytes_per_value: Annotated[int, Field(ge=1, le=16)] = 2
    """Bytes of a value."""
    reduction: str | None = "ring"
    """Algorithm of reductions and all-gathers. null: as an MPI library chooses."""
    algorithm: Literal["best"] | None = None
    """best: every collective takes the best algorithm on the network."""
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Simulated steps."""

    def program(self, hosts: int) -> Program:
        if self.layers % self.pipeline:
            raise SpecError(f"must divide the {self.layers} layers", "pipeline")
        if self.data is not None and self.data % self.experts:
            raise SpecError(f"must divide data, {self.data}", "experts")
        if self.algorithm is not None and self.reduction != type(self).model_fields["reduction"].default:
            raise SpecError("says nothing beside algorithm: best; leave one of them out", "reduction")
        return super().program(hosts)

    @property
    def asks_for_best(self) -> bool:
        return BEST in (self.algorithm, self.reduction)

    def allows(self, ranks: int) -> bool:
        if self.data is not None:
            return ranks == self._unit * self.data
        return ranks % (self._unit * self.experts) == 0

    def requirement(self) -> str:
        if self.data is not None:
            return f"tensor * pipeline * data = {self._unit * self.data}"
        return f"a multiple of tensor * pipeline * experts = {self._unit * self.experts}"

    def extent(self, ranks: int) -> tuple[int, int]:
        return self.iterations, self.iterations

    def iterate(self, builder: Builder) -> None:
        shape = self.pipeline, builder.ranks // self._unit, self.tensor
        stages = np.arange(builder.ranks).reshape(shape)
        between = _Between(
            [self._declare(builder, FORTH, a, b) for a, b in pairwise(stages)],
            [self._declare(builder, BACK, b, a) for a, b in pairwise(stages)],
        )
        for number, ranks in enumerate(stages):
            _Stage(self, builder, number, ranks, between).run()

    def notes(self, ranks: int) -> Notes:
        return {"tensor": self.tensor, "data": ranks // self._unit, "pipeline": self.pipeline}

    @property
    def _unit(self) -> int:
        return self.tensor * self.pipeline

    @property
    def values(self) -> int:
        """Bytes of a microbatch between two layers."""
        return self.batch * self.sequence * self.hidden * self.bytes_per_value

    def order(self, stage: int) -> list[tuple[bool, int]]:
        """The schedule of a stage: (whether forward, microbatch), one after another."""
        count = self.microbatches
        warmup = count if self.schedule == "gpipe" else min(self.pipeline - 1 - stage, count)
        moves = [(True, m) for m in range(warmup)]
        for m in range(count):
            moves += [(True, warmup + m)] * (warmup + m < count) + [(False, m)]
        return moves

    def _declare(self, builder: Builder, thread: int, source: Ints, target: Ints) -> list[MessageSet]:
        size = self.values // self.tensor if self.sequence_parallel else self.values
        with builder.on(thread):
            return [builder.declare(source, target, size) for _ in range(self.microbatches)]


@dataclass(frozen=True)
class _Between:
    """Messages of each microbatch between neighbouring stages, forward and back."""

    forth: list[list[MessageSet]]
    back: list[list[MessageSet]]


@dataclass(frozen=True)
class _Stage:
    """A stage of the pipeline. ranks: int64 [data, tensor]."""

    spec: Training
    builder: Builder
    number: int
    ranks: Ints
    between: _Between

    def run(self) -> None:
        """A training step."""
        for forward, m in self.spec.order(self.number):
            if forward:
                self._forward(m)
            else:
                self._backward(m)
        with self.builder.on(REDUCE):
            reduced = self.builder.moment()
        self.builder.begin("update")
        self.builder.wait(reduced, self.ranks.ravel())
        self._calculate(UPDATE * self._layers * (self._attention_parameters + self._other_parameters))

    def _forward(self, m: int) -> None:
        if self.number > 0:
            self.builder.begin("activations", size=self.spec.values)
            self.builder.receive(self.between.forth[self.number - 1][m])
        for _ in range(self._layers):
            self._half("forward", self._attention, False)
            self._half("forward", self._feed_forward, self.spec.experts > 1)
        if self.number < self.spec.pipeline - 1:
            self._pass(FORTH, "activations", self.between.forth[self.number][m])

    def _backward(self, m: int) -> None:
        if self.number < self.spec.pipeline - 1:
            self.builder.begin("errors", size=self.spec.values)
            self.builder.receive(self.between.back[self.number][m])
        for layer in range(1, self._layers + 1):
            self._half("backward", 2 * self._feed_forward, self.spec.experts > 1)
            self._half("backward", 2 * self._attention, False)
            if m == self.spec.microbatches - 1 and (layer % self.spec.bucket == 0 or layer == self._layers):
                self._reduce_gradients((layer - 1) % self.spec.bucket + 1)
        if self.number > 0:
            self._pass(BACK, "errors", self.between.back[self.number - 1][m])

    def _half(self, name: str, operations: float, routed: bool) -> None:
        """Half of a layer, with the exchanges of the tensor group and the experts' group."""
        spec = self.spec
        if spec.sequence_parallel:
            self._tensor("all_gather", spec.values // spec.tensor)
        if routed:
            self._route("dispatch")
        self.builder.begin(name)
        self._calculate(operations)
        if routed:
            self._route("combine")
        self._tensor("reduce_scatter" if spec.sequence_parallel else "all_reduce", spec.values)

    def _calculate(self, operations: float) -> None:
        self.builder.calculate(self.spec.time(operations), self.ranks.ravel())

    def _tensor(self, name: str, size: int) -> None:
        if self.spec.tensor > 1:
            self._collective(name, self.ranks, size, "tensor")

    def _route(self, label: str) -> None:
        """An all-to-all of the ranks with the same part of different experts."""
        spec = self.spec
        groups = self._by_expert.transpose(0, 2, 1).reshape(-1, spec.experts)
        size = spec.values * spec.top // spec.tensor // spec.experts
        collective(self.builder, "all_to_all", groups, size, spec.algorithm, label=label)

    def _reduce_gradients(self, layers: int) -> None:
        """All-reduce the gradients of some layers in parallel to the calculations."""
        done = self.builder.moment()
        with self.builder.on(REDUCE):
            self.builder.begin("gradients")
            self.builder.wait(done, self.ranks.ravel())
            everywhere, by_expert = (
                self.ranks.T,
                self._by_expert.transpose(1, 2, 0).reshape(-1, self.ranks.shape[0] // self.spec.experts),
            )
            parts = ((everywhere, self._attention_parameters), (by_expert, self._other_parameters))
            for groups, parameters in parts:
                if groups.shape[1] > 1:
                    size = layers * parameters * self.spec.bytes_per_value
                    self._collective("all_reduce", groups, size, "gradients")

    def _collective(self, name: str, groups: Ints, size: int, label: str) -> None:
        ns_per_byte = self.spec.time(1 / self.spec.bytes_per_value)
        algorithm = self.spec.algorithm or self.spec.reduction
        collective(self.builder, name, groups, size, algorithm, ns_per_byte, label, key="reduction")

    def _pass(self, thread: int, name: str, messages: MessageSet) -> None:
        """Send to another stage in parallel to the calculations."""
        done = self.builder.moment()
        with self.builder.on(thread):
            self.builder.begin(name, size=self.spec.values)
            self.builder.wait(done, self.ranks.ravel())
            self.builder.send(messages)

    @property
    def _by_expert(self) -> Ints:
        """Ranks by experts' group, expert and tensor rank: int64 [experts' groups, experts, tensor]."""
        return self.ranks.reshape(-1, self.spec.experts, self.spec.tensor)

    @property
    def _layers(self) -> int:
        return self.spec.layers // self.spec.pipeline

    @property
    def _attention(self) -> float:
        spec, tokens = self.spec, self.spec.batch * self.spec.sequence
        return (8 * tokens * spec.hidden**2 + 4 * tokens * spec.sequence * spec.hidden) / spec.tensor

    @property
    def _feed_forward(self) -> float:
        spec, tokens = self.spec, self.spec.batch * self.spec.sequence
        return 16 * tokens * spec.hidden**2 * (spec.top if spec.experts > 1 else 1) / spec.tensor

    @property
    def _attention_parameters(self) -> int:
        return 4 * self.spec.hidden**2 // self.spec.tensor

    @property
    def _other_parameters(self) -> int:
        return 8 * self.spec.hidden**2 // self.spec.tensor
