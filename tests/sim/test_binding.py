# SPDX-License-Identifier: Apache-2.0
"""Which channels are said to bind: only those that no flow near the optimum leaves free."""

import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.certificate import FULL, bottlenecks
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.ceilings import Optimum
from flitlab.sim.report.figures.kinds.bottleneck import caption, numbered
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.network import network_use
from tests.fluid.fluid_cases import INF, all_to_all, scenario

BARBELL = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3)]
"""Two triangles joined by one link, which is all that binds between them."""


def optimum(case, **spec):
    (row,) = ceilings(case, [ceiling_spec("mcf", **spec)])
    return Optimum(row.lower, row.upper, row.certificate, row.channel_load)


def bound(topology, found):
    return bottlenecks(topology, found.certificate, found.lower, found.upper)


def test_the_only_link_between_two_parts_binds():
    topology = Topology.from_links("barbell", 6, BARBELL).with_hosts(1, INF)
    for spec, both in (({"method": "exact"}, False), ({"method": "approx", "gap": 0.005}, True)):
        binds = bound(topology, optimum(scenario(topology, all_to_all(topology)), **spec))
        assert not binds.hosts
        ends = zip(topology.src[binds.network], topology.dst[binds.network], strict=True)
        found = {(int(s), int(t)) for s, t in ends}
        # a vertex of the dual prices either direction or both
        assert found and found <= {(0, 3), (3, 0)} and len(found) >= 1 + both


@pytest.mark.parametrize("gap", [0.1, 0.01, 0.001])
def test_what_binds_by_rough_bounds_is_full_in_every_optimum(gap):
    priced_but_free = told = 0
    for seed in range(6):
        topology = make("topology", kind="rrg", n=10, degree=3, seed=seed, host_capacity=INF).build()
        case = scenario(topology, make("traffic", kind="permutation", seed=seed).build(topology))
        rough, exact = optimum(case, method="approx", gap=gap), optimum(case, method="exact")
        use, binds = exact.load / topology.capacity, bound(topology, rough).network
        assert (use[binds] >= FULL - 1e-6).all()
        price = topology.capacity * rough.certificate.network
        priced_but_free += int(((price >= 0.01 * price.max()) & (use < FULL)).sum())
        told += int(bound(topology, exact).network.sum())
    assert told > 0
    assert priced_but_free > 0 or gap < 0.01  # a price alone does not say that a channel binds


def test_hosts_bind_where_their_lengths_are_what_counts():
    links = [(u, v) for u in range(5) for v in range(u)]
    topology = Topology.from_links("complete", 5, links).with_hosts(1, 1.0)
    case = scenario(topology, all_to_all(topology))
    binds = bound(topology, optimum(case))
    assert binds.hosts and binds.any and not binds.network.any()


TEXT = """\
experiment: ceilings
topology: {kind: rrg, n: 12, degree: 3, host_capacity: .inf, seed: {sweep: [1, 2]}}
traffic: {kind: permutation}
ceilings: [{kind: mcf, method: approx, gap: 0.2}]
"""


def test_titles_say_which_scenario_and_when_nothing_can_be_said(tmp_path):
    (tmp_path / "c.yaml").write_text(TEXT)
    for case in read(tmp_path / "c.yaml").cases:
        rough, exact = optimum(case.instance, method="approx", gap=0.2), optimum(case.instance, method="exact")
        gap, count = 1 - rough.lower / rough.upper, int(bound(case.topology, exact).network.sum())
        assert gap > 0.05 and count > 0
        name = f"rrg, n = 12: {case.label}"
        said = f"bottlenecks are not known within the gap of {100 * gap:.2g} % (method: exact finds them)"
        assert caption(case, rough, bound(case.topology, rough), 0) == f"{name}\n{said}"
        shown = caption(case, exact, bound(case.topology, exact), 2)
        assert shown.startswith(
            f"{name}, and 2 more with this optimum\nat least {count} of 36 channels are bottlenecks"
        )


@pytest.mark.long
def test_files_say_which_scenario(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(TEXT + "outputs: {figures: [bottleneck], formats: [svg]}\n")
    assert main(["ceilings", str(tmp_path / "c.yaml"), "--draw", str(tmp_path / "where.svg")]) == 0
    assert {file.name for file in tmp_path.glob("*.svg")} == {"where_1_seed=1.svg", "where_2_seed=2.svg"}
    assert main([str(tmp_path / "c.yaml"), "--out", str(tmp_path / "run")]) == 0
    drawn = {file.name for file in (tmp_path / "run/figures").glob("bottleneck*")}
    assert drawn == {"bottleneck_1_seed=1.svg", "bottleneck_2_seed=2.svg"}
    page = (tmp_path / "run/report.html").read_text()
    assert all(f"Where the maximum concurrent flow binds: seed={seed}" in page for seed in (1, 2))
    assert numbered("x", 3, "routing=a/b c, n=4") == "x_3_routing=a_b_c_n=4"


@pytest.mark.long
def test_the_report_shows_prices_only_of_channels_that_bind(tmp_path):
    text = TEXT.replace("method: approx, gap: 0.2", "method: approx, gap: 0.2}, {kind: mcf, method: exact")
    for name, wanted, exact in (("rough", TEXT, False), ("both", text, True)):
        (tmp_path / f"{name}.yaml").write_text(wanted + "outputs: {figures: []}\n")
        assert main([str(tmp_path / f"{name}.yaml"), "--out", str(tmp_path / name)]) == 0
        found = network_use(Run.read(tmp_path / name), tmp_path / name)
        assert [one.price is not None for one in found] == [exact, exact]
        assert all(one.optimum[one.price > 0].min() > FULL for one in found if one.price is not None)
