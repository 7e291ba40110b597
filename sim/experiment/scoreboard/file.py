# SPDX-License-Identifier: Apache-2.0
"""What the file of a row says: of itself, of what is to be run, what was published, and what we chose.

Nothing is built for it, so that all files of the scoreboard are read in a moment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from flitlab.models.hashing import content_hash
from flitlab.models.near import near
from flitlab.sim.config.check import validated
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.errors import ConfigError, Diagnostic
from flitlab.sim.config.load import load_file, read_text
from flitlab.sim.config.overrides import apply_quick
from flitlab.sim.config.reporting import ChoiceConfig, PublishedConfig

USUAL_FOLDER = Path("configs/paper")
"""Where rows are looked for, below the current folder and below what was installed."""

ITEM = "* "
"""What a paragraph begins with that is an item of a list."""

FOR_EDITORS = "yaml-language-server:"
"""How a comment begins that says by which schema an editor checks the file."""

UNMEASURED = ("schema", "name", "quick", "outputs", "published", "chosen")
"""Keys at the top on which no measured value depends, but for ``outputs.relative_to``."""


class NoRowsError(Exception):
    """The error that no row is there; the message says where rows were looked for, or which there are."""


class _RowSection(BaseModel):
    model_config = ConfigDict(extra="ignore")

    published: list[PublishedConfig] = []
    chosen: list[ChoiceConfig] = []


@dataclass(frozen=True)
class RowFile:
    """A row as its file has it.

    about: the paragraphs of the comment at its head. outputs: as given. fingerprint: equal where the same is run,
    whatever it is compared with. problem: why the file cannot be read; then there is nothing else.
    """

    name: str
    about: list[str] = field(default_factory=list)
    published: list[PublishedConfig] = field(default_factory=list)
    chosen: list[ChoiceConfig] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    problem: str = ""

    @property
    def paper(self) -> str:
        """First part of the name."""
        return self.name.partition("-")[0]


def read_row(file: Path, full: bool, name: str = "") -> RowFile:
    """Reads a row, at the size in the paper or its quick version. name: by default that of the file."""
    name = name or file.stem
    try:
        return _row(file, full, name)
    except ConfigError as error:
        return RowFile(name, problem=str(error))


def _row(file: Path, full: bool, name: str) -> RowFile:
    errors: list[Diagnostic] = []
    root = load_file(file, errors)
    root = root if full else apply_quick(root, errors)
    configuration = root.plain()
    keys = {key: configuration[key] for key in _RowSection.model_fields if key in configuration}
    section = validated(_RowSection, ConfigDocument(root, errors), (), keys)
    if errors or section is None:
        raise ConfigError(errors)
    outputs = configuration.get("outputs") or {}
    run = {key: value for key, value in configuration.items() if key not in UNMEASURED}
    stamp = content_hash(run, outputs.get("relative_to"))
    return RowFile(name, paragraphs(read_text(file)), section.published, section.chosen, outputs, stamp)


def paragraphs(text: str) -> list[str]:
    """The comment that a file begins with: paragraphs are separated by an empty line of it, items begin with ``* ``.

    A line for editors, that names the schema, is no part of it.

    >>> paragraphs("# A graph.\\n# Large.\\n#\\n# Two:\\n# * one,\\n#   of two lines\\n# * two\\nn: 4")
    ['A graph. Large.', 'Two:', '* one, of two lines', '* two']
    """
    lines = [""]
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words = line.lstrip("#").strip()
        if words.startswith(FOR_EDITORS):
            continue
        if not words or words.startswith(ITEM):
            lines.append("")
        lines[-1] = f"{lines[-1]} {words}".strip()
    return [paragraph for paragraph in lines if paragraph]


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
    yield Path(__file__).resolve().parents[3] / USUAL_FOLDER
    try:
        files = distribution("flitlab").files or []
    except PackageNotFoundError:
        return
    yield from {Path(str(file.locate())).resolve().parent for file in files if file.match(f"{USUAL_FOLDER}/*.yaml")}


def selected(files: Sequence[Path], words: Sequence[str]) -> list[Path]:
    """The files of the papers and rows that are named, all where none is. Raises :class:`NoRowsError`."""
    if not words:
        return list(files)
    names = [file.stem for file in files]
    papers = list(dict.fromkeys(name.partition("-")[0] for name in names))
    for word in words:
        if word not in names and word not in papers:
            closest = near(word, [*names, *papers])
            hint = f"; did you mean {closest!r}?" if closest else ""
            raise NoRowsError(f"{word}: no paper or row; papers: {', '.join(papers)}; rows: {', '.join(names)}{hint}")
    return [file for file in files if file.stem in words or file.stem.partition("-")[0] in words]
