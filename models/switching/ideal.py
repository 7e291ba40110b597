# SPDX-License-Identifier: Apache-2.0
"""The ideal switch: unlimited output queues, so that only channels limit packets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, register, whole
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.tables import RouteForm, Tables
from flitlab.models.switching.buffered import speed_errors
from flitlab.models.switching.dynamic_topology import DynamicTopology
from flitlab.models.switching.switching_mode import MAX_SUBNETS, Certify, SwitchingContext
from flitlab.models.switching.timed import FlitTimed, TimedSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.models.topology.flit_times import capacity_unit
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, kw_only=True)
class Ideal(DynamicTopology, FlitTimed):
    """An output-queued switch: each output serves its packets first come, first served."""

    mode: ClassVar[str] = "ideal"
    programs: ClassVar[bool] = True
    counts_channels: ClassVar[bool] = True
    has_classes: ClassVar[bool] = True
    supports_multistage: ClassVar[bool] = True

    def certified(self, topology: Topology, routes: Routes, certify: Certify | None = None) -> tuple["Ideal", str]:
        """The mode unchanged, and why it cannot deadlock.

        Returns
        -------
        The mode, and the text.
        """
        return self, "mode ideal has buffers without limit: no packet waits for a buffer, so none can deadlock"

    def tables(self, topology: Topology, routes: Routes) -> Tables:
        """The routes for compiled code, without escape channels, which only serve deadlock freedom.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        """
        return routes.tables(topology)._replace(escape=np.zeros((0, 0), np.uint8))

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for links whose flits take no whole ticks, and for routes of another form."""
        super().check_timeline(timeline, routes)
        for change in self.policy_changes(timeline, routes):
            if change.routes is not None and change.routes.form != routes.form:
                problem = (
                    f"{routes.kind} gives routes of another form in the network that remains at tick {change.tick}"
                )
                raise SpecError(f"{problem}, which packets in flight cannot follow", key="timeline")

    def tables_after(self, old: Tables, topology: Topology, change: NetworkChange) -> Tables:
        """The routes for compiled code after the routing has learned of a change.

        Paths of packets in flight stay in the tables but are not drawn again.

        Parameters
        ----------
        old: the tables before the change.
        topology: the network.
        change: with routes of the remaining network.
        """
        assert change.routes is not None
        new = self.tables(topology, change.routes)
        if new.form != RouteForm.PATHS:
            return new
        paths, drawn = len(old.path_start) - 1, len(new.path_threshold) > 0
        return new._replace(
            pair_start=paths + new.pair_start,
            path_start=np.concatenate([old.path_start[:-1], len(old.path_port) + new.path_start]),
            path_port=np.concatenate([old.path_port, new.path_port]),
            path_threshold=np.concatenate([np.zeros(paths * drawn, np.uint32), new.path_threshold]),
        )

    def plain(self, flit_ns: float | None = None) -> Keys:
        """The mapping ``switching:`` that describes this mode, delays in ticks; flit_ns: None if unknown."""
        return {"mode": self.mode} | self._plain_times(flit_ns)


@register("switching", "ideal", aliases=("output_queued",))
class IdealSpec(TimedSpec):
    """Unlimited output queues: a packet joins the queue of its output, which serves first come, first served.

    There are no virtual channels, no credits and no arbitration, so all losses are losses of the routing (Karol,
    Hluchyj and Morgan 1987, doi:10.1109/TCOM.1987.1096719). Delays are those of ``vct``.
    """

    switching_mode: ClassVar[type[Ideal]] = Ideal
    sends_flits: ClassVar[bool] = True

    mode: Literal["ideal"]
    """The switching mode."""
    subnets: Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_SUBNETS)] = 1
    """Copies of the network, each with channels, VCs and host channels of its own."""

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors: delays that are no ticks, capacities of ratios that are too fine, and hot-potato routing.

        Returns
        -------
        Errors, each with the full path of its key.
        """
        yield from super().errors(topology, routes, flits)
        yield from speed_errors(topology)
        if routes is not None and routes.deflection:
            problem = (
                "deflection needs switching.mode: deflection, vct or wormhole; a switch of mode ideal never deflects"
            )
            yield SpecError(problem, key="routing")

    def build(self, setting: SwitchingContext) -> Ideal:
        """The ideal switch with these delays, for any packet lengths."""
        return Ideal(**self.ticks(capacity_unit(setting.topology)))
