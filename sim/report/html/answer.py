# SPDX-License-Identifier: Apache-2.0
"""What a run found, in one sentence: the share of its ceiling that each scenario reaches."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from flitlab.fluid.kinds.spec import kind_of
from flitlab.sim.experiment.saturation import ceiling_of
from flitlab.sim.measure.rows import number
from flitlab.sim.measure.saturation import Saturation, saturation
from flitlab.sim.report.figures.collectives import BySize
from flitlab.sim.report.folder.budget import loss_budgets
from flitlab.sim.report.folder.budget import sentence as sentence_of
from flitlab.sim.report.folder.names import Names
from flitlab.sim.report.folder.run import Run

MAX_NAMED = 4
"""The most scenarios that are all named; of more, the best and the worst."""

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
    return known if least is None or not point.ended else _with_efficiency(known, point, least.upper)


def _with_efficiency(known: ScenarioSummary, point: Saturation, ceiling: float) -> ScenarioSummary:
    if math.isfinite(point.value):
        share, text = point.value / ceiling, percent(point.value / ceiling)
    else:
        share, text = point.lower / ceiling, f"at least {percent(point.lower / ceiling)}"
    return ScenarioSummary(**{**known.__dict__, "share": share, "efficiency": text})


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
    """Return the result of the run in one or two sentences; '' if there is none."""
    of_points = [_of_budgets(run), _of_collectives(run), _of_programs(run), _of_sweep(run, summaries), _of_flows(run)]
    parts = [*of_points, _of_relative(run), _of_search(run), _of_ceilings(run, summaries)]
    first = next(filter(None, parts), "")
    return " ".join(filter(None, (first, _of_published(run))))


def _of_budgets(run: Run) -> str:
    """The largest loss of each scenario, and what would recover it."""
    sentences = {budget.scenario: sentence_of(budget) for budget in loss_budgets(run.tables)}
    names, told = Names(run.scenarios), {scenario: said for scenario, said in sentences.items() if said}
    if len(told) > MAX_NAMED:
        return ""
    return " ".join(f"{names[scenario]}: {said}" if len(told) > 1 else said for scenario, said in told.items())


def _of_sweep(run: Run, summaries: Sequence[ScenarioSummary]) -> str:
    shares = {s.scenario: s for s in summaries if math.isfinite(s.share)}
    if not shares:
        stable = {s.scenario: s for s in summaries if s.between}
        if not stable:
            return ""
        texts = {name: f"at load {s.between}" for name, s in stable.items()}
        told = _enumerated(run, {name: s.value for name, s in stable.items()}, texts, "ends", "range")
        return f"Stable traffic: {told}; no ceiling is known to compare that with."
    told = _enumerated(run, {k: s.share for k, s in shares.items()}, {k: s.efficiency for k, s in shares.items()})
    kinds = {s.name for s in shares.values()}
    of = kind_of(kinds.pop()).share if len(kinds) == 1 else "Of their certified ceilings"
    return f"{of}, {told} before saturation."


def _enumerated(
    run: Run, values: dict[str, float], texts: dict[str, str], verb: str = "reaches", plural: str = "reach"
) -> str:
    """Each value if there are few, else the least and the greatest."""
    names = Names(run.scenarios)
    if len(values) == 1:
        return f"this scenario {verb} {next(iter(texts.values()))}"
    if len(values) <= MAX_NAMED:
        clauses = [f"{names[name]} {verb if i == 0 else ''} {text}".replace("  ", " ")
                for i, (name, text) in enumerate(texts.items())]  # fmt: skip
        return ", ".join(clauses[:-1]) + " and " + clauses[-1]
    known = {name: value for name, value in values.items() if math.isfinite(value)} or values
    low, high = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    return f"{len(values)} scenarios {plural} from {texts[low]} ({names[low]}) to {texts[high]} ({names[high]})"


def _of_programs(run: Run) -> str:
    """How much of the time of programs the lower bounds explain, and their relative performance."""
    shares, faster = _by_scenario(run, "efficiency"), _by_scenario(run, "relative_performance")
    if not run.of_programs or not shares:
        return ""
    told = _enumerated(run, shares, _percents(shares), "reaches", "range")
    parts = [f"Lower bound over measured time (no routing could do better than 100\xa0%): {told}."]
    if others := {name: value for name, value in faster.items() if abs(value - 1) > 1e-12}:
        texts = {name: f"{value:.2f}" for name, value in others.items()}
        mean = f", {fmean(others.values()):.2f} on average" if len(others) > 1 else ""
        parts.append(
            f"Performance relative to the reference: {_enumerated(run, others, texts, 'reaches', 'range')}{mean}."
        )
    return " ".join(parts)


def _of_collectives(run: Run) -> str:
    """The share of the bound that the best algorithm reaches, at the largest size of each network and collective."""
    by = BySize(run)
    best: dict[str, float] = {}
    algorithm: dict[str, str] = {}
    for panel in by.panels if run.of_collectives else ():
        rows = by.of(panel)
        largest = max(number(row, "size_bytes") for row in rows)
        for row in rows:
            share = number(row, "efficiency")
            if number(row, "size_bytes") == largest and share > best.get(panel, 0.0):
                best[panel], algorithm[panel] = share, row.get("algorithm") or ""
    if not best:
        return ""
    if len(best) > MAX_NAMED:
        low, high = min(best, key=best.__getitem__), max(best, key=best.__getitem__)
        told = f"{percent(best[low])} ({low}, {algorithm[low]}) to {percent(best[high])} ({high}, {algorithm[high]})"
    else:
        told = ", ".join(
            f"{percent(share)} by {algorithm[panel]}{f' ({panel})' if panel else ''}" for panel, share in best.items()
        )
    return f"Of what any algorithm could reach at the largest size, the best one reaches {told}."


def _percents(shares: dict[str, float]) -> dict[str, str]:
    return {name: percent(share) for name, share in shares.items()}


def _by_scenario(run: Run, column: str) -> dict[str, float]:
    """Means over replicates, by scenario."""
    values: dict[str, list[float]] = {}
    for row in run.rows:
        if math.isfinite(value := number(row, column)):
            values.setdefault(row.get("scenario") or "", []).append(value)
    return {name: fmean(some) for name, some in values.items()}


def _of_flows(run: Run) -> str:
    """Long-lived flows: the throughput of the worst-served pair, and the mean over hosts."""
    least, equal = _by_scenario(run, "efficiency"), _by_scenario(run, "host_throughput_mcf")
    if not run.of_flows or not least:
        return ""
    told = _enumerated(run, least, _percents(least))
    fair = _by_scenario(run, "mmf_drawn")
    beside = (
        "that of the max-min fair rates over the same paths" if fair
        else "that of those equal rates, which a mean of unequal ones may exceed"
    )  # fmt: skip
    hosts, rates = _by_scenario(run, "host_throughput"), fair or equal
    over = {name: hosts[name] / rates[name] for name in rates if name in hosts and rates[name]}
    mean = _enumerated(run, over, {name: f"{value:.2f}" for name, value in over.items()})
    return (
        f"Of what the maximum concurrent flow gives to every pair of hosts, the worst-served pair: {told}. "
        f"Mean throughput of hosts over {beside}: {mean}."
    )


def _of_column(run: Run, column: str) -> dict[str, float]:
    values = {row.get("scenario") or "": number(row, column) for row in run.metrics}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _of_relative(run: Run) -> str:
    shares = _of_column(run, "relative")
    told = shares and _enumerated(run, shares, {name: percent(value) for name, value in shares.items()})
    return f"Of the throughput of random graphs built of the same equipment, {told}." if told else ""


def _of_search(run: Run) -> str:
    largest = _of_column(run, "found") if run.manifest.get("experiment") == "search" else {}
    told = largest and _enumerated(
        run, largest, {name: f"{value:g}" for name, value in largest.items()}, "has", "range"
    )
    return f"The largest value that passes: {told}." if told else ""


def _of_ceilings(run: Run, summaries: Sequence[ScenarioSummary]) -> str:
    if run.rows:
        return ""
    of = {s.scenario: ceiling_of(run.ceiling_columns(s.scenario), ["mcf"]) for s in summaries}
    known = {scenario: ceiling.upper for scenario, ceiling in of.items() if ceiling is not None}
    told = known and _enumerated(run, known, {name: f"{value:.4g}" for name, value in known.items()}, "is at", "range")
    return f"The maximum concurrent flow θ: {told}." if told else ""


def _of_published(run: Run) -> str:
    if not run.published:
        return ""
    verdicts = Counter(row.get("verdict") or "unknown" for row in run.published)
    told = ", ".join(f"{count} {PLURAL.get(verdict, verdict)}" for verdict, count in verdicts.most_common())
    return f"Of {len(run.published)} published values: {told}."
