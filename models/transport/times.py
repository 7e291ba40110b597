# SPDX-License-Identifier: Apache-2.0
"""Default times of a transport, from the network and the length of the run.

On links of 64 Mb/s and 100 us, in runs of seconds, they are those of TCP in simulations at that rate: starts within 50
ms, a least retransmission timeout of 250 ms, and 3 s for a SYN. At higher rates they shrink with the round trip.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from flitlab.models.mappings import Fields
from flitlab.models.registry import Parameters
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.control import AckPath, Transport
from flitlab.models.transport.queues import Queues, exact, tick_of

LONGEST = {"start_ms": 50.0, "min_rto_ms": 250.0, "syn_rto_ms": 3000.0}
"""The largest defaults: the values for TCP at 64 Mb/s."""

ROUND_TRIPS = 320
"""Base round trips of the least retransmission timeout: at 64 Mb/s it is then 250 ms for link delays from 10 us on."""

FEWEST_LINKS = 6
"""A base round trip has a path of at least this many links, as in a fat tree."""

SYN_TIMEOUTS = 12
"""Least retransmission timeouts of the timeout of a SYN: 3 s in 250 ms."""

SHARE_OF_WARMUP, SHARE_OF_RUN = 10, 40
"""Starts are spread over a tenth of the warm-up; without a warm-up, over a fortieth of the run."""


def default_start_ms(window: tuple[float, float]) -> float:
    """The milliseconds within which long-lived flows start.

    window: seconds from the beginning of the run at which the measurement begins and ends.
    """
    begin, end = (exact(seconds) * 1000 for seconds in window)
    return min(LONGEST["start_ms"], _rounded(begin / SHARE_OF_WARMUP if begin > 0 else end / SHARE_OF_RUN))


def base_round_trip_ms(
    topology: Topology, routes: Routes, queues: Queues, ack_path: int, ack_bytes: int
) -> Fraction:  # fmt: skip
    """Milliseconds of a full packet over the longest path through empty queues, and of its acknowledgement.

    Every link is as long as the longest; one is as slow as the slowest, the others are as fast as hosts.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    queues: links and queues.
    ack_path: :data:`~flitlab.models.transport.control.AckPath`.
    ack_bytes: bytes of an acknowledgement.
    """
    tick_ms = tick_of(topology, queues) * 1000
    links = max(FEWEST_LINKS, routes.hops_max + 2)
    delay = exact(queues.link_us) / 1000 + topology.longest_delay * tick_ms
    rates = topology.host_capacity, float(topology.capacity.min(initial=topology.host_capacity))
    byte_ms, slow_byte_ms = (
        Fraction(8, 1000) / (exact(queues.nic_mbps) * exact(min(rate, rates[0]))) for rate in rates
    )
    back = {AckPath.PURE_DELAY: delay, AckPath.REVERSE_PATH: delay + ack_bytes * byte_ms}.get(ack_path, Fraction(0))
    trip = links * (delay + queues.packet_bytes * byte_ms + back)
    return trip + queues.packet_bytes * (slow_byte_ms - byte_ms)


def default_times(
    topology: Topology, routes: Routes, queues: Queues, ack_path: int, ack_bytes: int, start_ms: float
) -> dict[str, float]:
    """All default times, milliseconds, by key.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    queues: links and queues.
    ack_path: :data:`~flitlab.models.transport.control.AckPath`.
    ack_bytes: bytes of an acknowledgement.
    start_ms: default of ``start_ms``.

    Raises
    ------
    SpecError: hosts have no finite rate.
    """
    least = ROUND_TRIPS * base_round_trip_ms(topology, routes, queues, ack_path, ack_bytes)
    timeouts = {"min_rto_ms": least, "syn_rto_ms": SYN_TIMEOUTS * least}
    return {"start_ms": start_ms, **{key: min(LONGEST[key], _rounded(ms)) for key, ms in timeouts.items()}}


def with_times(
    transport: Transport, topology: Topology, routes: Routes, queues: Queues, start_ms: float
) -> Transport:  # fmt: skip
    """The transport with default times where it has none.

    Parameters
    ----------
    transport: the transport.
    topology: the network.
    routes: routes on it.
    queues: links and queues.
    start_ms: default of ``start_ms``.
    """
    defaults = default_times(topology, routes, queues, transport.ack_path, transport.ack_bytes, start_ms)
    times: Fields = missing(transport, defaults)
    return replace(transport, **times)


def missing(keys: Parameters | Transport, defaults: Mapping[str, float]) -> dict[str, float]:
    """The default times for which the keys of a transport, or a transport, have no value.

    Keys that a transport lacks are left out, such as timeouts without acknowledgements.
    """
    return {key: value for key, value in defaults.items() if getattr(keys, key, value) is None}


def times_of_keys(
    keys: Parameters, topology: Topology, routes: Routes, queues: Queues, start_ms: float
) -> dict[str, float]:  # fmt: skip
    """The default times for which the keys of a transport have no value.

    Parameters
    ----------
    keys: the keys.
    topology: the network.
    routes: routes on it.
    queues: links and queues.
    start_ms: default of ``start_ms``.
    """
    ack_path = getattr(AckPath, getattr(keys, "ack_path", "instant").upper())
    return missing(keys, default_times(topology, routes, queues, ack_path, getattr(keys, "ack_bytes", 0), start_ms))


def _rounded(ms: Fraction) -> float:
    """A time rounded to four digits."""
    return float(f"{float(ms):.4g}")
