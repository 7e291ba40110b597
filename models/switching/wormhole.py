# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching: flits advance one by one while the next buffer has space."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator

from flitlab.models.mappings import Fields, Keys
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import RouteForm, Routes, VcPolicy
from flitlab.models.rules.allocate import AllocatorKind
from flitlab.models.switching.buffered import BufferedSpec
from flitlab.models.switching.buffers import BufferSize
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.dynamic_topology import Draining
from flitlab.models.switching.switching_mode import Certify, SwitchingContext
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source

MOST_SPEEDUP, MOST_STEPS = 16, 256
"""Upper limits of ``speedup``, and of the steps of both allocators per tick: bids count them in 38 bits."""

MOST_DENOMINATOR = 10_000
"""Upper limit of the denominator of ``speedup``: steps times it are counted in 64 bits."""

_FRACTION = re.compile(r"\d{1,8}(/\d{1,8}|\.\d{1,8})?")


def _speedup(value: int | float | str) -> int | float | str:
    """A valid ``speedup``. Raises ``ValueError``."""
    try:
        fraction = Fraction(text) if _FRACTION.fullmatch(text := str(value).strip()) else Fraction(0)
    except ZeroDivisionError:
        fraction = Fraction(0)
    if not 1 <= fraction <= MOST_SPEEDUP or fraction.denominator > MOST_DENOMINATOR:
        raise ValueError(
            f'must be a fraction from 1 to {MOST_SPEEDUP} such as "3/2", its denominator at most {MOST_DENOMINATOR}'
        )
    return value


@dataclass(frozen=True, kw_only=True)
class Wormhole(Draining):
    """Wormhole switching, in which flits advance one by one.

    matching: the allocator of VCs and of the crossbar (:mod:`flitlab.models.rules.allocate`). iterations: of iSLIP, per
    step. speedup: steps of the crossbar per tick, 1 or more. output_flits: flits that an output queue
    holds, None: any number. input_speedup: inputs of the crossbar that read a port, VC v by number v mod input_speedup;
    0: one, or with ``shared_input`` False one for each VC. priority_at: where ``priority`` counts: ``all`` choices of
    both allocators, or ``input_vcs``, only that of an input among its VCs that request the output it is matched to.
    """

    mode: ClassVar[str] = "wormhole"
    has_classes: ClassVar[bool] = True
    shares_source_queues: ClassVar[bool] = True
    supports_multistage: ClassVar[bool] = True
    grants_flits: ClassVar[bool] = True
    allocators: ClassVar[tuple[str, ...]] = tuple(AllocatorKind)

    matching: str = AllocatorKind.ISLIP
    iterations: int = 1
    speedup: Fraction = Fraction(1)
    output_flits: int | None = None
    input_speedup: int = 0
    priority_at: str = "all"

    @property
    def inputs_per_port(self) -> int:
        """Inputs of the crossbar that read an input port."""
        return self.input_speedup or (1 if self.shared_input else self.vcs)

    def first_step(self, tick: int) -> int:
        """The number of the first step of a tick: floor(speedup * tick).

        Parameters
        ----------
        tick: from 0.
        """
        return self.speedup.numerator * tick // self.speedup.denominator

    def tick_of(self, step: int) -> int:
        """The tick of a step.

        Parameters
        ----------
        step: from 0.
        """
        return (self.speedup.denominator * (step + 1) - 1) // self.speedup.numerator

    def hashed(self, source: Source) -> tuple[Fields, list[str]]:
        """The fields in the common hash form, with speed-up and output queues if there is a speed-up."""
        form, hashes = super().hashed(source)
        own = {"speedup": str(self.speedup), "output_flits": self.output_flits} if self.speedup > 1 else {}
        if self.matching in (AllocatorKind.INPUT_FIRST, AllocatorKind.WAVEFRONT):  # output first is iSLIP
            own["matching"] = self.matching
        if self.input_speedup:
            own["input_speedup"] = self.input_speedup
        if self.priority != "none" and self.priority_at != "all":
            own["priority_at"] = self.priority_at
        return form | own, hashes

    @property
    def allocator(self) -> str:
        """The allocator of VCs and of the crossbar."""
        return self.matching

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for a speed-up, whose queued flits cannot be dropped, and as other modes do."""
        if self.speedup > 1:
            raise SpecError("needs switching.speedup: 1; flits in output queues are not dropped", key="timeline")
        super().check_timeline(timeline, routes)

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The mode with the VC policy that ``certify`` chooses, and the certificate as text.

        Returns
        -------
        The mode, and the text.

        Raises
        ------
        SpecError: packets may deadlock; VC policy ``reserve``, whose proof needs buffers for whole packets.
        """
        if routes.vc_policy == VcPolicy.RESERVE:
            problem = "reserve needs mode vct, whose buffers take whole packets (rising and hop serve wormhole)"
            raise SpecError(problem, key="vc_policy")
        return super().certified(topology, routes, certify)

    def route_latency(self, flit_ticks: Sequence[int], flits: int) -> int:
        """Ticks from the creation of a packet to its tail at the destination host in an empty network.

        Every flit is granted as soon as it has arrived and the output is free.

        Parameters
        ----------
        flit_ticks: ticks of a flit on each channel of the route, as of :class:`FlitTimed`.
        flits: length of the packet.
        """
        if len(set(flit_ticks)) == 1:
            return super().route_latency(flit_ticks, flits)
        sent = np.arange(flits) * flit_ticks[0]
        arrived = sent + self.injection + flit_ticks[0] - 1
        for number, ticks in enumerate(flit_ticks[1:], 1):
            arrived[0] += self.header
            order = ticks * np.arange(flits)
            sent = np.maximum.accumulate(arrived - order) + order
            delay = self.ejection if number == len(flit_ticks) - 1 else self.link
            arrived = sent + self.switch + delay + ticks - 1
        return int(arrived[-1])

    def _own_keys(self) -> Keys:
        speedup = self.speedup.numerator if self.speedup.denominator == 1 else str(self.speedup)
        keys = {"iterations": self.iterations, "speedup": speedup, "output_flits": self.output_flits}
        keys |= {"priority_at": self.priority_at} if self.priority != "none" else {}
        return keys | ({"input_speedup": self.input_speedup} if self.input_speedup else {})


@register("switching", "wormhole")
class WormholeSpec(BufferedSpec):
    """Wormhole switching: flits advance one by one while there is space; the packet owns its VC meanwhile.

    ``speedup: "3/2"`` = s: the switch runs floor(s (t + 1)) - floor(s t) steps in tick t, each an allocation of VCs and
    of the crossbar on the state that the step before left. Flits go to output queues (``output_flits``: an output takes
    no more while its queue is full), which send one flit a tick. Header and switch delays stay whole ticks.

    ``allocator`` matches packets with VCs, and inputs with outputs of the crossbar. ``islip`` and
    ``separable_output_first`` (one iteration of it): outputs offer themselves, inputs accept.
    ``separable_input_first``: inputs select an output, outputs one of these inputs. ``wavefront``: diagonal by
    diagonal, no pair that could be matched remains. Under adaptive routing packets choose their VC by age instead.
    ``priority_at: input_vcs``: of two VCs of an input that request one output the more urgent one sends, and no other
    choice heeds ``priority``. This is the default of ``islip``, as in BookSim2.
    ``input_speedup: k``: k inputs of the crossbar read a port, VC v by number v mod k.

    Dally and Seitz 1987, doi:10.1109/TC.1987.1676939.
    """

    switching_mode: ClassVar[type[Wormhole]] = Wormhole
    any_input_speedup: ClassVar[bool] = True

    mode: Literal["wormhole"]
    """The switching mode."""
    speedup: Annotated[int | float | str, AfterValidator(_speedup)] = 1
    """Steps of the crossbar per tick, a fraction such as "3/2", 1 to 16."""
    priority_at: Literal["all", "input_vcs"] | None = None
    """Choices that heed ``priority``: all, or only that among the VCs of an input that request the same output. null:
    input_vcs with allocator islip, else all."""
    output_flits: BufferSize | None = None
    """Output queue of a crossbar with a speedup. null: without limit."""

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        if routes.form == RouteForm.POLARIZED:
            yield SpecError(
                "polarized chooses by queues of whole packets and needs switching.mode: vct or ideal",
                key="routing.kind",
            )
        if self.iterations > 1 and self.allocator not in (None, AllocatorKind.ISLIP):
            problem = f"must be 1 with allocator {self.allocator}: only islip iterates"
            yield SpecError(problem, key="switching.iterations")
        if self.priority_at == "input_vcs" and self.allocator in (AllocatorKind.INPUT_FIRST, AllocatorKind.WAVEFRONT):
            problem = f"must be all with allocator {self.allocator}: it is a key of islip, which may ignore priorities"
            yield SpecError(problem, key="switching.priority_at")
        if self.priority_at == "input_vcs" and self.priority == "none":
            problem = "must be all where switching.priority is none: say priority: class or age"
            yield SpecError(problem, key="switching.priority_at")
        if Fraction(str(self.speedup)) * (2 * self.iterations + 2) > MOST_STEPS:
            problem = f"takes more than {MOST_STEPS} steps of the allocators per tick with {self.iterations} iterations"
            yield SpecError(problem, key="switching.speedup")
        yield from super()._buffer_errors(routes, longest)

    def _speed_errors(self) -> Iterator[SpecError]:
        if Fraction(str(self.speedup)) > 1:
            problem = "must be 1 where channels differ in speed: its output queues send a flit a tick"
            yield SpecError(problem, key="switching.speedup")

    def _deflection_errors(self, topology: Topology) -> Iterator[SpecError]:
        if Fraction(str(self.speedup)) > 1:
            problem = "the routing deflects, and hot-potato switching has no crossbar; must be 1"
            yield SpecError(problem, key="switching.speedup")
        yield from super()._deflection_errors(topology)

    def build(self, setting: SwitchingContext) -> Wormhole | Deflection:
        """Wormhole switching; hot-potato switching where the routing deflects."""
        if setting.routes.deflection:
            return Deflection.of(self, setting, self.iterations)
        speedup = Fraction(str(self.speedup))
        output_flits = self.output_flits if speedup > 1 else None
        several = isinstance(self.input_speedup, int) and 1 < self.input_speedup < self.vcs
        matching = self.allocator or AllocatorKind.ISLIP
        ignores = self.priority != "none" and matching == AllocatorKind.ISLIP
        priority_at = self.priority_at or ("input_vcs" if ignores else "all")
        own: Fields = {
            "iterations": self.iterations, "speedup": speedup, "output_flits": output_flits,
            "input_speedup": self.input_speedup if several else 0, "priority_at": priority_at,
        }  # fmt: skip
        return Wormhole(matching=matching, **own, **self.buffers(setting))
