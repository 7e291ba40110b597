# SPDX-License-Identifier: Apache-2.0
"""Delays of switches and channels: the common part of most switching modes, and their keys.

A tick is the time of one flit on the fastest channel, ``flit_ns`` nanoseconds. Nanoseconds become ticks by exact
decimal division, rounded up: 18 ns at 2.667 ns per flit are 7 ticks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from flitlab.models.registry import SpecError, whole
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.models.topology.graph import Topology

LONGEST_DELAY = 1_000_000
"""Ticks of the longest delay. The engines' memory grows with it."""

DELAYS = {"header": 0, "switch": 1, "link": 1, "injection": 1, "ejection": 1, "credit": 1}
"""Delay -> its default in ticks. Modes without credits have no ``credit``."""

Delay = Annotated[int, BeforeValidator(whole), Field(ge=1, le=LONGEST_DELAY)]
"""Type of a key with a delay in ticks, 1 to :data:`LONGEST_DELAY`."""

DelayNs = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""Type of a key with a time in nanoseconds, more than 0."""


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
        """The most ticks of one step of a packet: all delays, and twice its length.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return self._all_delays(topology) + 2 * flits

    def _all_delays(self, topology: Topology) -> int:
        return sum(self.delays.values()) + topology.longest_delay

    def lookahead(self, topology: Topology, flits: int) -> int:
        """The most ticks from the grant of a packet to the arrival of its tail at the next switch.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        longest = max(self.link, self.injection, self.ejection) if topology.host_delay is not None else self.link
        return flits + self.header + self.switch + longest + topology.longest_delay

    def _plain_times(self, flit_ns: float | None) -> dict[str, Any]:
        ticks = {f"{name}_ticks": value for name, value in self.delays.items()}
        return ticks if flit_ns is None else {"flit_ns": flit_ns} | ticks


@dataclass(frozen=True, kw_only=True)
class Credited(Timed):
    """A switching mode with delays and credits: credit, ticks until the sender of a flit has its credit back."""

    credit: int = 1


class TimedSpec(SwitchingSpec):
    """Keys of the switching modes with delays: each as ``*_ticks``, or as ``*_ns`` together with ``flit_ns``.

    Defaults: header 0, all others 1 tick.
    """

    flit_ns: DelayNs | None = None
    """Time of a flit on a channel of capacity 1; needed for delays in ns."""
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

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors: delays given both in ticks and in nanoseconds, or without ``flit_ns``.

        Parameters
        ----------
        topology: the network.
        routes: its routes, None if other errors prevent them.
        flits: packet lengths, None if other errors prevent them.

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
            return "needs switching.flit_ns, the time of one flit"
        return f"must be at most {LONGEST_DELAY} ticks of flit_ns" if ns > LONGEST_DELAY * self.flit_ns else ""

    def ticks(self) -> dict[str, int]:
        """Ticks of each delay by name, in the order of :data:`DELAYS`, from the keys or by default."""
        return {name: self._ticks(name, DELAYS[name]) for name in self._delay_names()}

    def _delay_names(self) -> list[str]:
        """The delays that these keys set, in the order of :data:`DELAYS`."""
        return [name for name in DELAYS if f"{name}_ticks" in type(self).model_fields]

    def _ticks(self, name: str, default: int) -> int:
        ticks, ns = getattr(self, f"{name}_ticks"), getattr(self, f"{name}_ns")
        if ns is not None and self.flit_ns is not None:
            return ticks_of(ns, self.flit_ns)
        return default if ticks is None else ticks


class CreditedSpec(TimedSpec):
    """Keys of the switching modes with credits."""

    credit_ticks: Delay | None = None
    """Delay of a credit, beside the delay of the channel over which it returns. null: 1."""
    credit_ns: DelayNs | None = None
    """The same in nanoseconds."""


def ticks_of(ns: float, flit_ns: float) -> int:
    """Whole ticks that ``ns`` nanoseconds take, of the decimal numbers as written.

    >>> ticks_of(18, 2.667), ticks_of(0.3, 0.1), ticks_of(0, 2)
    (7, 3, 0)
    """
    # repr restores the decimal digits of the file, up to 15; the binary value only approximates them
    quotient = Decimal(repr(ns)) / Decimal(repr(flit_ns))
    return int(quotient.to_integral_value(rounding=ROUND_CEILING))
