# SPDX-License-Identifier: Apache-2.0
"""Run every benchmark of speed, and keep what was measured with the machine.

    python benchmarks/run_all.py --out docs/performance.json [--only engines threads] [--runs 3]

Every benchmark is the ``rows`` of a file ``bench_*.py`` in this folder and runs in a process of its own. What the file
holds of benchmarks that are not run stays. ``python docs/performance.py`` writes the tables into docs/performance.md.
"""

import argparse
import importlib
import json
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from measured import Row, machine, table

NAMES = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def measure(name: str, runs: int | None) -> list[Row]:
    """The rows of a benchmark; runs: as many as it has by itself if None."""
    module = importlib.import_module(f"bench_{name}")
    return list(module.rows(module.RUNS if runs is None else runs))


def section(name: str, runs: int | None) -> dict[str, Any]:
    """What is kept of a benchmark."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        rows = pool.submit(measure, name, runs).result()
    print(f"\n{name}\n\n{table(rows)}", flush=True)
    return {"machine": machine(), "on": f"{datetime.now(UTC):%Y-%m-%d}", "rows": [_kept(row) for row in rows]}


def _kept(row: Row) -> dict[str, Any]:
    """A row without digits that say nothing."""
    return row._replace(values=[float(f"{value:.4g}") for value in row.values])._asdict()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON file to write, or to add to")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--runs", type=int, help="how often each work is measured (default: as each benchmark says)")
    arguments = parser.parse_args()
    kept = json.loads(arguments.out.read_text("utf-8")) if arguments.out.exists() else {}
    for name in arguments.only:
        kept[name] = section(name, arguments.runs)
        arguments.out.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
