# SPDX-License-Identifier: Apache-2.0
"""``simrun show [KIND] NAME``."""

import argparse

from flitlab.models.near import near
from flitlab.models.registry import kind_key
from flitlab.sim.cli.common import complain, print_table
from flitlab.sim.cli.components import documentation, kinds, load, parameters
from flitlab.sim.cli.parser import CATEGORIES
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.exit import BAD

FORMS = {
    "ceiling": "ceilings: [{}]",
    "metric": "metrics: [{}]",
    "figure": "outputs: {{figures: [{}]}}",
    "algorithm": "collective: {{algorithm: {}}}",
    "column": "{}",
}
"""Category -> the syntax of a configuration for its kinds, if not ``category: {kind: ...}``."""


def run(options: argparse.Namespace) -> int:
    """Print the documentation and parameters of a component."""
    try:
        load(options.plugin)
    except ConfigError as error:
        complain(str(error))
        return BAD
    category, name = (options.kind, options.name) if options.name else (None, options.kind)
    if category is not None and category not in CATEGORIES:
        return _unknown("category", category, list(CATEGORIES))
    categories = [
        name_of_category
        for name_of_category in CATEGORIES
        if category in (None, name_of_category) and name in kinds(name_of_category)
    ]
    if not categories:
        choices = [
            kind
            for name_of_category in CATEGORIES
            if category in (None, name_of_category)
            for kind in kinds(name_of_category)
        ]
        return _unknown(category or "name", name, choices)
    for name_of_category in categories:
        _print(name_of_category, name)
    return 0


def _unknown(what: str, word: str, choices: list[str]) -> int:
    suggestion = near(word, choices)
    hint = f"; did you mean {suggestion!r}?" if suggestion else ""
    complain(f"simrun show: {word}: unknown {what}; choices: {', '.join(choices) or 'none yet'}{hint}")
    return BAD


def _print(category: str, name: str) -> None:
    form = FORMS.get(category, f"{category}: {{{{{kind_key(category)}: {{}}}}}}")
    print(form.format(name))
    print("\n" + documentation(category, name) + "\n")
    if category in ("column", "figure"):
        return
    columns = [(heading, lambda row, i=i: row[i]) for i, heading in enumerate(("parameter", "type", "default"))]
    print_table("parameters", columns, parameters(category, name))
