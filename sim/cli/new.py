# SPDX-License-Identifier: Apache-2.0
"""``simrun new`` (run): write a commented starter configuration."""

import argparse
import json
import re
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from flitlab.models.files import replace_file
from flitlab.models.jit.cache import cache_folder
from flitlab.sim.cli.common import complain
from flitlab.sim.cli.schema import schema_text
from flitlab.sim.exit import ExitCode

STARTERS = ("main", "sweep", "jellyfish_vs_fat_tree", "own_graph")
"""Kinds of configurations; each is a file in ``sim/cli/starters``."""

MODELINE = "# yaml-language-server: $schema={}\n"
"""First line by which editors with the YAML language server complete and check a file."""

SCHEMA = cache_folder().resolve().with_name("schema.json")
"""Where ``simrun new`` writes the output of ``simrun schema``: at a path that stays the same after upgrades."""

EDGES = "own_graph"
"""The kind with an edge list."""

WORDS = ("true", "false", "null", "yes", "no", "on", "off")
"""Words that YAML 1.1 or 1.2 does not read as text."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("kind", choices=STARTERS)
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="default: KIND.yaml; never overwritten")


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
        return ExitCode.BAD
    try:
        for path, text in written.items():
            replace_file(path, text)
    except OSError as error:
        complain(f"simrun new: {error.filename}: {error.strerror}")
        return ExitCode.BAD
    with suppress(OSError):  # completion in editors is a convenience
        SCHEMA.parent.mkdir(parents=True, exist_ok=True)
        replace_file(SCHEMA, schema_text())
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
