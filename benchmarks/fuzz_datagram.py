# SPDX-License-Identifier: Apache-2.0
"""Both engines on many drawn scenarios, most of which lose packets: every packet, counter and row is compared.

    python -m benchmarks.fuzz_datagram [--of datagram|program|spray|spray_program] [--scenarios 500] [--first 1000]

Every second scenario, and every program, begins so late that a multiple of 2**32 ticks falls into it. A scenario takes
about half a second and is known by its number: the test suite has some of them. Exit code 1 if one fails, with its
number.
"""

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from random import Random

from flitlab.sim.engines.transport.datagram import SubflowCount
from tests.sim import datagram_cases, spray_cases
from tests.sim.late_cases import check_program, late_session, late_spray
from tests.sim.test_spray_engines import check as check_spray

WINDOWS = [(0.0, 0.05), (0.02, 0.05), (0.0, 0.1), (0.05, 0.1), (0.1, 0.25)]
"""Seconds: long enough for timeouts, failures, and for windows of a thousand packets."""

SPRAYED_TICKS = 500_000


def datagram(number: int, seen: Counter[str]) -> str:
    """Check a session of datagrams; its transport."""
    case, window = datagram_cases.session_of_number(number), Random(number).choice(WINDOWS)
    if number % 2:
        case, window = late_session(case, window, number)
    counts = datagram_cases.check(case, window).subflow.sum(axis=0)
    for name, column in (
        ("losses", SubflowCount.DROPPED),
        ("packets sent again", SubflowCount.RESENT),
        ("timeouts", SubflowCount.TIMEOUTS),
    ):
        seen[f"with {name}"] += bool(counts[column])
    seen["with failures"] += bool(case.changes)
    seen["with finite flows"] += bool(case.flows.packets.any())
    seen["data packets"] += int(counts[0])
    return case.transport.name.split("(")[0]


def spray(number: int, seen: Counter[str]) -> str:
    """Check a session of sprayed packets."""
    case, first = spray_cases.session_of_number(number), 0
    if number % 2:
        case, first = late_spray(case, number, SPRAYED_TICKS)
    check_spray(case, (first + 1000, first + SPRAYED_TICKS // 10, first + SPRAYED_TICKS))
    return "sprayed"


def program(number: int, seen: Counter[str]) -> str:
    """Check a program over datagrams; its transport."""
    run = check_program("datagram", number)
    counts = run.counters().subflow.sum(axis=0)
    seen["with losses"] += bool(counts[SubflowCount.DROPPED])
    seen["with timeouts"] += bool(counts[SubflowCount.TIMEOUTS])
    return str(run.session.transport.name.split("(")[0])


def spray_program(number: int, seen: Counter[str]) -> str:
    """Check a program over sprayed packets."""
    check_program("spray", number)
    return "sprayed"


CHECKS: dict[str, Callable[[int, Counter[str]], str]] = {
    check.__name__: check for check in (datagram, program, spray, spray_program)
}


def main() -> int:
    """Runs the scenarios, and counts what has happened in them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=CHECKS, default="datagram")
    parser.add_argument("--scenarios", type=int, default=500)
    parser.add_argument("--first", type=int, default=1000)
    options = parser.parse_args()
    seen: Counter[str] = Counter()
    for number in range(options.first, options.first + options.scenarios):
        try:
            seen[CHECKS[options.of](number, seen)] += 1
        except Exception:
            traceback.print_exc()
            print(f"scenario {number} of {options.of}", file=sys.stderr)
            seen["different"] += 1
            continue
        seen["equal"] += 1
    print(", ".join(f"{number} {name}" for name, number in seen.items()))
    return int(seen["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
