# SPDX-License-Identifier: Apache-2.0
"""``simrun show``: describe a component, or a section of a configuration, and its keys."""

import argparse
from textwrap import wrap

from flitlab.models.closest_match import closest_match
from flitlab.models.registry import CATEGORIES, aliases_of, canonical_kind, kind_key, names, with_aliases
from flitlab.sim.cli.common import complain, print_table
from flitlab.sim.cli.components import (
    LISTED,
    Parameter,
    documentation,
    documented,
    keys_in,
    kinds,
    load,
    parameters,
    singular,
    without_links,
)
from flitlab.sim.cli.options import add_plugin
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.schema import sections
from flitlab.sim.exit import ExitCode

FORMS = {
    "ceiling": "ceilings: [{}]",
    "metric": "metrics: [{}]",
    "figure": "outputs: {{figures: [{}]}}",
    "algorithm": "collective: {{algorithm: {}}}",
    "column": "{}",
}
"""Category -> the syntax of a configuration for its kinds, if not ``category: {kind: ...}``."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("kind", help="category, optional if NAME is unique; or a section, such as measure")
    parser.add_argument("name", nargs="?", help="for instance imase")
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print the documentation and parameters of a component, or the keys of a section of a configuration."""
    try:
        load(options.plugin)
    except ConfigError as error:
        complain(str(error))
        return ExitCode.BAD
    category, name = (singular(options.kind), options.name) if options.name else (None, options.kind)
    if category in CATEGORIES:
        name = canonical_kind(category, name)
    elif category is None and name not in LISTED:
        name = next((kind for one in CATEGORIES if (kind := canonical_kind(one, name)) in names(one)), name)
    if category is not None and category not in LISTED:
        return _unknown("category", category, list(LISTED))
    categories = [one for one in LISTED if category in (None, one) and name in kinds(one)]
    keys = {path.replace("[]", ""): model for path, model in sections() if path}
    is_category, is_section = (category is None and name in known for known in (LISTED, keys))
    if not (categories or is_category or is_section):
        choices = [*keys] if category is None else []
        choices += [kind for one in LISTED if category in (None, one) for kind in kinds(one)]
        return _unknown(category or "name", name, choices)
    if is_category:
        every = [with_aliases(name, one) if name in CATEGORIES else one for one in kinds(name)]
        print(f"{name}: one of {', '.join(every)}")
    if is_section:
        print(documented(keys[name]))
        _print_parameters(name, keys_in(keys[name], ""))
    for one in categories:
        _print(one, name)
    return 0


def _unknown(what: str, word: str, choices: list[str]) -> int:
    suggestion = closest_match(word, choices)
    hint = f"; did you mean {suggestion!r}?" if suggestion else ""
    complain(f"simrun show: {word}: unknown {what}; choices: {', '.join(choices) or 'none yet'}{hint}")
    return ExitCode.BAD


def _print(category: str, name: str) -> None:
    form = FORMS.get(category, f"{category}: {{{{{kind_key(category)}: {{}}}}}}")
    print(form.format(name))
    print("\n" + without_links(documentation(category, name)) + "\n")
    if category in CATEGORIES and (others := aliases_of(category, name)):
        print(f"also: {', '.join(others)}\n")
    if category in ("column", "figure"):
        return
    if rows := parameters(category, name):
        _print_parameters("parameters", rows)


MEANING_WIDTH = 70
"""Letters of a line in the column of meanings."""


def _print_parameters(title: str, rows: list[Parameter]) -> None:
    """A table of keys. Columns in which nothing stands are left out."""
    columns = [(heading, lambda row, i=i: row[i]) for i, heading in enumerate(Parameter._fields)]
    shown = [column for i, column in enumerate(columns) if any(row[i] for row in rows) or i < 2]
    lines = []
    for row in rows:
        meaning = wrap(without_links(row.meaning).replace("``", ""), MEANING_WIDTH) or [""]
        lines += [row._replace(meaning=meaning[0]), *(Parameter("", "", "", "", line) for line in meaning[1:])]
    print_table(title, shown, lines)
