# SPDX-License-Identifier: Apache-2.0
"""Both datagram engines on many drawn scenarios, most of which lose packets: every packet, counter and row is compared.

    python -m benchmarks.fuzz_datagram [--scenarios 500] [--first 1000]

A scenario takes about half a second and is known by its number: the test suite has numbers 0 to 59 for 25 ms each. Exit
code 1 if one fails, with its number.
"""

import argparse
import sys
import traceback
from collections import Counter
from random import Random

from flitlab.sim.engines.datagram.base import DROPPED, RESENT, TIMEOUTS
from tests.sim.datagram_cases import check, session_of_number

WINDOWS = [(0.0, 0.05), (0.02, 0.05), (0.0, 0.1), (0.05, 0.1), (0.1, 0.25)]
"""Seconds: long enough for timeouts, failures, and for windows of a thousand packets."""


def main() -> int:
    """Runs the scenarios, and counts what has happened in them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=500)
    parser.add_argument("--first", type=int, default=1000)
    options = parser.parse_args()
    seen: Counter[str] = Counter()
    for number in range(options.first, options.first + options.scenarios):
        case, window = session_of_number(number), Random(number).choice(WINDOWS)
        try:
            counts = check(case, window).subflow.sum(axis=0)
        except Exception:
            traceback.print_exc()
            print(f"scenario {number}: {case.transport.name}, window {window}", file=sys.stderr)
            seen["different"] += 1
            continue
        seen["equal"] += 1
        seen[case.transport.name.split("(")[0]] += 1
        for name, column in (("losses", DROPPED), ("packets sent again", RESENT), ("timeouts", TIMEOUTS)):
            seen[f"with {name}"] += bool(counts[column])
        seen["with failures"] += bool(case.changes)
        seen["with finite flows"] += bool(case.flows.packets.any())
        seen["data packets"] += int(counts[0])
    print(", ".join(f"{number} {name}" for name, number in seen.items()))
    return int(seen["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
