# SPDX-License-Identifier: Apache-2.0
"""The units of printed and drawn values."""

from dataclasses import dataclass, replace

from flitlab.sim.measure.columns.registry import RATE, RESULTS, TICKS, Column, columns


@dataclass(frozen=True)
class Units:
    """Ticks, or nanoseconds if the duration of a flit is known."""

    flit_ns: float | None = None

    @property
    def time(self) -> float:
        """Factor from ticks to the printed unit of time."""
        return self.flit_ns or 1.0

    @property
    def rate(self) -> float:
        """Factor from flits/tick/host to the printed unit of traffic."""
        return 1.0 / self.time

    @property
    def time_name(self) -> str:
        """Unit of time, for an axis label."""
        return "ns" if self.flit_ns else "ticks"

    @property
    def rate_name(self) -> str:
        """Unit of traffic, for an axis label."""
        return "flit/ns/host" if self.flit_ns else "flit/tick/host"

    def axis(self, name: str) -> str:
        """Return the axis label of a column of results.csv in the printed unit; of an unknown column, its name."""
        one = columns(*RESULTS).get(name) or Column("packets", name, "")
        return replace(one, unit={TICKS: self.time_name, RATE: self.rate_name}.get(one.unit, one.unit)).axis
