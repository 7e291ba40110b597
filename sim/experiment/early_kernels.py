# SPDX-License-Identifier: Apache-2.0
"""Compilation in the background: a process compiles the kernel of a configuration while the configuration is read.

Reading takes seconds on a new machine, on one core, since it compiles what routes need. The kernel, which takes 20, is
that of a small network with the same switching, and the same routing where that network has it. What turns out not to
be the kernel of the run is compiled as any other.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from flitlab.models.jit.cache import any_compiled
from flitlab.models.mappings import Keys
from flitlab.models.scenario import Scenario
from flitlab.models.threads import cores

OTHERS = ("application", "experiment", "plugins", "timeline", "transport")
"""Keys of configurations whose kernels differ, or that simulate nothing."""


@contextmanager
def compiling_kernels(file: str | Path, processes: int | None) -> Iterator[None]:
    """Compile the kernel of a configuration in a process of its own, if these sources have compiled none yet.

    The process ends with the context. processes: ``--jobs``; with 1 nothing is compiled in the background.
    """
    if processes == 1 or cores() == 1 or any_compiled():
        yield
        return
    # -P: without it modules of the current folder, which may be anyone's, would come before ours
    command = [sys.executable, "-P", "-m", "flitlab.sim.experiment.early_kernels", str(file)]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere) as process:
        try:
            yield
        finally:
            process.kill()


def small(config: object) -> Iterator[Keys]:
    """Configurations of a small network with the kernel of a configuration, the likeliest first; none if unknown."""
    if not isinstance(config, dict) or config.get("engine") == "reference" or any(key in config for key in OTHERS):
        return
    switching, routing, traffic = (config.get(key) for key in ("switching", "routing", "traffic"))
    if not isinstance(switching, dict) or not isinstance(traffic, dict):
        return
    fixed = {"topology": {"kind": "torus", "dims": [4]}, "loads": [0.01], "ceilings": []}
    demand = {"kind": "uniform"} | {key: traffic[key] for key in ("packet_flits",) if key in traffic}
    for chosen in (routing, {"kind": "minimal"}):
        yield {**fixed, "routing": chosen, "switching": switching, "traffic": demand}


def scenario_of(config: object) -> Scenario | None:
    """The first small network with the kernel of a configuration that there is; None if there is none."""
    from flitlab.sim.config.diagnostics import ConfigError
    from flitlab.sim.config.pipeline import read

    for text in map(yaml.safe_dump, small(config)):
        with suppress(ConfigError):
            return read("small.yaml", text=text).cases[0].scenario
    return None


def main(file: str) -> None:
    """Compile the kernel of the configuration in a file, if it has one that is known before it is read."""
    from flitlab.sim.config.packaged import packaged_file
    from flitlab.sim.engines.start import start

    scenario = scenario_of(yaml.safe_load(Path(packaged_file(file) or file).read_text("utf-8")))
    if scenario is not None:
        start("compiled", scenario, 0.01, 1).advance(1)


def _end_with_the_run() -> None:
    """End the process once the run has ended, which closes its standard input, however it ends."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    main(sys.argv[1])
