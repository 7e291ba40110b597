"""A Dask cluster of several processes here: the same bytes as a local run, also when a worker is killed."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from sim.cli import main
from sim.experiment.cluster import ClusterError, connected
from sim.measure import point
from tests.test_cli import ROOT, SLOW
from tests.test_shards import CONFIG, tables

distributed = pytest.importorskip("distributed")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A configuration whose plugin makes points slow; workers start elsewhere and find our packages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(point, "run_point", point.run_point)  # to be put back: this process loads the plugin as well
    Path("slow.py").write_text(SLOW.replace("0.4", "0.2"))
    Path("tiny.yaml").write_text(CONFIG + "plugins: [slow.py]\n")
    return "tiny.yaml"


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


def test_dask_is_not_installed(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"flitlab\[cluster\]"), connected("tcp://127.0.0.1:9"):
        pass
