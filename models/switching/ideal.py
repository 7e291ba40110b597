# SPDX-License-Identifier: Apache-2.0
"""The ideal switch: queues at outputs alone, without limit, so that nothing but the channels holds a packet back."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.tables import PATHS, Tables
from flitlab.models.switching.buffered import unit_capacity_errors
from flitlab.models.switching.dynamic_topology import DynamicTopology
from flitlab.models.switching.switching_mode import Certify, SwitchingContext
from flitlab.models.switching.timed import Timed, TimedSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, kw_only=True)
class Ideal(DynamicTopology, Timed):
    """An output-queued switch: each output sends what has come for it, first come first served."""

    mode: ClassVar[str] = "ideal"
    programs: ClassVar[bool] = True

    def certified(self, topology: Topology, routes: Routes, certify: Certify | None = None) -> tuple["Ideal", str]:
        """The discipline as it is, and why it cannot deadlock."""
        return self, "mode ideal has buffers without limit: no packet waits for room, so none can deadlock"

    def tables(self, topology: Topology, routes: Routes) -> Tables:
        """The routes for compiled code, without escape channels, which serve deadlock freedom alone."""
        return routes.tables(topology)._replace(escape=np.zeros((0, 0), np.uint8))

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for links that are slow, and for routes of what is left that are of another kind."""
        super().check_timeline(timeline, routes)
        for step, _ in self.policy_changes(timeline, routes):
            if step.routes is not None and step.routes.form != routes.form:
                problem = f"{routes.kind} gives routes of another kind in what is left at tick {step.tick}"
                raise SpecError(f"{problem}, which packets under way cannot follow", key="timeline")

    def tables_after(self, old: Tables, topology: Topology, routes: Routes) -> Tables:
        """The routes for compiled code once the routing has learned of a change; ``old`` are those until then.

        Whole paths of packets under way stay among them, which are drawn no more.
        """
        new = self.tables(topology, routes)
        if new.form != PATHS:
            return new
        paths, drawn = len(old.path_start) - 1, len(new.path_threshold) > 0
        return new._replace(
            pair_start=paths + new.pair_start,
            path_start=np.concatenate([old.path_start[:-1], len(old.path_port) + new.path_start]),
            path_port=np.concatenate([old.path_port, new.path_port]),
            path_threshold=np.concatenate([np.zeros(paths * drawn, np.uint32), new.path_threshold]),
        )

    def plain(self, flit_ns: float | None = None) -> dict[str, object]:
        """The mapping ``switching:`` that gives this discipline, with delays in ticks; flit_ns: None if unknown."""
        return {"mode": self.mode} | self._plain_times(flit_ns)


@register("switching", "ideal")
class IdealSpec(TimedSpec):
    """Output queues without limit: a packet joins the queue of its output, which sends first come first served.

    There are no virtual channels, no credits and no arbitration, so what is lost is lost by the routing and not by
    the switch (Karol, Hluchyj and Morgan 1987, doi:10.1109/TCOM.1987.1096719). Delays are those of ``vct``.
    """

    switching_mode: ClassVar[type[Ideal]] = Ideal

    mode: Literal["ideal"]

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Refusals of delays that are no ticks, of capacities other than 1, and of hot-potato routing."""
        yield from super().errors(topology, routes, flits)
        yield from unit_capacity_errors(topology, self.mode)
        if routes is not None and routes.deflection:
            problem = "deflection is what a switch does that holds few packets; mode ideal holds all, so none deflects"
            yield SpecError(problem, key="routing")

    def build(self, setting: SwitchingContext) -> Ideal:
        """The ideal discipline with these delays, whatever the lengths of packets."""
        return Ideal(**self.ticks())
