# SPDX-License-Identifier: Apache-2.0
"""The scenarios that a loss budget measures: a switch as configured, and as it would be with something changed.

A change is written as ``--set`` takes it, so that whoever reads a budget can run any part of it. What cannot be built
is left out, with the first thing that the configuration refuses of it for a reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffered import Buffered
from flitlab.models.switching.switching_mode import PACKETS
from flitlab.sim.config.build import Builder, Built
from flitlab.sim.config.draft import BUDGET, Draft
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node
from flitlab.sim.config.overrides import apply_set
from flitlab.sim.config.questions import CHANGES
from flitlab.sim.config.schema import MeasureConfig
from flitlab.sim.config.window import CHOSEN, lasting
from flitlab.sim.measure.windows import longest_probe

CERTIFIED = ("mcf", "mcf_paths", "split")
"""Ceilings that are the upper rungs, from the highest."""

MEASURED = ("ideal", "endless", "roomy", "switch")
"""Rungs that are simulated, from the highest.

ideal: the same routes through output queues without limit. endless: the switch with every VC of an input read at once
and buffers that never fill. roomy: the same with its own buffers. switch: as configured.
"""

DEFLECTS = "packets that are deflected follow no routes, wait for no room and cross no crossbar"

MOST_PACKETS = 1 << 24
"""Packets that all buffers without limit may hold together: some 400 MB before any of them is used."""

ALREADY = "this switch is so already: its crossbar takes nothing"

TIMES = 6000
"""Packet times of the shortest probe of a budget, warm-up included."""

LEAST = 32
"""Buffers hold at least this part of what a channel can carry in a run, or they are not without limit.

So an overload of up to 3 % does not fill them before the run ends.
"""


@dataclass(frozen=True, eq=False)
class Variant:
    """A scenario of a budget. built: None where it is left out. set: what makes it. note: why it is left out, or how
    it is made."""

    built: Built | None
    set: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Variants:
    """All scenarios of a budget. rungs: by name, of :data:`MEASURED`. changes: sensitivities by name. measure: how.

    times: packet times of the shortest run; None where ``measure`` says how long it is. ticks: of the longest run,
    warm-up and windows.
    """

    rungs: Mapping[str, Variant]
    changes: Mapping[str, Variant]
    measure: MeasureConfig
    times: int | None
    ticks: int


def longest_run(measure: MeasureConfig, longest: int) -> int:
    """Ticks that a probe lasts at most; a warm-up that is found takes as long as the window, if need be.

    longest: its longest window, as a multiple of the first.
    """
    return longest_probe(measure.ticks if measure.warmup == "auto" else measure.warmup, measure.ticks, longest)


def has_budget(draft: Draft) -> bool:
    """Whether a configuration asks for budgets, and its scenario can have one: packets are simulated in it."""
    asked = BUDGET in draft.config.outputs.figures and draft.experiment == "load_sweep"
    return asked and getattr(draft.switching_mode, "counts", None) == PACKETS


def variants(builder: Builder, draft: Draft, node: Node, built: Built) -> Variants:
    """What the budget of a scenario measures. node: its configuration."""
    scenario = built.scenario
    assert scenario is not None
    times = window(draft)
    measure = draft.config.measure if times is None else lasting(MeasureConfig(), scenario, times)

    ticks = longest_run(measure, draft.config.budget.longest)

    def made(*sets: str) -> Variant:
        return _variant(builder, draft, node, sets)

    if scenario.routes.deflection:
        rungs = {name: Variant(None, note=DEFLECTS) for name in MEASURED}
    else:
        roomy = _unless_so(made("switching.input_speedup=vcs"), scenario)
        rungs = {"ideal": made("switching.mode=ideal"), "endless": _endless(roomy, ticks), "roomy": roomy}
    rungs["switch"] = Variant(built)
    asked = {name: made(*sets) for name, sets in _changes(draft, scenario)}
    changes = {name: _told_apart(variant, scenario) for name, variant in asked.items()}
    return Variants(rungs, changes, measure, times, ticks)


def window(draft: Draft) -> int | None:
    """Packet times of a run, warm-up included; None where ``measure`` says how long it is."""
    given = draft.config.budget.window
    if given is None and any(draft.has("measure", key) for key in CHOSEN):
        return None
    return TIMES if given is None else given


def _variant(builder: Builder, draft: Draft, node: Node, sets: Sequence[str]) -> Variant:
    """The scenario of a configuration with something changed, or why there is none."""
    mistakes: list[Mistake] = []
    for change in sets:
        node = apply_set(node, change, mistakes)
    built = builder.build(Draft(node, draft.experiment, draft.base, mistakes))
    if mistakes or built is None:
        return Variant(None, tuple(sets), _why(mistakes))
    return Variant(built, tuple(sets))


def _why(mistakes: Sequence[Mistake]) -> str:
    """The first mistake, as a clause."""
    if not mistakes:
        return "cannot be built"
    first = mistakes[0]
    value = f"{first.key} = {first.value}" if first.value else first.key
    return f"{value} {first.problem}"


def _endless(roomy: Variant, ticks: int) -> Variant:
    """A switch with buffers that never fill: each holds all that its channel can carry in a run of so many ticks.

    Where that takes too much memory they hold a part of it, but never less than :data:`LEAST` says.
    """
    if roomy.built is None or roomy.built.scenario is None:
        return roomy
    scenario = roomy.built.scenario
    switching, flits = scenario.switching, min(scenario.source.flits)
    if not isinstance(switching, Buffered):
        return Variant(None, roomy.set, f"mode {switching.mode} has no buffers")
    ticks += max(scenario.source.flits)
    buffers = (scenario.topology.channels + scenario.topology.hosts) * switching.vcs
    affordable = MOST_PACKETS // buffers * flits
    size = max(min(ticks, affordable), switching.buffer_flits)
    if size * LEAST < ticks:
        return Variant(None, roomy.set, f"{buffers:,} buffers that never fill would take too much memory")
    part = "all" if size >= ticks else f"{100 * size // ticks} %"
    grown = replace(scenario, switching=replace(switching, buffer_flits=size))
    note = f"buffers of {size} flits a VC, {part} of what a channel can carry in a run"
    return Variant(replace(roomy.built, scenario=grown), roomy.set, note)


def _changes(draft: Draft, scenario: Scenario) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The sensitivities asked for: name and what is changed."""
    switching, shortest = scenario.switching, min(scenario.source.flits)
    vcs, room = (switching.vcs, switching.buffer_flits) if isinstance(switching, Buffered) else (1, shortest)
    twice, four = f"switching.vcs={2 * vcs}", f"switching.buffer_flits={4 * room}"
    known = {
        "vcs": (twice,), "buffers": (four,), "vcs_and_buffers": (twice, four),
        "speedup": ("switching.input_speedup=vcs",), "oldest": ("switching.allocator=oldest",),
        "packets": (f"traffic.packet_flits={max(shortest // 4, 1)}", f"switching.buffer_flits={room}"),
        "rising": ("routing.vc_policy=rising",),
    }  # fmt: skip
    assert known.keys() == set(CHANGES)
    yield from ((name, known[name]) for name in draft.config.budget.sensitivities)


def _unless_so(roomy: Variant, scenario: Scenario) -> Variant:
    """A roomy switch, which says so where the switch is one already."""
    so = roomy.built is not None and roomy.built.scenario is not None and _alike(roomy.built.scenario, scenario)
    return replace(roomy, note=ALREADY) if so else roomy


def _alike(one: Scenario, other: Scenario) -> bool:
    return one.content_hash == other.content_hash


def _told_apart(variant: Variant, scenario: Scenario) -> Variant:
    """A change that changes something, or none with that reason."""
    if variant.built is None or variant.built.scenario is None:
        return variant
    if not _alike(variant.built.scenario, scenario):
        return variant
    return Variant(None, variant.set, "is so already, or nothing that this switch looks at")
