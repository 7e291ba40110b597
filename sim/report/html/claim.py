# SPDX-License-Identifier: Apache-2.0
"""``write(verdict, folder)``: one self-contained page on a claim, with the proofs of its verdict."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from flitlab.sim.judge.quantity import at_least, at_most
from flitlab.sim.judge.verdict import Check, Verdict
from flitlab.sim.report.html.shell import data_uri, write_page
from flitlab.sim.report.html.tables import Table, plain

CAPTION = (
    "A limit is in the unit of what is reported, and the share is that of the limit; of a latency it is the least one "
    "over the one reported. Delivered is the part of the reported load that arrives."
)


def write(verdict: Verdict, folder: Path, figure: Path | None) -> Path:
    """Write ``folder/judge.html``; figure: a picture (PNG or SVG) to show. Raises ``OSError``."""
    sections: list[tuple[str, str, object]] = [
        ("numbers", "The numbers", _numbers(verdict.checks)),
        ("figure", "Shares of the limits", figure and data_uri(figure)),
        ("proofs", "What proves it", list(_proofs(verdict.checks))), ("deadlock", "Deadlock", _deadlock(verdict)),
        ("assumed", "What is assumed", verdict.claim.assumed), ("claim", "The claim", verdict.claim.text),
    ]  # fmt: skip
    return write_page(
        folder / "judge.html", "claim.html", title=verdict.claim.name, answer=verdict.sentence, facts=_facts(verdict),
        warnings=_warnings(verdict), sections=sections, data={},
        checked=any(check.witness is not None and check.witness.proof for check in verdict.checks),
    )  # fmt: skip


def _facts(verdict: Verdict) -> list[str]:
    row, instance = verdict.ceiling, verdict.claim.instance
    ceilings = {
        f"ceiling {row.ceiling} {at_least(ends[0])} – {at_most(ends[1])} {unit.name}": None
        for what, unit in verdict.units for ends in [verdict.ceiling_in(what, unit)]
    }  # fmt: skip
    topology = instance.topology
    return [
        f"{topology.kind}, {topology.switches} switches, {topology.hosts} hosts", instance.traffic.kind, *ceilings
    ]  # fmt: skip


def _warnings(verdict: Verdict) -> list[str]:
    warnings = [] if verdict.possible else [str(verdict.verdict)]
    warnings += ["not carried"] if any(one.is_short for one in verdict.deliveries) else []
    return warnings + (["deadlock-prone"] if verdict.deadlock is not None and verdict.deadlock.prone else [])


def _numbers(checks: Sequence[Check]) -> Table:
    head = ("reported", "verdict", "limit", "limited by", "share", "delivered", "where", "note")
    rows = [
        (
            f"{check.what} {check.reported}", check.verdict_text, check.shown_limit, check.limit_name,
            f"{100 * check.share:.3g} %", "" if check.delivery is None else f"{100 * check.delivery.share:.3g} %",
            check.where,
            "; ".join(filter(None, (check.note, *check.hints))),
        ) for check in checks
    ]  # fmt: skip
    return Table(head, rows, text=(0, 1, 2, 3, 6, 7), caption=CAPTION)


def _proofs(checks: Sequence[Check]) -> Iterator[tuple[str, str, Table]]:
    """What a proof is of, its statement, and the lengths of its channels."""
    for check in checks:
        if check.witness is not None:
            listed = check.witness.facts.get("channels", [])
            rows = [(str(u), str(v), plain(rest[0]) if rest else "1") for u, v, *rest in listed]
            channels = Table(("from", "to", "length"), rows, text=(0, 1))
            yield f"{check.what} {check.reported}", check.witness.statement, channels


def _deadlock(verdict: Verdict) -> str:
    deadlock = verdict.deadlock
    if deadlock is None:
        return ""
    word = "Nothing rules a deadlock out" if deadlock.prone else "Packets cannot deadlock"
    return f"{word} with {verdict.claim.vcs} virtual channels: {deadlock.note}."
