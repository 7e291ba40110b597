# SPDX-License-Identifier: Apache-2.0
"""``simrun new`` (run): write a commented starter configuration, or a copy of an example."""

import argparse
import json
import re
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from flitlab.models.closest_match import closest_match
from flitlab.models.files import read_text, replace_file
from flitlab.models.jit.cache import cache_folder
from flitlab.sim.cli.common import complain
from flitlab.sim.cli.schema import schema_text
from flitlab.sim.config.packaged import packaged
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
    known = f"{', '.join(STARTERS)}, or a name that `simrun list examples` has"
    parser.add_argument("kind", metavar="KIND", nargs="?", help=known)
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="default: KIND.yaml; never overwritten")
    parser.add_argument("--from", dest="source", metavar="NAME", help="KIND, where FILE comes first")


def run(options: argparse.Namespace) -> int:
    """Write a commented starter configuration, or a copy of an example; existing files are kept."""
    kind, name = options.source or options.kind, options.file
    if options.source and options.kind:
        name = Path(options.kind)
    if kind not in STARTERS:
        kind = str(kind).removeprefix("configs/").removesuffix(".yaml")
    if kind not in STARTERS and kind not in packaged():
        choices = [*STARTERS, *(one for one in packaged() if not one.startswith("paper/"))]
        closest = closest_match(kind, [*STARTERS, *packaged()])
        hint = f"; did you mean {closest!r}?" if closest else ""
        complain(f"simrun new: {kind}: no starter or example; choices: {', '.join(choices)}, paper/...{hint}")
        return ExitCode.BAD
    file = name or Path(f"{Path(kind).name}.yaml")
    if kind not in STARTERS:
        written = example_files(packaged()[kind], file)
    else:
        edges = file.with_name(f"{file.stem}_edges.txt")
        written = {file: starter(kind, file.stem, edges.name)}
        if kind == EDGES:
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


def example_files(source: Path, file: Path) -> dict[Path, str]:
    """The files of a copy of an example: the configuration, and tables beside it of the same name.

    Parameters
    ----------
    source: the configuration of flitlab.
    file: where its copy goes. The run is called after it.
    """
    text = read_text(source)
    text = MODELINE.format(SCHEMA) + re.sub(r"\A# yaml-language-server:.*\n", "", text)
    if file.stem != source.stem:
        text = re.sub(rf"(?m)^name: *{re.escape(source.stem)} *$", f"name: {_plain(file.stem)}", text)
    tables = {file.with_name(path.name): read_text(path) for path in source.parent.glob(f"{source.stem}.csv")}
    return {file: text} | tables


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
