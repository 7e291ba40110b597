# SPDX-License-Identifier: Apache-2.0
"""``simrun judge`` (ask): decide whether a reported result is possible, with a proof."""

import argparse
from pathlib import Path

from flitlab.fluid.problem import FluidError
from flitlab.fluid.verify import saved_of
from flitlab.models.files import replace_file
from flitlab.sim.cli.common import complain, error_text, json_text, print_json, print_table, say
from flitlab.sim.cli.components import load
from flitlab.sim.cli.options import add_json, add_trust
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import UnrelatedFolder, reject_unrelated_folder
from flitlab.sim.judge.claim import read_claim
from flitlab.sim.judge.verdict import Verdict, judge
from flitlab.sim.judge.witness import UnconfirmedError

MARK = "judge.json"
"""The file that marks a folder of this command."""

MAX_HINTS = 3
"""Impossible numbers whose explanations are printed; the page has all."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", metavar="CLAIM", help="YAML: topology, traffic, and the reported results")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the page (default: runs/NAME-judge)")
    add_json(parser)
    add_trust(parser)


def run(options: argparse.Namespace) -> int:
    """Judge a claim, print the verdict, and write a page with the proofs."""
    try:
        load(options.plugin)
        claim = read_claim(options.file, options.set, options.trust_plugins)
        folder = options.out or Path("runs") / f"{claim.name}-judge"
        reject_unrelated_folder(folder, MARK)
        verdict = judge(claim)
    except ConfigError as error:
        complain(*map(str, error.errors))
        return ExitCode.BAD
    except UnrelatedFolder as error:
        complain(f"simrun judge: {folder}: {error}")
        return ExitCode.BAD
    except FluidError as error:
        complain(f"{options.file}: {error}")
        return ExitCode.BAD
    except UnconfirmedError as error:
        complain(f"{options.file}: no verdict: a certificate was not confirmed: {error}")
        return ExitCode.FAILED
    try:
        page = _write(verdict, folder)
    except OSError as error:
        complain(f"simrun judge: {error_text(error)}")
        return ExitCode.BAD
    if options.json:
        print_json(verdict.plain())
    else:
        _print(verdict)
        say(f"page in {page}")
    return ExitCode.OK if verdict.possible else ExitCode.CHECK_FAILED


def _write(verdict: Verdict, folder: Path) -> Path:
    """Write page, figure and certificates, and remove those of an earlier claim."""
    from flitlab.sim.report.figures.claim import figure_of
    from flitlab.sim.report.figures.style import save
    from flitlab.sim.report.html.claim import write

    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("witness-*.npz"):
        old.unlink()
    replace_file(folder / MARK, json_text(verdict.plain()) + "\n")
    replace_file(folder / "claim.yaml", verdict.claim.text)
    for number, check in enumerate(verdict.checks, 1):
        if check.witness is not None and check.witness.proof is not None:
            saved_of(verdict.claim.instance, check.witness.proof).write(folder / f"witness-{number}.npz")
    png, _ = save(figure_of(verdict), folder / "figures" / "judge")
    return write(verdict, folder, png)


def percent(share: float | None) -> str:
    """A share for a table, '' for None."""
    return "" if share is None else f"{100 * share:.3g} %"


def _print(verdict: Verdict) -> None:
    """Print the verdict as a table, then in sentences."""
    columns = [
        ("reported", lambda check: f"{check.what} {check.reported}"), ("verdict", lambda check: check.verdict_text),
        ("limit", lambda check: check.shown_limit.partition(" ")[0]), ("limited by", lambda check: check.limit_name),
        ("share", lambda check: f"{100 * check.share:.3g} %"),
    ]  # fmt: skip
    if verdict.deliveries:
        columns.append(("delivered", lambda check: percent(check.delivery and check.delivery.share)))
    columns.append(("where", lambda check: check.where))
    print_table(verdict.claim.name, columns, verdict.checks)
    say(verdict.sentence)
    for check in [check for check in verdict.checks if check.hints][:MAX_HINTS]:
        for hint in check.hints:
            say(f"  {check.what} {check.reported}: {hint}")
    deadlock = verdict.deadlock
    if deadlock is not None:
        say(f"deadlock: {'prone' if deadlock.prone else 'none'}: {deadlock.note}")
    for sentence in verdict.claim.assumed:
        say(f"assumed: {sentence}")
