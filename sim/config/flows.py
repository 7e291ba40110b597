# SPDX-License-Identifier: Apache-2.0
"""Disciplines that count flows: their transport, their times and what they say of them in a resolved configuration."""

from typing import Any

from flitlab.models.registry import make
from flitlab.models.switching.byte_switching import ByteSwitching
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.switching_mode import FLOWS, SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.law import TransportSpec
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.schema import SourceConfig

ENDLESS_LOAD = 1.0
"""``load`` of endless flows: each sends as much as it can."""


def counts_flows(draft: Draft) -> bool:
    """Whether the discipline of a configuration counts flows."""
    return draft.switching_mode is not None and draft.switching_mode.counts == FLOWS


def is_endless(draft: Draft) -> bool:
    """Whether flows never end, so that they need no loads; without a load, too, where flows do not arrive.

    Also where nobody knows the discipline, so that nothing is said of loads that may not be needed.
    """
    if draft.switching_mode is None:
        return True
    source = draft.source or SourceConfig()
    return counts_flows(draft) and (source.arrivals == "together" or source.sizes is None)


def transport_of(draft: Draft) -> TransportSpec | None:
    """What sends packets, or what usually does; None once what is wrong with it is refused."""
    if draft.given("transport"):
        found: TransportSpec | None = draft.spec("transport")
        return found
    usual: TransportSpec = make(
        "transport", kind="tcp" if draft.switching is None else draft.switching.default_transport
    )
    return usual


def refuse_times(draft: Draft) -> None:
    """Refuses a search for a saturation point, a window outside of the run, and endless flows that are to arrive."""
    window, seconds = draft.config.measure.window, draft.config.measure.seconds
    if draft.config.placing is not None:
        mode = draft.switching_mode.mode if draft.switching_mode is not None else ""
        problem = f"mode {mode} has no saturation point: what its flows reach is efficiency in results.csv"
        draft.refuse("loads", problem)
    if window is not None and not _is_within(window, seconds):
        problem = f"must be two times in seconds, ascending, within the {seconds:g} seconds of the run"
        draft.refuse("measure.window", problem)
    if draft.source is not None and draft.source.arrivals == "together" and draft.source.sizes is None:
        draft.refuse("traffic.arrivals", "needs traffic.sizes: endless flows never arrive")


def _is_within(window: list[float], seconds: float) -> bool:
    return len(window) == 2 and 0 <= window[0] < window[1] <= seconds


def window_of(draft: Draft) -> tuple[float, float] | None:
    """The seconds at which the measurement of flows begins and ends; None where nothing measures them, or it is wrong.

    The run ends with it.
    """
    measure = draft.config.measure
    if draft.runs_program or not counts_flows(draft):
        return None
    if measure.window is not None and not _is_within(measure.window, measure.seconds):
        return None
    return measure.measured(draft.source is not None and draft.source.sizes is not None)


def check_times(draft: Draft, discipline: SwitchingMode, topology: Topology) -> None:
    """Refuse a window in which no packet can arrive, and a failure after the run.

    Warn of a run that ends before flows begin, or before timers can expire.
    """
    window = window_of(draft)
    if not isinstance(discipline, ByteSwitching) or window is None:
        return
    tick_ns = discipline.tick_ns(topology, None)
    assert tick_ns is not None  # a byte on the fastest channel takes a known time
    least_s = discipline.crossing(topology)[1] * float(tick_ns) / 1e9
    if window[1] - window[0] < least_s:
        key = "measure.window" if draft.config.measure.window is not None else "measure.seconds"
        problem = f"{window[1] - window[0]:g} s are measured; a packet takes at least {least_s:.3g} s to its host"
        draft.refuse(key, problem)
    if not isinstance(discipline, Datagram):
        return
    transport, end_ms = discipline.transport, window[1] * 1e3
    if discipline.failures is not None and discipline.failures.at_ms >= end_ms:
        draft.refuse("switching.link_failures.at_ms", f"is after the end of the run, {end_ms:g} ms")
    start_ms: float = transport.start_ms or 0.0
    ends = f"the run ends after {end_ms:g} ms"
    if start_ms > end_ms:
        draft.warn("transport.start_ms", f"{ends}: flows that begin later, up to {start_ms:g} ms, never begin")
    elif discipline.long_lived and start_ms > window[0] * 1e3 > 0:
        problem = f"flows begin up to {start_ms:g} ms, and are measured from {window[0] * 1e3:g} ms on"
        draft.warn("transport.start_ms", f"{problem}: they count as 0 before they begin")
    for key, what, lost in (
        ("min_rto_ms", "retransmission timeout", "a packet whose loss no duplicate ACK reports is not sent again"),
        ("syn_rto_ms", "timeout of a SYN", "a connection whose SYN is dropped never opens"),
    ):
        timeout = getattr(transport, key, None)
        if timeout is not None and timeout >= end_ms:
            draft.warn(f"transport.{key}", f"{ends}, before a {what} of {timeout:g} ms can expire: {lost}")


def plain_flows(draft: Draft, routing: dict[str, Any], transport: TransportSpec, finite: bool) -> dict[str, Any]:
    """The sections besides ``switching:`` that only these disciplines have, as they were understood.

    finite: whether flows end.
    """
    measure = draft.config.measure
    return {
        "routing": {**routing, "path_draw": draft.path_draw}, "transport": transport.model_dump(mode="json"),
        "measure": {"seconds": measure.seconds, "window": list(measure.measured(finite))},
    }  # fmt: skip
