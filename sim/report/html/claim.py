# SPDX-License-Identifier: Apache-2.0
"""``write(verdict, folder)``: one self-contained page on a claim, with the proofs of its verdict."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from flitlab.models.files import read_file
from flitlab.sim.judge.quantity import at_least, at_most
from flitlab.sim.judge.verdict import Check, Verdict
from flitlab.sim.judge.witness import Witness
from flitlab.sim.report.html.shell import write_page
from flitlab.sim.report.html.tables import folded, plain, table

CAPTION = (
    "A limit is in the unit of what is reported, and the share is that of the limit; of a latency it is the least one "
    "over the one reported. Delivered is the part of the reported load that arrives."
)
CHECK = (
    "A verifier that shares nothing with the solvers has confirmed every certificate before this page was written. "
    "witness-N.npz holds all lengths of the N-th."
)


def write(verdict: Verdict, folder: Path, figure: Path | None) -> Path:
    """Write ``folder/judge.html``; figure: a picture (PNG or SVG) to show. Raises ``OSError``."""
    sections = [
        ("numbers", "The numbers", _numbers(verdict.checks)), ("figure", "Shares of the limits", _picture(figure)),
        ("proofs", "What proves it", _proofs(verdict.checks)), ("deadlock", "Deadlock", _deadlock(verdict)),
        ("assumed", "What is assumed", _list(verdict.claim.assumed)),
        ("claim", "The claim", f'<pre tabindex="0">{escape(verdict.claim.text)}</pre>\n'),
    ]  # fmt: skip
    body = "".join(
        f'<section id="{id}" aria-label="{escape(title)}">\n<h2>{escape(title)}</h2>\n{text}</section>\n'
        for id, title, text in sections if text
    )  # fmt: skip
    parts = {"answer": escape(verdict.sentence), "facts": _facts(verdict), "sections": body}
    return write_page(
        folder / "judge.html", verdict.claim.name, "claim.html", parts, {}, ("common.js", "theme.js")
    )  # fmt: skip


def _facts(verdict: Verdict) -> str:
    claim, row = verdict.claim, verdict.ceiling
    ceilings = {
        f"ceiling {row.ceiling} {at_least(ends[0])} – {at_most(ends[1])} {unit.name}": None
        for what, unit in verdict.units for ends in [verdict.ceiling_in(what, unit)]
    }  # fmt: skip
    topology = claim.instance.topology
    facts = [
        f"{topology.kind}, {topology.switches} switches, {topology.hosts} hosts", claim.instance.traffic.kind,
        *ceilings,
    ]  # fmt: skip
    warnings = [] if verdict.possible else [verdict.verdict]
    warnings += ["not carried"] if any(one.is_short for one in verdict.deliveries) else []
    warnings += ["deadlock-prone"] if verdict.deadlock is not None and verdict.deadlock.prone else []
    state = "".join(f'<li class="warn">{escape(text)}</li>' for text in warnings)
    return state + "".join(f"<li>{escape(fact)}</li>" for fact in facts)


def _numbers(checks: Sequence[Check]) -> str:
    head = ("reported", "verdict", "limit", "limited by", "share", "delivered", "where", "note")
    rows = [
        (
            f"{check.what} {check.reported}", check.verdict_text, check.shown_limit, check.limit_name,
            f"{100 * check.share:.3g} %", "" if check.delivery is None else f"{100 * check.delivery.share:.3g} %",
            check.where,
            "; ".join(filter(None, (check.note, *check.hints))),
        ) for check in checks
    ]  # fmt: skip
    return table(head, rows, text=(0, 1, 2, 3, 6, 7), caption=CAPTION)


def _picture(file: Path | None) -> str:
    if file is None:
        return ""
    kind = "png" if file.suffix == ".png" else "svg+xml"
    coded = base64.b64encode(read_file(file)).decode("ascii")
    return f'<figure><img alt="Shares of the limits" src="data:image/{kind};base64,{coded}"></figure>\n'


def _proofs(checks: Sequence[Check]) -> str:
    proven = [check for check in checks if check.witness is not None]
    parts = [f"<p>{escape(CHECK)}</p>\n"] if any(check.witness and check.witness.proof for check in proven) else []
    for check in proven:
        assert check.witness is not None
        parts.append(f"<h3>{escape(f'{check.what} {check.reported}')}</h3>\n<p>{escape(check.witness.statement)}</p>\n")
        parts.append(_channels(check.witness))
    return "".join(parts)


def _channels(witness: Witness) -> str:
    listed = witness.facts.get("channels", [])
    rows = [(str(u), str(v), plain(rest[0]) if rest else "1") for u, v, *rest in listed]
    return (
        folded(f"{len(rows)} channels of the proof", table(("from", "to", "length"), rows, text=(0, 1))) if rows else ""
    )


def _deadlock(verdict: Verdict) -> str:
    deadlock = verdict.deadlock
    if deadlock is None:
        return ""
    word = "Nothing rules a deadlock out" if deadlock.prone else "Packets cannot deadlock"
    return f"<p>{escape(f'{word} with {verdict.claim.vcs} virtual channels: {deadlock.note}.')}</p>\n"


def _list(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in sentences)
    return f"<ul>\n{items}</ul>\n" if items else ""
