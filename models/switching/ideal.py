# SPDX-License-Identifier: Apache-2.0
"""The ideal switch: unlimited output queues, so that only channels limit packets."""

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
    """An output-queued switch: each output serves its packets first come, first served."""

    mode: ClassVar[str] = "ideal"
    programs: ClassVar[bool] = True

    def certified(self, topology: Topology, routes: Routes, certify: Certify | None = None) -> tuple["Ideal", str]:
        """The mode unchanged, and why it cannot deadlock.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        certify: the function that certifies routes.

        Returns
        -------
        The mode, and the text.
        """
        return self, "mode ideal has buffers without limit: no packet waits for room, so none can deadlock"

    def tables(self, topology: Topology, routes: Routes) -> Tables:
        """The routes for compiled code, without escape channels, which only serve deadlock freedom.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        """
        return routes.tables(topology)._replace(escape=np.zeros((0, 0), np.uint8))

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for slow links, and for routes of a remaining network in another form.

        Parameters
        ----------
        timeline: events of the network during the run; None: it does not change.
        routes: its routes.
        """
        super().check_timeline(timeline, routes)
        for step, _ in self.policy_changes(timeline, routes):
            if step.routes is not None and step.routes.form != routes.form:
                problem = f"{routes.kind} gives routes of another form in the network that remains at tick {step.tick}"
                raise SpecError(f"{problem}, which packets in flight cannot follow", key="timeline")

    def tables_after(self, old: Tables, topology: Topology, routes: Routes) -> Tables:
        """The routes for compiled code after the routing has learned of a change.

        Paths of packets in flight stay in the tables but are not drawn again.

        Parameters
        ----------
        old: the tables before the change.
        topology: the network.
        routes: routes of the remaining network.
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
        """The mapping ``switching:`` that describes this mode, delays in ticks; flit_ns: None if unknown."""
        return {"mode": self.mode} | self._plain_times(flit_ns)


@register("switching", "ideal")
class IdealSpec(TimedSpec):
    """Unlimited output queues: a packet joins the queue of its output, which serves first come, first served.

    There are no virtual channels, no credits and no arbitration, so all losses are losses of the routing (Karol,
    Hluchyj and Morgan 1987, doi:10.1109/TCOM.1987.1096719). Delays are those of ``vct``.
    """

    switching_mode: ClassVar[type[Ideal]] = Ideal

    mode: Literal["ideal"]

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors: delays that are no ticks, capacities other than 1, and hot-potato routing.

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
        yield from unit_capacity_errors(topology, self.mode)
        if routes is not None and routes.deflection:
            problem = (
                "deflection needs switching.mode: deflection, vct or wormhole; a switch of mode ideal never deflects"
            )
            yield SpecError(problem, key="routing")

    def build(self, setting: SwitchingContext) -> Ideal:
        """The ideal switch with these delays, for any packet lengths."""
        return Ideal(**self.ticks())
