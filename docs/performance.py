# SPDX-License-Identifier: Apache-2.0
"""Writes what ``benchmarks/run_all.py`` measured into docs/performance.md: ``python docs/performance.py``.

A table stands between ``<!-- measured: NAME -->`` and ``<!-- end -->``; docs/performance.json holds what is in it.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE, MEASURED = DOCS / "performance.md", DOCS / "performance.json"
LITTLE = 0.15
"""Relative distance of runs from their median up to which a sentence says it, not a column."""
PLACE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written() -> str:
    """The page, as it has to be."""
    measured, said = json.loads(MEASURED.read_text("utf-8")), ""
    machines: list[str] = []

    def filled(place: re.Match[str]) -> str:
        nonlocal said
        found = measured[place[2]]
        before, machine = said, found["machine"]
        known = machine in machines
        if not known:
            machines.append(machine)
        said = f"Measured on {found['on']} on machine {'ABCDEFGH'[machines.index(machine)]}"
        caption = "" if said == before else f"{said}{'' if known else ': ' + machine}.\n\n"
        return f"{place[1]}\n{caption}{table(found)}\n{place[3]}"

    return PLACE.sub(filled, PAGE.read_text("utf-8"))


def table(found: dict[str, Any]) -> str:
    """The table of a benchmark, as the benchmark prints it; of runs that hardly differ, the greatest difference."""
    sys.path.insert(0, str(DOCS.parent / "benchmarks"))
    import measured

    rows = [measured.Row(**row) for row in found["rows"]]
    widest = max(row.deviation for row in rows)
    if not 0 < widest <= LITTLE:
        return measured.table(rows)
    return f"Runs are within {math.ceil(100 * widest)} % of the median.\n\n{measured.table(rows, spreads=False)}"


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
