# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster of several processes here: the same bytes as a local run, also when a worker is killed."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from flitlab.sim.cli import main
from flitlab.sim.experiment.cluster import ClusterError, _slurm, connected, is_unprotected
from flitlab.sim.measure import measure as door
from tests.sim.test_cli import ROOT, SLOW
from tests.sim.test_shards import CONFIG, tables

distributed = pytest.importorskip("distributed")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A configuration whose plugin makes points slow; workers start elsewhere and find our packages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(door, "measure", door.measure)  # to be put back: this process loads the plugin as well
    Path("slow.py").write_text(SLOW.replace("0.4", "0.2"))
    Path("tiny.yaml").write_text(CONFIG + "plugins: [slow.py]\n")
    return "tiny.yaml"


@pytest.mark.long
def test_a_worker_is_killed_and_the_bytes_are_the_same(config, tmp_path):
    Path("plain.yaml").write_text(CONFIG)
    assert main(["plain.yaml", "--out", "local", "--jobs", "1"]) == 0
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path / "dask")
    ) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill():
            deadline = time.monotonic() + 60
            while len(list(Path("far/points").glob("*.json"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.02)
            os.kill(victim, signal.SIGKILL)
            killed.append(len(list(Path("far/points").glob("*.json"))))

        thread = threading.Thread(target=kill)
        thread.start()
        assert main([config, "--out", "far", "--cluster", cluster.scheduler_address]) == 0
        thread.join()
    assert 2 <= killed[0] < 12, "the worker died in the middle"
    assert tables("far") == tables("local")


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("nonsense", "must be tcp://host:port"),
        ("slurm:jobs=2", "memory is missing"),
        ("slurm:jobs=many,memory=1GB", "jobs=many: must be a number of jobs"),
        ("slurm:memory", "memory: must be key=value"),
        ("slurm:memory=1GB,colour=red", "unexpected keyword argument 'colour'"),
    ],
)
def test_what_is_no_cluster(config, where, problem, capsys):
    assert main([config, "--cluster", where]) == 2
    out, err = capsys.readouterr()
    assert problem in err and len(err.splitlines()) == 1 and not out and not Path("runs").exists()


@pytest.mark.parametrize(
    "address",
    [
        "tcp://10.0.0.1:8786", "tcp://node1:8786", "tcp://0.0.0.0:8786", "tcp://[2001:db8::1]:8786", "ucx://node1:1",
        "tcp://localhost.example.org:1", "tcp://127.0.0.1.example.org:1", "tcp://127.0.0.1@node1:1", "ws://node1:1",
        "tcp://[::1:1", "tcp://:8786",
    ],
)  # fmt: skip
def test_addresses_that_others_may_reach(address):
    assert is_unprotected(address)


@pytest.mark.parametrize(
    "address",
    [
        "tls://10.0.0.1:8786", "tls://node1:8786", "tcp://localhost:8786", "tcp://127.0.0.1:8786", "tcp://127.9.8.7:1",
        "tcp://[::1]:8786", "inproc://192.0.2.1/1/1", "wss://node1:1", "TCP://LOCALHOST:1",
    ],
)  # fmt: skip
def test_addresses_that_they_do_not(address):
    assert not is_unprotected(address)


@pytest.mark.parametrize(("address", "said"), [("tcp://192.0.2.1:8786", 2), ("tcp://127.0.0.1:8786", 1)])
def test_an_open_address_is_warned_of_before_anything_is_sent(config, monkeypatch, address, said, capsys):
    async def refuse(*_, **__):
        assert ("anyone who can reach the port" in capsys.readouterr().err) == (said == 2)
        raise OSError("refused")

    monkeypatch.setattr("distributed.comm.core.connect", refuse)
    assert main([config, "--cluster", address]) == 2
    assert capsys.readouterr().err == f"--cluster {address}: no Dask scheduler answers: refused\n"


def test_what_answers_may_be_anything(config, monkeypatch, capsys):
    async def nonsense(*_, **__):
        raise MemoryError("3 EiB")

    monkeypatch.setattr("distributed.comm.core.connect", nonsense)
    assert main([config, "--cluster", "tcp://localhost:80"]) == 2
    assert "no Dask scheduler answers: 3 EiB" in capsys.readouterr().err


def test_tls_without_certificates(config, capsys):
    assert main([config, "--cluster", "tls://localhost:8786"]) == 2
    assert "TLS needs certificates" in capsys.readouterr().err


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(("given", "wanted"), [("", True), (",security=true", True), (",security=false", False)])
def test_jobs_speak_tls_where_that_can_be_had(monkeypatch, there, given, wanted, capsys):
    asked = {}

    class Jobs:
        def __init__(self, **parameters):
            asked.update(parameters)

        def scale(self, jobs):
            asked["jobs"] = jobs

    pytest.importorskip("dask_jobqueue")
    monkeypatch.setattr("dask_jobqueue.SLURMCluster", Jobs)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if there else None)
    _slurm(f"jobs=3,memory=1GB{given}")
    err = capsys.readouterr().err
    assert asked["jobs"] == 3 and asked.get("security", False) == (wanted and there)
    assert ("shared_temp_directory" in asked) == (wanted and there)
    assert ("no TLS" in err and "anyone who can reach the port" in err) == (not (wanted and there))


def test_dask_is_not_installed(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"flitlab\[cluster\]"), connected("tcp://127.0.0.1:9"):
        pass
