# SPDX-License-Identifier: Apache-2.0
"""Which rules a flow has, where a run has one transport or several."""

from flitlab.models.jit import inline


@inline
def rules_of(const, flow):
    """Find the rules of a flow's transport."""
    return _chosen(const.others, const.kind, const.rules, flow)


@inline
def _chosen(others, kind, rules, flow):
    """Find the rules of a flow; others: those of every transport, None where all flows have ``rules``."""
    if others is None:  # known when this is compiled
        return rules
    return others[kind[flow]]
