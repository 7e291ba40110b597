# SPDX-License-Identifier: Apache-2.0
"""Whose a folder is: what is foreign is left alone, what is damaged is found, what is outdated is not shown."""

import json
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.sim.api.experiment import Experiment
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import key_path
from flitlab.sim.experiment.folders import MANIFEST, ManifestError, read_manifest, run_problem
from flitlab.sim.experiment.store import RecordError, Store, read_record
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.stored import points
from tests import long_after, long_rows_after
from tests.sim.test_shards import CONFIG, tables

SMALL = CONFIG.replace("[0.1, 0.3, 0.6]", "[0.1, 0.3]").replace("seeds: [1, 2]", "seeds: [1]")


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SMALL)
    return "tiny.yaml"


def run(*more, out="run"):
    return main(["tiny.yaml", "--out", str(out), "--jobs", "1", *more])


def sets(*changes):
    """The options that make some changes."""
    return [word for change in changes for word in ("--set", change)]


def ran_once(home, *more):
    """The home of a run with some options, and its tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        Path("tiny.yaml").write_text(SMALL)
        assert run(*more) == 0
        return home, tables("run")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The home of a run, which tests copy, and its tables."""
    return ran_once(tmp_path_factory.mktemp("first"))


@pytest.fixture
def ran(config, first):
    """A run folder, and what is in its tables."""
    home, whole = first
    shutil.copytree(home / "run", "run")
    return whole


def everything(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


# folders of somebody else


FOREIGN = {
    "a table": {"results.csv": "mine\n"},
    "a folder": {"src/main.c": "int main;\n"},
    "another manifest": {MANIFEST: '{"name": "an extension", "version": "1.0"}\n', "report.html": "mine"},
    "a list": {MANIFEST: "[]", "results.csv": "mine"},
}

WRITERS = [
    ["tiny.yaml", "--out", "mine", "--jobs", "1"],
    ["worker", "--shard", "1/2", "tiny.yaml", "--out", "mine", "--jobs", "1"],
    ["ceilings", "tiny.yaml", "--out", "mine", "--jobs", "1"],
    ["ceilings", "tiny.yaml", "--save", "mine", "--jobs", "1"],
    ["merge", "run", "--out", "mine"],
    ["compare", "run", "other", "--out", "mine"],
    ["reproduce", "--configs", "rows", "--out", "mine", "--jobs", "1"],
    ["report", "mine"],
    ["plot", "mine"],
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_no_command_writes_into_the_folder_of_somebody_else(ran, foreign, capsys):
    shutil.copytree("run", "other")
    Path("rows").mkdir()
    shutil.copy("tiny.yaml", "rows/abc-f1.yaml")
    for name, text in FOREIGN[foreign].items():
        path = Path("mine", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    before = everything(".")
    for command in WRITERS:
        assert main(command) == 2, command
        out, err = capsys.readouterr()
        assert not out and len(err.splitlines()) == 1 and "mine" in err, err
        assert everything(".") == before and not list(Path("mine").glob(".*")), command


def test_simgrid_writes_into_its_own_folders_only(config, monkeypatch, capsys):
    monkeypatch.setattr("flitlab.sim.cli.simgrid.python_with_simgrid", lambda given: "python")
    Path("mine").mkdir()
    Path("mine/plan.json").write_text("mine")
    changes = ["experiment=application", "application={kind: ping_pong, size_bytes: 64}", "routing={kind: minimal}"]
    changes += ["traffic=null", "loads=null", "ceilings=null", "switching={mode: flow, flit_ns: 1}"]
    changes += ["measure={}", "outputs={}"]
    command = ["simgrid", "tiny.yaml", "--out", "mine", *sets(*changes)]
    assert main(command) == 2
    assert "--out mine: is not empty, and not a folder of this command" in capsys.readouterr().err
    assert [path.name for path in Path("mine").iterdir()] == ["plan.json"]


def test_the_file_that_is_read_is_not_overwritten(config, capsys):
    Path("g.txt").write_text("# my graph\n0 1\n1 2\n2 0\n")
    before = everything(".")
    assert main(["topology", "g.txt", "--export", "./g.txt"]) == 2
    assert main(["view", "tiny.yaml", "--out", "tiny.yaml", "--ticks", "5"]) == 2
    assert capsys.readouterr().err.count("is the input file") == 2
    assert everything(".") == before


def test_hidden_files_and_empty_folders_make_no_folder_somebody_else_s(config):
    Path("run/points").mkdir(parents=True)
    Path("run/.gitignore").write_text("*\n")
    assert run() == 0
    assert Path("run/.gitignore").read_text() == "*\n"


@pytest.mark.long
def test_what_the_commands_have_written_they_write_again(ran):
    shutil.copytree("run", "other")
    Path("rows").mkdir()
    shutil.copy("tiny.yaml", "rows/abc-f1.yaml")
    for _ in range(2):
        assert main(["ceilings", "tiny.yaml", "--out", "c", "--save", "s", "--jobs", "1"]) == 0
        assert main(["compare", "run", "other", "--out", "d"]) == 0
        assert main(["merge", "run", "other", "--out", "m"]) == 0
        main(["reproduce", "--configs", "rows", "--out", "r", "--jobs", "1"])
    assert tables("m") == ran and Path("r/abc-f1/results.csv").exists()
    assert read_manifest(Path("c"))["status"] == "done" and main(["report", "c"]) == 0


def test_ceilings_do_not_replace_the_tables_of_a_run(ran, capsys):
    before = everything("run")
    assert main(["ceilings", "tiny.yaml", "--out", "run", "--set", "ceilings=[bounds]"]) == 2
    assert "holds a run of experiment load_sweep: choose another folder" in capsys.readouterr().err
    assert everything("run") == before


# another configuration


def test_a_changed_configuration_is_named_and_what_is_valid_is_kept(ran, capsys):
    kept = sorted(Path("run/points").iterdir())
    assert run("--set", "loads=[0.3, 0.6]", "--set", "engine=reference", "--set", "switching.vcs=4") == 0
    err = capsys.readouterr().err
    assert (
        "run: the configuration has changed: loads ([0.1, 0.3] -> [0.3, 0.6]); stored results of it are reused" in err
    )
    assert "2 of 4 points are in run already" in err
    assert {row["load"] for row in tables("run")["results.csv"]} == {"0.3", "0.6"}
    assert set(kept) < set(Path("run/points").iterdir())
    assert run() == 0
    assert "4 of 4 points are in run already" in capsys.readouterr().err
    assert tables("run") == ran


def test_a_figure_by_name_without_data_is_named(config, capsys):
    asked = sets("loads=[0.1]", "outputs={html: false, formats: [svg], figures: [saturation]}")
    assert run(*asked) == 0
    assert "figures: saturation is left out: no data for it" in capsys.readouterr().err
    assert main(["plot", "run", "--figures", "saturation"]) == 0
    assert capsys.readouterr().err == "run: saturation is left out: no data for it\n"


def test_default_figures_without_data_are_not_named(config, capsys):
    assert run(*sets("loads=[0.1]", "outputs={html: false, formats: [svg]}")) == 0
    assert main(["merge", "run", "--out", "merged"]) == 0  # its resolved configuration lists the default figures
    assert "left out" not in capsys.readouterr().err


def test_the_same_configuration_says_nothing(ran, capsys):
    assert run() == 0
    assert "changed" not in capsys.readouterr().err


def test_many_changes_are_counted(ran, capsys):
    changes = ["topology={kind: torus, dims: [3, 3]}", "traffic.packet_flits=3", "seeds=[2]", "measure.ticks=70"]
    assert run(*sets(*changes, "routing={kind: minimal}", "loads=[0.2]")) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "has changed" in line)
    assert "topology.kind (imase -> torus)" in line and " more; stored results of it are reused" in line


@pytest.mark.long
def test_tables_figures_and_page_of_another_configuration_are_gone(config, capsys):
    assert (
        run("--set", "outputs={figures: [latency_load], html: true}", "--set", "published=[{where: x, value: 1}]") == 0
    )
    there = {"results.csv", "saturation.csv", "published.csv", "report.html", "figures/latency_load.png"}
    assert all(Path("run", name).exists() for name in there)
    Path("run/notes.txt").write_text("mine")
    metrics = ["experiment=metrics", "routing=null", "traffic=null", "loads=null", "ceilings=null", "measure={}"]
    assert run(*sets(*metrics, "outputs={html: false, plots: []}")) == 0
    assert not any(Path("run", name).exists() for name in there - {"figures/latency_load.png"})
    assert not any(path.stem == "latency_load" for path in Path("run/figures").iterdir())
    assert Path("run/notes.txt").read_text() == "mine" and Path("run/metrics.csv").exists()


def test_points_of_another_configuration_are_not_in_the_page(ran):
    assert run("--set", "loads=[0.3]") == 0
    manifest = read_manifest(Path("run"))
    assert len(list(Path("run/points").glob("*.json"))) == 4
    assert {point.load for _, point in points(Path("run"), manifest)} == {0.3}
    Path("run", MANIFEST).write_text(json.dumps({**manifest, "status": "running"}))
    assert {row["load"] for row in Run.read(Path("run")).rows} == {"0.3"}
    assert run("--set", "measure.ticks=70") == 0
    assert len(list(points(Path("run"), read_manifest(Path("run"))))) == 4


def test_shards_of_another_configuration_are_told_what_differs(config, capsys):
    assert main(["worker", "--shard", "1/2", "tiny.yaml", "--out", "run", "--jobs", "1"]) == 0
    assert main(["worker", "--shard", "2/2", "tiny.yaml", "--out", "run", "--set", "seeds=[2]"]) == 2
    assert "shards may be running: seeds ([1] -> [2])" in capsys.readouterr().err


# damage


def record_without_digest(path):
    record = json.loads(path.read_text())
    del record["digest"]
    path.write_text(json.dumps(record))


def another_s_record(path):
    other = next(other for other in sorted(path.parent.iterdir()) if other != path and other.is_file())
    shutil.copy(other, path)


def a_folder(path):
    path.unlink()
    (path / "inside").mkdir(parents=True)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("kind", ["points", "ceilings"])
@pytest.mark.parametrize("damage", long_after(2, [record_without_digest, another_s_record, a_folder, empty]))
def test_what_is_no_result_of_that_name_is_put_aside_and_computed_again(ran, kind, damage, capsys):
    victim = sorted(Path("run", kind).iterdir())[0]
    damage(victim)
    assert run() == 0
    err = capsys.readouterr().err
    assert f"{victim} " in err and f"moved to run/{kind}/quarantine" in err
    assert tables("run") == ran and victim.is_file()
    damage(victim)
    assert run() == 0 and tables("run") == ran
    assert len(list(Path("run", kind, "quarantine").iterdir())) == 2


def forge(name, path, value):
    """Replaces a value of a record, which gets a valid digest."""
    store, record = Store(Path("run")), read_record(Path("run"), name)
    part = record
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    store.write_record(name, record)
    store.close()


FORGED = [
    ("ceilings", ("ceilings", 0, "load"), ["x"]),
    ("points", ("row", "accepted"), {}),
    ("points", ("status",), []),
    ("points", ("row", "offered"), "0.1"),
    ("points", ("row", "latency_ci95"), ["x"]),
    ("points", ("checked",), [{}]),
    ("points", ("detail", "channel_use"), ["x"]),
    ("points", ("load",), []),
    ("ceilings", ("ceilings", 0, "upper"), "0.9"),
    ("ceilings", ("ceilings",), {}),
    ("points", ("detail", "hops_histogram"), [[[], 1]]),
]


@pytest.mark.parametrize(("kind", "path", "value"), long_rows_after(4, FORGED))
def test_a_record_of_wrong_types_with_its_digest_is_not_read(ran, kind, path, value, capsys):
    victim = sorted(Path("run", kind).iterdir())[0]
    forge(f"{kind}/{victim.name}", path, value)
    assert main(["report", "run"]) == 0
    assert not capsys.readouterr().err
    assert run() == 0
    message = f"{victim} is no stored result: {re.escape(key_path(path))}.* is not as a run writes it: moved to"
    assert re.search(message, capsys.readouterr().err)
    assert tables("run") == ran


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("detail",), None),
        *((("detail", name), value) for name in ("timeline", "flows", "channels") for value in (3, [None])),
    ],
)
def test_a_point_whose_tables_are_of_another_form_is_computed_again(ran, path, value, capsys):
    victim = sorted(Path("run", "points").iterdir())[0]
    forge(f"points/{victim.name}", path, value)
    assert run() == 0
    assert f"{victim} is no stored result: " in capsys.readouterr().err
    assert tables("run") == ran


def a_circle(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize("victim", ["results.csv", "config.yaml", MANIFEST, "points/x.json", "figures/x.png"])
@pytest.mark.parametrize("special", long_after(1, [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), a_circle]))
def test_links_and_pipes_are_rejected_by_every_command(ran, victim, special, capsys):
    Path("run", victim).parent.mkdir(exist_ok=True)
    Path("run", victim).unlink(missing_ok=True)
    special(Path("run", victim))
    for command in (
        ["tiny.yaml", "--out", "run", "--jobs", "1"], ["report", "run"], ["plot", "run"], ["compare", "run"],
        ["merge", "run"], ["ceilings", "--verify", "run"], ["reproduce", "--pages", "run", "--out", "pages"],
    ):  # fmt: skip
        assert main(command) == 2
        err = capsys.readouterr().err
        assert f"holds {victim}, which is a " in err and len(err.splitlines()) == 1


def test_a_digest_is_of_the_name_too(tmp_path):
    store = Store(tmp_path / "run")
    store.write_record("points/a.json", {"load": 0.1})
    store.close()
    assert read_record(tmp_path / "run", "points/a.json") == {"load": 0.1}
    assert read_record(tmp_path / "run", "points/b.json") is None
    (tmp_path / "run/points/a.json").rename(tmp_path / "run/points/b.json")
    with pytest.raises(RecordError, match="does not match its digest"):
        read_record(tmp_path / "run", "points/b.json")


def test_merging_takes_the_whole_one_of_two(ran, capsys):
    shutil.copytree("run", "other")
    for folder, number in (("run", 0), ("other", 1)):
        sorted(Path(folder, "points").iterdir())[number].write_text("{")
    assert main(["merge", "run", "other"]) == 0
    err = capsys.readouterr().err
    assert "moved to run/points/quarantine" in err and "other/points/" not in err
    assert tables("run") == ran


WRONG = [
    ("[]", "is not the manifest of a run"),
    ('"text"', "is not the manifest of a run"),
    ("null", "is not the manifest of a run"),
    ("", "is damaged, or not the manifest of a run"),
    ('{"semantics_version": 1, "config', "is damaged, or not the manifest of a run"),
    ("[" * 100_000, "is damaged, or not the manifest of a run"),
]
KEYS = [
    ("semantics_version", str(SEMANTICS_VERSION), "semantics_version = '6': must be a valid integer"),
    ("scenarios", None, "scenarios = null: must be a list"),
    ("scenarios", [3], "scenarios[0] = 3: must be"),
    ("scenarios", [{"seeds": [1]}], "scenarios[0].label: is missing"),
    ("scenarios", [{"label": "a", "seeds": ["1"]}], "scenarios[0].seeds[0] = '1': must be a valid integer"),
    ("scenarios", [{"label": "a", "topology": {"hash": "../../x"}}], "scenarios[0].topology.hash"),
    ("columns", "routing", "columns = routing: must be a list"),
    ("flit_ns", "2", "flit_ns = '2': must be a valid number"),
    ("mean_rate", {"a": []}, "mean_rate"),
    ("formats", ["gif"], "formats[0] = gif: is not one of the choices"),
    ("drawn", [], "drawn = []: must be"),
    ("tables", {"../../x.csv": ""}, "tables."),
    ("plots", [{}], "plots[0].y: is missing"),
    ("background_rate", [0.1], "background_rate"),
    ("flits_per_load", {"a": "2"}, "flits_per_load.a = '2': must be a valid number"),
    ("energy", [["pj", "3", "a table"]], "energy[0]"),
    ("scenarios", [{"label": "a", "ceilings": ["../../x"]}], "scenarios[0].ceilings[0]"),
]


def refused_everywhere(capsys, problem):
    """Nothing reads a manifest that no run has written, and all say why."""
    with pytest.raises(ManifestError) as caught:
        read_manifest(Path("run"))
    assert problem in str(caught.value)
    before = everything("run")
    others = [["plot", "run"], ["report", "run"], ["merge", "run"], ["compare", "run", "run/."]]
    for command in (["tiny.yaml", "--out", "run", "--jobs", "1"], *others):
        assert main(command) == 2, command
        out, err = capsys.readouterr()
        assert not out and "Traceback" not in err
        assert command[0] in ("merge", "compare") or problem in err
    assert everything("run") == before


@pytest.mark.parametrize(("text", "problem"), WRONG)
def test_a_manifest_that_is_none(ran, text, problem, capsys):
    Path("run", MANIFEST).write_text(text)
    refused_everywhere(capsys, problem)


@pytest.mark.parametrize(
    ("key", "value", "problem"), long_rows_after(5, KEYS), ids=[f"{key}-{i}" for i, (key, *_) in enumerate(KEYS)]
)
def test_a_manifest_of_wrong_types(ran, key, value, problem, capsys):
    manifest = read_manifest(Path("run"))
    Path("run", MANIFEST).write_text(json.dumps({**manifest, key: value}))
    refused_everywhere(capsys, problem.replace("'6'", repr(str(SEMANTICS_VERSION))))


@pytest.mark.long
def test_a_manifest_with_few_keys_is_enough_to_go_on(ran):
    manifest = read_manifest(Path("run"))
    few = {key: manifest[key] for key in ("semantics_version", "config_hash")}
    Path("run", MANIFEST).write_text(json.dumps(few))
    assert not run_problem(Path("run"))
    for command in (["report", "run"], ["plot", "run"], ["tiny.yaml", "--out", "run", "--jobs", "1"]):
        assert main(command) == 0
    assert tables("run") == ran


# any damage


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A run folder to damage copies of, and its tables."""
    return ran_once(tmp_path_factory.mktemp("model"), "--set", "outputs={figures: [], html: false}")


DAMAGE = ["cut", "flip", "empty", "remove", "folder", "link", "circle", "pipe", "type", "swap", "unreadable"]


def do_damage(folder, data):
    """Damages one file, or folder, below a run folder."""
    there = sorted(path for path in folder.rglob("*") if not path.name.startswith("."))
    path = data.draw(st.sampled_from(there), "victim")
    how = data.draw(st.sampled_from(DAMAGE), "damage")
    content = path.read_bytes() if path.is_file() else b""
    if how == "swap" and path.is_file():
        os.replace(path, data.draw(st.sampled_from([other for other in there if other.is_file()]), "swapped with"))
        return
    if how == "unreadable":
        with suppress(OSError):
            path.chmod(0)
        return
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if how == "cut":
        path.write_bytes(content[: data.draw(st.integers(0, len(content)), "length")])
    elif how == "flip":
        place = data.draw(st.integers(0, max(len(content) - 1, 0)), "place")
        changed = bytearray(content or b"x")
        changed[place] ^= data.draw(st.integers(1, 255), "bits")
        path.write_bytes(changed)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "folder":
        (path / data.draw(st.sampled_from(["a", "b.json"]))).mkdir(parents=True)
    elif how == "link":
        path.symlink_to(data.draw(st.sampled_from(["nowhere", "/etc/passwd", ".", "..", "config.yaml"])))
    elif how == "circle":
        path.symlink_to(path.name)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "type":
        path.write_text(
            json.dumps(data.draw(st.sampled_from([None, 3, "x", [], [{}], {}, {"row": {}}, {"digest": 1}])))
        )


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_damaged_a_run_gives_the_same_or_says_why_not(model, tmp_path, monkeypatch, capsys, data):
    home, whole = model
    monkeypatch.chdir(home)
    folder = tmp_path / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree("run", folder)
    for _ in range(data.draw(st.integers(1, 3), "how often")):
        do_damage(folder, data)
    code = run("--set", "outputs={figures: [], html: false}", out=folder)
    err = capsys.readouterr().err
    assert "Traceback" not in err
    if code == 0:
        assert tables(folder) == whole
    else:
        assert code in (1, 2) and err.strip()


@pytest.mark.parametrize(
    ("table", "content"),
    [("results.csv", b"scenario,load\na\n"), ("ceilings.csv", b""), ("results.csv", b"\xff"), ("results.csv", None)],
)
def test_a_table_that_is_not_as_it_was_written(ran, table, content, capsys):
    shutil.copytree("run", "other")
    Path("run", table).unlink()
    Path("run", table).mkdir() if content is None else Path("run", table).write_bytes(content)
    for command in (["compare", "run", "other"], ["report", "run"]):
        code = main(command)
        err = capsys.readouterr().err
        assert code in (0, 2) and "Traceback" not in err
        assert f"run/{table}: is not as the run wrote it" in err or code == 2
        if command[0] == "report" and code == 0:
            assert f"{table}: not as the run wrote it" in Path("run/report.html").read_text()
    assert run() == (0 if content is not None else 1)
    assert content is None or tables("run") == ran


def test_the_same_folder_by_another_name(ran, capsys):
    assert main(["compare", "run", "other/../run/."]) == 2
    assert "the same folder is given twice" in capsys.readouterr().err


def test_a_table_whose_loads_are_no_numbers(ran, capsys):
    table = Path("run/results.csv")
    table.write_text(table.read_text().replace(",0.1,", ",x,"))
    assert main(["report", "run"]) == 2 and main(["compare", "run"]) == 2
    assert capsys.readouterr().err.count("run/results.csv: row 1: load = x: must be a number") == 2
    table.unlink()
    table.mkdir()
    assert main(["report", "run"]) == 2
    assert "run/results.csv: is a folder, not a file" in capsys.readouterr().err


def test_merge_says_what_is_wrong_with_a_manifest(ran, capsys):
    manifest = json.loads(Path("run", MANIFEST).read_text())
    Path("run", MANIFEST).write_text(json.dumps({**manifest, "status": []}))
    assert main(["merge", "run"]) == 2
    assert "not a run folder: run/manifest.json: status = []: must be a valid string" in capsys.readouterr().err


def edit(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("manifest.json", '"tables": {', '"no_tables": {'),
        ("manifest.json", '"results.csv": "', '"results.csv": "0'),
        ("manifest.json", '"flit_ns": null', '"flit_ns": 1000.0'),
        ("manifest.json", '"config_hash": "', '"config_hash": "0'),
        ("config.resolved.yaml", "load", "lead"),
    ],
)
def test_whatever_of_a_run_is_edited_by_hand_is_named(ran, file, old, new, capsys):
    shutil.copytree("run", "other")
    Path("run", file).write_text(edit(Path("run", file).read_text(), old, new))
    assert main(["compare", "run", "other"]) == 2
    assert f"run/{file}: is not as the run wrote it" in capsys.readouterr().err
    if main(["report", "run"]) == 0:
        assert f"run/{file}: is not as the run wrote it" in capsys.readouterr().err
    with pytest.warns(UserWarning, match=f"{file}: is not as the run wrote it"):
        Experiment.open("run")


def test_a_table_that_the_run_did_not_write_is_named(ran, capsys):
    shutil.copytree("run", "other")
    Path("run/metrics.csv").write_text("scenario,diameter\nrouting=minimal,9\n")
    assert main(["compare", "run", "other"]) == 2
    assert "run/metrics.csv: is not as the run wrote it" in capsys.readouterr().err
