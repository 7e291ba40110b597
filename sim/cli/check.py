# SPDX-License-Identifier: Apache-2.0
"""``simrun check`` (run): check a configuration, and show what it would run at which cost."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flitlab.models.application.program import Op, StepKind, step_kinds
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.mappings import JsonObject, Keys
from flitlab.models.routing.certificate import POLICY_NAMES
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection, Rule
from flitlab.models.switching.timed import FlitTimed
from flitlab.models.topology.flit_times import flit_times
from flitlab.sim.cli.common import complain, duration, print_json, run_options, say, shown_label, study_of
from flitlab.sim.cli.options import add_configuration, add_jobs, add_json, add_threads
from flitlab.sim.cli.tables import print_energy
from flitlab.sim.config.case import Case, Study
from flitlab.sim.config.sections import BudgetConfig, SaturationConfig
from flitlab.sim.design.reader import is_design
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.estimate import Cost, cost, memory, wall
from flitlab.sim.experiment.prices import Prices
from flitlab.sim.experiment.task import ceilings_id


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    add_jobs(parser)
    add_threads(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Check a configuration, or a design, and print what it would run at which cost."""
    if is_design(options.file):
        from flitlab.sim.cli.design import check

        return check(options)
    study = study_of(options)
    if study is None:
        return ExitCode.BAD
    jobs = run_options(options, study).jobs
    costs = _costs(study)
    scenarios = [_describe(case, cost) for case, cost in zip(study.cases, costs, strict=False)]
    _describe_budgets(study, scenarios, costs)
    total = {
        "points": sum(cost.points for cost in costs), "cpu_s": sum(cost.seconds for cost in costs),
        "ceilings_cpu_s": _ceiling_seconds(study.cases, costs), "jobs": jobs, "threads": options.threads,
        "wall_s": wall(costs, jobs, options.threads),
        "memory_mb": jobs * memory(study.all_cases) / 1e6,
    }  # fmt: skip
    if options.json:
        head = {"name": study.name, "experiment": study.experiment, "engine": study.engine}
        print_json({**head, "points": total["points"], "estimate": total, "scenarios": scenarios})
        return 0
    say(f"{study.name}: {study.experiment}, {len(scenarios)} scenarios, {total['points']} points")
    if total["points"]:
        say(f"estimate: {_estimate_text(total)}")
    for scenario in scenarios:
        _print(scenario)
    if study.outputs.energy and study.simulates:
        print_energy(study.outputs.energy)
    return 0


def _costs(study: Study) -> list[Cost]:
    """The costs of all scenarios, in the order of ``Study.all_cases``; an unknown machine is calibrated first.

    Scenarios of budgets share the ceilings of their case.
    """
    prices, own = Prices(complain), len(study.cases)
    costs = [cost(case, study.engine, prices) for case in study.all_cases]
    return [*costs[:own], *(replace(one, ceilings={}) for one in costs[own:])]


def _describe_budgets(study: Study, scenarios: Sequence[JsonObject], costs: Sequence[Cost]) -> None:
    """Add the scenarios of budgets to the descriptions of their cases."""
    of_case = dict(zip(study.all_cases, costs, strict=True))
    described = {scenario["label"]: scenario for scenario in scenarios}
    for budget in study.budgets:
        scenarios_of_budget = {**budget.levels, **budget.changes}
        level_costs = [of_case[level.case] for level in scenarios_of_budget.values() if level.case is not None]
        described[budget.case.label]["budget"] = {
            "points": sum(part.points for part in level_costs), "cpu_s": sum(part.seconds for part in level_costs),
            "measured": [name for name, level in scenarios_of_budget.items() if level.case is not None],
            "left_out": {name: level.note for name, level in scenarios_of_budget.items() if level.case is None},
            "ticks": budget.window,
        }  # fmt: skip


def _ceiling_seconds(cases: Sequence[Case], costs: Sequence[Cost]) -> float:
    """CPU seconds of all ceilings of known cost; shared ones count once."""
    seconds: dict[str, float] = {}
    for case, one in zip(cases, costs, strict=False):
        if case.instance is not None:
            for spec in case.ceilings:
                seconds[ceilings_id(case.instance, [spec], case.grid, case.program)] = one.ceilings[spec.kind] or 0.0
    return sum(seconds.values())


def _estimate_text(total: JsonObject) -> str:
    workers = f"--jobs {total['jobs']}" + (f" --threads {total['threads']}" if total["threads"] > 1 else "")
    return (
        f"{duration(total['cpu_s'])} of CPU time for the points ({duration(total['wall_s'])} with {workers}), "
        f"{duration(total['ceilings_cpu_s'])} for the ceilings; {total['memory_mb']:,.0f} MB"
    )


def _describe(case: Case, cost: Cost) -> JsonObject:
    topology = case.topology
    degree = topology.out_degree
    return {
        "label": case.label,
        "points": cost.points,
        "estimate": {"cpu_s": cost.seconds, "ceilings_cpu_s": cost.ceilings},
        "topology": {
            "kind": topology.kind, "switches": topology.switches, "channels": topology.channels,
            "hosts": topology.hosts, "directed": topology.directed, "degree_min": int(degree.min()),
            "degree_max": int(degree.max()), "edge_hash": topology.edge_hash,
        },
        "traffic": _traffic(case), "routing": _routing(case), "ticks": case.ticks, **_zero_load(case),
        "certificate": case.certificate, "loads": case.loads, "seeds": case.seeds,
        "window": _window(case), "placing": case.resolved["loads"] if case.placing is not None else None,
        "ceilings": [ceiling.kind for ceiling in case.ceilings], "config": case.resolved,
        "queues": {} if case.scenario is None else _queues(case.scenario, max(case.grid, default=1.0), case.seeds[0]),
        **({} if case.workload is None else {"application": _application(case.workload)}),
    }  # fmt: skip


def _queues(scenario: Scenario, load: float, seed: int) -> dict[str, list[int]]:
    """The least and the greatest value of each quantity of the queues, in bytes."""
    stated = scenario.switching.queue_sizes(scenario.instance, scenario.work, load, seed)
    return {name: _ends(values) for name, values in stated.items()}


def _application(workload: Workload) -> JsonObject:
    """The operations and messages of a program."""
    program = workload.program
    kinds, of = step_kinds(program)
    sends = program.kind == Op.SEND
    counts = np.bincount(of, minlength=len(kinds)).tolist()
    return {
        "ranks": program.ranks, "operations": program.operations, "messages": int(sends.sum()),
        "bytes": int(program.amount[sends].sum()), "calculated_ns": int(program.amount[program.kind == Op.CALC].sum()),
        "iterations_simulated": program.simulated, "iterations_total": program.iterations,
        "steps": [{**kind._asdict(), "occurrences": count} for kind, count in zip(kinds, counts, strict=True)],
        "notes": program.notes | workload.notes,
    }  # fmt: skip


def _traffic(case: Case) -> JsonObject | None:
    """The pattern and its notes, without long lists; None for programs."""
    if case.instance is None or case.workload is not None:
        return None
    traffic = case.instance.traffic
    return {"kind": traffic.kind, **{key: note for key, note in traffic.notes.items() if not isinstance(note, list)}}


def _routing(case: Case) -> JsonObject | None:
    """The routing, its VC policy and notes; None without a routing.

    vc_policy: None in modes without VCs, and if nothing is simulated.
    """
    routes, scenario = case.routes, case.scenario
    if routes is None:
        return None
    has_vcs = scenario is not None and scenario.switching.counts != "flows"
    return {
        "kind": routes.kind, "vc_policy": POLICY_NAMES[scenario.switching.vc_policy] if scenario and has_vcs else None,
        "hops_max": routes.hops_max, "layers": routes.layers or None, **routes.notes,
    }  # fmt: skip


def _window(case: Case) -> str | None:
    """The window of each probe of a saturation search."""
    measure, placing = case.measure, case.placing
    if not isinstance(placing, SaturationConfig | BudgetConfig) or case.scenario is None:
        return None
    warmup = "automatic warm-up" if isinstance(measure.warmup, str) else f"{measure.warmup:,} ticks of warm-up"
    times = measure.ticks / case.scenario.source.mean_flits
    return (
        f"{warmup}, then {measure.ticks:,} ({times:,.0f} packet times), up to {placing.longest} times "
        "longer until the verdict is clear"
    )


def _zero_load(case: Case) -> JsonObject:
    """The zero-load latency of a packet of L flits over H channels between switches.

    zero_load: as a formula, in which D is the sum of the delays of individual channels, and t the ticks of a flit.
    delays, flit_ticks: the least and the
    greatest delay of channels between switches, and of channels of hosts. zero_load_ticks: the least and the greatest
    latency of a packet of one flit, over all pairs of hosts. None in modes without packets in ticks.
    """
    ticks, scenario = case.ticks, case.scenario
    if not ticks or scenario is None:
        return {"zero_load": None, "zero_load_ticks": None, "delays": None, "flit_ticks": None}
    if isinstance(scenario.switching, Deflection) and scenario.switching.rule == Rule.FRAME:
        return {**_zero_load_in_frames(scenario.switching), "zero_load_ticks": _zero_load_range(scenario)}
    each, hop = ticks["header"] + ticks["switch"], ticks["link"]
    ends, own = ticks["injection"] + ticks["ejection"], " + D" * case.topology.has_delays
    flit_ticks = _flit_ticks(scenario)
    if flit_ticks is not None:
        most = "at most " if scenario.switching.grants_flits else ""
        formula = (
            f"{most}{ends} + {ticks['switch']} (H + 1) + {hop} H{own} + the sum of max({ticks['header']}, (L - 1) "
            "(t' - t)) over switches and of t - 1 over channels + (L - 1) t at the end"
        )
        return {"zero_load": formula, "zero_load_ticks": _zero_load_range(scenario), **_delays(case), **flit_ticks}
    formula = (
        f"{ticks['injection']} + (H + 1) ({ticks['header']} + {ticks['switch']}) + {hop} H + {ticks['ejection']}{own} "
        f"+ L - 1 = {each + hop} H + {each + ends}{own} + (L - 1) ticks"
    )
    return {
        "zero_load": formula, "zero_load_ticks": _zero_load_range(scenario), **_delays(case), "flit_ticks": None,
    }  # fmt: skip


def _delays(case: Case) -> JsonObject:
    return {"delays": {"channels": _ends(case.topology.delay), "hosts": _ends(case.topology.access_delay)}}


def _flit_ticks(scenario: Scenario) -> JsonObject | None:
    """The least and the greatest ticks of a flit, of channels between switches and of hosts; None if all are 1."""
    if not isinstance(scenario.switching, FlitTimed) or (times := flit_times(scenario.topology)).all_one:
        return None
    return {"flit_ticks": {"channels": _ends(times.channel), "hosts": _ends(np.array([times.host]))}}


def _zero_load_range(scenario: Scenario) -> list[int]:
    """The least and the greatest latency of a packet of one flit between hosts."""
    latency = scenario.zero_load_range
    return [latency.least, latency.most]


def _zero_load_in_frames(mode: Deflection) -> JsonObject:
    """The formula of a packet that is created just in time for a frame; channels have no delays of their own."""
    frame, ends = mode.frame_ticks, mode.injection + mode.header + mode.switch + mode.ejection
    wait = f"and 0 to {frame - 1} ticks until the next frame of {frame} ticks begins"
    formula = f"{mode.hop_frames * frame} H + {ends} + {mode.vcs} (L - 1) ticks, {wait}"
    return {"zero_load": formula, "delays": {"channels": [0, 0], "hosts": [0, 0]}, "flit_ticks": None}


def _ends(values: Ints) -> list[int]:
    """The least and the greatest value; 0 without any."""
    return [int(values.min()), int(values.max())] if len(values) else [0, 0]


def _print(scenario: JsonObject) -> None:
    topology = scenario["topology"]
    degrees = sorted({topology["degree_min"], topology["degree_max"]})
    links = "uni-directional" if topology["directed"] else "bi-directional"
    say("", shown_label(scenario["label"]))
    say(
        f"  topology     {topology['kind']}: {topology['switches']} switches, {topology['channels']} channels "
        f"({links}), degree {'-'.join(map(str, degrees))}, {topology['hosts']} hosts"
        f"{_whose_delays(scenario['config'].get('topology', {}))}"
    )
    if scenario["traffic"]:
        say(f"  traffic      {_kind_and_rest(scenario['traffic'])}")
    if scenario["ticks"]:
        say(f"  ticks        {', '.join(f'{name} {ticks}' for name, ticks in scenario['ticks'].items())}")
    if "switching" in scenario["config"]:
        say(f"  switching    {_keys_and_values(scenario['config']['switching'])}")
    if scenario["queues"]:
        say(f"  queues       {', '.join(f'{name} {_span(ends)}' for name, ends in scenario['queues'].items())}")
    if scenario["ticks"]:
        say(f"  zero load    {scenario['zero_load']}, L flits over H channels between switches{_delay_text(scenario)}")
        if (ticks := scenario["flit_ticks"]) is not None:
            of_channels = " to ".join(str(end) for end in sorted({*ticks["channels"]}))
            say(
                f"               t: {ticks['hosts'][0]} ticks a flit on channels of hosts, {of_channels} between "
                "switches; t' on the channel before"
            )
        least, most = scenario["zero_load_ticks"]
        say(f"               from {least} to {most} ticks between hosts, for a packet of one flit")
    if scenario["routing"]:
        say(f"  routing      {_kind_and_rest(scenario['routing'])}")
    if scenario["ticks"]:
        say(f"  deadlock     {scenario['certificate']}")
    if "application" in scenario:
        _print_application(scenario)
    elif scenario["points"]:
        _print_points(scenario)
    if scenario["window"]:
        say(f"  window       {scenario['window']}")
    if "budget" in scenario:
        _print_budget(scenario["budget"])
    if scenario["ceilings"]:
        costs = scenario["estimate"]["ceilings_cpu_s"]
        say(f"  ceilings     {', '.join(kind + _about(costs.get(kind)) for kind in scenario['ceilings'])}")


def _whose_delays(keys: Keys) -> str:
    """Whether delays of links that a file states apply."""
    return {"file": ", with the delays of its file", "switching": ", with the delays of switching"}.get(
        keys.get("delays", ""), ""
    )  # fmt: skip


def _delay_text(scenario: JsonObject) -> str:
    """What D is in the formula of the zero-load latency; empty without D."""
    delays = {name: ends for name, ends in scenario["delays"].items() if ends[1]}
    named = {"channels": "a channel between switches adds", "hosts": "each of a host's channels adds"}
    parts = [
        f"{named[name]} {least} to {most}" if least < most else f"{named[name]} {most}"
        for name, (least, most) in delays.items()
    ]
    return f"; D: {', '.join(parts)} ticks" if parts else ""


def _span(ends: list[int]) -> str:
    """The least and the greatest value, once if they are equal."""
    return " to ".join(f"{end:,}" for end in sorted({*ends}))


def _keys_and_values(switching: Keys) -> str:
    """The keys of the switching mode, without those of other lines and those that are unset."""
    elsewhere = {"flit_ns", "allow_deadlock"}
    own = {key: value for key, value in switching.items() if key not in elsewhere and not key.endswith("_ticks")}
    return ", ".join(f"{key} {value}" for key, value in own.items() if value is not None)


MAX_STEPS = 12
"""Kinds of steps that are listed; further ones are counted."""


def _print_application(scenario: JsonObject) -> None:
    program, config = scenario["application"], scenario["config"]
    jobs = config["application"] if "application" in config else config["collective"]
    listed = jobs if isinstance(jobs, list) else [jobs]
    kind = " + ".join(dict.fromkeys(one["kind"] for one in listed))
    iterations = f"{program['iterations_simulated']} of {program['iterations_total']} iterations"
    say(
        f"  application  {kind}: {program['ranks']} ranks, {iterations}, {program['operations']:,} operations, "
        f"{program['messages']:,} messages of {program['bytes']:,} bytes; {duration(scenario['estimate']['cpu_s'])}"
    )
    for job in jobs if isinstance(jobs, list) else ():
        placement = _kind_and_rest(job["placement"]).replace(":", "")
        say(f"  job          {job['name']}: {job['kind']}, {placement}, from {job['start_us']:g} µs")
    for step in program["steps"][:MAX_STEPS]:
        say(f"  step         {StepKind(*list(step.values())[:4]).label}, {step['occurrences']} times")
    if len(program["steps"]) > MAX_STEPS:
        say(f"  step         ... and {len(program['steps']) - MAX_STEPS} more kinds, see --json")
    for name, note in program["notes"].items():
        say(f"  {name:<12} {_short(note)}")


def _print_points(scenario: JsonObject) -> None:
    loads, placing = scenario["loads"], scenario["placing"]
    seeds = ", ".join(map(str, scenario["seeds"]))
    parts = [f"{len(loads)} loads {loads[0]} .. {loads[-1]}"] if loads else []
    if placing is not None:
        parts += ["adaptive loads" if "adaptive" in placing else "the search for saturation"]
    count = f"{'about ' if placing is not None else ''}{scenario['points']}"
    say(f"  points       {count}: {', '.join(parts)}, seeds {seeds}; {duration(scenario['estimate']['cpu_s'])}")


def _print_budget(budget: JsonObject) -> None:
    measured, count = ", ".join(budget["measured"]), f"about {budget['points']}"
    say(f"  budget       {count} points of up to {budget['ticks']:,} ticks: {measured}; {duration(budget['cpu_s'])}")
    for name, why in budget["left_out"].items():
        say(f"  left out     {name}: {why}")


def _about(seconds: float | None) -> str:
    return "" if seconds is None else f" ({duration(seconds)})"


def _kind_and_rest(described: JsonObject) -> str:
    """
    >>> _kind_and_rest({"kind": "minimal", "hops_max": 3, "layers": None}), _kind_and_rest({"kind": "uniform"})
    ('minimal: hops_max 3', 'uniform')
    """
    rest = [f"{key} {_short(value)}" for key, value in described.items() if key != "kind" and value is not None]
    return f"{described['kind']}: {', '.join(rest)}" if rest else described["kind"]


def _short(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
