# SPDX-License-Identifier: Apache-2.0
"""Compilation in the background: a process compiles the kernel of a configuration while the configuration is read.

Reading takes seconds on a new machine, on one core, since it compiles what routes need. The kernel, which takes 20, is
that of a small network with the same switching, and the same routing where that network has it. Python runs what the
routes of so small a network need, uncompiled: the kernel would have to wait for it. What turns out not to be the kernel
of the run is compiled as any other.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from flitlab.models.jit import UNCOMPILED
from flitlab.models.jit.cache import any_compiled
from flitlab.models.mappings import Keys
from flitlab.models.scenario import Scenario
from flitlab.models.threads import cores
from flitlab.sim.config.packaged import packaged_file

OTHERS = ("application", "experiment", "plugins", "timeline", "transport")
"""Keys of configurations whose kernels differ, or that simulate nothing."""

# -P: without it modules of the current folder, which may be anyone's, would come before ours
COMMAND = (sys.executable, "-P", "-m", "flitlab.sim.experiment.early_kernels")
UNCOMPILED_COMMAND = (sys.executable, "-X", UNCOMPILED, *COMMAND[1:])


@contextmanager
def compiling_kernels(file: str | Path, processes: int | None) -> Iterator[None]:
    """Compile the kernel of a configuration in a process of its own, if these sources have compiled none yet.

    The process ends with the context. processes: ``--jobs``; with 1 nothing is compiled in the background,
    nor for a pipe, which only one process can read.
    """
    if processes == 1 or cores() == 1 or any_compiled() or Path(file).is_fifo():
        yield
        return
    command, nowhere = [*UNCOMPILED_COMMAND, str(file)], subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere) as process:
        try:
            yield
        finally:
            process.kill()


def small_networks(file: str | Path) -> Iterator[Keys]:
    """Configurations of small networks with the kernel of the one in a file, the likeliest first; none if unknown."""
    config = yaml.safe_load(Path(packaged_file(str(file)) or file).read_text("utf-8"))
    if not isinstance(config, dict) or config.get("engine") == "reference" or any(key in config for key in OTHERS):
        return
    cases = config.get("cases")
    first = config | cases[0] if isinstance(cases, list) and cases and isinstance(cases[0], dict) else config
    switching, routing, traffic = config.get("switching"), first.get("routing"), config.get("traffic")
    if not isinstance(switching, dict) or not isinstance(traffic, dict):
        return
    fixed = {"topology": {"kind": "torus", "dims": [4]}, "loads": [0.01], "ceilings": []}
    demand = {"kind": "uniform"} | {key: traffic[key] for key in ("packet_flits",) if key in traffic}
    for chosen in (routing or {"kind": "minimal"}, {"kind": "minimal"}):
        yield {**fixed, "routing": chosen, "switching": switching, "traffic": demand}


def scenario_of(configs: Iterable[Keys]) -> Scenario | None:
    """The first small network that there is; None if there is none."""
    from flitlab.sim.config.diagnostics import ConfigError
    from flitlab.sim.config.pipeline import read

    for text in map(yaml.safe_dump, configs):
        with suppress(ConfigError):
            return read("small.yaml", text=text).cases[0].scenario
    return None


def hand_over(file: str) -> None:
    """Replace this process, which compiles nothing, by one that compiles the kernel of the configuration in a file.

    It is handed the likeliest network, unless routes of that are drawn by what Python cannot run.
    """
    configs = list(small_networks(file))
    if not configs:
        return
    scenario = scenario_of(configs[:1])
    with tempfile.TemporaryFile() as handed:
        pickle.dump(scenario, handed)
        handed.seek(0)
        os.set_inheritable(handed.fileno(), True)
        os.execv(sys.executable, [*COMMAND, file, str(handed.fileno())])


def compile_kernel(file: str, handed: int) -> None:
    """Compile the kernel of the configuration in a file. handed: the descriptor of a file with the network, or None."""
    from flitlab.sim.engines.start import start

    with os.fdopen(handed, "rb") as pickled:
        scenario = pickle.load(pickled) or scenario_of(small_networks(file))
    if scenario is not None:
        start("compiled", scenario, 0.01, 1).advance(1)


def _end_with_the_run() -> None:
    """End the process once the run has ended, which closes its standard input, however it ends.

    The descriptor is read: a thread that waits in ``sys.stdin`` holds its lock, and Python aborts where it ends first.
    """
    os.read(0, 1)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    if UNCOMPILED in sys._xoptions:
        hand_over(sys.argv[1])
    else:
        compile_kernel(sys.argv[1], int(sys.argv[2]))
