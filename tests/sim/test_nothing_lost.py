# SPDX-License-Identifier: Apache-2.0
"""What may happen to a run and its folder: nothing is lost, nothing wrong is used, nothing is written elsewhere."""

import errno
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.checks import machine_bytes
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment import pool as pool_module
from flitlab.sim.experiment import store as store_module
from flitlab.sim.experiment.pool import DIED, InProcess, Processes, SharedProcesses, Task, run_all
from flitlab.sim.experiment.store import Store
from flitlab.sim.experiment.task import Outcome
from tests import long_after
from tests.sim.test_cli import children, simrun, wait_for_points
from tests.sim.test_cluster import config as slow_config  # noqa: F401
from tests.sim.test_shards import CONFIG, tables


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(CONFIG)
    return "tiny.yaml"


def run(config, out="run", *more):
    return main([config, "--out", str(out), "--jobs", "1", *more])


@pytest.fixture
def whole(config):
    """What an undisturbed run gives."""
    assert run(config, "whole") == 0
    return tables("whole")


# processes


def ends_once(path):
    """A task that ends its process the first time."""
    if not path.exists():
        path.touch()
        os._exit(1)
    return Outcome("second time")


def ends_always(path):
    """A task that always ends its process."""
    os._exit(1)


def spends(count):
    """A task that takes as many hundredths of a second of CPU time."""
    began = time.process_time()
    while time.process_time() < began + count / 100:
        pass
    return Outcome(time.process_time() - began - 0.02)  # os.times has ticks of a hundredth


def works(path):
    """A task."""
    return Outcome("done")


@pytest.mark.long
def test_calls_survive_the_death_of_a_process(tmp_path):
    found = {}

    def task(number, call):
        return Task(call, (tmp_path / "once",), lambda outcome: found.__setitem__(number, outcome))

    calls = [works, ends_once, works, ends_always, works]
    run_all(Processes(2, ()), [task(number, call) for number, call in enumerate(calls)])
    assert [found[number].result for number in range(5)] == ["done", "second time", "done", None, "done"]
    assert found[3].problem == DIED


def test_processes_that_last_serve_one_run_after_another(monkeypatch):
    opened = []
    monkeypatch.setattr(pool_module, "open_pool", lambda options: opened.append(options.jobs) or InProcess())
    lasting, found = SharedProcesses(2), []

    def serve(call):
        run_all(lasting, [Task(call, (3,), found.append)])

    serve(spends)
    assert opened == [2] and lasting.spent >= found[0].result > 0
    serve(works)
    assert opened == [2]
    with pytest.raises(TypeError):
        serve(len)
    serve(works)
    assert opened == [2, 2] and [outcome.result for outcome in found[1:]] == ["done", "done"]


@pytest.mark.long
def test_calls_survive_the_death_of_a_process_that_lasts(tmp_path):
    found, lasting = [], SharedProcesses(2)
    for calls in ([works, ends_once, works], [works]):
        run_all(lasting, [Task(call, (tmp_path / "once",), found.append) for call in calls])
    lasting.end()
    assert sorted(outcome.result for outcome in found) == ["done", "done", "done", "second time"]


@pytest.mark.long
def test_a_pool_worker_is_killed(slow_config):  # noqa: F811
    Path("plain.yaml").write_text(CONFIG)
    process = simrun(slow_config, "--out", "run", "--jobs", 2)
    wait_for_points(process, "run", 2)
    os.kill(int(children(process.pid)[0]), 9)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert run("plain.yaml", "undisturbed") == 0
    assert tables("run") == tables("undisturbed")


# the folder


def test_two_runs_in_one_folder(config, capsys):
    other = Store(Path("run"))
    assert run(config) == 2
    out, err = capsys.readouterr()
    assert err == f"{config}: output folder = run: another run is writing there\n" and not out
    other.close()
    assert run(config) == 0


@pytest.mark.parametrize("when", long_after(1, [9, 1, 5, 14]))
def test_a_full_disk(config, whole, monkeypatch, capsys, when):
    left = [when]

    def fsync(handle, real=os.fsync):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(store_module.os, "fsync", fsync)
        assert run(config) == 1
    err = capsys.readouterr().err
    assert "No space left on device" in err and "the same command resumes" in err
    assert not list(Path("run").rglob("*.part")) and not list(Path("run").glob(".*"))
    assert run(config) == 0
    assert tables("run") == whole


@pytest.fixture
def disk(tmp_path):
    """Makes a file system of its own, of a size in kilobytes; mounts it again with other options."""
    place = tmp_path / "disk"

    def mount(options):
        place.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
        return place

    yield mount
    if os.path.ismount(place):
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.long
def test_a_small_disk_that_is_full_and_then_is_not(config, whole, disk, capsys):
    place = disk("size=44k")
    assert run(config, place / "run") == 1
    err = capsys.readouterr().err
    assert "No space left on device" in err and "Traceback" not in err
    for path in place.rglob("*.json"):
        json.loads(path.read_text())
    disk("remount,size=4m")
    assert run(config, place / "run") == 0
    assert tables(place / "run") == whole


def test_a_folder_that_can_only_be_read(config, disk, capsys):
    if os.geteuid() == 0:  # to whom modes of files mean nothing
        place = disk("size=1m") / "run"
        place.mkdir()
        disk("remount,ro")
    else:
        place = Path("run")
        place.mkdir(mode=0o555)
    assert run(config, place) == 2
    err = capsys.readouterr().err
    assert "cannot be written" in err and len(err.splitlines()) == 1


def damage_digit(path):
    text = path.read_text()
    assert '"packets": ' in text
    path.write_text(text.replace('"packets": ', '"packets": 1', 1))


def damage_end(path):
    path.write_bytes(path.read_bytes()[:-40])


def damage_all(path):
    path.write_bytes(bytes(64))


@pytest.mark.parametrize("damage", long_after(1, [damage_digit, damage_end, damage_all]))
def test_a_damaged_point_is_found_and_run_again(config, whole, capsys, damage):
    assert run(config) == 0
    victim = sorted(Path("run/points").iterdir())[2]
    damage(victim)
    damaged = victim.read_bytes()
    capsys.readouterr()
    assert run(config) == 0
    err = capsys.readouterr().err
    assert f"{victim} does not match its digest" in err or (
        f"{victim} is" in err and "moved to run/points/quarantine" in err and "11 of 12 points" in err
    )
    assert Path("run/points/quarantine", victim.name).read_bytes() == damaged
    assert tables("run") == whole


def test_results_of_other_semantics_are_refused(config, capsys):
    assert run(config) == 0
    path = Path("run/manifest.json")
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"semantics_version": manifest["semantics_version"] - 1}))
    before = {file: file.read_bytes() for file in Path("run").rglob("*.*")}
    capsys.readouterr()
    assert run(config) == 2
    err = capsys.readouterr().err
    assert f"semantics_version {manifest['semantics_version'] - 1}" in err and "choose another folder" in err
    assert {file: file.read_bytes() for file in Path("run").rglob("*.*")} == before


@pytest.mark.parametrize("link", ["points", "figures", "points/0.json", "results.csv"])
def test_links_do_not_lead_out_of_the_folder(config, link, capsys):
    Path("elsewhere").mkdir()
    Path("run", link).parent.mkdir(parents=True)
    Path("run/manifest.json").write_text('{"semantics_version": 0, "config_hash": ""}')
    Path("run", link).symlink_to(Path("elsewhere").resolve())
    assert run(config) == 2
    assert f"output folder = run: holds {link}, which is a link, not a file\n" in capsys.readouterr().err
    assert not list(Path("elsewhere").iterdir())


@pytest.mark.long
def test_a_link_to_the_folder_itself_is_the_user_s_own(config):
    Path("scratch").mkdir()
    Path("run").symlink_to("scratch")
    assert run(config) == 0
    assert Path("scratch/results.csv").exists()


def test_what_a_killed_run_leaves_is_removed(config):
    Path("run/points").mkdir(parents=True)
    Path("run/points/.x.json.abc.part").write_text("half")
    Path("run/.scenarios-old").mkdir()
    Path("run/.scenarios-old/x.pickle").write_bytes(b"never read")
    assert run(config) == 0
    assert not list(Path("run").rglob(".*"))


# configurations of others


@pytest.mark.parametrize("name", ["../up", "/tmp/x", "a/b", "..", ".hidden", "a\\b", "' '"])
def test_names_stay_inside_runs(config, name, capsys):
    Path(config).write_text(CONFIG.replace("name: tiny", f"name: {name}"))
    assert main([config]) == 2
    assert "must be the name of a folder" in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == [config]


@pytest.mark.parametrize("value", ["!!python/object/apply:os.system ['touch owned']", "!!python/name:os.system"])
def test_tags_run_nothing(config, value, capsys):
    Path(config).write_text(CONFIG + f"seeds2: {value}\n")
    assert main([config]) == 2
    assert "is not supported" in capsys.readouterr().err and not Path("owned").exists()


def test_only_plugins_that_are_named_are_loaded(config):
    Path("evil.py").write_text("open('owned', 'w')\n")
    Path("conftest.py").write_text("open('owned', 'w')\n")
    assert main(["check", config]) == 0
    assert not Path("owned").exists()
    assert main(["check", config, "--set", "plugins=[evil.py]"]) == 0
    assert Path("owned").exists()


HUGE = [
    ("topology.n=1000000000", "channels"),
    ("topology={kind: fat_tree, k: 1000000}", "channels"),
    ("topology={kind: imase, n: 6, degree: 2, hosts_per_switch: 1000000000}", "hosts"),
    ("loads={from: 0.000001, to: 1, step: 0.000000001}", "more than 10,000 loads are too many"),
    ("routing={kind: ksp, k: 1000000000}", "less than or equal to"),
    ("topology.n=64 & routing={kind: allpath, hops: 1000000}", "too many to keep"),
    ("metrics=[{kind: k_shortest, k: 1000000000}]", "less than or equal to"),
    ("measure.ticks=1000000000000", "less than or equal to"),
    ("measure={ticks: 1, max_ticks: 1000000000, ci: 0.01}", "of memory"),
    ("switching={buffer_flits: 1000000000}", "less than or equal to"),
    ("traffic.packet_flits=1000000000", "GB of memory"),
]


@pytest.mark.parametrize(("change", "problem"), HUGE)
def test_what_fits_no_machine_is_refused_before_it_is_made(config, monkeypatch, change, problem):
    monkeypatch.setattr("flitlab.sim.config.checks.machine_bytes", lambda: 16 * 10**9)
    with pytest.raises(ConfigError) as caught:
        read(config, change.split(" & "))
    assert any(problem in str(mistake) for mistake in caught.value.errors)


def test_an_estimate_says_how_much_and_of_what(config, monkeypatch):
    assert machine_bytes() > 10**8
    monkeypatch.setattr("flitlab.sim.config.checks.machine_bytes", lambda: 10**6)
    with pytest.raises(ConfigError) as caught:
        read(config, ["switching={vcs: 64, buffer_flits: 4096}"])
    assert str(caught.value) == (
        "--set: switching.buffer_flits = 4096: needs about 117 MB of memory; 1 MB are available"
    )


def test_a_file_without_end(capsys):
    if not Path("/dev/zero").exists():
        pytest.skip("needs /dev/zero")
    assert main(["/dev/zero"]) == 2
    assert "is longer than" in capsys.readouterr().err
