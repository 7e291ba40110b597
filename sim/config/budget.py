# SPDX-License-Identifier: Apache-2.0
"""The scenarios that a loss budget measures: the switch as configured, and with one thing changed.

A change has the syntax of ``--set``, so each level of a budget can be run by itself. A scenario that cannot be built is
omitted; its note has the first error.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffered import Buffered
from flitlab.models.switching.switching_mode import PACKETS
from flitlab.sim.config.build import Builder, Built
from flitlab.sim.config.draft import BUDGET, Draft
from flitlab.sim.config.errors import Diagnostic
from flitlab.sim.config.experiments import CHANGES
from flitlab.sim.config.load import Node
from flitlab.sim.config.overrides import apply_set
from flitlab.sim.config.schema import MeasureConfig
from flitlab.sim.config.window import WINDOW_KEYS, with_packet_times
from flitlab.sim.measure.probe_windows import longest_probe

CERTIFIED = ("mcf", "mcf_paths", "split")
"""Ceilings that are the upper levels, from the highest."""

MEASURED = ("ideal", "infinite_buffers", "full_speedup", "switch")
"""Levels that are simulated, from the highest.

ideal: the same routes, output queues without limit. infinite_buffers: the switch with unlimited buffers and a crossbar
without limit. full_speedup: its own buffers, a crossbar without limit. switch: as configured.
"""

DEFLECTION_NOTE = "packets that are deflected follow no routes, wait for no buffer space and cross no crossbar"

MAX_BUFFERED_PACKETS = 1 << 24
"""Packets that all unlimited buffers together may hold: about 400 MB before first use."""

CROSSBAR_TAKES_NOTHING = "this switch is so already: its crossbar takes nothing"

BUDGET_PACKET_TIMES = 6000
"""Packet times of the shortest probe of a budget, warm-up included."""

MAX_BUFFER_DIVISOR = 32
"""Unlimited buffers hold at least the traffic of a channel during a run, divided by this.

So an overload of up to 3 % does not fill them before the run ends.
"""


@dataclass(frozen=True, eq=False)
class BudgetScenario:
    """A scenario of a budget.

    Parameters
    ----------
    built: None if it is omitted.
    set: the changes, as ``--set`` takes them.
    note: why it is omitted, or a remark.
    """

    built: Built | None
    set: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class BudgetScenarios:
    """All scenarios of a budget.

    Parameters
    ----------
    levels: by name, see :data:`MEASURED`.
    changes: sensitivities by name.
    measure: how all of them are measured.
    times: packet times of the shortest run; None where ``measure`` has its length.
    ticks: of the longest run, warm-up included.
    """

    levels: Mapping[str, BudgetScenario]
    changes: Mapping[str, BudgetScenario]
    measure: MeasureConfig
    times: int | None
    ticks: int


def max_run_ticks(measure: MeasureConfig, longest: int) -> int:
    """Ticks of the longest probe. An automatic warm-up takes at most as long as the window.

    longest: the longest window, as a multiple of the first.
    """
    return longest_probe(measure.ticks if measure.warmup == "auto" else measure.warmup, measure.ticks, longest)


def has_budget(draft: Draft) -> bool:
    """Whether a configuration requests budgets, and its scenario simulates packets."""
    is_requested = BUDGET in draft.config.outputs.figures and draft.experiment == "load_sweep"
    return is_requested and getattr(draft.switching_mode, "counts", None) == PACKETS


def budget_scenarios(builder: Builder, draft: Draft, node: Node, built: Built) -> BudgetScenarios:
    """The scenarios that the budget of a scenario measures.

    Parameters
    ----------
    builder: builds the changed configurations.
    draft, node: the configuration.
    built: the scenario as configured.
    """
    scenario = built.scenario
    assert scenario is not None
    times = window(draft)
    measure = draft.config.measure if times is None else with_packet_times(MeasureConfig(), scenario, times)

    ticks = max_run_ticks(measure, draft.config.budget.longest)

    def changed_scenario(*sets: str) -> BudgetScenario:
        return _variant(builder, draft, node, sets)

    if scenario.routes.deflection:
        rungs = {name: BudgetScenario(None, note=DEFLECTION_NOTE) for name in MEASURED}
    else:
        full_speedup = _note_if_unchanged(changed_scenario("switching.input_speedup=vcs"), scenario)
        rungs = {
            "ideal": changed_scenario("switching.mode=ideal"),
            "infinite_buffers": _infinite_buffers(full_speedup, ticks),
            "full_speedup": full_speedup,
        }
    rungs["switch"] = BudgetScenario(built)
    changed = {name: changed_scenario(*sets) for name, sets in _changes(draft, scenario)}
    changes = {name: _effective_change(variant, scenario) for name, variant in changed.items()}
    return BudgetScenarios(rungs, changes, measure, times, ticks)


def window(draft: Draft) -> int | None:
    """Packet times of a run, warm-up included; None where ``measure`` has its length."""
    packet_times = draft.config.budget.window
    if packet_times is None and any(draft.has("measure", key) for key in WINDOW_KEYS):
        return None
    return BUDGET_PACKET_TIMES if packet_times is None else packet_times


def _variant(builder: Builder, draft: Draft, node: Node, sets: Sequence[str]) -> BudgetScenario:
    """The scenario of a changed configuration, or the first error."""
    errors: list[Diagnostic] = []
    for change in sets:
        node = apply_set(node, change, errors)
    built = builder.build(Draft(node, draft.experiment, draft.base, errors))
    if errors or built is None:
        return BudgetScenario(None, tuple(sets), _first_error(errors))
    return BudgetScenario(built, tuple(sets))


def _first_error(errors: Sequence[Diagnostic]) -> str:
    """The first error, as a clause."""
    if not errors:
        return "cannot be built"
    first = errors[0]
    value = f"{first.key} = {first.value}" if first.value else first.key
    return f"{value} {first.problem}"


def _infinite_buffers(full_speedup: BudgetScenario, ticks: int) -> BudgetScenario:
    """The switch with unlimited buffers: each holds all that its channel can carry in a run.

    Where that takes too much memory, they hold the part that :data:`MAX_BUFFER_DIVISOR` allows.
    """
    if full_speedup.built is None or full_speedup.built.scenario is None:
        return full_speedup
    scenario = full_speedup.built.scenario
    switching, flits = scenario.switching, min(scenario.source.flits)
    if not isinstance(switching, Buffered):
        return BudgetScenario(None, full_speedup.set, f"mode {switching.mode} has no buffers")
    ticks += max(scenario.source.flits)
    buffers = (scenario.topology.channels + scenario.topology.hosts) * switching.vcs
    affordable = MAX_BUFFERED_PACKETS // buffers * flits
    size = max(min(ticks, affordable), switching.buffer_flits)
    if size * MAX_BUFFER_DIVISOR < ticks:
        return BudgetScenario(None, full_speedup.set, f"{buffers:,} buffers that never fill would take too much memory")
    part = "all" if size >= ticks else f"{100 * size // ticks} %"
    grown = replace(scenario, switching=replace(switching, buffer_flits=size))
    note = f"buffers of {size} flits a VC, {part} of what a channel can carry in a run"
    return BudgetScenario(replace(full_speedup.built, scenario=grown), full_speedup.set, note)


def _changes(draft: Draft, scenario: Scenario) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The configured sensitivities: name and changes."""
    switching, shortest = scenario.switching, min(scenario.source.flits)
    vcs, buffer_flits = (switching.vcs, switching.buffer_flits) if isinstance(switching, Buffered) else (1, shortest)
    twice, four = f"switching.vcs={2 * vcs}", f"switching.buffer_flits={4 * buffer_flits}"
    known = {
        "vcs": (twice,), "buffers": (four,), "vcs_and_buffers": (twice, four),
        "speedup": ("switching.input_speedup=vcs",), "oldest": ("switching.allocator=oldest",),
        "packets": (f"traffic.packet_flits={max(shortest // 4, 1)}", f"switching.buffer_flits={buffer_flits}"),
        "rising": ("routing.vc_policy=rising",),
    }  # fmt: skip
    assert known.keys() == set(CHANGES)
    yield from ((name, known[name]) for name in draft.config.budget.sensitivities)


def _note_if_unchanged(full_speedup: BudgetScenario, scenario: Scenario) -> BudgetScenario:
    """The ``full_speedup`` level, with a note if it equals the switch as configured."""
    so = (
        full_speedup.built is not None
        and full_speedup.built.scenario is not None
        and _has_same_content(full_speedup.built.scenario, scenario)
    )
    return replace(full_speedup, note=CROSSBAR_TAKES_NOTHING) if so else full_speedup


def _has_same_content(one: Scenario, other: Scenario) -> bool:
    return one.content_hash == other.content_hash


def _effective_change(variant: BudgetScenario, scenario: Scenario) -> BudgetScenario:
    """A change, omitted with a note if it leaves the scenario as it is."""
    if variant.built is None or variant.built.scenario is None:
        return variant
    if not _has_same_content(variant.built.scenario, scenario):
        return variant
    return BudgetScenario(None, variant.set, "is so already, or nothing that this switch looks at")
