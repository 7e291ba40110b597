# SPDX-License-Identifier: Apache-2.0
"""``simrun schema``: print the JSON schema of configurations, by which editors complete and check them."""

import argparse
import json

from flitlab.sim.config.json_schema import json_schema


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""


def run(options: argparse.Namespace) -> int:
    """Print the JSON schema of configurations."""
    print(schema_text(), end="")
    return 0


def schema_text() -> str:
    """The JSON schema of configurations as a file."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
