# SPDX-License-Identifier: Apache-2.0
"""The content of the pages of the scoreboard: a summary, and a page for each paper."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from flitlab.sim.config.reporting import ChoiceConfig, PublishedConfig, is_comparison
from flitlab.sim.experiment.published import Claim, Verdict
from flitlab.sim.experiment.scoreboard.file import ITEM
from flitlab.sim.experiment.scoreboard.rows import PAPERS, Row, Score, Value, first_sentence, in_words
from flitlab.sim.report.reproduction.blocks import (
    Block,
    Heading,
    Item,
    Items,
    Line,
    Link,
    Page,
    Paragraph,
    Picture,
    Strong,
    Table,
    Verbatim,
)

INTRODUCTION = (
    "What the papers say, what was measured here, and whether the two agree. Each row is a figure, a table or a "
    "section of a paper, with a configuration that runs it. A verdict follows from what the row states "
    "and the measured value alone:"
)

VERDICTS: tuple[Line, ...] = (
    (Strong("agrees"), ": a number that is within the tolerance of the row. Tolerances follow ± in the tables, the "
     "reason is in the note; where there is none, it is half a unit of the last digit."),
    (Strong("order agrees"), ": what the paper says in words, or what only tells what is larger, true or about the "
     "same. Numbers and orders are counted apart."),
    (Strong("differs: the paper slips"), ", or ", Strong("unpublished setting"), ": an experiment or a count, told "
     "in the note, shows that the paper contradicts itself, or that a setting which it does not give moves the value, "
     "this far or a part of the way."),
    (Strong("differs: unexplained"), ": what was tried to explain it is in the note."),
    (Strong("not comparable"), ": what was measured here is not the same thing, as the note says. It counts for "
     "nothing."),
)  # fmt: skip

PRACTICE = (
    "Settings that a paper does not give are chosen by us; they are listed, with what other choices give. These pages "
    "are written by `simrun reproduce`."
)

OUTCOMES = {
    Verdict.SLIP: "paper slips", Verdict.SETTING: "unpublished setting", Verdict.UNEXPLAINED: "unexplained",
    Verdict.NOT_COMPARABLE: "not comparable", Verdict.NOT_MEASURED: "not measured",
}  # fmt: skip
"""The verdicts of values that do not agree, as columns are headed."""

AGREEING = ("numbers that agree", "orders that agree")

WORST_FIRST = (Verdict.NOT_MEASURED, Verdict.UNEXPLAINED, Verdict.SETTING, Verdict.SLIP, Verdict.NOT_COMPARABLE)

SIGNS = {"about": "", "at_most": "at most ", "at_least": "at least ", "less_than": "below ", "greater_than": "above "}


def pages(rows: Sequence[Row]) -> list[Page]:
    """The summary, then the papers. rows: in order."""
    papers = [(name, list(part)) for name, part in groupby(rows, lambda row: row.file.paper)]
    return [_summary(rows, papers), *(_paper(name, part) for name, part in papers)]


def _summary(rows: Sequence[Row], papers: Sequence[tuple[str, list[Row]]]) -> Page:
    blocks: list[Block] = [Heading(1, "Reproduction"), Paragraph(INTRODUCTION)]
    blocks += [Items([Item(verdict) for verdict in VERDICTS]), Paragraph(PRACTICE)]
    score = Score.of(rows)
    shown = [outcome for outcome in OUTCOMES if score.having(outcome) or outcome is not Verdict.NOT_MEASURED]
    head = ["paper", "rows", *AGREEING, *(OUTCOMES[one] for one in shown), "failed rows"]
    counted = [_counts(Link(name.upper(), name), part, shown) for name, part in papers]
    titles = [Item((Link(name.upper(), name), f": {PAPERS[name]}")) for name, _ in papers if name in PAPERS]
    blocks += [Heading(2, "Score"), Table(head, [*counted, _counts(Strong("all"), rows, shown)])]
    blocks += [Items(titles)] if titles else []
    blocks += [Paragraph(_in_percent(score)), *_idle(rows)]
    head = ["row", "where", "published", "measured", "why"]
    if differing := list(_differing(rows)):
        blocks += [Heading(2, "What does not agree"), Table(head, differing)]
    if chosen := [(_link(row), choice.setting, choice.ours) for row in rows for choice in row.file.chosen]:
        note = "Settings that a paper does not give. What other choices give is on the page of the paper."
        blocks += [Heading(2, "Chosen by us"), Paragraph(note), Table(("row", "setting", "ours"), chosen)]
    return Page("", blocks)


def _counts(name: Line, rows: Sequence[Row], outcomes: Iterable[Verdict]) -> list[Line]:
    score = Score.of(rows)
    failed = str(sum(bool(row.problem) for row in rows))
    having = (str(score.having(outcome)) for outcome in outcomes)
    return [name, str(len(rows)), *(_together(score.ratio_text(kind)) for kind in Claim), *having, failed]


def _in_percent(score: Score) -> str:
    parts = [
        f"{score.agreeing(kind) / score.compared(kind):.0%} of the {kind}s agree".replace("%", " %")
        for kind in Claim if score.compared(kind)
    ]  # fmt: skip
    return f"{', '.join(parts)}." if parts else "Nothing has been compared."


def _idle(rows: Sequence[Row]) -> list[Block]:
    """Which rows have no values, and why not."""
    states = sorted({row.state for row in rows} - {""})
    return [Paragraph((f"{_capital(state)}: ", *_links(row for row in rows if row.state == state))) for state in states]


def _links(rows: Iterable[Row]) -> list[Link | str]:
    parts = [part for row in rows for part in (", ", _link(row))]
    return [*parts[1:], "."]


def _link(row: Row) -> Link:
    return Link(row.name, row.file.paper, row.name)


def _together(text: str) -> str:
    """A text that stays on one line."""
    return text.replace(" ", "\u00a0")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _differing(rows: Sequence[Row]) -> Iterable[list[Line]]:
    """A line for each value that does not agree, by verdict."""
    triples = [(row, *pair) for row in rows for pair in zip(row.values, _places(row.values), strict=True)]
    for outcome in WORST_FIRST:
        for row, value, place in triples:
            if value.verdict is outcome:
                why = first_sentence(_capital(value.entry.why))
                reason: Line = (Strong(OUTCOMES[outcome] + _of_order(value)), f": {why}" if why else "")
                yield [_link(row), place, *_numbers(value), reason]


def _places(values: Sequence[Value]) -> list[str]:
    """Where values are published, and of what, where the place does not say it."""
    scenarios = _scenarios(values) or [""] * len(values)
    pairs = zip(values, scenarios, strict=True)
    return [f"{value.entry.where} ({scenario})" if scenario else value.entry.where for value, scenario in pairs]


def _paper(name: str, rows: list[Row]) -> Page:
    title = f"{name.upper()}: {PAPERS[name]}" if name in PAPERS else name.upper()
    lines = [(_link(row), row.title, *_outcome(row)) for row in rows]
    blocks: list[Block] = [Heading(1, title, name), Paragraph(f"{_capital(in_words(rows))}.")]
    blocks.append(Table(("row", "what", *AGREEING), lines))
    return Page(name, [*blocks, *(block for row in rows for block in _section(row))])


def _outcome(row: Row) -> tuple[Line, Line]:
    if row.state:
        return Strong(row.state), "-"
    score = Score.of([row])
    return _together(score.ratio_text(Claim.NUMBER)), _together(score.ratio_text(Claim.ORDER))


def _section(row: Row) -> list[Block]:
    blocks: list[Block] = [Heading(2, row.name, row.name), *_about(row.file.about), Verbatim(row.command)]
    blocks.append(Paragraph((Strong(_capital(row.state or in_words([row]))), _origin(row))))
    if row.problem:
        blocks.append(Verbatim(row.problem))
    if row.ran is not None:
        blocks += [Picture(file, caption) for file, caption in row.ran.figures.items()]
    if row.values:
        blocks += _comparison(row.values)
    if row.file.chosen:
        blocks += [Paragraph(Strong("Chosen by us, as the paper does not say it:")), _choices(row.file.chosen)]
    return blocks


def _about(paragraphs: Sequence[str]) -> list[Block]:
    """Paragraphs; those in a row that are items make a list."""
    blocks: list[Block] = []
    for is_list, part in groupby(paragraphs, lambda text: text.startswith(ITEM)):
        if is_list:
            blocks.append(Items([Item(text.removeprefix(ITEM)) for text in part]))
        else:
            blocks += map(Paragraph, part)
    return blocks


def _origin(row: Row) -> str:
    """When and where it ran, at which size, in brackets."""
    ran = row.last
    if ran is None:
        return "."
    time = f"{ran.cpu_s:,.0f} s of CPU time" if ran.cpu_s else ""
    parts = ["full size" if ran.full else "quick version", time, ran.finished[:10], ran.machine]
    return f" ({', '.join(filter(None, parts))})."


def _comparison(values: Sequence[Value]) -> list[Block]:
    """A table, and below it the notes that it refers to: reasons, each once, with what was tried."""
    of_values = [_note(value.entry) for value in values]
    notes = list(dict.fromkeys(filter(None, of_values)))
    columns = {
        "where": [value.entry.where for value in values],
        "scenario": _scenarios(values),
        "published": [_numbers(value)[0] for value in values],
        "measured": [_numbers(value)[1] for value in values],
        "verdict": [_verdict(value) for value in values],
        "note": [str(notes.index(note) + 1) if note else "" for note in of_values if notes],
    }
    shown = {name: column for name, column in columns.items() if column}
    items = [Item(why, [f"Tried: {what}: {gives}" for what, gives in tried]) for why, tried in notes]
    return [Table(list(shown), list(zip(*shown.values(), strict=True))), *[Items(items, numbered=True)] * bool(items)]


def _verdict(value: Value) -> Line:
    return _together(value.verdict) if value.verdict.agrees else Strong(value.verdict + _of_order(value))


Note = tuple[str, tuple[tuple[str, str], ...]]
"""Why, and (what was tried, what it gave)."""


def _note(entry: PublishedConfig) -> Note | None:
    if not entry.why and not entry.tried:
        return None
    return _capital(entry.why) or "What was tried:", tuple((one.what, one.gives) for one in entry.tried)


def _of_order(value: Value) -> str:
    """What tells a difference that is no number's, as the two are counted apart."""
    return " (order)" if value.claim is Claim.ORDER else ""


def _scenarios(values: Sequence[Value]) -> list[str]:
    """What tells values apart that are of the same place of a paper; [] where the places do."""
    if len({value.entry.where for value in values}) == len(values):
        return []
    places = [(value.entry.where, value.scenario) for value in values]
    return [
        value.scenario if places.count(place) == 1 else f"{value.scenario}: `{value.quantity}`"
        for value, place in zip(values, places, strict=True)
    ]


def _numbers(value: Value) -> tuple[str, str]:
    """The published and the measured number as texts."""
    entry, measured = value.entry, value.measured
    if is_comparison(value.quantity) and entry.compare == "about" and {entry.value, measured} <= {0, 1}:
        holds = {0: "does not hold", 1: "holds"}
        return _together(holds[int(entry.value)]), _together(holds[int(measured or 0)])
    claimed = _together(f"{SIGNS[entry.compare]}{shown(entry.value)}{_margin(entry.tolerance)}")
    return claimed, "-" if measured is None else shown(measured)


def _margin(tolerance: float | str | None) -> str:
    """A tolerance, after the number that it is of.

    >>> _margin(1e-6), _margin("5%"), _margin(None)
    (' ± 0.000001', ' ± 5 %', '')
    """
    if isinstance(tolerance, str):
        return f" ± {tolerance.rstrip(' %')} %"
    return "" if tolerance is None else f" ± {tolerance:.12f}".rstrip("0").rstrip(".")


def shown(number: float) -> str:
    """A number as short as it can be without misleading.

    >>> shown(0.123456), shown(12345.6), shown(3.0)
    ('0.12346', '12,346', '3')
    """
    return f"{number:.5g}" if abs(number) < 1e4 else f"{number:,.0f}"


def _choices(choices: Sequence[ChoiceConfig]) -> Table:
    lines: list[list[Line]] = [
        [
            choice.setting,
            choice.ours,
            _capital(choice.why),
            "; ".join(f"{one.what}: {one.gives}" for one in choice.others),
        ]
        for choice in choices
    ]
    return Table(("setting", "ours", "why", "other choices, and what they give"), lines)
