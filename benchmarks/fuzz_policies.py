"""Both engines on many drawn scenarios of the VC policies that use all VCs: every packet and counter is compared.

    python -m benchmarks.fuzz_policies [--scenarios 500] [--first 1000] [--ticks 900]

A scenario takes about half a second and is known by its number: the test suite has the first ones for fewer ticks. Exit
code 1 if one fails, with its number.
"""

import argparse
import sys
import traceback
from collections import Counter

from flitlab.models.routing.certificate import POLICY_NAMES
from tests.sim.policy_cases import case_of_number, check, told


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
        seen[f"{case.switching.mode} {case.switching.allocator}"] += 1
        seen[POLICY_NAMES[case.switching.vc_policy]] += 1
        seen[case.routes.kind] += 1
        seen[
            ("V = C", "V = C + 1")[spare] if (spare := case.switching.vcs - case.routes.hops_max) < 2 else "more VCs"
        ] += 1
    print(", ".join(f"{number} {name}" for name, number in seen.items()))
    return int(seen["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
