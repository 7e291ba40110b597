# SPDX-License-Identifier: Apache-2.0
"""The pages of the scoreboard: a summary and a page for each paper, in Markdown, and all of it in one file of HTML."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markupsafe import Markup

from flitlab.models.files import replace_file
from flitlab.sim.config.reporting import ChoiceConfig, PublishedConfig, is_comparison
from flitlab.sim.experiment.published import Claim, Verdict
from flitlab.sim.experiment.scoreboard.file import ITEM
from flitlab.sim.experiment.scoreboard.rows import PAPERS, Row, Score, Value, first_sentence, in_words
from flitlab.sim.report.html.shell import data_uri, render

FIGURES = "figures/reproduction"
"""Where the figures of the rows are, beside the summary."""

SPECIAL = re.compile(r"([\\*\[\]#|]|\b_|_\b)")
"""Characters that Markdown obeys."""

INTRODUCTION = (
    "What the papers say, what was measured here, and whether the two agree. Each row is a figure, a table or a "
    "section of a paper, with a configuration that runs it. A verdict follows from what the row states "
    "and the measured value alone:"
)

VERDICTS = {
    "**agrees**": ": a number that is within the tolerance of the row. Tolerances follow ± in the tables, the reason "
    "is in the note; where there is none, it is half a unit of the last digit.",
    "**order agrees**": ": what the paper says in words, or what only tells what is larger, true or about the same. "
    "Numbers and orders are counted apart.",
    "**differs: the paper slips**, or **unpublished setting**": ": an experiment or a count, told in the note, shows "
    "that the paper contradicts itself, or that a setting which it does not give moves the value, this far or a part "
    "of the way.",
    "**differs: unexplained**": ": what was tried to explain it is in the note.",
    "**not comparable**": ": what was measured here is not the same thing, as the note says, or a quick version is too "
    "small to show what the full size does. It counts for nothing.",
}
"""Verdict -> its meaning."""

PRACTICE = (
    "Settings that a paper does not give are chosen by us; they are listed, with what other choices give. These pages "
    "are written by `simrun reproduce`; `simrun reproduce mut-f05 --network FILE` measures a network of your own "
    "beside those of a row."
)

OUTCOMES = {
    Verdict.SLIP: "paper slips", Verdict.SETTING: "unpublished setting", Verdict.UNEXPLAINED: "unexplained",
    Verdict.NOT_COMPARABLE: "not comparable", Verdict.NOT_MEASURED: "not measured",
}  # fmt: skip
"""The verdicts of values that do not agree, as columns are headed."""

AGREEING = ("numbers that agree", "orders that agree")

WORST_FIRST = (Verdict.NOT_MEASURED, Verdict.UNEXPLAINED, Verdict.SETTING, Verdict.SLIP, Verdict.NOT_COMPARABLE)

SIGNS = {"about": "", "at_most": "at most ", "at_least": "at least ", "less_than": "below ", "greater_than": "above "}


def pages(rows: Sequence[Row]) -> dict[str, str]:
    """The text of the summary, whose name is '', and of the pages of papers, by name. rows: in order."""
    papers = {name: list(part) for name, part in groupby(rows, lambda row: row.file.paper)}
    blocks = {"": _summary(rows, papers)} | {name: _paper(name, part) for name, part in papers.items()}
    return {name: "\n\n".join(part) + "\n" for name, part in blocks.items()}


def escaped(text: str) -> str:
    """A text without any mark-up, in Markdown."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), ("\u00a0", "&nbsp;")):
        text = text.replace(character, entity)
    return SPECIAL.sub(r"\\\1", text)


def _line(text: str) -> str:
    """A text in which backquotes stand around code, in one line."""
    parts = re.split(r"`+", re.sub("[ \t\n]+", " ", text))
    return "".join(f"`{part}`" if i % 2 else escaped(part) for i, part in enumerate(parts))


def _strong(text: str) -> str:
    return f"**{escaped(text)}**"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def _verbatim(text: str) -> str:
    return f"```text\n{text}\n```"


def _link(row: Row, page: str = "") -> str:
    """A link to the section of a row. page: the file, if that is another one."""
    return f"[{escaped(row.name)}]({page}#{row.name})"


def _on_page(row: Row) -> str:
    """A link from the summary to the section of a row."""
    return _link(row, address(row.file.paper))


def address(paper: str) -> str:
    """The file of the page of a paper, beside the summary."""
    return f"reproduction/{paper}.md"


def _summary(rows: Sequence[Row], papers: Mapping[str, list[Row]]) -> list[str]:
    blocks = ["# Reproduction", _line(INTRODUCTION)]
    blocks += [_items(verdict + _line(meaning) for verdict, meaning in VERDICTS.items()), _line(PRACTICE)]
    score = Score.of(rows)
    shown = [outcome for outcome in OUTCOMES if score.having(outcome) or outcome is not Verdict.NOT_MEASURED]
    head = ["paper", "rows", *AGREEING, *(OUTCOMES[one] for one in shown), "failed rows"]
    links = {name: f"[{escaped(name.upper())}]({address(name)})" for name in papers}
    counted = [_counts(links[name], part, shown) for name, part in papers.items()]
    titles = [f"{links[name]}{_line(f': {PAPERS[name]}')}" for name in papers if name in PAPERS]
    blocks += ["## Score", _table(head, [*counted, _counts(_strong("all"), rows, shown)])]
    blocks += [_items(titles)] if titles else []
    blocks += [_line(_in_percent(score)), *_idle(rows)]
    if differing := list(_differing(rows)):
        blocks += ["## What does not agree", _table(("row", "where", "published", "measured", "why"), differing)]
    if chosen := [
        (_on_page(row), _line(choice.setting), _line(choice.ours)) for row in rows for choice in row.file.chosen
    ]:
        note = "Settings that a paper does not give. What other choices give is on the page of the paper."
        blocks += ["## Chosen by us", note, _table(("row", "setting", "ours"), chosen)]
    return blocks


def _counts(name: str, rows: Sequence[Row], outcomes: Iterable[Verdict]) -> list[str]:
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


def _idle(rows: Sequence[Row]) -> list[str]:
    """Which rows have no values, and why not."""
    states = sorted({row.state for row in rows} - {""})
    of = {state: ", ".join(_on_page(row) for row in rows if row.state == state) for state in states}
    return [f"{_line(f'{_capital(state)}: ')}{links}." for state, links in of.items()]


def _together(text: str) -> str:
    """A text that stays on one line."""
    return _line(text).replace(" ", "&nbsp;")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _differing(rows: Sequence[Row]) -> Iterable[list[str]]:
    """A line for each value that does not agree, by verdict."""
    triples = [(row, *pair) for row in rows for pair in zip(row.values, _places(row.values), strict=True)]
    for outcome in WORST_FIRST:
        for row, value, place in triples:
            if value.verdict is outcome:
                why = first_sentence(_capital(value.entry.why))
                reason = _strong(OUTCOMES[outcome] + _of_order(value)) + _line(f": {why}" if why else "")
                yield [_on_page(row), _line(place), *_numbers(value), reason]


def _places(values: Sequence[Value]) -> list[str]:
    """Where values are published, and of what, where the place does not say it."""
    scenarios = _scenarios(values) or [""] * len(values)
    pairs = zip(values, scenarios, strict=True)
    return [f"{value.entry.where} ({scenario})" if scenario else value.entry.where for value, scenario in pairs]


def _paper(name: str, rows: list[Row]) -> list[str]:
    title = f"{name.upper()}: {PAPERS[name]}" if name in PAPERS else name.upper()
    lines = [(_link(row), _line(row.title), *_outcome(row)) for row in rows]
    blocks = [f"# {escaped(title)}", _line(f"{_capital(in_words(rows))}."), _table(("row", "what", *AGREEING), lines)]
    return [*blocks, *(block for row in rows for block in _section(row))]


def _outcome(row: Row) -> tuple[str, str]:
    if row.state:
        return _strong(row.state), "-"
    score = Score.of([row])
    return _together(score.ratio_text(Claim.NUMBER)), _together(score.ratio_text(Claim.ORDER))


def _section(row: Row) -> list[str]:
    blocks = [f"## {escaped(row.name)}", *_about(row.file.about), _verbatim(row.command)]
    blocks.append(_strong(_capital(row.state or in_words([row]))) + _line(_origin(row)))
    if row.problem:
        blocks.append(_verbatim(row.problem))
    if row.ran is not None:
        blocks += [f"![{escaped(caption)}](../{FIGURES}/{file})" for file, caption in row.ran.figures.items()]
    if row.values:
        blocks += _comparison(row.values)
    if row.file.chosen:
        blocks += [_strong("Chosen by us, as the paper does not say it:"), _choices(row.file.chosen)]
    return blocks


def _about(paragraphs: Sequence[str]) -> list[str]:
    """Paragraphs; those in a row that are items make a list."""
    blocks: list[str] = []
    for is_list, part in groupby(paragraphs, lambda text: text.startswith(ITEM)):
        if is_list:
            blocks.append(_items(_line(text.removeprefix(ITEM)) for text in part))
        else:
            blocks += map(_line, part)
    return blocks


def _origin(row: Row) -> str:
    """When and where it ran, at which size, in brackets."""
    ran = row.last
    if ran is None:
        return "."
    time = f"{ran.cpu_s:,.0f} s of CPU time" if ran.cpu_s else ""
    parts = ["full size" if ran.full else "quick version", time, ran.finished[:10], ran.machine]
    return f" ({', '.join(filter(None, parts))})."


def _comparison(values: Sequence[Value]) -> list[str]:
    """A table, and below it the notes that it refers to: reasons, each once, with what was tried."""
    of_values = [_note(value.entry) for value in values]
    notes = list(dict.fromkeys(filter(None, of_values)))
    columns = {
        "where": [_line(value.entry.where) for value in values],
        "scenario": list(map(_line, _scenarios(values))),
        "published": [_numbers(value)[0] for value in values],
        "measured": [_numbers(value)[1] for value in values],
        "verdict": [_verdict(value) for value in values],
        "note": [str(notes.index(note) + 1) if note else "" for note in of_values if notes],
    }
    shown = {name: column for name, column in columns.items() if column}
    items = "\n".join(
        "\n".join([f"{i}. {_line(why)}", *(f"    * {_line(f'Tried: {what}: {gives}')}" for what, gives in tried)])
        for i, (why, tried) in enumerate(notes, 1)
    )
    return [_table(list(shown), list(zip(*shown.values(), strict=True))), *[items] * bool(items)]


def _verdict(value: Value) -> str:
    return _together(value.verdict) if value.verdict.agrees else _strong(value.verdict + _of_order(value))


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
    return claimed, "-" if measured is None else _line(shown(measured))


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


def _choices(choices: Sequence[ChoiceConfig]) -> str:
    lines = [
        (
            _line(choice.setting), _line(choice.ours), _line(_capital(choice.why)),
            _line("; ".join(f"{one.what}: {one.gives}" for one in choice.others)),
        )
        for choice in choices
    ]  # fmt: skip
    return _table(("setting", "ours", "why", "other choices, and what they give"), lines)


def texts(rows: Sequence[Row]) -> dict[str, str]:
    """The pages in Markdown: file -> text. rows: in order."""
    return {address(name) if name else "reproduction.md": text for name, text in pages(rows).items()}


def write(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Writes the pages of rows, which are in order; the files of the summary and of all in one."""
    (folder / "reproduction").mkdir(parents=True, exist_ok=True)
    for name, text in texts(rows).items():
        replace_file(folder / name, text)
    whole = folder / "reproduction.html"
    replace_file(whole, _whole(pages(rows), folder / FIGURES))
    return [folder / "reproduction.md", whole]


def _whole(markdown: Mapping[str, str], figures: Path) -> str:
    """All pages in one self-contained file of HTML. markdown: pages by name. figures: the folder that holds them."""
    parts = [_rendered(name, text, figures) for name, text in markdown.items()]
    return render("reproduction.html", title="Reproduction", body=Markup("\n").join(parts))


def _rendered(name: str, text: str, figures: Path) -> Markup:
    """A page as HTML, with links that lead to headings of the same file, and pictures that it holds."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = "".join(part.content for part in tokens[i + 1].children or ())
            token.attrSet("id", name if token.tag == "h1" else heading)
    for part in chain.from_iterable(token.children or () for token in tokens):
        if part.type == "link_open":
            page, _, anchor = str(part.attrGet("href")).partition("#")
            part.attrSet("href", f"#{anchor or PurePosixPath(page).stem}")
        elif part.type == "image":
            file = figures / PurePosixPath(str(part.attrGet("src"))).name
            if file.exists():
                part.attrSet("src", data_uri(file))
            else:
                part.type, part.content = "text", ""
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))
