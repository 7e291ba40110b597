"""CPU seconds and certified gaps of the fluid methods: ``python benchmarks/bench_fluid.py [--large]``.

The table to beat stands in the comments of each row: CPU seconds to 1 % on one core of a 2-core machine.
"""

import argparse
import resource
import time

from fluid.ceilings import CeilingSpec, ceilings
from models.registry import make
from models.scenario import Scenario, Source, Switching


def scenario(topology: dict, traffic: dict) -> Scenario:
    built = make("topology", **topology).build()
    routes = make("routing", kind="minimal").build(built)
    return Scenario(built, routes, make("traffic", **traffic).build(built), Switching("vct"), Source())


UNIFORM = {"kind": "uniform"}
PERMUTATION = {"kind": "permutation", "seed": 1}


def rrg(n: int) -> dict:
    return {"kind": "rrg", "n": n, "degree": 10, "host_capacity": float("inf")}


def imase(n: int) -> dict:
    return {"kind": "imase", "n": n, "degree": 6, "hosts_per_switch": 4}


SMALL = [
    ("imase(256, 6) x4 uniform", imase(256), UNIFORM),
    ("imase(256, 6) x4 permutation", imase(256), PERMUTATION),
    ("rrg(256, 10) uniform", rrg(256), UNIFORM),  # 0.64
    ("rrg(256, 10) permutation", rrg(256), PERMUTATION),  # 0.23
]
LARGE = [
    ("imase(1024, 6) x4 permutation", imase(1024), PERMUTATION),
    ("rrg(1024, 10) permutation", rrg(1024), PERMUTATION),  # 1.3
    ("rrg(1024, 10) uniform", rrg(1024), UNIFORM),  # 8.3
]


def report(name: str, case: Scenario, kinds: tuple[str, ...], gap: float) -> None:
    theta = None
    for kind in kinds:
        loads = [1.3 * theta] if kind == "total" and theta else []
        for row in ceilings(case, [CeilingSpec(kind=kind, gap=gap)], loads):
            theta = row.upper if kind == "mcf" else theta
            if row.ceiling.startswith("bounds:"):
                continue
            width = row.upper / row.lower - 1
            print(f"{name:32} {row.ceiling:10} {row.lower:9.6f} {row.upper:9.6f} {width:9.2%} "
                  f"{row.seconds:8.2f} s  {row.method} {row.note}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 1,024 switches")
    parser.add_argument("--gap", type=float, default=0.01)
    arguments = parser.parse_args()
    kinds = ("mcf", "mcf_paths", "split", "total", "bounds")
    started = time.process_time()
    warm = scenario({"kind": "imase", "n": 64, "degree": 3}, UNIFORM)
    ceilings(warm, [CeilingSpec(kind=kind, method="approx") for kind in kinds if kind != "bounds"], [0.9])
    print(f"compiled or loaded in {time.process_time() - started:.1f} CPU seconds")
    for name, topology, traffic in SMALL + LARGE * arguments.large:
        report(name, scenario(topology, traffic), kinds, arguments.gap)
        print(f"  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB so far")


if __name__ == "__main__":
    main()
