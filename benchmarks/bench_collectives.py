# SPDX-License-Identifier: Apache-2.0
"""What bounds of collectives cost: CPU-seconds of both bounds on the time of an all-reduce between switches.

    python benchmarks/bench_collectives.py [--runs 3]

The compiled code is loaded before the clock starts.
"""

import time
from collections.abc import Iterator

from measured import Row, command

from flitlab.fluid.collective.bounds import bounds
from flitlab.fluid.collective.collective import Collective
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology

RUNS = 3
NETWORKS = {
    "torus 8x8": {"kind": "torus", "dims": [8, 8]},
    "RRG(256, 6)": {"kind": "rrg", "n": 256, "degree": 6, "seed": 1},
    "torus 32x32": {"kind": "torus", "dims": [32, 32]},
    "RRG(1024, 6)": {"kind": "rrg", "n": 1024, "degree": 6, "seed": 1},
    "RRG(4096, 6)": {"kind": "rrg", "n": 4096, "degree": 6, "seed": 1},
}


def timed(topology: Topology) -> tuple[float, str]:
    """CPU-seconds of the bounds, and what they are."""
    began = time.process_time()
    found = bounds(topology, Collective("all_reduce"))
    lower, upper = found.lower.time, found.upper
    spent = time.process_time() - began
    return spent, f"at least {lower} of a vector's time on a channel, at most {upper[0] if upper else 'any'}"


def rows(runs: int) -> Iterator[Row]:
    """Every network, built anew for each run."""
    timed(make("topology", kind="torus", dims=[4, 4]).build())  # compiles
    for name, parameters in NETWORKS.items():
        measured = [timed(make("topology", **parameters).build()) for _ in range(runs)]
        yield Row(f"bounds of an all-reduce, {name}", "CPU-s", [one[0] for one in measured], measured[0][1])


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
