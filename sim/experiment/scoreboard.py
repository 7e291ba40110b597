"""The scoreboard: every published figure or table that has a configuration, run, with what it gave.

A row is a file of ``configs/paper/``, named by its paper and what of it it reproduces: ``uni-f05.yaml``.
"""

import csv
import json
import os
import platform
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from pydantic import TypeAdapter

from flitlab.models.near import near
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.sim.config.check import crash
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.study import read
from flitlab.sim.exit import FAILED, INTERRUPTED, OK, RunStatus
from flitlab.sim.experiment.folders import content, read_manifest
from flitlab.sim.experiment.published import Verdict
from flitlab.sim.experiment.runner import Report, run
from flitlab.sim.experiment.store import StoreError, replace_file

PAPERS = {
    "uni": "A Case for Uni-Directional Network Topologies in Large-Scale Clusters",
    "mut": "Measuring and Understanding Throughput of Network Topologies",
    "gbu": "Throughput Models of Interconnection Networks: the Good, the Bad, and the Ugly",
    "dbg": "Random Regular Graph and Generalized De Bruijn Graph with k-shortest Path Routing",
    "sin": "Designing Data Center Networks for High Throughput",
}
"""What the first part of a row's name stands for, in the order of the page."""

USUAL_FOLDER = Path("configs/paper")
"""Where rows are looked for, below the current folder and below what was installed."""


class NoRowsError(Exception):
    """The error that no row is there to run; the message says where they were looked for, or which there are."""


@dataclass(frozen=True)
class Row:
    """What a row gave.

    about: the comment at the head of its file. command: that runs it. date: on which it ran, YYYY-MM-DD. cpu_s: CPU
    time of the run that ended on that day; a resumed one counts only what was missing. published: rows of
    published.csv. problem: why it, or a part of it, failed; '' if nothing did. code: exit code of the run.
    """

    name: str
    about: str
    command: str
    full: bool
    date: str
    machine: str
    cpu_s: float
    published: list[dict[str, str]] = field(default_factory=list)
    problem: str = ""
    code: int = OK

    @property
    def paper(self) -> str:
        """First part of the name."""
        return self.name.partition("-")[0]

    @property
    def title(self) -> str:
        """First sentence of what the file says of itself."""
        return re.split(r"(?<=[\w)])\. (?=[A-Z])", self.about)[0].rstrip(".")

    @property
    def agreeing(self) -> int:
        """How many published values agree."""
        return sum(Verdict(value["verdict"]).agrees for value in self.published)

    @property
    def verdict(self) -> str:
        """The outcome of a row in a few words."""
        return f"{self.agreeing} of {len(self.published)} agree" if self.published else "failed"


def row_files(folder: Path | None) -> list[Path]:
    """The files of all rows: in a folder, else in ``configs/paper`` here, or of this project.

    Raises :class:`NoRowsError`.
    """
    places = [USUAL_FOLDER, *_of_the_project()] if folder is None else [folder]
    for place in places:
        if files := sorted(place.glob("*.yaml")):
            return files
    where = str(folder) if folder is not None else "configs/paper here, or in what is installed"
    raise NoRowsError(f"no rows (*.yaml) in {where}; --configs DIR says where they are")


def _of_the_project() -> Iterator[Path]:
    """``configs/paper`` beside the packages (a checkout), or among the files that were installed with them."""
    yield Path(__file__).resolve().parents[2] / USUAL_FOLDER
    try:
        files = distribution("flitlab").files or []
    except PackageNotFoundError:
        return
    yield from {Path(str(file.locate())).resolve().parent for file in files if file.match(f"{USUAL_FOLDER}/*.yaml")}


def chosen(files: Sequence[Path], words: Sequence[str]) -> list[Path]:
    """The files of the papers and rows that are named, all where none is. Raises :class:`NoRowsError`."""
    if not words:
        return list(files)
    names = [file.stem for file in files]
    papers = list(dict.fromkeys(name.partition("-")[0] for name in names))
    for word in words:
        if word not in names and word not in papers:
            found = near(word, [*names, *papers])
            hint = f"; did you mean {found!r}?" if found else ""
            raise NoRowsError(f"{word}: no paper or row; papers: {', '.join(papers)}; rows: {', '.join(names)}{hint}")
    return [file for file in files if file.stem in words or file.stem.partition("-")[0] in words]


def is_finished(file: Path, folder: Path, full: bool) -> bool:
    """Whether a folder holds all that running the file of a row would give."""
    try:
        manifest = read_manifest(folder)
        same = (folder / "config.yaml").read_bytes() == file.read_bytes()
    except (OSError, ValueError):
        return False
    changes = [] if full else ["--quick"]
    wanted = {"status": RunStatus.DONE, "semantics_version": SEMANTICS_VERSION, "changes": changes}
    return same and wanted.items() <= manifest.items()


def run_row(file: Path, folder: Path, full: bool, jobs: int) -> tuple[Row, Report | None]:
    """Runs a row into its folder. Whatever goes wrong is in the row, so that others can follow."""
    began, report, code = cpu_seconds(), None, FAILED
    try:
        report = run(read(file, quick=not full), folder, jobs)
        problem, code = "; ".join(report.problems), report.exit_code
    except ConfigError as error:
        problem = str(error)
    except StoreError as error:
        problem = f"output folder = {folder}: {error}"
    except Exception as error:
        problem = crash(error)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return row_of(file, folder, full, problem, code, cpu_seconds() - began), report


def row_of(file: Path, folder: Path, full: bool, problem: str = "", code: int = OK, cpu_s: float = 0.0) -> Row:
    """A row from the folder that it ran into."""
    published, date = [], time.strftime("%Y-%m-%d", time.gmtime())
    if not problem and (folder / "published.csv").exists():
        with (folder / "published.csv").open(encoding="utf-8", newline="") as table:
            published = list(csv.DictReader(table))
        date = read_manifest(folder)["finished"][:10]
    command = f"simrun {USUAL_FOLDER / file.name}{'' if full else ' --quick'}"
    return Row(file.stem, _about(file), command, full, date, machine(), round(cpu_s, 1), published, problem, code)


def _about(file: Path) -> str:
    """The first paragraph of the comment that a file begins with."""
    lines = []
    for line in file.read_text("utf-8").splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:].strip())
    return " ".join(lines)


def cpu_seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def machine() -> str:
    """The processor that this runs on."""
    try:
        names = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return f"{len(names) or os.cpu_count()} cores, {names[0] if names else platform.processor() or platform.machine()}"


RECORD = "reproduction.json"
"""The file that keeps what rows gave, beside the pages made of it."""


def load_rows(folder: Path) -> dict[str, Row]:
    """The rows that a folder's record holds, by name; none if it has no record.

    Raises :class:`NoRowsError` for a record that is damaged: the next one would replace it.
    """
    file = folder / RECORD
    if not file.exists():
        return {}
    try:
        return {row.name: row for row in TypeAdapter(list[Row]).validate_json(content(file), strict=True)}
    except (OSError, ValueError):
        raise NoRowsError(f"{file} is damaged, or no record of rows; delete it, or choose another folder") from None


def save_rows(folder: Path, rows: dict[str, Row]) -> list[Row]:
    """Writes the record; returns its rows in the order of the page: by paper, then by name."""
    papers = list(PAPERS)
    rank = {paper: i for i, paper in enumerate([*papers, *sorted({row.paper for row in rows.values()} - set(papers))])}
    ordered = sorted(rows.values(), key=lambda row: (rank[row.paper], row.name))
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(row) for row in ordered], indent=1, ensure_ascii=False)
    replace_file(folder / RECORD, (text + "\n").encode())
    return ordered
