# SPDX-License-Identifier: Apache-2.0
"""Commands that a signal ends at random moments: how long each takes to end, with which exit code, and what it leaves.

``python -m tests.sim.ending 40`` ends every kind of run at that many moments and prints the longest of each.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests import ROOT

MODEL = """\
name: ended
topology: {kind: torus, dims: [8, 8]}
routing: {kind: dor}
traffic: {kind: uniform, packet_flits: 4}
switching: {mode: vct, vcs: 4, buffer_flits: 16}
loads: [0.1, 0.2]
seeds: [1]
measure: {warmup: 1000, ticks: 100000000, ci: null}
engine: compiled
ceilings: []
outputs: {figures: [], html: false}
"""
DATAGRAM = """\
name: ended
topology: {kind: rrg, n: 80, ports: 8, hosts_total: 144, seed: 1}
routing: {kind: ecmp, ways: 8}
switching: {mode: datagram, packet_bytes: 1000, nic_mbps: 1000, link_us: 100, queue_packets: 100}
traffic: {kind: permutation, seed: 1}
transport: {kind: mptcp, subflows: 8}
seeds: [1]
measure: {seconds: 500}
ceilings: []
outputs: {figures: [], html: false}
"""
SPRAY = """\
name: ended
topology: {kind: leaf_spine, leaves: 8, spines: 4, hosts_per_leaf: 8}
routing: {kind: ecmp, ways: 4}
switching: {mode: spray, nic_mbps: 100Gbps, link_us: 1}
traffic: {kind: shift, by: 8, sizes: {kind: fixed, bytes: 2000000000}, arrivals: together}
transport: {kind: nscc, paths: 64, spread: oblivious}
seeds: [1]
measure: {seconds: 10}
ceilings: []
outputs: {figures: [], html: false}
"""
FLOW = """\
name: ended
experiment: collective
topology: {kind: torus, dims: [24, 24]}
collective: {kind: all_to_all, ranks: switches, size_bytes: 64 MiB, algorithm: pairwise}
routing: {kind: minimal}
switching: {mode: flow, flit_ns: 6.4, switch_ns: 100}
outputs: {figures: [], html: false}
"""
CEILINGS = """\
name: ended
topology: {kind: rrg, n: 104, degree: 11, hosts_per_switch: 6, seed: 1}
traffic: {kind: permutation, seed: 1}
ceilings: [KIND]
"""
DESIGN = """\
experiment: design
name: ended
hosts: 2048
switches: [{ports: 32}]
demands: [uniform, worst]
"""

KINDS = {
    "vct": (MODEL, ["run"]),
    "vct, two processes": (MODEL, ["run", "--jobs", "2"]),
    "wormhole": (MODEL, ["run", "--set", "switching.mode=wormhole"]),
    "deflection": (MODEL, ["run", "--set", "routing={kind: deflection}", "--set", "switching={}"]),
    "reference engine": (MODEL, ["run", "--engine", "reference"]),
    "datagram": (DATAGRAM, ["run"]),
    "spray": (SPRAY, ["run"]),
    "flow": (FLOW, ["run"]),
    "mmf": (
        CEILINGS.replace("KIND", "mmf").replace("permutation", "random, x: 10"),
        ["ceilings", "--set", "routing={kind: ksp, k: 8}"],
    ),
    "mcf, exact": (CEILINGS.replace("KIND", "{kind: mcf, method: exact}").replace("104", "400"), ["ceilings"]),
    "mcf, certified": (CEILINGS.replace("KIND", "{kind: mcf, gap: 0.000001}").replace("104", "1000"), ["ceilings"]),
    "metrics": (CEILINGS, ["topology", "--metrics", "bisection", "--set", "topology.n=60000"]),
    "topology": (CEILINGS, ["topology", "--set", "topology.n=160000"]),
    "design": (DESIGN, ["design"]),
    "design, certificates": (DESIGN.replace("2048", "512"), ["design", "--certificates"]),
    "reproduce": ("", ["reproduce", "uni"]),
}
"""Kind of run -> configuration and command; each runs for longer than the moments tried."""

FORKS = """\
import os, sys
import flitlab.sim.cli.run, flitlab.sim.cli.ceilings, flitlab.sim.cli.topology, flitlab.sim.cli.reproduce
import flitlab.sim.cli.design, flitlab.sim.engines.start, flitlab.sim.measure.measure, flitlab.fluid.ceilings
from flitlab.sim.cli import main
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.setsid()
        out = os.open("out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), out, out)):
            os.dup2(file, number)
        sys.argv = ["simrun", *eval(line)]
        sys.exit(main())
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A process that has imported everything and forks for each command: importing takes longer than most moments."""


class Commands:
    """Runs commands, each in a process of its own, and ends them."""

    def __init__(self, folder: Path):
        self.folder = folder
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "PYTHONFAULTHANDLER": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._line() == "ready"

    def __enter__(self) -> "Commands":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self, words: list[str], how: signal.Signals | None, moment: float) -> tuple[int, float, str]:
        """Starts a command and sends it a signal after a while.

        Returns its exit code, the seconds from the signal to its end, and what it said.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(repr(words) + "\n")
        self._process.stdin.flush()
        child = int(self._line())
        if how is not None:
            while not caught(child, how):  # before, the process is not yet a command of flitlab
                time.sleep(0.0005)
            time.sleep(moment)
            os.kill(child, how)
        began = time.monotonic()
        code = int(self._line())
        seconds = time.monotonic() - began
        time.sleep(0.2)
        assert not _in_session(child), "a process is left"
        return code, seconds, (self.folder / "out.txt").read_text()


def caught(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    return bool(int(line.split()[1], 16) >> number - 1 & 1)


def _in_session(session: int) -> list[str]:
    """The processes of a session that run."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = place.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(sid) == session and state != "Z":
            found.append(place.parent.name)
    return found


def end_at(kind: str, moments: int, folder: Path, seed: int = 1) -> list[dict[str, object]]:
    """Ends a kind of run at random moments of its first 8 seconds, by SIGINT and SIGTERM in turn."""
    text, words = KINDS[kind]
    (folder / "ended.yaml").write_text(text)
    command = [words[0], *(["ended.yaml"] if text else []), *words[1:]]
    if words[0] in ("run", "ceilings", "reproduce", "design"):
        command += ["--out", "out"] + ["--jobs", "1"] * ("--jobs" not in words and words[0] != "design")
    random, found = Random(seed), []
    with Commands(folder) as commands:
        for place in range(moments):
            how, moment = (signal.SIGINT, signal.SIGTERM)[place % 2], 8 * random.random()
            code, seconds, said = commands.end(command, how, moment)
            found.append({"moment": moment, "signal": how, "code": code, "seconds": seconds, "said": said[-1000:]})
    return found


if __name__ == "__main__":
    for kind in sys.argv[2:] or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            ends = end_at(kind, int(sys.argv[1]), Path(folder))
        wrong = [end for end in ends if end["code"] != 128 + int(str(int(end["signal"])))]  # type: ignore[call-overload]
        longest = max(end["seconds"] for end in ends)  # type: ignore[type-var]
        print(f"{kind}: longest {longest:.2f} s of {len(ends)}; wrong: {json.dumps(wrong)}", flush=True)
