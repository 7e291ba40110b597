# SPDX-License-Identifier: Apache-2.0
"""Shards and merging: the same bytes as one run, whatever the folders, the order and the experiment."""

import csv
import json
import shutil
import threading
from pathlib import Path

import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.pool import Shard
from flitlab.sim.experiment.runner import run_shard
from flitlab.sim.experiment.store import Store, StoreError

NO_FIGURES = "outputs: {figures: [], html: false}\n"

CONFIG = (
    """\
schema: 1
name: tiny
topology: {kind: imase, n: 6, degree: 2}
routing: {sweep: [{kind: minimal}, {kind: deflection}]}
switching: {vcs: 4}
traffic: {kind: uniform, packet_flits: 2}
loads: [0.1, 0.3, 0.6]
seeds: [1, 2]
measure: {warmup: 20, ticks: 60, ci: null}
ceilings: [bounds, split]
engine: reference
"""
    + NO_FIGURES
)
OTHERS = {
    "stop": CONFIG.replace("ci: null", "ci: null, stop_when_saturated: true").replace("0.6]", "0.9, 1.0]"),
    "saturation": CONFIG.replace("loads: [0.1, 0.3, 0.6]", "loads: {saturation: {tolerance: 0.3}}").replace(
        "engine: reference", "engine: compiled"
    ),
    "ceilings": "experiment: ceilings\ntopology: {kind: imase, n: {sweep: [5, 6, 7]}, degree: 2}\n"
    "traffic: {kind: uniform}\nceilings: [bounds]\n",
    "metrics": "experiment: metrics\ntopology: {kind: imase, n: {sweep: [5, 6, 7]}, degree: 2}\n",
    "relative": "experiment: relative\nrelative: {draws: 3}\ntopology: {kind: hypercube, dim: {sweep: [2, 3]}}\n"
    "traffic: {kind: all_to_all}\nceilings: [{kind: mcf, method: exact}]\n",
    "search": "experiment: search\nsearch: {vary: hosts_per_switch, until: 0.9, to: 4}\n"
    "topology: {kind: hypercube, dim: {sweep: [2, 3]}, hosts_per_switch: 1, host_capacity: .inf}\n"
    "traffic: {kind: all_to_all}\n",
}


def tables(folder):
    """All tables without what is allowed to differ."""
    found = {}
    for path in sorted(Path(folder).glob("*.csv")):
        with path.open() as file:
            rows = list(csv.DictReader(file))
        found[path.name] = [{k: v for k, v in row.items() if k not in ("cpu_s", "seconds")} for row in rows]
    return found


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(CONFIG)
    return "tiny.yaml"


def worker(shard, out, *more):
    return main(["worker", "--shard", shard, "tiny.yaml", "--out", out, "--jobs", "1", *more])


def test_shards_in_one_folder_are_one_run(config, capsys):
    assert main([config, "--out", "whole", "--jobs", "1"]) == 0
    for index in (3, 1):
        assert worker(f"{index}/3", "parts") == 0
    assert not list(Path("parts").glob("*.csv")) and len(list(Path("parts/points").iterdir())) == 8
    capsys.readouterr()
    assert main(["merge", "parts", "--json"]) == 1
    out, err = capsys.readouterr()
    assert sum(line.endswith(": is missing") for line in err.splitlines()) == 4
    assert len(json.loads(out)["results"]) == 8
    assert worker("2/3", "parts") == 0
    assert main(["merge", "parts"]) == 0
    assert tables("parts") == tables("whole")
    assert json.loads(Path("parts/manifest.json").read_text())["status"] == "done"


def test_folders_of_their_own_are_gathered(config, capsys):
    sets = ["--set", "seeds=[1]", "--engine", "reference"]
    assert main([config, "--out", "whole", "--jobs", "1", *sets]) == 0
    for index in (1, 2):
        assert worker(f"{index}/2", f"part{index}", *sets) == 0
    Path(config).write_text("no longer the same")
    assert main(["merge", "part1", "part2", "--out", "both"]) == 0
    assert tables("both") == tables("whole")
    Path(config).write_text(CONFIG)
    assert main(["merge", config, "part1", "part2"]) == 1, "another study: seed 2 is missing"
    assert len(tables("part1")["results.csv"]) == 6


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_every_experiment_can_be_sharded(config, name):
    Path(config).write_text(OTHERS[name] + ("" if "outputs:" in OTHERS[name] else NO_FIGURES))
    assert main([config, "--out", "whole", "--jobs", "1"]) == 0
    for index in (2, 1):
        assert worker(f"{index}/2", "parts") == 0
    assert main(["merge", "parts"]) == 0
    assert tables("parts") == tables("whole")


def test_shards_write_into_one_folder_at_the_same_time(config):
    assert main([config, "--out", "whole", "--jobs", "1"]) == 0
    study = read(config)
    reports = {}

    def work(index):
        reports[index] = run_shard(study, Path("parts"), Shard(index, 3))

    threads = [threading.Thread(target=work, args=(index,)) for index in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reports[index].exit_code for index in (1, 2, 3)] == [0, 0, 0]
    assert main(["merge", "parts"]) == 0
    assert tables("parts") == tables("whole")
    assert not list(Path("parts").glob(".*"))


def test_who_may_be_in_a_folder_together(tmp_path):
    one, two = Store(tmp_path, shared=True), Store(tmp_path, shared=True)
    with pytest.raises(StoreError, match="another run"):
        Store(tmp_path)
    one.close()
    with pytest.raises(StoreError, match="another run"):
        Store(tmp_path)
    two.close()
    alone = Store(tmp_path)
    with pytest.raises(StoreError, match="another run"):
        Store(tmp_path, shared=True)
    alone.close()
    assert not list(tmp_path.iterdir())


def test_shards_of_another_configuration_are_refused(config, capsys):
    assert worker("1/2", "parts") == 0
    capsys.readouterr()
    assert worker("2/2", "parts", "--set", "loads=[0.2]") == 2
    assert "has another configuration" in capsys.readouterr().err
    assert worker("1/2", "other", "--set", "loads=[0.2]") == 0
    assert main(["merge", "parts", "other"]) == 2
    assert main(["merge", "nowhere"]) == 2 and main(["merge", config]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_a_shard_that_does_not_exist(config, shard, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["worker", f"--shard={shard}", config])
    assert caught.value.code == 2
    assert "must be i/n with i from 1 to n" in capsys.readouterr().err


def test_results_of_one_point_that_differ_are_rejected_before_anything_is_written(config, capsys):
    for index in (1, 2):
        assert worker(f"{index}/2", f"part{index}") == 0
    shutil.copytree("part1", "forged")
    store = Store(Path("forged"), shared=True)
    name = next(f"points/{file.name}" for file in sorted(Path("forged/points").glob("*.json")))
    record = store.record(name)
    store.write_record(name, record | {"row": record["row"] | {"accepted": 0.5, "cpu_s": 9.0}})
    store.close()
    for folders in (["part1", "forged", "part2"], ["forged", "part1", "part2"]):
        capsys.readouterr()
        assert main(["merge", *folders, "--out", "both"]) == 2
        err = capsys.readouterr().err
        assert "are results of one point, and accepted is" in err and name in err and not Path("both").exists()
    shutil.rmtree("forged")
    shutil.copytree("part1", "again")
    assert main(["merge", "part1", "again", "part2", "--out", "both"]) == 0


def test_merging_names_results_of_another_flitlab(config, capsys):
    assert worker("1/1", "part") == 0
    manifest = json.loads(Path("part/manifest.json").read_text())
    manifest["versions"]["flitlab"] = "0.0.7"
    Path("part/manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    assert main(["merge", "part", "--out", "whole"]) == 0
    assert "part: its results are of flitlab 0.0.7" in capsys.readouterr().err
