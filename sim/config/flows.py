# SPDX-License-Identifier: Apache-2.0
"""Switching modes that carry flows: transport, times, and their sections of the resolved configuration."""

from flitlab.models.mappings import Keys
from flitlab.models.registry import make
from flitlab.models.switching.byte_switching import ByteSwitching
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.law import TransportSpec
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.schema import SourceConfig

LONG_LIVED_LOAD = 1.0
"""``load`` of long-lived flows: each sends at full rate."""


def counts_flows(draft: Draft) -> bool:
    """Whether the switching mode carries flows."""
    return draft.switching_mode is not None and draft.switching_mode.counts == "flows"


def has_long_lived_flows(draft: Draft) -> bool:
    """Whether flows need no loads: they are long-lived, or all start together.

    Also if the switching mode is unknown, to avoid a second error.
    """
    if draft.switching_mode is None:
        return True
    source = draft.source or SourceConfig()
    return counts_flows(draft) and (source.arrivals == "together" or source.sizes is None)


def transport_of(draft: Draft) -> TransportSpec | None:
    """The configured transport, or the default of the switching mode; None if it is invalid."""
    if draft.has_value("transport"):
        spec: TransportSpec | None = draft.spec("transport")
        return spec
    default: TransportSpec = make(
        "transport", kind="tcp" if draft.switching is None else draft.switching.default_transport
    )
    return default


def validate_flow_times(draft: Draft) -> None:
    """Reject a saturation search, a window outside of the run, and arrivals of flows without sizes."""
    window, seconds = draft.config.measure.window, draft.config.measure.seconds
    if draft.config.placing is not None:
        mode = draft.switching_mode.mode if draft.switching_mode is not None else ""
        problem = f"mode {mode} has no saturation point: what its flows reach is efficiency in results.csv"
        draft.reject("loads", problem)
    if window is not None and not _is_within(window, seconds):
        problem = f"must be two times in seconds, ascending, within the {seconds:g} seconds of the run"
        draft.reject("measure.window", problem)
    if draft.source is not None and draft.source.arrivals == "together" and draft.source.sizes is None:
        draft.reject("traffic.arrivals", "needs traffic.sizes: without sizes, flows are long-lived and never arrive")


def _is_within(window: list[float], seconds: float) -> bool:
    return len(window) == 2 and 0 <= window[0] < window[1] <= seconds


def window_of(draft: Draft) -> tuple[float, float] | None:
    """(start, end) of the measurement of flows, in seconds; None if flows are not measured, or the window is invalid.

    The run ends with the window.
    """
    measure = draft.config.measure
    if draft.runs_program or not counts_flows(draft):
        return None
    if measure.window is not None and not _is_within(measure.window, measure.seconds):
        return None
    return measure.measured(draft.source is not None and draft.source.sizes is not None)


def validate_window(draft: Draft, switching_mode: SwitchingMode, topology: Topology) -> None:
    """Reject a window that is too short for a packet, and a failure after the run.

    Warn of flows that never start, and of timeouts that never expire.

    Parameters
    ----------
    draft: has window and transport.
    switching_mode: in force.
    topology: defines the tick.
    """
    window = window_of(draft)
    if not isinstance(switching_mode, ByteSwitching) or window is None:
        return
    tick_ns = switching_mode.tick_ns(topology, None)
    assert tick_ns is not None  # a tick is defined by the fastest channel
    least_s = switching_mode.crossing(topology)[1] * float(tick_ns) / 1e9
    if window[1] - window[0] < least_s:
        key = "measure.window" if draft.config.measure.window is not None else "measure.seconds"
        problem = f"{window[1] - window[0]:g} s are measured; a packet takes at least {least_s:.3g} s to its host"
        draft.reject(key, problem)
    if not isinstance(switching_mode, Datagram):
        return
    transport, end_ms = switching_mode.transport, window[1] * 1e3
    if switching_mode.failures is not None and switching_mode.failures.at_ms >= end_ms:
        draft.reject("switching.link_failures.at_ms", f"is after the end of the run, {end_ms:g} ms")
    start_ms: float = transport.start_ms or 0.0
    ends = f"the run ends after {end_ms:g} ms"
    if start_ms > end_ms:
        draft.warn("transport.start_ms", f"{ends}, and flows start up to {start_ms:g} ms: the later ones never start")
    elif switching_mode.long_lived and start_ms > window[0] * 1e3 > 0:
        problem = f"flows start up to {start_ms:g} ms, and the window starts at {window[0] * 1e3:g} ms"
        draft.warn("transport.start_ms", f"{problem}: until they start, they count as 0")
    for key, what, consequence in (
        ("min_rto_ms", "retransmission timeout", "a packet whose loss no duplicate ACK reports is not sent again"),
        ("syn_rto_ms", "timeout of a SYN", "a connection whose SYN is dropped never opens"),
    ):
        timeout = getattr(transport, key, None)
        if timeout is not None and timeout >= end_ms:
            draft.warn(f"transport.{key}", f"{ends}, before a {what} of {timeout:g} ms can expire: {consequence}")


def plain_flows(draft: Draft, routing: Keys, transport: TransportSpec, finite: bool) -> Keys:
    """The sections besides ``switching:`` of modes that carry flows, with all defaults.

    Parameters
    ----------
    draft: the configuration.
    routing: the keys of the routing.
    transport: in force.
    finite: whether flows end.
    """
    measure = draft.config.measure
    return {
        "routing": {**routing, "path_draw": draft.path_draw}, "transport": transport.model_dump(mode="json"),
        "measure": {"seconds": measure.seconds, "window": list(measure.measured(finite))},
    }  # fmt: skip
