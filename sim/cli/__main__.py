"""``python -m sim.cli`` is ``simrun``."""

from sim.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
