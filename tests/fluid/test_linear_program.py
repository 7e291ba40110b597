# SPDX-License-Identifier: Apache-2.0
"""Linear programs as files: what a solver that reads them finds, against the ceilings and closed forms."""

import csv
import json

import highspy
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.linear_program import write_concurrent_flow
from flitlab.fluid.problem import FluidError
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.sim.cli import main
from tests.fluid.fluid_cases import INF


def solved(file) -> float:
    """The maximum of a model file, by HiGHS."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(file)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getObjectiveSense()[1] == highspy.ObjSense.kMaximize
    return highs.getObjectiveValue()


def instance(network, pattern, routing=None, capacity=INF):
    topology = make("topology", **{"host_capacity": capacity, **network}).build()
    routes = None if routing is None else make("routing", **routing).routes(topology)
    return Instance(topology, make("traffic", **pattern).build(topology), routes)


CASES = {
    "cube": (dict(kind="hypercube", dim=3), dict(kind="longest_matching"), None, INF),
    "random": (dict(kind="rrg", n=16, degree=4, hosts_per_switch=2), dict(kind="permutation"), None, INF),
    "one way": (dict(kind="imase", n=10, degree=3), dict(kind="uniform"), None, INF),
    "hosts bind": (dict(kind="rrg", n=12, degree=6, hosts_per_switch=1), dict(kind="random", x=3), None, 1.0),
    "next hops": (dict(kind="torus", dims=[4, 4]), dict(kind="permutation"), dict(kind="minimal"), INF),
    "paths": (dict(kind="rrg", n=16, degree=4), dict(kind="all_to_all"), dict(kind="ksp", k=4), INF),
    "few paths": (dict(kind="fat_tree", k=4), dict(kind="uniform"), dict(kind="ecmp", ways=2), 1.0),
}


@pytest.mark.parametrize("suffix", ["mps", "lp"])
@pytest.mark.parametrize("case", CASES)
def test_the_maximum_of_the_file_is_the_ceiling(case, suffix, tmp_path):
    network, pattern, routing, capacity = CASES[case]
    of = instance(network, pattern, routing, capacity)
    kind = "mcf" if routing is None else "mcf_paths"
    file = tmp_path / f"model.{suffix}"
    size = write_concurrent_flow(of, kind, file)
    (row,) = ceilings(of, [ceiling_spec(kind, method="exact")])
    assert row.lower * (1 - 1e-6) <= solved(file) <= row.upper * (1 + 1e-6)
    assert size.entries > size.columns > 1


def test_closed_form_and_size(tmp_path):
    """All-to-all on a ring of 5: pairs at distance 1 and 2; 2 x 5 channels carry 5 x (2 x 1 + 2 x 2) / 5 x theta."""
    of = instance(dict(kind="torus", dims=[5]), dict(kind="all_to_all", include_self=True))
    size = write_concurrent_flow(of, "mcf", tmp_path / "ring.mps")
    assert solved(tmp_path / "ring.mps") == pytest.approx(10 / 6)
    # 5 destinations x (10 channels less the 2 that leave the destination), and theta; 5 x 4 balances, 10 capacities
    assert (size.rows, size.columns) == (5 * 4 + 10, 5 * 8 + 1)


def test_names_say_what_a_flow_is(tmp_path):
    of = instance(dict(kind="torus", dims=[5]), dict(kind="shift", by=1), dict(kind="ksp", k=2))
    write_concurrent_flow(of, "mcf_paths", tmp_path / "ring.lp")
    text = (tmp_path / "ring.lp").read_text()
    assert "theta" in text and "p_0_1_0" in text and "p_0_1_1" in text and "d_0_1" in text and "c_0" in text


def test_routes_over_intermediate_switches_have_no_file(tmp_path):
    of = instance(dict(kind="torus", dims=[4, 4]), dict(kind="uniform"), dict(kind="valiant"))
    with pytest.raises(FluidError, match="intermediate"):
        write_concurrent_flow(of, "mcf_paths", tmp_path / "model.mps")


CONFIG = """\
schema: 1
name: models
experiment: ceilings
ceilings: [mcf, mcf_paths, bounds]
topology: {kind: hypercube, dim: {sweep: [2, 3]}, host_capacity: .inf}
routing: {kind: minimal}
traffic: {kind: longest_matching}
"""


def test_the_command_writes_a_file_for_each_scenario_and_an_index(tmp_path, capsys):
    """Under the longest matching both programs of a hypercube have the value 1."""
    (tmp_path / "c.yaml").write_text(CONFIG)
    folder = tmp_path / "models"
    command = ["ceilings", str(tmp_path / "c.yaml"), "--mps", str(folder), "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["scenario"], row["ceiling"]) for row in rows] == [
        (f"dim={dim}", kind) for dim in (2, 3) for kind in ("mcf", "mcf_paths")
    ]
    assert [solved(folder / row["file"]) for row in rows] == pytest.approx([1] * 4)
    assert [row["file"] for row in csv.DictReader((folder / "models.csv").open())] == [row["file"] for row in rows]
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert main(command) == 0  # again, into its own folder
    assert before == {file.name: file.read_bytes() for file in folder.iterdir()}


def test_folders_of_other_content_are_refused(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert main(["ceilings", str(tmp_path / "c.yaml"), "--mps", str(tmp_path)]) == 2
    assert "holds no models.csv" in capsys.readouterr().err


def test_a_configuration_with_other_ceilings_only_is_written_as_mcf(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG.replace("[mcf, mcf_paths, bounds]", "[bounds]"))
    assert main(["ceilings", str(tmp_path / "c.yaml"), "--mps", str(tmp_path / "new"), "--json"]) == 0
    assert [row["ceiling"] for row in json.loads(capsys.readouterr().out)] == ["mcf", "mcf"]
