# SPDX-License-Identifier: Apache-2.0
"""The scenarios that a loss budget measures: the switch as configured, and with one thing changed.

A change has the syntax of ``--set``, so each level of a budget can be run by itself. A scenario that cannot be built is
omitted; its note has the first error.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffered import Buffered
from flitlab.models.switching.buffers import BuffersByChannel
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.config.build import build
from flitlab.sim.config.case import Budget, Case, LevelScenario
from flitlab.sim.config.components import ComponentBuilder
from flitlab.sim.config.diagnostics import Diagnostic, Diagnostics
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.overrides import apply_set
from flitlab.sim.config.schema import WINDOW_KEYS, MeasureConfig
from flitlab.sim.config.sections import CHANGES, MEASURED
from flitlab.sim.measure.probe_windows import longest_probe

DEFLECTION_NOTE = "packets that are deflected follow no routes, wait for no buffer space and cross no crossbar"

MAX_BUFFERED_PACKETS = 1 << 24
"""Packets that all unlimited buffers together may hold: about 400 MB before first use."""

CROSSBAR_LOSES_NOTHING = "the same as this switch, whose crossbar loses nothing"

BUDGET_PACKET_TIMES = 6000
"""Packet times of the shortest probe of a budget, warm-up included."""

MAX_BUFFER_DIVISOR = 32
"""Unlimited buffers hold at least the traffic of a channel during a run, divided by this.

So an overload of up to 3 % does not fill them before the run ends.
"""


def max_run_ticks(measure: MeasureConfig, longest: int) -> int:
    """Ticks of the longest probe. An automatic warm-up takes at most as long as the window.

    longest: the longest window, as a multiple of the first.
    """
    return longest_probe(measure.ticks if measure.warmup == "auto" else measure.warmup, measure.ticks, longest)


def budget_of(cache: ComponentBuilder, draft: Draft, case: Case) -> Budget:
    """The budget of a case: each of its scenarios gets its own search, with equal settings.

    Parameters
    ----------
    cache: builds the changed configurations.
    draft: the configuration.
    case: as configured.
    """
    scenario = case.scenario
    assert scenario is not None
    times = window(draft)
    measure = draft.config.measure
    if times is not None:
        measure = MeasureConfig().with_packet_times(scenario.source.mean_flits, times)
    ticks = max_run_ticks(measure, draft.config.budget.longest)
    ceilings = [spec for spec in case.ceilings if not spec.by_load]
    template = replace(case, loads=[], placing=draft.config.budget, measure=measure, ceilings=ceilings)

    def changed(*sets: str) -> LevelScenario:
        return _changed(cache, draft, template, sets)

    if scenario.routes.deflection:
        levels = {name: LevelScenario(None, note=DEFLECTION_NOTE) for name in MEASURED}
    else:
        full_speedup = _note_if_unchanged(changed("switching.input_speedup=vcs"), scenario)
        levels = {
            "ideal": changed("switching.mode=ideal"),
            "infinite_buffers": _infinite_buffers(full_speedup, ticks),
            "full_speedup": full_speedup,
        }
    levels["switch"] = LevelScenario(template)
    changes = {name: _effective_change(changed(*sets), scenario) for name, sets in _changes(draft, scenario)}
    return Budget(case, _labelled(case.label, levels), _labelled(case.label, changes), ticks, times)


def _labelled(label: str, scenarios: dict[str, LevelScenario]) -> dict[str, LevelScenario]:
    """Scenarios of a budget, their cases labelled by the label of the budget and their names."""
    return {
        name: one if one.case is None else replace(one, case=replace(one.case, label=f"{label}: {name}"))
        for name, one in scenarios.items()
    }


def window(draft: Draft) -> int | None:
    """Packet times of a run, warm-up included; None where ``measure`` has its length."""
    packet_times = draft.config.budget.window
    if packet_times is None and any(draft.has("measure", key) for key in WINDOW_KEYS):
        return None
    return BUDGET_PACKET_TIMES if packet_times is None else packet_times


def _changed(cache: ComponentBuilder, draft: Draft, template: Case, sets: tuple[str, ...]) -> LevelScenario:
    """The scenario of a changed configuration, or the first error.

    template: the case with the settings of all scenarios of the budget.
    """
    node, diagnostics = draft.root, Diagnostics()
    for change in sets:
        node = apply_set(node, change, diagnostics)
    built = build(Draft(node, draft.experiment, draft.base, diagnostics), cache)
    if diagnostics.errors or built is None:
        return LevelScenario(None, sets, _first_error(diagnostics.errors))
    case = replace(
        template, instance=built.instance, scenario=built.scenario, certificate=built.certificate,
        resolved=built.resolved,
    )  # fmt: skip
    return LevelScenario(case, sets)


def _first_error(errors: Sequence[Diagnostic]) -> str:
    """The first error, as a clause."""
    if not errors:
        return "cannot be built"
    first = errors[0]
    value = f"{first.key} = {first.value}" if first.value else first.key
    return f"{value} {first.problem}"


def _infinite_buffers(full_speedup: LevelScenario, ticks: int) -> LevelScenario:
    """The switch with unlimited buffers: each holds all that its channel can carry in a run.

    Where that takes too much memory, they hold the part that :data:`MAX_BUFFER_DIVISOR` allows.
    """
    case, scenario = full_speedup.case, full_speedup.scenario
    if case is None or scenario is None:
        return full_speedup
    switching, flits = scenario.switching, min(scenario.source.flits)
    if not isinstance(switching, Buffered):
        return LevelScenario(None, full_speedup.set, f"mode {switching.mode} has no buffers")
    ticks += max(scenario.source.flits)
    buffers = (scenario.topology.channels + scenario.topology.hosts) * switching.vcs
    affordable = MAX_BUFFERED_PACKETS // buffers * flits
    size = max(min(ticks, affordable), switching.buffer_flits)
    if size * MAX_BUFFER_DIVISOR < ticks:
        return LevelScenario(None, full_speedup.set, f"{buffers:,} buffers that never fill would take too much memory")
    part = "all" if size >= ticks else f"{100 * size // ticks} %"
    grown = replace(scenario, switching=replace(switching, buffer_flits=size, channel_buffers=None))
    note = f"buffers of {size} flits a VC, {part} of what a channel can carry in a run"
    return LevelScenario(replace(case, scenario=grown), full_speedup.set, note)


def _changes(draft: Draft, scenario: Scenario) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The configured sensitivities: name and changes."""
    switching, shortest = scenario.switching, min(scenario.source.flits)
    vcs, buffer_flits = (switching.vcs, switching.buffer_flits) if isinstance(switching, Buffered) else (1, shortest)
    keys = getattr(draft.switching, "buffer_flits", None)
    larger, same = (
        (json.dumps(keys.scaled(4)), json.dumps(keys.plain()))
        if isinstance(keys, BuffersByChannel)
        else (4 * buffer_flits, buffer_flits)
    )
    twice, four = f"switching.vcs={2 * vcs}", f"switching.buffer_flits={larger}"
    known = {
        "vcs": (twice,), "buffers": (four,), "vcs_and_buffers": (twice, four),
        "speedup": ("switching.input_speedup=vcs",), "oldest": ("switching.allocator=oldest",),
        "packets": (f"traffic.packet_flits={max(shortest // 4, 1)}", f"switching.buffer_flits={same}"),
        "rising": ("routing.vc_policy=rising",),
    }  # fmt: skip
    assert known.keys() == set(CHANGES)
    yield from ((name, known[name]) for name in draft.config.budget.sensitivities)


def _note_if_unchanged(full_speedup: LevelScenario, scenario: Scenario) -> LevelScenario:
    """The ``full_speedup`` level, with a note if it equals the switch as configured."""
    return replace(full_speedup, note=CROSSBAR_LOSES_NOTHING) if _is_same(full_speedup, scenario) else full_speedup


def _effective_change(change: LevelScenario, scenario: Scenario) -> LevelScenario:
    """A change, omitted with a note if it leaves the scenario as it is."""
    if not _is_same(change, scenario):
        return change
    return LevelScenario(None, change.set, "set already, or without effect on this switch")


def _is_same(level: LevelScenario, scenario: Scenario) -> bool:
    return level.scenario is not None and _effective(level.scenario) == _effective(scenario)


def _effective(scenario: Scenario) -> str:
    """A hash of what has an effect in a scenario."""
    switching = scenario.switching
    effective = switching.effective() if isinstance(switching, Deflection) else switching
    return replace(scenario, switching=effective).content_hash
