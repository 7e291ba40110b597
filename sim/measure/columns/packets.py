# SPDX-License-Identifier: Apache-2.0
"""Columns of results.csv where flits in packets are simulated."""

from flitlab.models.fairness import jain as jains_index
from flitlab.models.histogram import percentile
from flitlab.sim.engines.base import Scalar
from flitlab.sim.measure.columns.registry import RATE, TICKS, Column, column, declare, derived
from flitlab.sim.measure.rows import MeasuredPoint
from flitlab.sim.measure.saturation import SEARCHED
from flitlab.sim.measure.window import Window, latency_half_width


@column("packets", "offered", RATE, "offered traffic", lead=True)
def offered(window: Window) -> float:
    """Flits that hosts created."""
    return window.rate(Scalar.CREATED_FLITS)


@column("packets", "accepted", RATE, "accepted traffic", lead=True, summary="accepted")
def accepted(window: Window) -> float:
    """Flits that hosts received."""
    return window.rate(Scalar.DELIVERED_FLITS)


@derived(Column("packets", "accepted_flit_per_ns_per_host", "Accepted traffic per ns, if `flit_ns` is given.",
                "flits/ns/host", "accepted traffic", lead=True))  # fmt: skip
def accepted_per_ns(point: MeasuredPoint) -> float | None:
    """Accepted traffic in flits/ns/host."""
    rate = point.row.get("accepted")
    return None if rate is None or point.flit_ns is None else rate / point.flit_ns


@column("packets", "min_flow_ratio", "", "accepted / created, worst source", lead=True)
def min_flow_ratio(window: Window) -> float:
    """Least received / created of any flow: of a source host where destinations are random, else of a pair."""
    ratio, _ = window.shares
    return float(ratio.min()) if len(ratio) else float("nan")


@column("packets", "jain", "", "Jain's fairness index", lead=True)
def jain(window: Window) -> float:
    """Jain's fairness index of what hosts got of their demands."""
    return jains_index(window.shares[1])


@column("packets", "least_channel_share", "", "delivered / created, worst channel", lead=True, report="")
def least_channel_share(window: Window) -> float | None:
    """Least delivered / created of the packets over any channel between switches, among those with at least 100.

    Each counts with all of its flits, on every channel of the route that it has drawn. Empty where routes are not fixed
    when packets are created (adaptive ones, `ugal`, hot-potato), and far past saturation, where over a sixteenth of all
    packets (and over 10,000) is outstanding.
    """
    traffic = window.channels
    return float((traffic.delivered / traffic.created).min()) if traffic is not None and len(traffic.created) else None


@column("packets", "latency_mean", TICKS, "mean packet latency", lead=True, summary="latency (ticks)")
def latency_mean(window: Window) -> float:
    """Mean time from the creation of a packet to its tail at the destination, source queue included."""
    return window.mean(Scalar.LATENCY)


@column("packets", "latency_ci95", TICKS, lead=True, report="")
def latency_ci95(window: Window) -> float:
    """Half-width of the 95 % interval of the mean latency, over batches ([its coverage](experiments.md#intervals)).

    Empty where fewer than 10 groups of them (of 40 at most) have a packet.
    """
    return latency_half_width(window.batches)


@column("packets", "latency_p50", TICKS, "median latency", lead=True)
def latency_p50(window: Window) -> float:
    """Median of the latency: exact below 128 ticks, within 1/64 above."""
    return percentile(window.histogram, 0.5)


@column("packets", "latency_p99", TICKS, "99 % latency", lead=True)
def latency_p99(window: Window) -> float:
    """What 99 % of packets are not slower than, as precise as the median."""
    return percentile(window.histogram, 0.99)


@column("packets", "latency_p999", TICKS, "99.9 % latency", lead=True)
def latency_p999(window: Window) -> float:
    """What 99.9 % of packets are not slower than."""
    return percentile(window.histogram, 0.999)


@column("packets", "network_latency_mean", TICKS, "mean network latency", lead=True, report="")
def network_latency_mean(window: Window) -> float:
    """Mean latency without the wait in the source queue."""
    return window.mean(Scalar.NETWORK_LATENCY)


@column("packets", "hops_mean", "hops", "mean path length", lead=True, summary="hops")
def hops_mean(window: Window) -> float:
    """Channels between switches that packets took, on average."""
    return window.mean(Scalar.HOPS)


@column("packets", "hops_max", "hops", "longest path", lead=True, report="")
def hops_max(window: Window) -> int:
    """Most channels between switches that a packet took, in the whole run: warm-up included."""
    return int(window.after.scalars[Scalar.HOPS_MAX])


@column("packets", "deflections_mean", "hops", "mean deflections", lead=True)
def deflections_mean(window: Window) -> float:
    """Hops that were not on a shortest path (hot-potato)."""
    return window.mean(Scalar.DEFLECTIONS)


@column("packets", "deflections", "hops", report="")
def deflections(window: Window) -> int:
    """All hops of these packets that were not on a shortest path (hot-potato)."""
    return int(window.total[Scalar.DEFLECTIONS])


@column("packets", "occupancy_max", "packets", "most packets in a switch", report="")
def occupancy_max(window: Window) -> int:
    """Hot-potato: the most packets that a switch held, warm-up included."""
    return int(window.after.scalars[Scalar.OCCUPANCY_MAX])


@column("packets", "input_packets_max", "packets", "most packets of an input", report="")
def input_packets_max(window: Window) -> int:
    """Hot-potato, rules `vc` and `frame`: the most packets of one input that its switch held, warm-up included."""
    return int(window.after.scalars[Scalar.INPUT_PACKETS_MAX])


@column("packets", "vc_waits", TICKS, "waits for an output VC", report="")
def vc_waits(window: Window) -> int:
    """Hot-potato, rule `vc`: ticks that heads waited because all VCs of all outputs of their switch were taken."""
    return int(window.total[Scalar.VC_WAITS])


SATURATED = (
    "Whether the network does not carry what is offered; latencies then mean little. Empty where the window was too "
    "short to tell, or runs with different draws differ."
)
BY = (
    "Why it is saturated: `limit`, `loss`, `starving`, in a search `channel`; or why there is no verdict: `short "
    "window`, `draws differ`. See [When a load is saturated](experiments.md#when-a-load-is-saturated)."
)
FROM = (
    "The load from which on the scenario is certainly saturated: of host channels, of `split` where the routing draws "
    "for every packet anew, of the ceilings asked for."
)
DEADLOCKED = (
    "Whether packets waited for each other in a cycle; with a certificate that is a defect, and the point fails with "
    "a message."
)
OVERLOADED = (
    "Channels whose backlog grows in the window by more than the variation of arrivals explains (1 % over all channels "
    "together). Empty as `least_channel_share`."
)
RESOLUTION = (
    "Of a probe of a search: the relative overload that its run rules out where it is carried. Empty in other rows."
)
SEARCHED_MEANING = (
    "Of a probe of a search for the saturation point: whether the search of this seed has ended. Empty in other rows."
)
declare(
    Column("packets", "overloaded_channels", OVERLOADED, "channels", lead=True, report=""),
    Column("packets", "saturated", SATURATED, lead=True), Column("packets", "saturated_by", BY, lead=True, text=True),
    Column("packets", "saturated_from", FROM, lead=True), Column("packets", "deadlocked", DEADLOCKED, lead=True),
    Column("packets", "resolution", RESOLUTION),
)  # fmt: skip


@column("packets", "packets", "packets", lead=True, report="")
def packets(window: Window) -> int:
    """Packets delivered in the window."""
    return window.packets


@column("packets", "ticks", TICKS, lead=True, report="")
def ticks(window: Window) -> int:
    """Length of the window."""
    return window.ticks


declare(Column("packets", "warmup_ticks", "Length of the warm-up before the window.", TICKS, lead=True))


@column("packets", "events", "events", lead=True, report="")
def events(window: Window) -> int:
    """Events of the simulation."""
    return int(window.total[Scalar.EVENTS])


declare(
    Column("packets", "lost_packets", "Packets dropped on failed links and in failed switches; with a timeline."),
    Column("packets", "lost_flits", "Their flits.", "flits"),
    Column("packets", "packets_under_way", "Packets in flight at the end of the run; with a timeline.", "packets"),
)


CPU = (
    "CPU time of the point, without that of compiling kernels and loading them; `manifest.json` has the sums of both, "
    "`cpu_s` and `compile_s`."
)
STEADY = (
    "Whether the end of the warm-up was found; if not, it lasted for `measure.ticks`, or thirty zero-load latencies."
)
BACKGROUND = (
    "What of the offered traffic does not grow with the load; only where there is [such traffic](traffic.md#hotspot)."
)
PRECISE = "Whether the mean latency is as precise as `measure.ci` asks; only if it asks."
declare(
    Column("packets", "cpu_s", CPU, "s", lead=True), Column("packets", "steady", STEADY),
    Column("packets", "background", BACKGROUND, RATE),
)  # fmt: skip


@derived(Column("packets", "precise", PRECISE))
def precise(point: MeasuredPoint) -> bool | None:
    """Whether the interval of the mean latency is as narrow as ``measure.ci``; None with a timeline or a trace."""
    half, mean = point.row.get("latency_ci95"), point.row.get("latency_mean")
    if point.ci is None or half is None or mean is None:
        return None
    if point.scenario.timeline is not None or point.scenario.follows_trace:
        return None
    return bool(half <= point.ci * mean)


@derived(Column("packets", SEARCHED, SEARCHED_MEANING))
def searched(point: MeasuredPoint) -> bool | None:
    """Whether the search of a probe has ended."""
    return point.searched
