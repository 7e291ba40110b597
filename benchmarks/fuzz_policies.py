# SPDX-License-Identifier: Apache-2.0
"""Both engines on many drawn scenarios of routings, VC policies and disciplines: every packet and counter is compared.

    python -m benchmarks.fuzz_policies [--scenarios 500] [--first 1000] [--ticks 900]

A scenario takes about half a second and is known by its number: the test suite has the first ones for fewer ticks. Exit
code 1 if one fails, with its number.
"""

import argparse
import sys
import traceback
from collections import Counter

from tests.sim.policy_cases import case_of_number, check, sorts, told


def main() -> int:
    """Runs the scenarios, and counts what has happened in them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=500)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=900)
    options = parser.parse_args()
    seen: Counter[str] = Counter()
    for number in range(options.first, options.first + options.scenarios):
        case, load = case_of_number(number)
        try:
            packets = check(case, load, number, options.ticks)
        except Exception:
            traceback.print_exc()
            print(f"scenario {number}: {told(case)}", file=sys.stderr)
            seen["different"] += 1
            continue
        seen["equal"] += 1
        seen["packets"] += packets
        seen.update(sorts(case))
    print(", ".join(f"{number} {name}" for name, number in sorted(seen.items())))
    return int(seen["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
