# SPDX-License-Identifier: Apache-2.0
"""Reads configurations in one process, those that take minutes as a whole in their quick variant.

Without the cost estimates of ``simrun check``, which compile and time the kernels of every mode.
"""

import sys
from fnmatch import fnmatch

from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

LONG = (
    "configs/paper/*", "configs/new_results.yaml", "configs/scale_10000.yaml", "configs/collectives_fabrics.yaml",
)  # fmt: skip

for file in sys.argv[1:]:
    try:
        read(file, quick=any(fnmatch(file, pattern) for pattern in LONG))
    except ConfigError as error:
        sys.exit(f"{file}: {error}")
