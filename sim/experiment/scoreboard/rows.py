# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: every published figure or table with a configuration, its results and verdicts.

A row is a file of ``configs/paper/``, named by its paper and the figure or table: ``uni-f05.yaml``. Verdicts follow
from the file and the record of measured values.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from flitlab.sim.config.reporting import PublishedConfig
from flitlab.sim.experiment.published import Claim, Verdict, claim, verdict
from flitlab.sim.experiment.scoreboard.file import USUAL_FOLDER, RowFile, read_row
from flitlab.sim.experiment.scoreboard.record import DamagedRecord, Ran, decides, load_record

PAPERS = {
    "uni": "A Case for Uni-Directional Network Topologies in Large-Scale Clusters",
    "mut": "Measuring and Understanding Throughput of Network Topologies",
    "gbu": "Throughput Models of Interconnection Networks: the Good, the Bad, and the Ugly",
    "dbg": "Random Regular Graph and Generalized De Bruijn Graph with k-shortest Path Routing",
    "sin": "Designing Data Center Networks for High Throughput",
}
"""First part of the name of a row -> title of the paper, in the order of the pages."""

SENTENCE = re.compile(r"(?<!\bvs)(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\betc)(?<=[\w)%'\"])\. (?=[A-Z])")
"""Separator of two sentences."""


def first_sentence(text: str) -> str:
    """A text up to the end of its first sentence, without the full stop.

    >>> first_sentence("RRG, cf. Fig. 4: of 5. The rest is drawn.")
    'RRG, cf. Fig. 4: of 5'
    """
    return SENTENCE.split(text)[0].rstrip(".")


@dataclass(frozen=True)
class Value:
    """A published value and the measured one, None if it was not measured.

    scenario: in words. full_size: of a quick version, the verdict at full size, None if it is not known.
    """

    entry: PublishedConfig
    scenario: str
    measured: float | None
    full_size: Verdict | None = None

    @property
    def claim(self) -> Claim:
        """Whether a number or an order is published."""
        return claim(self.entry, self.quantity)

    @property
    def quantity(self) -> str:
        """The compared quantity."""
        return self.entry.quantity or self.entry.where

    @property
    def verdict(self) -> Verdict:
        """The verdict on the measured value."""
        return verdict(self.entry, self.quantity, self.measured, self.full_size)


@dataclass(frozen=True)
class Row:
    """A row: its file, and the result of its last run, None if it has not run.

    full_size: of a quick version, the verdicts at full size by ``where``.
    """

    file: RowFile
    last: Ran | None
    full_size: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.file.name

    @property
    def title(self) -> str:
        """The first sentence of the description in the file."""
        return first_sentence(self.file.about[0]) if self.file.about else self.name

    @property
    def command(self) -> str:
        """The command that runs only this row."""
        quick = " --quick" if self.last is not None and not self.last.full else ""
        return f"simrun {USUAL_FOLDER / self.name}.yaml{quick}"

    @property
    def outdated(self) -> bool:
        """Whether the last run does not match the file."""
        return self.last is not None and not fits(self.last, self.file)

    @property
    def ran(self) -> Ran | None:
        """The result of a run that matches the file; None if there is none."""
        return None if self.outdated else self.last

    @property
    def problem(self) -> str:
        """Why the row failed, '' if it did not."""
        return self.file.problem or (self.ran.problem if self.ran else "")

    @cached_property
    def values(self) -> list[Value]:
        """Published and measured values; [] if the row failed or has not run."""
        if self.ran is None or self.problem:
            return []
        by_key = {one.key: one for one in self.ran.measured}
        measured = [(entry, by_key[decides(entry)]) for entry in self.file.published]
        return [Value(entry, one.words, one.value, self.full_size.get(entry.where)) for entry, one in measured]

    @property
    def state(self) -> str:
        """The state of a row without a score; '' with a score."""
        if self.problem:
            return "failed"
        return "not run since its file changed" if self.outdated else "" if self.ran else "not run"


def fits(ran: Ran, file: RowFile) -> bool:
    """Whether a run matches the file, and has all its published values unless it failed."""
    known = {one.key for one in ran.measured}
    return ran.fingerprint == file.fingerprint and (
        bool(ran.problem) or all(decides(entry) in known for entry in file.published)
    )


def rows_of(files: Iterable[Path], record: Mapping[str, Ran]) -> list[Row]:
    """The rows of some files in the order of the pages: by paper, then by name."""
    rows = [_row_of(file, record.get(file.stem)) for file in files]
    papers = [*PAPERS, *sorted({row.file.paper for row in rows} - set(PAPERS))]
    return sorted(rows, key=lambda row: (papers.index(row.file.paper), row.name))


def _row_of(file: Path, ran: Ran | None) -> Row:
    is_quick = ran is not None and not ran.full
    return Row(read_row(file, not is_quick), ran, verdicts_at_full_size(file) if is_quick else {})


def verdicts_at_full_size(file: Path) -> dict[str, Verdict]:
    """The verdicts of a row at full size by ``where``, from ``docs/reproduction.json`` beside ``configs/paper``.

    Returns {} where there is no such record, or it does not match the file.

    Parameters
    ----------
    file: of the row.
    """
    try:
        ran = load_record(file.resolve().parents[2] / "docs").get(file.stem)
    except (DamagedRecord, IndexError):
        return {}
    row = Row(read_row(file, True), ran) if ran is not None and ran.full else None
    return {value.entry.where: value.verdict for value in row.values} if row else {}


@dataclass(frozen=True)
class Score:
    """The number of values by claim and verdict."""

    counts: Counter[tuple[Claim, Verdict]]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Score":
        """The score of some rows."""
        return cls(Counter((value.claim, value.verdict) for row in rows for value in row.values))

    def agreeing(self, kind: Claim) -> int:
        """Numbers, or orders, that agree."""
        return sum(count for (one, outcome), count in self.counts.items() if one is kind and outcome.agrees)

    def compared(self, kind: Claim) -> int:
        """Comparable numbers, or orders."""
        counts = ((outcome, count) for (one, outcome), count in self.counts.items() if one is kind)
        return sum(count for outcome, count in counts if outcome is not Verdict.NOT_COMPARABLE)

    def having(self, outcome: Verdict) -> int:
        """Values with a verdict."""
        return sum(self.counts[kind, outcome] for kind in Claim)

    def ratio_text(self, kind: Claim) -> str:
        """``3 of 4``, '-' for none."""
        return f"{self.agreeing(kind)} of {self.compared(kind)}" if self.compared(kind) else "-"


def in_words(rows: Sequence[Row]) -> str:
    """The score of some rows in a sentence."""
    score = Score.of(rows)
    parts = [f"{score.ratio_text(kind)} {kind}s" for kind in Claim if score.compared(kind)]
    return f"{', '.join(parts)} agree" if parts else "nothing to compare"
