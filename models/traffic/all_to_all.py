# SPDX-License-Identifier: Apache-2.0
"""All-to-all: the demand matrix of uniform traffic under its fluid name."""

from flitlab.models.registry import register
from flitlab.models.traffic.uniform import Uniform


@register("traffic", "all_to_all")
class AllToAll(Uniform):
    """Every host sends equally to every other; simulated with destinations drawn uniformly.

    T[i, j] = 1 / (hosts - 1), or 1 / hosts with ``include_self``, as MUT section II writes it.

    Example: ``traffic: {kind: all_to_all, include_self: true}``

    Source: MUT section II-B.
    """
