# SPDX-License-Identifier: Apache-2.0
"""Checks configurations in one process, those that take minutes as a whole in their quick variant."""

import sys
from contextlib import redirect_stdout
from fnmatch import fnmatch
from io import StringIO

from flitlab.sim.cli import main

LONG = (
    "configs/paper/*", "configs/new_results.yaml", "configs/scale_10000.yaml", "configs/collectives_fabrics.yaml",
)  # fmt: skip

for file in sys.argv[1:]:
    with redirect_stdout(StringIO()) as said:
        code = main(["check", file, *["--quick"] * any(fnmatch(file, pattern) for pattern in LONG)])
    if code:
        sys.exit(f"{said.getvalue()}{file}: simrun check ended with {code}")
