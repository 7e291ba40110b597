# SPDX-License-Identifier: Apache-2.0
"""All-reduce along rooted trees, at least as fast as a reduce-scatter and an all-gather."""

from typing import ClassVar

from flitlab.fluid.collective.algorithms.spec import Question
from flitlab.fluid.collective.algorithms.trees import Scheduled, StreamPlan, numbered, routed_streams
from flitlab.fluid.collective.rooted import rooted_trees
from flitlab.models.collective.build import all_reduce_streams
from flitlab.models.registry import SpecError, register

MAX_RANKS = 64
"""Ranks up to which the linear program is solved; it takes seconds for 36."""


@register("algorithm", "rooted_trees")
class RootedTrees(Scheduled):
    """Parts of the vector are reduced along in-trees to their roots, and spread from there along out-trees.

    Roots, trees and their shares are those of a linear program. On meshes they are up to twice as fast as a
    reduce-scatter and then an all-gather; where all ranks are alike, they are the same.

    Example: ``algorithm: rooted_trees``

    Source: Edmonds 1973, Edge-disjoint branchings; Frank 1978, On disjoint trees and arborescences.
    """

    collectives: ClassVar[tuple[str, ...]] = ("all_reduce",)

    def stream_plan(self, question: Question) -> StreamPlan:
        network = question.network()
        if network.ranks > MAX_RANKS:
            raise SpecError(f"solves a linear program for up to {MAX_RANKS} ranks, not {network.ranks}", "kind")
        forest = rooted_trees(network)
        streams = all_reduce_streams([(pair.into, pair.out) for pair in forest.trees], numbered(forest.network))
        return routed_streams(question, streams, forest.parts, forest.reached)
