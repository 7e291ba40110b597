# SPDX-License-Identifier: Apache-2.0
"""Rules of a flow, or of a subflow, where a run has one transport or several."""

from flitlab.models.jit import inline


@inline
def rules_of(const, flow):
    """Return the rules of a flow's transport.

    Parameters
    ----------
    const: has ``rules`` and, with several transports, ``transport_rules`` of each and ``kind``, the transport of each
        flow; else None.
    flow: int64.
    """
    return _select_rules(const.transport_rules, const.kind, const.rules, flow)


@inline
def _select_rules(others, kind, rules, flow):
    """Return the rules of a flow; others: those of every transport, None where all flows have ``rules``."""
    if others is None:  # known at compile time
        return rules
    return others[kind[flow]]
