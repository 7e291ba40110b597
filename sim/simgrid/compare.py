# SPDX-License-Identifier: Apache-2.0
"""One program in mode ``flow``, and in SimGrid as its links, routes and operations."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from flitlab.models.application.messages import total_flits
from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.models.files import replace_file
from flitlab.models.mappings import JsonObject
from flitlab.models.registry import SpecError
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.sim.engines.flow import (
    FlowConstants,
    clear_channel_shares,
    compute_channel_shares,
    make_channel_shares,
    make_network,
)
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import run_to_end

MISSING = (
    "SimGrid is not installed: no Python here has its module 'simgrid' (tried with 3.32). On Debian and Ubuntu: "
    "apt-get install python3-simgrid (it is for the system's Python, which is then used); elsewhere: --python PATH of "
    "a Python that has it"
)

NS = 1e-9

REPLAY = Path(__file__).with_name("replay.py")
"""The script for a Python that has SimGrid."""

WORKS = "import simgrid; simgrid.Comm.sendto_async; simgrid.NetZone.create_full_zone"
"""Code that succeeds in a Python that has SimGrid."""


class SimGridMissing(Exception):
    """SimGrid is not installed."""


class SimGridFailed(Exception):
    """SimGrid did not run the program; the message is its output."""


@dataclass(frozen=True)
class ProgramTimes:
    """Completion times of a program and of each of its ranks, float64 [ranks], in nanoseconds; wall_s: seconds of
    the run.
    """

    makespan: float
    ranks: np.ndarray
    wall_s: float


@cache
def python_with_simgrid(path: str | None = None) -> str:
    """A Python that has SimGrid's module: ``path``, or the first one that is found. Raises :class:`SimGridMissing`."""
    candidates = [sys.executable, shutil.which("python3"), "/usr/bin/python3"] if path is None else [path]
    for python in dict.fromkeys(filter(None, candidates)):
        try:
            probe = subprocess.run([python, "-c", WORKS], capture_output=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if probe.returncode == 0:
            return python
    raise SimGridMissing(MISSING if path is None else f"--python {path}: has no module 'simgrid'")


def plan_of(scenario: Scenario[Flow, Workload], seed: int = 1, by_latency: bool = False) -> JsonObject:
    """Input of ``replay.py`` as lists and numbers.

    Keys: hosts: their number. links: (bytes/s, seconds) of the channels between switches, then from and to the hosts; a
    link's latency is that of the channel and the next switch, and all other delays of a message are the latency of the
    channel from its host. routes: (source, destination, links) of all pairs of hosts with messages. hold: seconds for
    which operations occupy their processors. size: bytes on the links, headers included; empty: of requests and
    consents. waits: whether a send is a rendezvous. buffered: whether other sends are done before their messages have
    left; confirmed: whether they are done when these have been delivered. later: seconds from the end of the transfer
    of a message to its delivery, for every route. Other keys are arrays of the program.

    SimGrid gives flows that share a link rates in inverse proportion to the latencies of their routes, like TCP
    (``by_latency``). Without it, links have no latency, and messages take the latency of their routes ``later``.

    Parameters
    ----------
    scenario : Scenario
        Of mode ``flow``, with a program.
    seed : int
        Draws the routes.
    by_latency : bool
        Whether latencies determine shares.

    Raises
    ------
    SpecError
        A message would take more than one path: SimGrid has one per pair of hosts.
    """
    workload = scenario.work
    program, messages, host = workload.program, workload.messages, workload.host
    network, tick = make_network(scenario, seed), float(messages.tick_ns) * NS
    is_send = program.kind == Op.SEND
    waits = is_send & (program.amount > messages.rendezvous)
    hold = np.where(program.kind == Op.CALC, program.amount * NS, messages.overhead * tick)
    flits = total_flits(np.where(is_send, program.amount, 0), messages).astype(np.int64)
    empty = int(total_flits(np.zeros(1, np.int64), messages)[0]) * messages.flit_bytes
    arrays = {
        "kind": program.kind, "partner": program.partner, "rank": program.rank, "cpu": program.cpu,
        "need": program.need, "after": program.after, "successor": program.successor, "host": host, "hold": hold,
        "size": flits * messages.flit_bytes, "waits": waits,
    }  # fmt: skip
    send = np.flatnonzero(is_send)
    ends = np.stack([host[program.rank[send]], host[program.peer[send]]], axis=1)
    pairs = np.unique(np.concatenate([ends, ends[waits[send]][:, ::-1]]), axis=0)
    links = _links(network, messages.flit_bytes, tick)
    routes = _routes(network, scenario, pairs[pairs[:, 0] != pairs[:, 1]])
    later = [0.0] * len(routes)
    if not by_latency:
        later = [sum(links[number][1] for number in route) for _, _, route in routes]
        links = [(bandwidth, 0.0) for bandwidth, _ in links]
    return {
        "hosts": scenario.topology.hosts, "links": links, "routes": routes, "later": later, "empty": empty,
        "tick": tick, "buffered": messages.buffered, "confirmed": messages.confirmed,
        "await_receive": messages.await_receive,
        **{name: array.tolist() for name, array in arrays.items()},
    }  # fmt: skip


def _links(network: FlowConstants, flit_bytes: int, tick: float) -> list[tuple[float, float]]:
    bandwidth = network.capacity * (flit_bytes / tick)
    from_hosts, to_hosts = np.full(network.hosts, network.end_delay), np.zeros(network.hosts)
    latency = np.concatenate([network.hop, from_hosts, to_hosts]) * tick
    return list(zip(bandwidth.tolist(), latency.tolist(), strict=True))


def _routes(
    network: FlowConstants, scenario: Scenario[Flow, Workload], pairs: np.ndarray
) -> list[tuple[int, int, list[int]]]:
    route_buffer, routes = make_channel_shares(network, scenario.topology.switches), []
    for source, destination in pairs.tolist():
        count, _ = compute_channel_shares(network, route_buffer, source, destination, 0, 0, 1)
        links = route_buffer.channel[:count].tolist()
        if (route_buffer.share[links] != 1.0).any():
            kind = scenario.routes.kind
            raise SpecError(
                f"{kind} routing sends packets from host {source} to host {destination} over several paths; SimGrid "
                "has one for a pair of hosts (minimal: select: hash draws one; ecmp: per: flow)", key="routing",
            )  # fmt: skip
        clear_channel_shares(route_buffer, count)
        routes.append((source, destination, links))
    return routes


def by_flow(scenario: Scenario[Flow, Workload], seed: int) -> ProgramTimes:
    """Times of the program in mode ``flow``."""
    began, run = time.perf_counter(), start("compiled", scenario, 1.0, seed)
    run_to_end(run, scenario, None)
    tick_ns = float(scenario.work.messages.tick_ns)
    execution = run.execution()
    return _times(scenario, execution.finish * (tick_ns / execution.resolution), began)


def by_simgrid(
    scenario: Scenario[Flow, Workload], seed: int, python: str, by_latency: bool = False, folder: Path | None = None
) -> ProgramTimes:
    """Times of the program in SimGrid.

    Parameters
    ----------
    scenario : Scenario
        Of mode ``flow``, with a program.
    seed : int
        Draws the routes.
    python : str
        A Python that has SimGrid.
    by_latency : bool
        See :func:`plan_of`.
    folder : Path or None
        Where the input and output files of SimGrid are kept.

    Raises
    ------
    SpecError
        The scenario cannot be expressed in SimGrid.
    OSError
        A file cannot be written.
    SimGridFailed
        SimGrid did not run the program.
    """
    plan = plan_of(scenario, seed, by_latency)
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch) / name for name in ("plan.json", "times.json")]
        replace_file(files[0], json.dumps(plan))
        began = time.perf_counter()
        done = subprocess.run([python, REPLAY, *files], capture_output=True, text=True, check=False)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            for file in filter(Path.is_file, files):
                replace_file(folder / file.name, file.read_bytes())
        if done.returncode:
            output = done.stderr.strip().splitlines() or ["it says nothing"]
            raise SimGridFailed(f"SimGrid ended with code {done.returncode}: {output[-1]}")
        finish = json.loads(files[1].read_text("utf-8"))["finish"]
    if None in finish:
        raise SimGridFailed(f"SimGrid did not come to the end of operation {finish.index(None)}")
    return _times(scenario, np.array(finish) * 1e9, began)


def _times(scenario: Scenario[Flow, Workload], finish: np.ndarray, began: float) -> ProgramTimes:
    """Times of the ranks from those of the operations."""
    program = scenario.work.program
    ranks = np.zeros(program.ranks)
    np.maximum.at(ranks, program.rank, finish)
    return ProgramTimes(float(finish.max(initial=0.0)), ranks, time.perf_counter() - began)
