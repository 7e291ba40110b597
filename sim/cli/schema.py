# SPDX-License-Identifier: Apache-2.0
"""The command ``simrun schema``."""

import argparse
import json

from flitlab.sim.config.json_schema import json_schema


def run(options: argparse.Namespace) -> int:
    """Print the JSON schema of configurations."""
    print(json.dumps(json_schema(), indent=1, ensure_ascii=False))
    return 0
