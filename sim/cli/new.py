# SPDX-License-Identifier: Apache-2.0
"""``simrun new KIND [FILE]``."""

import argparse
import json
import re
from importlib.resources import files
from pathlib import Path

from flitlab.models.files import replace_file
from flitlab.sim.cli.common import complain
from flitlab.sim.exit import BAD

MODELINE = "# yaml-language-server: $schema={}\n"
"""First line by which editors with the YAML language server complete and check a file."""

SCHEMA = Path(str(files("flitlab.sim.config") / "schema.json")).resolve()
"""The file with the output of ``simrun schema``."""

EDGES = "own_graph"
"""The kind with an edge list. Each kind is a file in ``sim/cli/starters``."""

WORDS = ("true", "false", "null", "yes", "no", "on", "off")
"""Words that YAML 1.1 or 1.2 does not read as text."""


def run(options: argparse.Namespace) -> int:
    """Write a commented starter configuration; existing files are kept."""
    file = options.file or Path(f"{options.kind}.yaml")
    edges = file.with_name(f"{file.stem}_edges.txt")
    written = {file: starter(options.kind, file.stem, edges.name)}
    if options.kind == EDGES:
        written[edges] = (files("flitlab.sim.cli") / "starters" / "edges.txt").read_text("utf-8")
    existing = [path for path in written if path.exists()]
    if existing:
        complain(*(f"simrun new: {path}: exists already; nothing was written" for path in existing))
        return BAD
    try:
        for path, text in written.items():
            replace_file(path, text)
    except OSError as error:
        complain(f"simrun new: {error.filename}: {error.strerror}")
        return BAD
    print("\n".join(map(str, written)))
    complain(f"next: simrun check {file}; simrun quick {file}; simrun {file} --quick; simrun {file}")
    return 0


def starter(kind: str, name: str, edges: str) -> str:
    """The text of a starter configuration.

    Parameters
    ----------
    kind: file in ``sim/cli/starters``.
    name: of the configuration.
    edges: file of its edge list.
    """
    text = MODELINE.format(SCHEMA) + (files("flitlab.sim.cli") / "starters" / f"{kind}.yaml").read_text("utf-8")
    return text.replace("NAME", _plain(name)).replace("EDGES", _plain(edges))


def _plain(text: str) -> str:
    """A text for YAML, quoted where it would otherwise be read as something else."""
    plain = re.fullmatch(r"[A-Za-z]\w*(-\w+)*(\.txt)?", text) and text.lower() not in WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
