# SPDX-License-Identifier: Apache-2.0
"""Tables of the pages."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from flitlab.models.mappings import Row
from flitlab.sim.measure.columns.registry import RATE, TICKS, columns
from flitlab.sim.measure.interval import MEANING, mean_known
from flitlab.sim.measure.rows import number
from flitlab.sim.measure.saturation import Saturation, saturation
from flitlab.sim.report.folder import budget
from flitlab.sim.report.folder.ceilings import Ceiling
from flitlab.sim.report.folder.curves import curves
from flitlab.sim.report.folder.frames import column, load
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.answer import ScenarioSummary, percent

MOST_ROWS = 2000
"""The most rows of a table."""


@dataclass(frozen=True)
class Table:
    """A sortable table; one without rows is not shown.

    head: column headings. rows: cells. text: indices of left-aligned columns. caption: shown above it.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: Sequence[int] = (0,)
    caption: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shown(self) -> Sequence[Sequence[str]]:
        """The first rows, as many as a page may hold."""
        return self.rows[:MOST_ROWS]

    @property
    def note(self) -> str:
        """What stands above the table: how many rows are shown, and the caption."""
        more = f"The first {MOST_ROWS:,} of {len(self):,} rows. " if len(self) > MOST_ROWS else ""
        return more + self.caption


def scenarios(run: Run, summaries: Sequence[ScenarioSummary]) -> Table | None:
    """One row per scenario of a load sweep."""
    if not any(row.get("saturated") for row in run.rows):
        return None
    units = run.units()
    head = ["scenario", f"latency at the lowest load ({units.time_name})", "hops", "saturation (load)", "between loads"]
    head += ["ceiling", "efficiency", "least source's share", "points"]
    rows = []
    for summary in summaries:
        own = sorted((row for row in run.rows if row.get("scenario") == summary.scenario), key=load)
        point = saturation(own, run.limit(summary.scenario)) if own else None
        first = [row for row in own if load(row) == load(own[0])]
        latency, hops = (mean_known(number(row, name) for row in first) for name in ("latency_mean", "hops_mean"))
        rows.append((
            summary.scenario, plain(units.time * latency), plain(hops),
            with_interval(point) if point else "", summary.between, summary.ceiling, summary.efficiency,
            plain(point.at("min_flow_ratio")) if point else "", str(len(own)),
        ))  # fmt: skip
    caption = (
        "Hops, too, are those of the lowest load. Efficiency is saturation over the ceiling. The least "
        "source's share is accepted over created traffic of the worst-served host just past saturation."
    )
    return Table(head, rows, text=(0,), caption=" ".join([caption, *_interval_note(rows), *hot_hosts(run)]))


def hot_hosts(run: Run) -> list[str]:
    """Return the notes of saturation.csv on scenarios whose ceiling is that of a few hosts."""
    return [f"{row['scenario']}: {row['note']}." for row in run.saturation if row.get("note")]


def results(run: Run) -> Table:
    """Return means over replicates per scenario and load; without loads, the rows as they are."""
    cells: dict[tuple[str, float], dict[str, str]] = {}
    shown = {name: one.report for name, one in columns("packets", "flows").items() if one.report}
    for measure in shown:
        half = column("latency_ci95") if measure == "latency_mean" else None
        for curve in curves(run.rows, load, column(measure), half):
            for i, value in enumerate(curve.load):
                point = cells.setdefault((curve.scenario, float(value)), {})
                point[measure] = plus_minus(curve.y[i], curve.half[i])
                point["seeds"] = str(curve.replicates[i])
                point["saturated"] = "yes" if curve.saturated[i] else ""
    if not cells:
        return raw(run.rows)
    for row in run.rows:
        if row.get("precise") == "False" and (place := (row.get("scenario") or "", load(row))) in cells:
            cells[place]["imprecise"] = "yes"
    order = {scenario: i for i, scenario in enumerate(run.scenarios)}
    keys = sorted(cells, key=lambda key: (order[key[0]], key[1]))
    known = {name for point in cells.values() for name in point}
    measures = [name for name in (*shown, "saturated", "imprecise", "seeds") if name in known]
    rows = [(scenario, f"{x:g}", *(cells[scenario, x].get(m, "") for m in measures)) for scenario, x in keys]
    notes = ["" if run.of_flows else f"Units: {RATE} and {TICKS}.", *_interval_note(rows)]
    if "imprecise" in measures:
        notes.append("Imprecise: some replicate missed the precision of measure.ci.")
    head = ("scenario", "load", *(shown.get(name, name) for name in measures))
    return Table(head, rows, caption=" ".join(filter(None, notes)))


def energy(run: Run) -> Table:
    """Return the values that the power of a run depends on, with their sources."""
    rows = [(key, f"{value:g}", source) for key, value, source in run.manifest.get("energy", [])]
    return Table(("value", "amount", "source"), rows, (0, 2), "Powers in W at full load; outputs.energy replaces any.")


def _interval_note(rows: Sequence[Sequence[str]]) -> list[str]:
    """The explanation of ±, if a cell has it."""
    return [f"{MEANING}."] if any("±" in cell for row in rows for cell in row) else []


def raw(rows: Sequence[Row]) -> Table:
    """Rows of a CSV file as they are."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = [i for i, name in enumerate(names) if not all(is_number(row.get(name) or "0") for row in rows)]
    return Table(names, [[short(row.get(name) or "") for name in names] for row in rows], text=text)


COLLECTIVE = {
    "size_bytes": ("S (bytes)", 1.0), "time_ns": ("time (µs)", 1e-3), "bound_ns": ("bound (µs)", 1e-3),
    "reachable_ns": ("known to be reachable (µs)", 1e-3), "efficiency": ("bound / time", 1.0),
    "busbw": ("busbw (GB/s)", 1.0), "busbw_bound": ("its bound (GB/s)", 1.0), "trees": ("trees", 1.0),
    "chunks": ("chunks", 1.0), "depth": ("depth", 1.0),
}  # fmt: skip
"""Columns of collectives.csv in the report: name and factor."""


def collectives(run: Run) -> Table | None:
    """Return one row per run of a collective, with the bound for every algorithm."""
    if not run.of_collectives:
        return None
    rows = [
        (
            row.get("scenario") or "", row.get("kind") or "", row.get("algorithm") or "",
            *(plain(number(row, name) * factor) for name, (_, factor) in COLLECTIVE.items()),
            row.get("bound_by") or "", row.get("proof") or "",
        )
        for row in run.tables.get("collectives", ())
    ]  # fmt: skip
    caption = (
        "The bound holds for every algorithm. S and busbw are those of NCCL's tests. What is known to be reachable "
        "leaves latency out."
    )
    head = ("scenario", "collective", "algorithm", *(name for name, _ in COLLECTIVE.values()), "bound by", "proof")
    return Table(head, rows, text=(0, 1, 2), caption=caption)


def programs(run: Run) -> Table | None:
    """One row per scenario and seed of an application."""
    if not run.of_programs or run.of_collectives:
        return None
    known = columns("programs").items()
    shown = [one for name, one in known if one.report and any(row.get(name) for row in run.rows)]
    ends = [(row.get("scenario") or "", row.get("seed") or "", row.get("bound_by") or "") for row in run.rows]
    rows = [
        (scenario, seed, *(plain(number(row, one.name) * one.scale) for one in shown), by)
        for (scenario, seed, by), row in zip(ends, run.rows, strict=True)
    ]
    caption = (
        "Time is that of all iterations, of which some were simulated. The lower bound holds for any routing on this "
        "network; what binds is in the last column. Shares of the critical path add up to 1. Computing and waiting are "
        "means over ranks."
    )
    return Table(("scenario", "seed", *(one.report for one in shown), "bound by"), rows, caption=caption)


JOB = {
    "start_ns": ("arrival (µs)", 1e-3), "time_ns": ("time (µs)", 1e-3), "alone_ns": ("alone (µs)", 1e-3),
    "slowdown": ("slowdown", 1.0), "bound_ns": ("lower bound (µs)", 1e-3), "efficiency": ("bound / time", 1.0),
}  # fmt: skip
"""Columns of jobs.csv in the report: name and factor."""


def jobs(run: Run) -> Table:
    """Return one row per scenario, seed and job, with the isolated time of the job."""
    rows = [
        (
            *(row.get(name) or "" for name in ("scenario", "seed", "job", "kind", "ranks")),
            *(plain(number(row, name) * factor) for name, (_, factor) in JOB.items()),
        )
        for row in run.tables.get("jobs", ())
    ]  # fmt: skip
    caption = (
        "Times are from the arrival of a job to its end, beside the others and without them, on the same hosts of the "
        "same network. Slowdown is the one over the other; the bound is on the job alone."
    )
    head = ("scenario", "seed", "job", "program", "ranks", *(name for name, _ in JOB.values()))
    return Table(head, rows, text=(0, 2, 3), caption=caption)


def transports(run: Run) -> Table:
    """One row per scenario, load, seed and transport, where several share a network."""
    named = ("scenario", "load", "seed", "transport", "flows", "flows_complete")
    counted = ("retransmissions", "timeouts", "trims", "marks")
    measured = ("share", "throughput_mean", "fct_ms_mean", "fct_ms_max", "slowdown_mean")
    rows = [
        (
            *(row.get(name) or "" for name in named), *(plain(number(row, name)) for name in measured),
            *(row.get(name) or "" for name in counted),
        )
        for row in run.tables.get("transports", ())
    ]  # fmt: skip
    caption = (
        "What the flows of each transport got in the window: their share of all received bytes, the mean throughput of "
        "a flow as a fraction of the rate of a host, and how long the flows took that came to an end."
    )
    head = (
        *("scenario", "load", "seed", "transport", "flows", "complete"), "share", "throughput", "mean time (ms)",
        "longest (ms)", "mean slowdown", *counted,
    )  # fmt: skip
    return Table(head, rows, text=(0, 3), caption=caption)


def classes(run: Run) -> Table:
    """One row per scenario, load, seed and class of traffic."""
    named = ("scenario", "load", "seed", "class", "priority")
    headings = {
        "offered": "offered", "accepted": "accepted", "latency_mean": "latency", "latency_p99": "99 % latency",
        "network_latency_mean": "in the network", "lost_packets": "lost packets",
    }  # fmt: skip
    listed = run.tables.get("classes", ())
    measured = [name for name in headings if any(row.get(name) for row in listed)]
    rows = [
        (*(row.get(name) or "" for name in named), *(plain(number(row, name)) for name in measured)) for row in listed
    ]
    caption = "Rates are in flits per tick and host, times in ticks; priority: the greater one goes first."
    head = (*named, *(headings[name] for name in measured))
    return Table(head, rows, text=(0, 3), caption=caption)


def steps(run: Run) -> Table | None:
    """One row per kind of step of each program; a collective is its only step."""
    if run.of_collectives:
        return None
    rows = [
        (
            row.get("scenario") or "", row.get("label") or "", row.get("occurrences") or "",
            plain(number(row, "time_ns") / 1e3), plain(number(row, "bound_ns") / 1e3), plain(number(row, "efficiency")),
        )
        for row in run.tables.get("steps", ())
    ]  # fmt: skip
    caption = "Mean time from when the first rank begins a step to when the last is through, and the bound on it."
    head = ("scenario", "step", "occurrences", "time (µs)", "lower bound (µs)", "bound / time")
    return Table(head, rows, text=(0, 1), caption=caption)


def failures(run: Run) -> Table:
    """Return failed points and their messages."""
    keep = ("scenario", "load", "seed", "status", "error", "message", "note")
    return raw([{column: row[column] for column in keep if row.get(column)} for row in run.failures])


def ceilings(certified: Iterable[Ceiling]) -> Table:
    """Return every ceiling with its certified interval, gap and method."""
    rows = []
    for c in certified:
        if c.name.startswith("makespan:step "):  # the table of steps has them
            continue
        lower = "" if c.known_ends == "upper" else f"{c.lower:.6g}"
        upper = "" if c.known_ends == "lower" else f"{c.upper:.6g}"
        ends = (lower, upper) if c.known else ("omitted", "omitted")
        at = f"{c.load:g}" if math.isfinite(c.load) else ""
        measured = c.known and c.known_ends == "both" and 0 < c.upper < math.inf
        gap = percent((c.upper - c.lower) / c.upper, 2) if measured else ""
        rows.append((c.scenario, c.name, at, *ends, gap, c.unit, c.method, c.note))
    head = ("scenario", "ceiling", "load", "lower", "upper", "gap", "unit", "method", "note")
    caption = (
        "The lower end is reached by a flow, the upper end proven by lengths of channels (duality); both were "
        "recomputed from these by code that knows no solver. Every simulated point was checked against the lengths."
    )
    return Table(head, rows, text=(0, 1, 6, 7, 8), caption=caption)


@dataclass(frozen=True)
class BudgetTables:
    """The loss budget of a scenario. bottlenecks: what the channels are."""

    scenario: str
    warning: str
    levels: Table
    changes: Table
    channels: Table
    bottlenecks: str


def loss_budgets(run: Run) -> list[BudgetTables]:
    """Return all loss budgets of a run."""
    return [_loss_budget(one) for one in budget.loss_budgets(run.tables)]


def _loss_budget(of: budget.LossBudget) -> BudgetTables:
    losses = {row["to"]: row for row in of.losses}
    head = ("level", "meaning", "load", "% of mcf", "loss, % of mcf", "95 % interval", "cause", "note")
    levels = Table(head, [_level_row(row, losses.get(row["rung"])) for row in of.levels], text=(0, 1, 6, 7))
    # the highest price first
    rows = [(_channel(row), f"{100 * number(row, 'price'):.2f} %") for row in of.channels]
    channels = Table(("channel", "price"), rows, caption="Share of the dual value of all capacity.")
    only = bool(rows) and of.channels[-1]["from"] == budget.HOSTS
    count = of.channels[-1]["of"] if rows else "0"
    bottlenecks = "Host channels are the bottleneck" if only else f"{count} channels limit every routing"
    return BudgetTables(of.scenario, budget.warning(of), levels, _changes(of), channels, bottlenecks)


def _level_row(row: Row, loss: Row | None) -> tuple[str, ...]:
    lost, between, to = (
        ("", "", "") if loss is None else (_percent(loss), _ends(loss), budget.describe_loss(loss["part"]))
    )
    value = "omitted" if row["kind"] == "omitted" else plain(number(row, "value"))
    return row["rung"], budget.LEVELS[row["rung"]], value, _percent(row), lost, between, to, row.get("note") or ""


def _percent(row: Row) -> str:
    return f"{value:.1f}" if (value := number(row, "percent")) == value else ""


def _ends(row: Row) -> str:
    if not row.get("percent_low"):
        return ""
    return (
        f"{number(row, 'percent_low'):.1f} .. {number(row, 'percent_high'):.1f}"
        + ", not significant" * budget.is_insignificant(row)
    )


def _changes(of: budget.LossBudget) -> Table:
    head = ("change", "load", "changed load", "gain, % of mcf", "95 % interval", "--set", "note")
    rows = [
        (
            budget.CHANGES[row["change"]], plain(number(row, "switch")), plain(number(row, "changed")), _percent(row),
            _ends(row), row["set"], row.get("note") or "",
        ) for row in of.changes
    ]  # fmt: skip
    caption = "Gain in stable load by one change of the switch at a time. Gains do not add up."
    return Table(head, rows, text=(0, 5, 6), caption=caption)


def _channel(row: Row) -> str:
    return f"{row['from']} → {row['to']}" if row["to"] else "host channels together"


SIGNS = {"at_most": "≤ ", "at_least": "≥ ", "less_than": "< ", "greater_than": "> "}


def published(rows: Sequence[Row]) -> Table:
    """*published | measured | verdict*."""
    head = ("where", "scenario", "quantity", "published", "measured", "verdict", "why")
    cells = [[short({**row, "published": _claim(row)}.get(name) or "") for name in head] for row in rows]
    return Table(head, cells, text=(0, 1, 2, 5, 6))


def _claim(row: Row) -> str:
    value = SIGNS.get(row.get("compare") or "", "") + (row.get("published") or "")
    return value + (f" ± {row['tolerance']}" if row.get("tolerance") else "")


def metrics(rows: Sequence[Row]) -> Table:
    """Return one row per topology; cells that are too long are only in metrics.csv."""
    names = [name for name in (rows[0] if rows else ()) if not _is_long(name, rows)]
    text = [i for i, name in enumerate(names) if not all(is_number(row.get(name) or "0") for row in rows)]
    cells = [[short(row.get(name) or "") for name in names] for row in rows]
    return Table(names, cells, text=text, caption="Distributions and notes are in metrics.csv.")


def _is_long(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column is a hash, a note, a distribution, a status, or empty."""
    begins = {(row.get(name) or "")[:1] for row in rows}
    hidden = name in ("edge_hash", "notes", "status", "message")
    return hidden or begins == {""} or "{" in begins or _is_list(name, rows)


def _is_list(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column holds lists of more than a few entries; swept dimensions are shown."""
    return any((row.get(name) or "")[:1] == "[" and len(row[name]) > 40 for row in rows)


def flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of a JSON document as (path, text)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_number(text: str) -> bool:
    """Whether a cell is a finite number."""
    return math.isfinite(number({"": text}, ""))


def short(text: str) -> str:
    """A number with six digits; any other text as it is."""
    return f"{float(text):.6g}" if is_number(text) and len(text) > 7 else text


def plain(value: float) -> str:
    """A number with four digits; '' for none.

    >>> plain(0.123456), plain(12345.6), plain(math.nan)
    ('0.1235', '12346', '')
    """
    if not math.isfinite(value):
        return ""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def with_interval(point: Saturation) -> str:
    """Return a saturation point with its 95 % interval; an asymmetric interval is printed by its ends."""
    if math.isfinite(point.plus_minus) or not math.isfinite(point.low):
        return plus_minus(point.value, point.plus_minus)
    return f"{plain(point.value)} ({plain(point.low)} – {plain(point.high)})"


def plus_minus(mean: float, half: float) -> str:
    """Return a mean and the half-width of its interval, if known."""
    if not math.isfinite(mean):
        return ""
    return f"{plain(mean)} ± {float(f'{half:.2g}'):g}" if half > 0 else plain(mean)
