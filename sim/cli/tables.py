# SPDX-License-Identifier: Apache-2.0
"""Tables of more than one command."""

import math
from collections.abc import Callable, Mapping, Sequence

from flitlab.fluid.kinds.spec import is_minor
from flitlab.models.mappings import Row
from flitlab.models.metrics.summary import ALWAYS
from flitlab.sim.cli.common import Column, number, print_rows, print_table, say, shown_label
from flitlab.sim.config.reporting import EnergyConfig
from flitlab.sim.judge.quantity import at_least, at_most
from flitlab.sim.measure.columns.registry import Column as Described
from flitlab.sim.measure.columns.registry import columns as table_of
from flitlab.sim.measure.rows import Status
from flitlab.sim.report.folder.budget import CHANGES, HOSTS, LEVELS, LossBudget, is_insignificant, sentence, warning


def print_ceilings(rows: list[Row]) -> None:
    """Print certified intervals; single bounds, cuts, and totals that equal the offered load are in ceilings.csv."""
    shown = [row for row in rows if not is_minor(row["ceiling"]) and row["method"] != "offer"]
    columns = [
        ("ceiling", lambda row: row["ceiling"]),
        ("at load", lambda row: number(row["load"]) if row["load"] is not None else ""), ("between", _interval),
        ("unit", lambda row: row["unit"] or ""), ("method", lambda row: row["method"] or ""),
        ("note", lambda row: row["note"] or ""),
    ]  # fmt: skip
    for scenarios, of_network in _of_equal_networks(shown):
        names = ", ".join(map(shown_label, scenarios[:NAMED_SCENARIOS]))
        more = len(scenarios) - NAMED_SCENARIOS
        print_table(f"{names}{f' and {more} more' * (more > 0)}: ceilings", columns, of_network)


NAMED_SCENARIOS = 4
"""Scenarios of the same ceilings that a table names."""


def _of_equal_networks(rows: Sequence[Row]) -> list[tuple[list[str], list[Row]]]:
    """The scenarios with equal ceilings, as those that differ in transport or switching only, and these ceilings."""
    scenarios: dict[tuple[object, ...], list[str]] = {}
    of_scenario: dict[str, list[Row]] = {}
    for row in rows:
        of_scenario.setdefault(row["scenario"], []).append(row)
    for scenario, own in of_scenario.items():
        content = tuple(tuple(str(row[name]) for name in _CONTENT) for row in own)
        scenarios.setdefault(content, []).append(scenario)
    return [(equal, of_scenario[equal[0]]) for equal in scenarios.values()]


_CONTENT = ("ceiling", "load", "lower", "upper", "unit", "method", "note")
"""Columns of a row of ceilings but its scenario and its seconds."""


def _identifying_columns(rows: Sequence[Row]) -> list[Column]:
    """The columns that tell the rows of scenarios and seeds apart: the seed only where there are several."""
    seed: Column = ("seed", lambda row: str(row["seed"]))
    return [("scenario", lambda row: row["scenario"]), *[seed] * (len({row["seed"] for row in rows}) > 1)]


def _status(row: Row) -> str:
    """The status of a row, '' for ok."""
    return "" if row["status"] == Status.OK else str(row["status"])


def print_programs(rows: Sequence[Row]) -> None:
    """Print a line for each scenario and seed of an application: time, lower bound, and shares."""
    shares = [one for one in table_of("programs").values() if one.summary]

    def percent(one: Described) -> Column:
        def text(row: Row) -> str:
            value = row.get(one.name)
            return "-" if value is None or math.isnan(value) else f"{100 * value:.1f}"

        return one.summary, text

    def milliseconds(row: Row) -> str:
        return number(None if row.get("total_ns") is None else row["total_ns"] / 1e6)

    columns = [*_identifying_columns(rows), ("time (ms)", milliseconds)]
    if any("relative_performance" in row for row in rows):
        columns.append(("relative", lambda row: number(row.get("relative_performance"), 3)))
    columns += [percent(shares[0]), ("bound by", lambda row: row.get("bound_by") or "-")]
    columns += [percent(one) for one in shares[1:]]
    if any("pause_frames" in row for row in rows):
        columns.append(("pauses", lambda row: number(row.get("pause_frames"))))
    columns.append(("", _status))
    title = "time; in percent of it: bound, critical path and use of channels"
    print_table(title, columns, rows)


def print_collectives(rows: Sequence[Row], results: Sequence[Row]) -> None:
    """Print a line for each scenario and seed of a collective: its time, and the lower bound for any algorithm.

    rows: of collectives.csv. results: of results.csv, for the status.
    """
    status = {(row["scenario"], row["seed"]): row["status"] for row in results}

    def value(name: str, factor: float = 1.0) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            return number(None if row.get(name) is None else factor * row[name], 5)

        return text

    columns = [
        *_identifying_columns(rows), ("algorithm", lambda row: str(row.get("algorithm") or "-")),
        ("size (bytes)", value("size_bytes")), ("time (µs)", value("time_ns", 1e-3)),
        ("bound (µs)", value("bound_ns", 1e-3)), ("bound by", lambda row: row.get("bound_by") or "-"),
        ("reachable (µs)", value("reachable_ns", 1e-3)), ("bound / time", value("efficiency")),
        ("algorithm bandwidth (GB/s)", value("algbw")), ("bus bandwidth (GB/s)", value("busbw")),
        ("at most", value("busbw_bound")),
    ]  # fmt: skip
    plan = [name for name in ("trees", "chunks", "depth") if any(row.get(name) is not None for row in rows)]
    columns += [(name, value(name)) for name in plan]

    def state(row: Row) -> str:
        return _status({"status": status.get((row["scenario"], row["seed"]), Status.OK)})

    print_table("collectives, with the bounds for any algorithm", [*columns, ("", state)], rows)


def print_jobs(rows: Sequence[Row]) -> None:
    """Print a line for each job of a scenario and seed: its time with the other jobs, isolated, and the slowdown."""

    def microseconds(name: str) -> Column:
        def text(row: Row) -> str:
            value = row[name]
            return number(None if value is None else value / 1e3, 5)

        return f"{name.partition('_')[0]} (µs)", text

    columns = [*_identifying_columns(rows), ("job", lambda row: row["job"]), ("ranks", lambda row: str(row["ranks"]))]
    columns += [microseconds(name) for name in ("start_ns", "time_ns", "alone_ns")]
    columns += [("slowdown", lambda row: number(row["slowdown"], 5)), microseconds("bound_ns")]
    columns.append(("", _status))
    print_table("jobs, with the others and isolated", columns, rows)


def print_classes(rows: Sequence[Row]) -> None:
    """Print a line for each class of traffic of a point."""
    seeds = len({row["seed"] for row in rows}) > 1
    columns: list[Column] = [("scenario", lambda row: row["scenario"]), ("load", lambda row: number(row["load"]))]
    columns += [("seed", lambda row: str(row["seed"]))] * seeds + [("class", lambda row: row["class"])]
    shown = {
        "offered": "offered", "accepted": "accepted", "latency_mean": "latency (ticks)", "latency_p99": "99 %",
        "network_latency_mean": "in the network",
    }  # fmt: skip

    def value(name: str) -> Callable[[Row], str]:
        return lambda row: number(row[name])

    columns += [(text, value(name)) for name, text in shown.items()]
    print_table("classes", columns, rows)


MOST_VICTIMS = 3
"""Victims of pauses that are named; further ones are counted."""


def print_pauses(rows: Sequence[Row], flows: Sequence[Row]) -> None:
    """Print what paused most in the first point of each scenario, and the flows that waited for it without using it.

    rows, flows: of pauses.csv and flows.csv.
    """
    points: dict[str, list[Row]] = {}
    for row in rows:
        some = points.setdefault(row["scenario"], [])
        if not some or all(row.get(key) == some[0].get(key) for key in ("load", "seed")):
            some.append(row)

    def below(point: Sequence[Row]) -> list[Row]:
        return [row for row in point if row["root"] == point[0]["root"] and row["pause_frames"]]

    def victims(point: Sequence[Row]) -> str:
        first = point[0]
        if first["victims"] is None:
            return "unknown"
        mine = [
            row for row in flows if row.get("victim_of") == first["root"]
            and all(row.get(key) == first.get(key) for key in ("scenario", "load", "seed"))
        ]  # fmt: skip
        mine.sort(key=lambda row: -math.inf if math.isnan(row["slowdown"]) else -row["slowdown"])
        named = [f"{row['source']}->{row['destination']} ({number(row['slowdown'], 3)})" for row in mine[:MOST_VICTIMS]]
        return ", ".join(named) + (f", and {len(mine) - MOST_VICTIMS} more" if len(mine) > MOST_VICTIMS else "")

    columns: list[Column] = [
        ("scenario", lambda point: point[0]["scenario"]), ("root", lambda point: point[0]["root"]),
        ("channels paused", lambda point: str(len(below(point)))),
        ("longest total (us)", lambda point: number(max(row["paused_us"] for row in below(point)))),
        ("flows that waited without using it (slowdown)", victims),
    ]  # fmt: skip
    print_table("pauses by their root, of the first seed", columns, list(points.values()))


def print_saturation(rows: Sequence[Row]) -> None:
    """Print the saturation points and efficiencies of scenarios where they are known."""

    def point(row: Row) -> str:
        value, half, low, high = (_finite(row[name]) for name in ("saturation", "ci95", "ci95_low", "ci95_high"))
        if half is not None:
            return f"{number(value)} ± {number(half, 2)}"
        return number(value) + ("" if None in (low, high) else f" ({number(low)} .. {number(high)})")

    def between(row: Row) -> str:
        ends = [number(row[end], 4) for end in ("lower", "upper")]
        return f"above {ends[0]}" if math.isinf(row["upper"]) else " .. ".join(ends)

    def ceiling(row: Row) -> str:
        return "" if row["ceiling"] is None else f"{row['ceiling']} {number(row['ceiling_upper'])}"

    def efficiency(row: Row) -> str:
        value = row["efficiency"]
        if value is not None and math.isnan(value):
            return f"at least {row['lower'] / row['ceiling_upper']:.1%}"
        return "" if value is None else f"{value:.1%}"

    columns = [
        ("scenario", lambda row: row["scenario"]), ("load", point), ("between", between), ("ceiling", ceiling),
        ("efficiency", efficiency), ("least source's share", lambda row: number(row["min_flow_ratio"])),
        ("Jain", lambda row: number(row["jain"])),
        ("latency at half the load", lambda row: number(row["latency_half"])),
    ]  # fmt: skip
    print_table("saturation", columns, rows)
    for row in rows:
        if row.get("note"):
            say(f"{shown_label(row['scenario'])}: {row['note']}")


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _interval(row: Row) -> str:
    """The ends of a ceiling, rounded outwards; one value if they are equal, and an uncertified value as it is."""
    lower, upper = row["lower"], row["upper"]
    if upper is None:
        return "-" if lower is None else f"at least {at_least(lower, 6)}"
    if lower is None:
        return f"at most {at_most(upper)}"
    if lower == upper:
        return number(upper, 6)
    ends = at_least(lower, 6), at_most(upper, 6)
    return ends[0] if ends[0] == ends[1] else " .. ".join(ends)


def print_metrics(rows: list[Row]) -> None:
    """Print the metrics of each topology; lists and mappings are in metrics.csv."""
    hidden = ("edge_hash", "notes")
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if name not in hidden]
    names = [name for name in names if not any(str(row.get(name)).startswith(("[", "{")) for row in rows)]
    print_rows("topologies", names, rows)


def print_answers(title: str, rows: list[Row], swept: Sequence[str]) -> None:
    """Print the result of an experiment, one line per scenario, without columns of label and topology.

    Parameters
    ----------
    title: the experiment.
    rows: of metrics.csv.
    swept: columns of the swept keys.
    """
    hidden = {*ALWAYS, *swept, "status", "message"}
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if name not in hidden]
    names = [name for name in names if not is_minor(name) and not name.endswith(".upper")]
    print_rows(title, names, rows)


INTERVAL_MEANING = (
    "between: 95 % confidence interval (Student's t over seeds), widened by the distance of each of the two loads to "
    "the farther end of its bracket; a single seed has only the brackets"
)
"""Legend of the intervals of losses and gains."""


def budget_text(budget: LossBudget) -> str:
    """The result of a budget in a sentence or two, with plain blanks."""
    return " ".join(filter(None, (sentence(budget), warning(budget)))).replace("\xa0", " ")


def print_budgets(budgets: Sequence[LossBudget]) -> None:
    """Print each budget: levels from the highest, gains of single changes, bottlenecks, and the result."""
    for budget in budgets:
        losses = {row["to"]: row for row in budget.losses}
        print_table(f"{shown_label(budget.scenario)}: loss budget", _columns(losses), budget.levels)
        if budget.changes:
            print_table("  one change at a time (gains do not add up)", CHANGE_COLUMNS, budget.changes)
        if budget.channels:
            say(f"  {_bottlenecks(budget.channels)}")
        say(f"  {budget_text(budget)}")
    if budgets:
        say(INTERVAL_MEANING)


def _columns(losses: Mapping[str, Row]) -> list[Column]:
    def of_loss(text: Column) -> Column:
        return text[0], lambda row: text[1](losses[row["rung"]]) if row["rung"] in losses else ""

    return [
        ("level", lambda row: row["rung"]), ("", lambda row: LEVELS[row["rung"]]),
        ("load", lambda row: number(row["value"])), ("% of mcf", lambda row: _digit(row["percent"])),
        of_loss(("loss", lambda row: _digit(row["percent"]))), of_loss(("between", _ends)),
        of_loss(("cause", lambda row: row["part"])), ("note", lambda row: row["note"]),
    ]  # fmt: skip


def _digit(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:.1f}"


def _ends(row: Row) -> str:
    return f"{_digit(row['percent_low'])} .. {_digit(row['percent_high'])}" + " (not significant)" * is_insignificant(
        row
    )


CHANGE_COLUMNS: list[Column] = [
    ("change", lambda row: CHANGES[row["change"]]), ("load", lambda row: number(row.get("switch"))),
    ("then", lambda row: number(row.get("changed"))), ("% of mcf", lambda row: _gain(row.get("percent"))),
    ("between", lambda row: _ends(row) if "percent" in row else ""), ("--set", lambda row: row["set"]),
    ("note", lambda row: row["note"]),
]  # fmt: skip


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:+.1f}"


def _bottlenecks(channels: Sequence[Row]) -> str:
    """The bottlenecks, those with the highest price first."""
    if channels[-1]["from"] == HOSTS:
        return "only the channels of hosts limit every routing: no network could carry more"
    count = channels[-1]["of"]
    named = [f"{row['from']}{' -> ' if row['to'] != '' else ''}{row['to']} {row['price']:.1%}" for row in channels]
    return f"{count} channels limit every routing (share of the dual): {', '.join(named)}"


def print_energy(energy: EnergyConfig) -> None:
    """Print every value that the power of a run depends on, with its source."""
    say(f"energy: profile {energy.profile}; every value can be replaced (outputs.energy: {{KEY: VALUE}})")
    for key, value, source in energy.assumptions():
        say(f"  {key} {value:g}: {source}")
