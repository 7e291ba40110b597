# SPDX-License-Identifier: Apache-2.0
"""NPB DT: data traffic."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.skeletons.nas import NasBenchmark
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register

COMBINE, REDUCE = 10, 3
"""Operations on a number that a node combines with others', and on one that a sink sums up."""


@register("application", "dt")
class Dt(NasBenchmark):
    """NPB DT: arrays flow through a graph of tasks, one task a rank; ranks beyond its nodes are idle.

    graph: ``BH`` (black hole: a tree of fan-in 4 from all sources to one sink), ``WH`` (white hole: the same from one
    source to all sinks) or ``SH`` (shuffle: log2 sources layers of a butterfly). fields: doubles a sample; a message
    has 8 * fields bytes a sample. The program itself has 4. A node receives its messages one after another, combines
    each with what it has (10 operations a double; a sink: 3), and sends the result to one successor after another.

    Example: ``application: {kind: dt, class: B, graph: BH, ranks: 43}``

    Source: NPB 3.3, DT (``dt.c``); Frumkin and Shabanov, NAS-04-012.
    """

    loop: ClassVar[dict[str, int]] = dict.fromkeys("SWABCD", 1)
    sources: ClassVar[dict[str, int]] = {"S": 4, "W": 8, "A": 16, "B": 32, "C": 64, "D": 128}
    samples: ClassVar[dict[str, int]] = {"S": 1728, "W": 13824, "A": 110592, "B": 884736, "C": 7077888, "D": 56623104}

    graph: Literal["BH", "WH", "SH"] = "BH"
    """Graph of tasks: black hole, white hole or shuffle."""
    fields: int = Field(1, ge=1, le=64)
    """Doubles of a sample."""

    def allows(self, ranks: int) -> bool:
        return ranks >= nodes(self.graph, self.sources[self.class_])

    def requirement(self) -> str:
        return f"at least {nodes(self.graph, self.sources[self.class_])}, the nodes of graph {self.graph}"

    def iterate(self, builder: Builder) -> None:
        layers, arcs = task_graph(self.graph, self.sources[self.class_])
        doubles = self.samples[self.class_] * self.fields
        arc_index = {"in": _arc_index(arcs[:, 1]), "out": _arc_index(arcs[:, 0])}
        builder.begin("traffic", size=8 * doubles)
        messages = builder.declare(arcs[:, 0], arcs[:, 1], 8 * doubles)
        builder.calculate(self.time(COMBINE * doubles), layers[0])
        for k, layer in enumerate(layers):
            work = self.time((REDUCE if k == len(layers) - 1 else COMBINE) * doubles)
            comes, goes = np.isin(arcs[:, 1], layer), np.isin(arcs[:, 0], layer)
            for index in range(arc_index["in"].max() + 1):
                now = comes & (arc_index["in"] == index)
                builder.receive(messages[now])
                builder.calculate(work, arcs[now, 1])
            for index in range(arc_index["out"].max() + 1):
                builder.send(messages[goes & (arc_index["out"] == index)])

    def notes(self, ranks: int) -> Notes:
        active = nodes(self.graph, self.sources[self.class_])
        return super().notes(ranks) | {"graph": self.graph, "active ranks": active}


def nodes(graph: str, sources: int) -> int:
    """Nodes of a graph with ``sources`` sources (``WH``: sinks)."""
    return sum(map(len, task_graph(graph, sources)[0]))


def task_graph(graph: str, sources: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Layers of nodes, from sources to sinks, and int64 [arcs, 2], arcs in the order in which nodes treat them."""
    return _shuffle(sources) if graph == "SH" else _tree(sources, graph == "WH")


def _shuffle(sources: int) -> tuple[list[np.ndarray], np.ndarray]:
    depth = sources.bit_length() - 1
    layers = list(np.arange(sources * (depth + 1)).reshape(depth + 1, sources))
    i, arcs = np.arange(sources), []
    for k in range(depth):
        tails = layers[k][np.stack([i & ~(1 << k), i | 1 << k], axis=1)]
        arcs.append(np.stack([tails.ravel(), np.repeat(layers[k + 1], 2)], axis=1))
    return layers, np.concatenate(arcs)


def _tree(sources: int, white: bool) -> tuple[list[np.ndarray], np.ndarray]:
    layers, arcs = [np.arange(sources)], []
    while len(layers[-1]) > 1:
        last = layers[-1]
        layers.append(last[-1] + 1 + np.arange(-(-len(last) // 4)))
        arcs.append(np.stack([last, layers[-1][np.arange(len(last)) // 4]], axis=1))
    all_arcs = np.concatenate(arcs)
    if white:  # the same tree from its last node to its first
        count = layers[-1][0]
        return [count - layer for layer in reversed(layers)], count - all_arcs[:, ::-1]
    return layers, all_arcs


def _arc_index(node: Ints) -> Ints:
    """The number of earlier arcs with the same node: int64 [arcs]."""
    order = np.argsort(node, kind="stable")
    first = np.searchsorted(node[order], node[order])
    index = np.empty(len(node), np.int64)
    index[order] = np.arange(len(node)) - first
    return index
