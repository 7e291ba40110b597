# SPDX-License-Identifier: Apache-2.0
"""The command line: documents, exit codes, and runs that are interrupted, killed or spread over processes."""

import argparse
import contextlib
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flitlab.models.registry import CATEGORIES, names, spec_class
from flitlab.sim.cli import main
from flitlab.sim.cli.components import keys_in, parameters
from flitlab.sim.cli.topology import parse_spec
from flitlab.sim.config.build import build
from flitlab.sim.config.components import ComponentBuilder
from flitlab.sim.config.diagnostics import Diagnostics
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.schema import sections
from tests import ROOT

CONFIG = """\
schema: 1
name: tiny
topology: {kind: imase, n: 8, degree: 3, hosts_per_switch: 2}
routing: {sweep: [{kind: minimal}, {kind: deflection}]}
switching: {vcs: 4, header_ticks: 2}
traffic: {kind: uniform, packet_flits: 3}
loads: [0.1, 0.3]
seeds: [1, 2]
measure: {warmup: 100, ticks: 300, ci: null}
ceilings: []
engine: reference
outputs: {figures: []}
quick: {seeds: [1], topology.n: 6}
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    return "tiny.yaml"


def simrun(*arguments, **more):
    """A process; modules are found whether the package is installed or not."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "flitlab", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def test_a_configuration_may_be_a_pipe(tmp_path, capsys):
    """As of ``simrun check <(...)``; relative paths in it start from the current folder."""
    (tmp_path / "net.txt").write_text("# directed: false\na b\nb c\nc a\n")
    network = "{kind: imase, n: 8, degree: 3, hosts_per_switch: 2}"
    text = CONFIG.replace(network, "{kind: file, path: net.txt}").replace("name: tiny\n", "")
    end, other_end = os.pipe()
    os.write(other_end, text.encode())
    os.close(other_end)
    assert main(["check", f"/dev/fd/{end}", "--json"]) == 0
    os.close(end)
    assert json.loads(capsys.readouterr().out)["name"] == f"{end}"


def test_commands_say_that_they_need_compiled_code(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    process = simrun("list")
    assert process.communicate()[1].startswith("simrun: NUMBA_DISABLE_JIT is set") and process.returncode == 2


def results(folder):
    """results.csv without what is allowed to differ."""
    with (Path(folder) / "results.csv").open() as file:
        return [{k: v for k, v in row.items() if k != "cpu_s"} for row in csv.DictReader(file)]


def test_help_imports_nothing_heavy():
    code = (
        "import sys, contextlib, io\nfrom flitlab.sim.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main(['--help'])\n"
        "print(sorted({'numpy', 'numba', 'pydantic', 'yaml', 'rich', 'networkx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "[]\n"


@pytest.fixture
def interruptible():
    """Python's own handling of SIGINT, which a shell that starts the tests in the background has turned off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_that_python_drops_is_still_one(monkeypatch):
    def fails(_):
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        return 1

    monkeypatch.setattr("flitlab.sim.cli.parser.parse", lambda _: argparse.Namespace(run=fails))
    assert main([]) == 130
    monkeypatch.setattr("flitlab.sim.cli.parser.parse", lambda _: argparse.Namespace(run=lambda _: 1))
    assert main([]) == 1


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_that_python_drops_is_not_told(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(dropped.exc_type))

    class Drops:
        def __init__(self, error):
            self.error = error

        def __del__(self):
            raise self.error

    def run(_):
        for error in (KeyboardInterrupt, ValueError):
            Drops(error)
        return 0

    monkeypatch.setattr("flitlab.sim.cli.parser.parse", lambda _: argparse.Namespace(run=run))
    assert main([]) == 0 and told == [ValueError]


def test_what_a_terminal_cannot_show_is_escaped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(shown, "ascii", errors="strict", write_through=True))
    assert main(["ü.yaml"]) == 2
    assert shown.getvalue() == rb"\xfc.yaml: No such file or directory" + b"\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("run", "tiny.yaml", "--jobs", "0"), "--jobs: 0: must be 1 or more"),
        (("run", "tiny.yaml", "--jobs", "x"), "--jobs: x: must be a whole number"),
        (("trace", "tiny.yaml", "--load", "much"), "--load: much: must be a number"),
        (("trace", "tiny.yaml", "--seed", "9" * 20), f"--seed: {'9' * 20}: must be 0 or more and below 2**63"),
        (("trace", "tiny.yaml", "--packet", "-1"), "--packet: -1: must be 0 or more"),
        (("worker", "tiny.yaml", "--shard", "3/2"), "--shard: 3/2: must be i/n with i from 1 to n"),
        (("trace", "tiny.yaml", "--from", "9", "--to", "5"), "--to 5: must be above --from, 9"),
        (("view", "tiny.yaml", "--out", "no/x.html"), "--out = no/x.html: No such file or directory"),
        (("ceilings", "tiny.yaml", "--draw", "x.bmp"), "--draw = x.bmp: pictures are .png or .svg"),
        (("compare", "tiny.yaml"), "simrun compare: tiny.yaml: Not a directory"),
    ],
)
def test_option_values(config, capsys, options, expected):
    try:
        code = main(list(options))
    except SystemExit as end:  # from the parser
        code = end.code
    assert code == 2 and expected in capsys.readouterr().err


def test_a_network_of_one_switch_is_checked(config, capsys):
    alone = ["topology={kind: hyperx, dims: [1], hosts_per_switch: 3}", "routing={kind: minimal}"]
    assert main(["check", config, *(part for change in alone for part in ("--set", change))]) == 0
    assert "hyperx: 1 switches, 0 channels" in capsys.readouterr().out


def test_a_run_prints_one_json_document(config, capsys):
    assert main([config, "--json", "--jobs", "1"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["name"] == "tiny" and printed["folder"] == "runs/tiny" and printed["exit_code"] == 0
    assert [s["routing"] for s in printed["scenarios"]] == ["minimal", "deflection"]
    assert len(printed["results"]) == 8 and printed["results"][0]["status"] == "ok"
    files = {"manifest.json", "config.yaml", "config.resolved.yaml", "points", "results.csv", "ceilings.csv"}
    assert files <= {path.name for path in Path("runs/tiny").iterdir()}
    assert not list(Path("runs/tiny").glob(".*"))
    assert Path("runs/tiny/config.yaml").read_text() == CONFIG


def test_a_run_prints_tables_and_keeps_progress_off_stdout(config, capsys):
    assert main(["run", config, "--out", "there", "--jobs", "1", "--set", "loads=[0.1]"]) == 0
    out, err = capsys.readouterr()
    assert (
        "routing=minimal" in out
        and "latency" in out
        and " points" not in out.replace("saturation points", "")
        and err == ""
    )
    assert len(results("there")) == 4


@pytest.mark.long
def test_the_quick_variant_has_a_folder_of_its_own(config, capsys):
    assert main([config, "--quick", "--json", "--jobs", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == "runs/tiny-quick"
    assert {row["seed"] for row in results("runs/tiny-quick")} == {"1"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["none.yaml"],
        ["tiny.yaml", "--set", "loads=[2]"],
        ["check", "tiny.yaml", "--set", "topology.kind=nothing"],
        ["topology", "kind=nothing"],
        ["topology", "kind=torus,dims=[4,4"],
        ["ceilings", "tiny.yaml", "--set", "traffic.kind=nothing"],
        ["plot", "none"],
        ["show", "topology", "nothing"],
        ["show", "nothing"],
        ["tiny.yaml", "--out", "tiny.yaml/below"],
        ["tiny.yaml", "--set", "plugins=[none.py]"],
    ],
)
def test_bad_input_is_exit_code_2_one_line_and_no_folder(config, capsys, arguments):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and "Traceback" not in err
    assert not Path("runs").exists()


@pytest.mark.parametrize("arguments", [["--nonsense"], ["chek", "x"], ["run"], ["x.yaml", "--jobs", "0"]])
def test_bad_usage_is_exit_code_2(config, capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    if arguments[0] == "chek":
        assert "did you mean 'check'?" in capsys.readouterr().err


def test_check_counts_and_explains(config, capsys):
    assert main(["check", config, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["points"] == 8
    first, second = printed["scenarios"]
    assert first["ticks"]["header"] == 2 and first["certificate"].startswith("rising")
    assert second["config"]["switching"] | {"mode": "deflection", "hold_packets": 12} == second["config"]["switching"]
    assert main(["check", config]) == 0
    assert "8 switches" in capsys.readouterr().out


def test_list_and_show(capsys):
    assert main(["list", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "imase" in printed["topology"] and "minimal" in printed["routing"] and "mcf" in printed["ceiling"]
    for arguments in (["topology", "imase"], ["imase"], ["traffic", "uniform"], ["ceiling", "mcf"]):
        assert main(["show", *arguments]) == 0
    out = capsys.readouterr().out
    assert "hosts_per_switch" in out and "packet_flits" in out and "Example" in out
    assert main(["show", "topology", "torus"]) == 0
    assert "dims              list of int" in capsys.readouterr().out


def test_show_of_a_section_has_type_unit_default_and_meaning(capsys):
    assert main(["show", "messages"]) == 0  # a column of that name, too
    out = capsys.readouterr().out
    assert re.search(r"overhead_ns +float \[0, 1e\+12] +ns +0\.0 +Processor time of a send", out)
    assert main(["show", "loads.saturation"]) == 0 and "tolerance" in capsys.readouterr().out
    assert main(["show", "routing"]) == 0 and "routing: one of allpath, " in (out := capsys.readouterr().out)
    assert "path_draw" in out
    assert main(["show", "mesure"]) == 2 and "did you mean 'measure'" in capsys.readouterr().err


def test_every_key_of_a_section_has_a_meaning():
    sectioned = [(path, key) for path, model in sections() for key in keys_in(model, "")]
    missing = [f"{path}.{key.key}" for path, key in sectioned if not key.meaning]
    assert len(sectioned) > 100 and not missing


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_key_of_a_component_has_a_meaning(category):
    ours = [name for name in names(category) if spec_class(category, name).__module__.startswith("flitlab.")]
    missing = [f"{name}.{key.key}" for name in ours for key in parameters(category, name) if not key.meaning]
    assert ours and not missing


def test_topology(config, capsys, tmp_path):
    assert main(["topology", "kind=torus,dims=[4,4],hosts_per_switch=2", "--json", "--export", "t.json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["switches"], printed["hosts"], printed["diameter"]) == (16, 32, 4)
    assert main(["topology", f"kind=file,path={tmp_path / 't.json'}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edge_hash"] == printed["edge_hash"]
    assert main(["topology", config, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["switches"] == 8
    assert main(["topology", config, "--set", "topology.n={sweep: [6, 8]}", "--json"]) == 0
    assert [row["switches"] for row in json.loads(capsys.readouterr().out)] == [6, 8]


@pytest.mark.parametrize("kind", [kind for kind in names("topology") if kind != "file"])
def test_the_bare_name_of_a_topology_gives_a_line_that_works(kind, capsys):
    assert main(["topology", kind]) == 2
    out, err = capsys.readouterr()
    said, _, line = err.strip().partition("simrun topology '")
    assert said == f"simrun topology: {kind}: no such file; did you mean the kind: " and not out
    diagnostics = Diagnostics()
    spec = parse_spec(line[:-1], diagnostics)
    assert spec.get("topology", "kind").value == kind
    case = build(Draft(spec, "metrics", Path(), diagnostics), ComponentBuilder())
    assert case is not None and not diagnostics.errors


def test_what_is_no_topology_at_all(config, capsys):
    assert main(["topology", "tors"]) == 2
    assert "simrun topology 'kind=torus,dims=[4, 4, 4]'" in capsys.readouterr().err
    assert main(["topology", "jelly"]) == 2
    assert "no such file or kind of topology" in capsys.readouterr().err
    assert main(["topology", "torus.yaml"]) == 2
    assert capsys.readouterr().err == "torus.yaml: No such file or directory\n"


def test_the_contract_s_own_topology_example(capsys):
    assert main(["topology", "kind=torus,dims=[6,6,6],seed=2", "--json"]) == 0
    out, err = capsys.readouterr()
    keys = {"kind", "switches", "channels", "hosts", "directed", "degree_min", "degree_max", "diameter", "aspl"}
    assert keys | {"moore_aspl"} <= json.loads(out).keys()
    assert err == "topology: seed = 2: a torus has nothing random; the seed is ignored\n"


def test_ceilings(config, capsys):
    assert main(["ceilings", config, "--set", "ceilings=[]"]) == 0
    assert "names no ceilings" in capsys.readouterr().err
    assert main(["ceilings", config, "--set", "ceilings=[bounds]", "--jobs", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {"scenario", "ceiling", "lower", "upper", "unit", "method", "seconds"} <= set(printed[0])
    assert printed[0]["scenario"] == "routing=minimal" and printed[0]["upper"] > 0
    assert not Path("runs").exists()


@pytest.mark.long
def test_any_number_of_processes_gives_the_same_bytes(config):
    process = simrun(config, "--out", "jobs2", "--jobs", 2)
    assert main([config, "--out", "jobs1", "--jobs", "1"]) == 0
    _, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert results("jobs1") == results("jobs2") and len(results("jobs1")) == 8
    assert Path("jobs1/ceilings.csv").read_bytes() == Path("jobs2/ceilings.csv").read_bytes()


SLOW = """\
import time
import flitlab.sim.measure.measure as door

real = door.measure


def slowly(*arguments):
    time.sleep(0.4)
    return real(*arguments)


door.measure = slowly
"""


@pytest.fixture
def slow(config):
    """The configuration with points that take a while, in the process itself."""
    Path("slow.py").write_text(SLOW)
    Path("slow.yaml").write_text(CONFIG + "plugins: [slow.py]\n")
    return "slow.yaml"


def wait_for_points(process, folder, count):
    deadline = time.monotonic() + 60
    while len(list(Path(folder, "points").glob("*.json"))) < count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_ended_at_any_moment_it_goes_on_to_the_same_results(slow, how):
    process = simrun(slow, "--out", "run", "--jobs", 1)
    wait_for_points(process, "run", 2)
    process.send_signal(how)
    _, err = process.communicate(timeout=30)
    done = len(list(Path("run/points").glob("*.json")))
    assert 2 <= done < 8
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 128 + how and "the same command resumes" in err and "Traceback" not in err
        assert len(results("run")) == done
    assert main(["tiny.yaml", "--out", "run", "--jobs", "1"]) == 0
    assert main(["tiny.yaml", "--out", "undisturbed", "--jobs", "1"]) == 0
    assert results("run") == results("undisturbed")


@pytest.mark.long
def test_workers_do_not_outlive_a_killed_parent(config):
    process = simrun(config, "--jobs", 2, "--set", "measure.ticks=1000000")
    deadline = time.monotonic() + 60
    while len(workers := children(process.pid)) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1.5)  # until they have imported what they need
    process.kill()
    process.communicate(timeout=10)
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker is still there"
        time.sleep(0.1)


def children(pid):
    """Processes that a process has started, the resource tracker aside."""
    if not Path("/proc").exists():
        pytest.skip("needs /proc")
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [child for child in found if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]
    except OSError:
        return []


def test_a_value_that_the_shell_took_apart(config, capsys):
    with pytest.raises(SystemExit) as end:
        main(["check", config, "--set", "routing={kind:", "minimal}"])
    assert end.value.code == 2
    assert "unrecognized arguments: minimal}; a value with blanks needs quotes" in capsys.readouterr().err


def test_a_graph_is_measured_without_a_configuration(config, capsys):
    Path("links.csv").write_text("# directed: false\na, b\nb, c, 2\nc, a\n")
    assert main(["topology", "links.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["switches"], found["channels"], found["directed"]) == (3, 6, False)
