# SPDX-License-Identifier: Apache-2.0
"""The file of a row: its description, configuration, published values and choices.

Nothing is built, so reading all files takes a moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from flitlab.models.closest_match import closest_match
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import JsonObject
from flitlab.sim.config.diagnostics import ConfigError, Diagnostics
from flitlab.sim.config.overrides import apply_quick
from flitlab.sim.config.packaged import packaged_folders
from flitlab.sim.config.reporting import ChoiceConfig, PublishedConfig
from flitlab.sim.config.text import ConfigDocument, load_file, read_text
from flitlab.sim.config.validation import validated

USUAL_FOLDER = Path("configs/paper")
"""Folder of the rows, below the current folder or the installation."""

ITEM = "* "
"""Prefix of a paragraph that is an item of a list."""

FOR_EDITORS = "yaml-language-server:"
"""Prefix of the comment that names the schema for editors."""

UNMEASURED = ("schema", "name", "quick", "outputs", "published", "chosen")
"""Top-level keys that measured values do not depend on, except for ``outputs.relative_to``."""


class NoRowsError(Exception):
    """No row matches; the message lists the searched folder or the choices."""


class _RowSection(BaseModel):
    model_config = ConfigDict(extra="ignore")

    published: list[PublishedConfig] = []
    chosen: list[ChoiceConfig] = []


@dataclass(frozen=True)
class RowFile:
    """A row by its file.

    Attributes
    ----------
    about: paragraphs of the comment at its head.
    outputs: as written.
    fingerprint: equal for equal runs, whatever they are compared with.
    problem: why the file cannot be read; then all else is empty.
    """

    name: str
    about: list[str] = field(default_factory=list)
    published: list[PublishedConfig] = field(default_factory=list)
    chosen: list[ChoiceConfig] = field(default_factory=list)
    outputs: JsonObject = field(default_factory=dict)
    fingerprint: str = ""
    problem: str = ""

    @property
    def paper(self) -> str:
        """First part of the name."""
        return self.name.partition("-")[0]


def read_row(file: Path, full: bool, name: str = "") -> RowFile:
    """Read a row.

    Parameters
    ----------
    file: of the row.
    full: at the size of the paper, or its quick version.
    name: by default that of the file.
    """
    name = name or file.stem
    try:
        return _row(file, full, name)
    except ConfigError as error:
        return RowFile(name, problem=str(error))


def _row(file: Path, full: bool, name: str) -> RowFile:
    diagnostics = Diagnostics()
    root = load_file(file, diagnostics)
    root = root if full else apply_quick(root, diagnostics)
    configuration = root.plain()
    keys = {key: configuration[key] for key in _RowSection.model_fields if key in configuration}
    section = validated(_RowSection, ConfigDocument(root, diagnostics), keys)
    if diagnostics.errors or section is None:
        raise ConfigError(diagnostics.errors)
    outputs = configuration.get("outputs") or {}
    run = {key: value for key, value in configuration.items() if key not in UNMEASURED}
    stamp = content_hash(run, outputs.get("relative_to"))
    return RowFile(name, paragraphs(read_text(file)), section.published, section.chosen, outputs, stamp)


def paragraphs(text: str) -> list[str]:
    """The paragraphs of the comment at the head of a file, separated by empty comment lines; items begin with ``* ``.

    The line for editors, which names the schema, is skipped.

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
    """The files of all rows in a folder, by default ``configs/paper`` here or in the installation.

    Raises :class:`NoRowsError`.
    """
    usual = [USUAL_FOLDER, *(packaged / USUAL_FOLDER.name for packaged in packaged_folders())]
    for place in usual if folder is None else [folder]:
        if files := sorted(place.glob("*.yaml")):
            return files
    where = str(folder) if folder is not None else "configs/paper here, or in what is installed"
    raise NoRowsError(f"no rows (*.yaml) in {where}; --configs DIR says where they are")


def selected(files: Sequence[Path], words: Sequence[str]) -> list[Path]:
    """The files of the named papers and rows; all if none is named. Raises :class:`NoRowsError`."""
    if not words:
        return list(files)
    names = [file.stem for file in files]
    papers = list(dict.fromkeys(name.partition("-")[0] for name in names))
    for word in words:
        if word not in names and word not in papers:
            closest = closest_match(word, [*names, *papers])
            hint = f"; did you mean {closest!r}?" if closest else ""
            raise NoRowsError(f"{word}: no paper or row; papers: {', '.join(papers)}; rows: {', '.join(names)}{hint}")
    return [file for file in files if file.stem in words or file.stem.partition("-")[0] in words]
