# SPDX-License-Identifier: Apache-2.0
"""Delays of switches and channels: the common part of most switching modes, and their keys.

A flit takes ``flit_ns`` nanoseconds on a channel of capacity 1, and a tick if all channels have this capacity
(:func:`~flitlab.models.topology.flit_times.flit_times`). Nanoseconds become ticks by exact decimal division, rounded
up: 18 ns at 2.667 ns per flit are 7 ticks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, whole
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.models.topology.flit_times import capacity_unit, flit_times
from flitlab.models.topology.graph import Topology

ONE = Fraction(1)

LONGEST_DELAY = 1_000_000
"""Ticks of the longest delay. The engines' memory grows with it."""

DELAYS = {"header": 0, "switch": 1, "link": 1, "injection": 1, "ejection": 1, "credit": 1}
"""Delay -> its default in ticks. Modes without credits have no ``credit``."""

Delay = Annotated[int, BeforeValidator(whole), Field(ge=1, le=LONGEST_DELAY)]
"""Type of a key with a delay in ticks, 1 to :data:`LONGEST_DELAY`."""

DelayNs = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""Type of a key with a time in nanoseconds, more than 0."""

SHORTEST_FLIT_NS = 1e-6
"""Least time of a flit, in nanoseconds: times of programs are counted in 64 bits."""


@dataclass(frozen=True, kw_only=True)
class Timed(SwitchingMode):
    """A switching mode with delays, in ticks.

    header: from a head's arrival until it may be granted. switch, link: from a grant to the next switch; injection,
    ejection: of the channels to hosts.
    """

    header: int = 0
    switch: int = 1
    link: int = 1
    injection: int = 1
    ejection: int = 1

    @property
    def vcs(self) -> int:
        """Virtual channels of every network and injection channel; 1 where channels are not divided."""
        return 1

    @property
    def delays(self) -> dict[str, int]:
        """Ticks of each delay by name."""
        return {name: getattr(self, name) for name in DELAYS if hasattr(self, name)}

    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks from the creation of a packet to its tail at the destination host in an empty network.

        Parameters
        ----------
        topology: the network.
        hops: channels between switches; their own delays are not included.
        flits: length of the packet; the tail follows its head by ``flits`` - 1 ticks.
        """
        through = (hops + 1) * (self.header + self.switch) + hops * self.link
        return self.injection + through + self.ejection + flits - 1

    def longest_step(self, topology: Topology, flits: int) -> int:
        """The most ticks of one step of a packet: all delays, and twice its length."""
        return self._all_delays(topology) + 2 * flits

    def _all_delays(self, topology: Topology) -> int:
        return sum(self.delays.values()) + topology.longest_delay

    def lookahead(self, topology: Topology, flits: int) -> int:
        """The most ticks from the grant of a packet to the arrival of its tail at the next switch."""
        longest = max(self.link, self.injection, self.ejection) if topology.host_delay is not None else self.link
        return flits + self.header + self.switch + longest + topology.longest_delay

    def _plain_times(self, flit_ns: float | None) -> Keys:
        ticks = {f"{name}_ticks": value for name, value in self.delays.items()}
        return ticks if flit_ns is None else {"flit_ns": flit_ns} | ticks


@dataclass(frozen=True, kw_only=True)
class FlitTimed(Timed):
    """A switching mode that sends flits, over channels that may differ in speed (``flit_times``)."""

    def route_latency(self, flit_ticks: Sequence[int], flits: int) -> int:
        """Ticks from the creation of a packet to its tail at the destination host in an empty network.

        A packet is granted once its flits, as they arrive, never starve the output.

        Parameters
        ----------
        flit_ticks: ticks of a flit on each channel of the route, from the injection to the ejection channel; their own
            delays are not included.
        flits: length of the packet.
        """
        switches = len(flit_ticks) - 1
        waits = sum(max(self.header, (flits - 1) * (before - after)) for before, after in pairwise(flit_ticks))
        fixed = self.injection + switches * self.switch + (switches - 1) * self.link + self.ejection
        return fixed + waits + sum(flit_ticks) - len(flit_ticks) + (flits - 1) * flit_ticks[-1]

    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks from the creation of a packet to its tail at the destination host in an empty network.

        Parameters
        ----------
        topology: the network.
        hops: channels between switches, all as fast as the fastest; their own delays are not included.
        flits: length of the packet.
        """
        host = flit_times(topology).host
        return self.route_latency([host, *[_fastest_flit(topology)] * hops, host], flits)

    def flit_in_crossing(self, topology: Topology) -> tuple[float, float]:
        """Ticks of a flit itself that ``crossing`` includes.

        Returns
        -------
        Those on the fastest channel between switches, and on each channel of a host.
        """
        return float(_fastest_flit(topology)), float(flit_times(topology).host)

    @property
    def head_delay(self) -> int:
        """Ticks for which only the head of a packet waits at a switch: its header delay."""
        return self.header

    def slowness(self, topology: Topology, flits: int) -> tuple[Ints, int]:
        """Latency of slow channels that ``zero_load_latency`` of one flit does not include, at most.

        Returns
        -------
        Ticks of each channel between switches, int64 [channels], without its delay, and of both host channels.
        """
        channel, host, _ = flit_times(topology)
        fastest, slowest = _fastest_flit(topology), np.ones(topology.switches, np.int64)
        np.maximum.at(slowest, topology.dst, channel)
        waits = np.maximum((flits - 1) * (slowest[topology.src] - channel) - self.header, 0)
        ends = [max((flits - 1) * slower - self.header, 0) for slower in (host - fastest, int(slowest.max()) - host)]
        return channel - fastest + waits, sum(ends) + (flits - 1) * host

    def serialization_ticks(self, topology: Topology, length: Floats) -> Floats:
        """Ticks that a host's channel is busy before the last flit of a message is in flight; length: flits.

        Returns
        -------
        Ticks, float64, as ``length``.
        """
        return (length - 1) * flit_times(topology).host

    def flits_per_tick(self, topology: Topology) -> float:
        """The capacity of a channel that moves one flit per tick."""
        return float(flit_times(topology).unit)

    def flits_per_load(self, topology: Topology) -> float:
        """Flits per tick of a host of rate 1 at load 1: the rate of its channel."""
        return 1 / flit_times(topology).host

    def tick_ns(self, topology: Topology, flit_ns: float | None) -> Fraction | None:
        """Nanoseconds of a tick, None if unknown. flit_ns: of a flit on a channel of capacity 1, None if unknown."""
        return None if flit_ns is None else Fraction(repr(float(flit_ns))) / capacity_unit(topology)

    def channel_rate(self, topology: Topology) -> Floats | float:
        """The flits that a channel between switches carries per tick, float64 [channels]."""
        return 1 / flit_times(topology).channel

    def longest_step(self, topology: Topology, flits: int) -> int:
        """The most ticks of one step of a packet: all delays, and twice its length."""
        return self._all_delays(topology) + (2 * flits + 1) * slowest_flit(topology) - 1

    def lookahead(self, topology: Topology, flits: int) -> int:
        """The most ticks from the grant of a packet to the arrival of its tail at the next switch."""
        return super().lookahead(topology, flits * slowest_flit(topology)) + slowest_flit(topology) - 1


def _fastest_flit(topology: Topology) -> int:
    """Ticks of a flit on the fastest channel between switches; of hosts, if there is none."""
    channel, host, _ = flit_times(topology)
    return int(channel.min()) if len(channel) else host


def slowest_flit(topology: Topology) -> int:
    """Ticks of a flit on the slowest channel."""
    channel, host, _ = flit_times(topology)
    return int(channel.max(initial=host))


@dataclass(frozen=True, kw_only=True)
class Credited(Timed):
    """A switching mode with delays and credits: credit, ticks until the sender of a flit has its credit back."""

    credit: int = 1


class TimedSpec(SwitchingSpec):
    """Keys of the switching modes with delays: each as ``*_ticks``, or as ``*_ns`` together with ``flit_ns``.

    Defaults: header 0, all others 1 tick.
    """

    flit_ns: Annotated[float, Field(ge=SHORTEST_FLIT_NS, allow_inf_nan=False)] | None = None
    """Time of a flit on a channel of capacity 1, at least 1e-6; needed for delays in ns."""
    flit_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    """Bytes of a flit, by which link_gbps defines flit_ns; of programs, messages.flit_bytes are. [byte]"""
    header_ticks: Annotated[int, BeforeValidator(whole), Field(ge=0, le=LONGEST_DELAY)] | None = None
    """From the arrival of a head flit until its packet may request an output. null: 0."""
    header_ns: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """The same in nanoseconds."""
    switch_ticks: Delay | None = None
    """From the grant of an output to the first flit on its channel. null: 1."""
    switch_ns: DelayNs | None = None
    """The same in nanoseconds."""
    link_ticks: Delay | None = None
    """Propagation delay of a channel between switches, beside the delay of the topology. null: 1."""
    link_ns: DelayNs | None = None
    """The same in nanoseconds."""
    injection_ticks: Delay | None = None
    """Delay of the injection channel of a host. null: 1."""
    injection_ns: DelayNs | None = None
    """The same in nanoseconds."""
    ejection_ticks: Delay | None = None
    """Delay of the ejection channel of a host. null: 1."""
    ejection_ns: DelayNs | None = None
    """The same in nanoseconds."""

    @property
    def tick_ns(self) -> float | None:
        """Nanoseconds of a tick, if ``flit_ns`` is set."""
        return self.flit_ns

    def tick_in(self, topology: Topology) -> Fraction | None:
        """Nanoseconds of a tick in a network, if ``flit_ns`` is set."""
        if self.flit_ns is None:
            return None
        return Fraction(repr(self.flit_ns)) / (capacity_unit(topology) if self.sends_flits else 1)

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors: delays given both in ticks and in nanoseconds, or without ``flit_ns``.

        Returns
        -------
        Errors, each with the full path of its key.
        """
        yield from super().errors(topology, routes, flits)
        for name in self._delay_names():
            ns = getattr(self, f"{name}_ns")
            if ns is not None and (problem := self._delay_error(name, ns)):
                yield SpecError(problem, key=f"switching.{name}_ns")

    def _delay_error(self, name: str, ns: float) -> str:
        if getattr(self, f"{name}_ticks") is not None:
            return f"give either {name}_ns or {name}_ticks"
        if self.flit_ns is None:
            return "needs switching.flit_ns (or link_gbps and flit_bytes), the time of one flit"
        return f"must be at most {LONGEST_DELAY} ticks of flit_ns" if ns > LONGEST_DELAY * self.flit_ns else ""

    def ticks(self, unit: Fraction = ONE) -> dict[str, int]:
        """Ticks of each delay by name, in the order of :data:`DELAYS`, from the keys or by default.

        unit: capacity of a channel that moves a flit per tick.
        """
        return {name: self._ticks(name, DELAYS[name], unit) for name in self._delay_names()}

    def _delay_names(self) -> list[str]:
        """The delays that these keys set, in the order of :data:`DELAYS`."""
        return [name for name in DELAYS if f"{name}_ticks" in type(self).model_fields]

    def _ticks(self, name: str, default: int, unit: Fraction) -> int:
        ticks, ns = getattr(self, f"{name}_ticks"), getattr(self, f"{name}_ns")
        if ns is not None and self.flit_ns is not None:
            return ticks_of(ns, self.flit_ns, unit)
        return default if ticks is None else ticks


class CreditedSpec(TimedSpec):
    """Keys of the switching modes with credits."""

    credit_ticks: Delay | None = None
    """Delay of a credit, beside the delay of the channel over which it returns. null: 1."""
    credit_ns: DelayNs | None = None
    """The same in nanoseconds."""


def ticks_of(ns: float, flit_ns: float, unit: Fraction = ONE) -> int:
    """Whole ticks that ``ns`` nanoseconds take, of the decimal numbers as written.

    unit: capacity of a channel that moves a flit per tick.

    >>> ticks_of(18, 2.667), ticks_of(0.3, 0.1), ticks_of(0, 2), ticks_of(18, 2.667, Fraction(4))
    (7, 3, 0, 27)
    """
    # repr restores the decimal digits of the file, up to 15; the binary value only approximates them
    return ceil(Fraction(repr(ns)) * unit / Fraction(repr(flit_ns)))
