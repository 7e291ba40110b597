# SPDX-License-Identifier: Apache-2.0
"""Disciplines that count flows: their transport, their times and what they say of them in a resolved configuration."""

from typing import Any

from flitlab.models.registry import make
from flitlab.models.switching.discipline import FLOWS
from flitlab.models.transport.law import TransportSpec
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.schema import SourceConfig

ENDLESS_LOAD = 1.0
"""``load`` of endless flows: each sends as much as it can."""


def counts_flows(draft: Draft) -> bool:
    """Whether the discipline of a configuration counts flows."""
    return draft.discipline is not None and draft.discipline.counts == FLOWS


def is_endless(draft: Draft) -> bool:
    """Whether flows never end, so that they need no loads; without a load, too, where flows do not arrive.

    Also where nobody knows the discipline, so that nothing is said of loads that may not be needed.
    """
    if draft.discipline is None:
        return True
    source = draft.source or SourceConfig()
    return counts_flows(draft) and (source.arrivals == "together" or source.sizes is None)


def transport_of(draft: Draft) -> TransportSpec | None:
    """What sends packets, or what usually does; None once what is wrong with it is refused."""
    if draft.given("transport"):
        found: TransportSpec | None = draft.spec("transport")
        return found
    usual: TransportSpec = make("transport", kind="tcp" if draft.switching is None else draft.switching.usual_transport)
    return usual


def refuse_times(draft: Draft) -> None:
    """Refuses a search for a saturation point, a window outside of the run, and endless flows that are to arrive."""
    window, seconds = draft.config.measure.window, draft.config.measure.seconds
    if draft.config.placing is not None:
        mode = draft.discipline.mode if draft.discipline is not None else ""
        problem = f"mode {mode} has no saturation point: what its flows reach is efficiency in results.csv"
        draft.refuse("loads", problem)
    if window is not None and not (len(window) == 2 and 0 <= window[0] < window[1] <= seconds):
        problem = f"must be two times in seconds, ascending, within the {seconds:g} seconds of the run"
        draft.refuse("measure.window", problem)
    if draft.source is not None and draft.source.arrivals == "together" and draft.source.sizes is None:
        draft.refuse("traffic.arrivals", "needs traffic.sizes: endless flows never arrive")


def plain_flows(draft: Draft, routing: dict[str, Any], transport: TransportSpec, finite: bool) -> dict[str, Any]:
    """The sections besides ``switching:`` that only these disciplines have, as they were understood.

    finite: whether flows end.
    """
    measure = draft.config.measure
    return {
        "routing": {**routing, "path_draw": draft.path_draw}, "transport": transport.model_dump(mode="json"),
        "measure": {"seconds": measure.seconds, "window": list(measure.measured(finite))},
    }  # fmt: skip
