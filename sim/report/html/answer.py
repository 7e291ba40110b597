# SPDX-License-Identifier: Apache-2.0
"""The answer of a run in a sentence with numbers: the best and the worst scenario by name, beside their bound."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from flitlab.fluid.kinds.spec import kind_of
from flitlab.models.mappings import Row
from flitlab.sim.experiment.saturation import ceiling_of
from flitlab.sim.measure.rows import number
from flitlab.sim.measure.saturation import saturation
from flitlab.sim.report.figures.collectives import BySize
from flitlab.sim.report.folder.budget import loss_budgets
from flitlab.sim.report.folder.budget import sentence as sentence_of
from flitlab.sim.report.folder.names import Names
from flitlab.sim.report.folder.run import Run

FEW = 4
"""Panels of collectives beyond which only the best and the worst are named."""

PLURAL = {
    "agrees": "agree", "order agrees": "agree in order", "differs: the paper slips": "differ as the paper slips",
    "differs: unpublished setting": "differ by an unpublished setting", "differs: unexplained": "differ unexplained",
}  # fmt: skip
"""Verdicts of several values."""

NARROW = 0.02
"""Relative width below which a certified interval is printed as one number."""


@dataclass(frozen=True)
class ScenarioSummary:
    """The saturation point of a scenario, in loads, and its share of the ceiling; texts are '' where unknown.

    value: saturation point, NaN where unknown. name: of the ceiling. share: value / ceiling.
    """

    scenario: str
    value: float = math.nan
    name: str = ""
    share: float = math.nan
    between: str = ""
    ceiling: str = ""
    efficiency: str = ""


def scenario_summaries(run: Run) -> list[ScenarioSummary]:
    """Return a summary of each scenario."""
    return [_summary(run, scenario) for scenario in run.scenarios]


def _summary(run: Run, scenario: str) -> ScenarioSummary:
    least = ceiling_of(run.ceiling_columns(scenario))
    ceiling = "" if least is None else f"{least.name} {_interval(least.lower, least.upper)}"
    rows = [row for row in run.rows if row.get("scenario") == scenario and row.get("load") and row.get("seed")]
    point = saturation(rows, run.limit(scenario))
    if point is None or not point.upper:
        return ScenarioSummary(scenario, ceiling=ceiling)
    between = f"{point.lower:.4g} – {point.upper:.4g}" if math.isfinite(point.upper) else f"above {point.lower:.4g}"
    name = "" if least is None else least.name
    known = ScenarioSummary(scenario, point.value, name, between=between, ceiling=ceiling)
    if least is None or not point.ended:
        return known
    is_known = math.isfinite(point.value)
    share = (point.value if is_known else point.lower) / least.upper
    return replace(known, share=share, efficiency=percent(share) if is_known else f"at least {percent(share)}")


def _interval(lower: float, upper: float) -> str:
    if upper - lower <= NARROW * upper:
        return f"{upper:.4g}"
    return f"{lower:.4g} – {upper:.4g}"


def percent(share: float, digits: int = 0) -> str:
    """
    A share in percent, with a space that does not break.

    >>> percent(0.6789), percent(0.00012, 2)
    ('68\\xa0%', '0.01\\xa0%')
    """
    return f"{100 * share:.{digits}f}\xa0%"


def sentence(run: Run, summaries: Sequence[ScenarioSummary]) -> str:
    """The answer of a run, for the first screen of its report; '' if it has none."""
    answers = (
        _of_budgets(run), _of_collectives(run), _of_programs(run), _of_sweep(run, summaries), _of_flows(run),
        _of_completion(run), _of_relative(run), _of_search(run), _of_ceilings(run, summaries),
    )  # fmt: skip
    first = next(filter(None, answers), "")
    return " ".join(filter(None, (first, _of_published(run))))


def _best_and_worst(
    run: Run, values: Mapping[str, float], clause: Callable[[str], str], short: Callable[[str], str] | None = None,
    lowest_is_best: bool = False,
) -> str:  # fmt: skip
    """A sentence about one scenario, or about the best and the worst by name; '' if there is none.

    values: by scenario. clause: what is said of a scenario, a verb first. short: the same of the worst, without what
    the clause of the best has explained.
    """
    known = {name: value for name, value in values.items() if math.isfinite(value)} or dict(values)
    if not known:
        return ""
    names = Names(run.scenarios)
    best, worst = (choose(known, key=known.__getitem__) for choose in (max, min)[:: -1 if lowest_is_best else 1])
    if len(known) == 1:
        return f"{names[best] or 'This scenario'} {clause(best)}."
    return (
        f"{names[best]} {clause(best)}, the best of {len(known)}; {names[worst]} {(short or clause)(worst)}, the worst."
    )


def _of_budgets(run: Run) -> str:
    """The largest loss of each scenario, and what would recover it; of many, of the best and the worst."""
    names = Names(run.scenarios)
    sentences = {budget.scenario: sentence_of(budget, names[budget.scenario]) for budget in loss_budgets(run.tables)}
    if len(sentences) <= FEW:
        return " ".join(filter(None, sentences.values()))
    loads = {budget.scenario: number(switch, "percent") for budget in loss_budgets(run.tables)
             if (switch := budget.level("switch")) is not None}  # fmt: skip
    ends = (max(loads, key=loads.__getitem__), min(loads, key=loads.__getitem__)) if loads else ()
    return " ".join(f"{word}: {sentences[name]}" for word, name in zip(("Best", "Worst"), ends, strict=False))


def _of_sweep(run: Run, summaries: Sequence[ScenarioSummary]) -> str:
    shares = {s.scenario: s for s in summaries if math.isfinite(s.share)}
    if not shares:
        stable = {s.scenario: s for s in summaries if s.between}
        if not stable:
            return ""
        values = {name: s.value for name, s in stable.items()}
        text = _best_and_worst(run, values, lambda name: f"is stable up to load {stable[name].between}")
        return f"{text} No ceiling is known to compare that with."
    kinds = {s.name for s in shares.values()}
    of = kind_of(kinds.pop()).share.removeprefix("Of ") if len(kinds) == 1 else "their certified ceilings"

    def load(name: str) -> str:
        return f" (saturation at {shares[name].value:.3g})" if math.isfinite(shares[name].value) else ""

    saturated = {name: s.share for name, s in shares.items() if math.isfinite(s.value)}
    if len(shares) == 1 or len(saturated) == len(shares):
        return _best_and_worst(
            run, {name: s.share for name, s in shares.items()},
            lambda name: f"reaches {shares[name].efficiency} of {of}{load(name)}",
            lambda name: f"reaches {shares[name].efficiency}{load(name)}",
        )  # fmt: skip
    open_shares = [s.share for name, s in shares.items() if name not in saturated]
    verbs = ("has", "carries") if len(open_shares) == 1 else ("have", "carry")
    text = (
        f"{len(open_shares)} of {len(shares)} scenarios {verbs[0]} no saturation point at these loads, and {verbs[1]} "
        f"at least {percent(min(open_shares))} of {of}"
    )
    if not saturated:
        return f"{text}."
    worst = min(saturated, key=saturated.__getitem__)
    return f"{text}; {Names(run.scenarios)[worst]} has one, and reaches {shares[worst].efficiency}{load(worst)}."


def _of_programs(run: Run) -> str:
    """How much of the time of programs the lower bounds explain, and their relative performance."""
    shares, faster = _by_scenario(run, "efficiency"), _by_scenario(run, "relative_performance")
    if not run.of_programs or not shares:
        return ""
    times = _by_scenario(run, "makespan_ns")

    def time(name: str) -> str:
        return f" ({times[name] / 1e6:.4g} ms)" if name in times else ""

    parts = [_best_and_worst(
        run, shares,
        lambda name: f"reaches {percent(shares[name])} of the speed that any routing could reach{time(name)}",
        lambda name: f"reaches {percent(shares[name])}{time(name)}",
    )]  # fmt: skip
    if others := {name: value for name, value in faster.items() if abs(value - 1) > 1e-12}:
        mean = f" The mean of {len(others)} is {fmean(others.values()):.2f}." if len(others) > 1 else ""
        clause = _best_and_worst(
            run, others, lambda name: f"has {others[name]:.2f} times the performance of its reference",
            lambda name: f"has {others[name]:.2f} times",
        )  # fmt: skip
        parts.append(f"{clause}{mean}")
    return " ".join(parts)


def _of_collectives(run: Run) -> str:
    """The fastest algorithm at the largest size of each network and collective, its time and its share of the bound."""
    by = BySize(run)
    fastest: dict[str, Row] = {}
    for panel in by.panels if run.of_collectives else ():
        rows = [row for row in by.of(panel) if math.isfinite(number(row, "efficiency"))]
        largest = max((number(row, "size_bytes") for row in rows), default=0.0)
        of_largest = [row for row in rows if number(row, "size_bytes") == largest]
        if of_largest:
            fastest[panel] = min(of_largest, key=lambda row: number(row, "time_ns"))
    if len(fastest) > FEW:
        share = {panel: number(row, "efficiency") for panel, row in fastest.items()}
        fastest = {
            panel: fastest[panel] for panel in (max(share, key=share.__getitem__), min(share, key=share.__getitem__))
        }
    clauses = [
        f"{f'{panel}: ' if panel else ''}{row.get('algorithm')} is fastest, {number(row, 'time_ns') / 1e3:.4g} µs "
        f"for {_bytes(number(row, 'size_bytes'))}, {percent(number(row, 'efficiency'))} of the speed that any "
        "algorithm could reach"
        for panel, row in fastest.items()
    ]
    return f"{'; '.join(clauses)}." if clauses else ""


def _bytes(size: float) -> str:
    """A size in the largest binary unit that keeps it whole.

    >>> _bytes(65536), _bytes(2**20), _bytes(1000)
    ('64 KiB', '1 MiB', '1000 B')
    """
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def _by_scenario(run: Run, column: str) -> dict[str, float]:
    """Means over replicates, by scenario."""
    values: dict[str, list[float]] = {}
    for row in run.rows:
        if math.isfinite(value := number(row, column)):
            values.setdefault(row.get("scenario") or "", []).append(value)
    return {name: fmean(replicates) for name, replicates in values.items()}


def _of_flows(run: Run) -> str:
    """Shares of the NIC's rate that long-lived flows deliver, and what the worst-served pair gets."""
    hosts, least = _by_scenario(run, "host_throughput"), _by_scenario(run, "efficiency")
    if not run.of_flows or not least:
        return ""
    fair = _by_scenario(run, "mmf_drawn")

    def beside(name: str) -> str:
        return f" (max-min fair over the same paths: {percent(fair[name])})" if name in fair else ""

    return _best_and_worst(
        run, {name: hosts[name] for name in least if name in hosts},
        lambda name: f"delivers {percent(hosts[name])} of the NIC rate to hosts on average{beside(name)}, and "
        f"{percent(least[name])} of its maximum concurrent flow to the worst-served pair",
        lambda name: f"delivers {percent(hosts[name])}{beside(name)}, and {percent(least[name])} to that pair",
    )  # fmt: skip


def _of_completion(run: Run) -> str:
    """Completion times of flows that end."""
    means, slowdowns = _by_scenario(run, "fct_ms_mean"), _by_scenario(run, "slowdown_mean")
    last, bounds = _by_scenario(run, "fct_ms_max"), _by_scenario(run, "fct_ms_bound")
    if not run.of_flows or not means:
        return ""

    def clause(name: str) -> str:
        times = f"completes flows in {means[name]:.4g} ms on average"
        slower = f", {slowdowns[name]:.3g} times their uncontended time" if name in slowdowns else ""
        bound = (
            f" ({percent(bounds[name] / last[name])} of the speed that any routing could reach)"
            if name in bounds
            else ""
        )
        return f"{times}{slower}{f', the last after {last[name]:.4g} ms{bound}' if name in last else ''}"

    return _best_and_worst(run, means, clause, lowest_is_best=True)


def _of_column(run: Run, column: str) -> dict[str, float]:
    values = {row.get("scenario") or "": number(row, column) for row in run.metrics}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _of_relative(run: Run) -> str:
    shares = _of_column(run, "relative")
    return _best_and_worst(
        run, shares,
        lambda name: f"has {percent(shares[name])} of the throughput of random graphs of the same equipment",
        lambda name: f"has {percent(shares[name])}",
    )  # fmt: skip


def _of_search(run: Run) -> str:
    largest = _of_column(run, "found") if run.manifest.get("experiment") == "search" else {}
    return _best_and_worst(run, largest, lambda name: f"passes up to {largest[name]:g}")


def _of_ceilings(run: Run, summaries: Sequence[ScenarioSummary]) -> str:
    if run.rows:
        return ""
    of = {s.scenario: ceiling_of(run.ceiling_columns(s.scenario), ["mcf"]) for s in summaries}
    upper = {scenario: ceiling.upper for scenario, ceiling in of.items() if ceiling is not None}
    return _best_and_worst(
        run, upper, lambda name: f"carries at most load {upper[name]:.4g} by any routing (maximum concurrent flow)",
        lambda name: f"carries at most {upper[name]:.4g}",
    )  # fmt: skip


def _of_published(run: Run) -> str:
    if not run.published:
        return ""
    verdicts = Counter(row.get("verdict") or "unknown" for row in run.published)
    counts = ", ".join(f"{count} {PLURAL.get(verdict, verdict)}" for verdict, count in verdicts.most_common())
    return f"Of {len(run.published)} published values: {counts}."
