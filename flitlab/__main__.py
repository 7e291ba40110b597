# SPDX-License-Identifier: Apache-2.0
"""``python -m flitlab`` is ``simrun``."""

from flitlab.sim.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
