# SPDX-License-Identifier: Apache-2.0
"""A background that does not grow beside a hotspot that does: what is offered, measured and certified of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.split import certified_limit
from flitlab.models.registry import SpecError, make
from flitlab.models.rules.packets import make_packets
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.validation import validate_traffic
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.start import start
from flitlab.sim.measure.saturation import carried
from flitlab.sim.report.folder.run import Run
from tests.models.test_traffic import dense
from tests.scenarios import build, scenario

UNIFORM = {"kind": "uniform", "load": 0.2}
HOT = {"kind": "hotspot", "hosts": [1], "fraction": 1, "background": UNIFORM}


def traffic(on, **parameters):
    return make("traffic", **(HOT | parameters)).build(on)


@pytest.mark.parametrize("kind", ["uniform", "permutation", "incast", "hotspot"])
def test_the_demand_at_a_load_is_the_background_and_the_load_times_the_hotspot(kind):
    on = build("torus", dims=[3, 3], hosts=2)
    both = validate_traffic(on, traffic(on, fraction=0.7, background={"kind": kind, "load": 0.25}))
    fixed = 0.25 * dense(make("traffic", kind=kind).build(on))
    for load in (0.1, 0.6):
        expected = fixed + load * dense(make("traffic", kind="hotspot", hosts=[1], fraction=0.7).build(on))
        at, offered = both.at(load)
        assert (offered, at.background) == (1.0, None)
        assert dense(at) == pytest.approx(expected)
        for sent in (both.sent(load), at.rate):
            assert sent == pytest.approx(expected.sum(axis=1))
        for received in (both.received(load), at.column_sums):
            assert received == pytest.approx(expected.sum(axis=0))
        validate_traffic(on, at)
    alone = make("traffic", kind="hotspot", hosts=[1], fraction=0.7).build(on)
    assert alone.at(0.3) == (alone, 0.3)
    others = {one.content_hash for one in (alone, both, replace(both, background=both.at(0.1)[0]))}
    assert len(others) == 3


@pytest.mark.parametrize("name", ["reference", "compiled"])
def test_only_the_hotspot_grows_in_both_engines(name):
    """Packets of the background, and those to the hot host from each other host, at two loads."""
    on, ticks = build("torus", dims=[2, 2], hosts=2), 4000
    whole = scenario(on, traffic=HOT, source=Source(), buffer_flits=32)
    received = {}
    for load in (0.2, 0.6):
        run = start(name, *whole.at(load), 7)
        run.advance(ticks)
        received[load] = run.snapshot().delivered.destinations / ticks
    for load, flits in received.items():
        assert flits[1] == pytest.approx(0.2 + load, rel=0.05)
        assert np.delete(flits, 1) == pytest.approx(0.2, rel=0.1)
    with pytest.raises(ValueError, match=r"Scenario\.at"):
        start(name, whole, 0.2, 7)


def test_both_engines_draw_the_same_packets_beside_a_background():
    for mode in ("vct", "wormhole"):
        run = start("both", *scenario(build("torus", dims=[2, 2], hosts=2), traffic=HOT, mode=mode).at(0.5), 3)
        run.advance(2000)
        run.snapshot()


def most_beside(topology, demand):
    """The largest x for which B + x H can be carried, by one LP over flows by destination; None if B cannot."""
    n, m = topology.switches, topology.channels
    fixed, growing = demand.background.switch_demand, demand.switch_demand
    leaves = np.array([(topology.src == v) * 1.0 - (topology.dst == v) for v in range(n)])
    served, amounts = [], []
    for t in range(n):
        for v in set(range(n)) - {t}:
            row = np.zeros(n * m + 1)
            row[t * m : (t + 1) * m], row[-1] = leaves[v], -growing[v, t]
            served.append(row)
            amounts.append(fixed[v, t])
    use = np.hstack([np.tile(np.eye(m), n), np.zeros((m, 1))])
    found = linprog(-np.eye(n * m + 1)[-1], use, topology.capacity, np.array(served), amounts)
    if found.status:
        return None
    sent = ((1 - demand.background.rate) / np.maximum(demand.rate, 1e-12)).min()
    received = ((1 - demand.background.column_sums) / np.maximum(demand.column_sums, 1e-12)).min()
    return min(found.x[-1], sent, received)


CASES = {
    "hosts bind": ({"hosts": 4}, 0.2),
    "network binds": ({"hosts": 8}, 0.6),
    "both grow": ({"hosts": 8, "fraction": 0.5}, 0.5),
    "background is too much": ({"hosts": 8, "background": {"kind": "permutation", "load": 0.9, "seed": 3}}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_ceiling_beside_a_background_is_that_of_one_linear_program(case):
    parameters, load = CASES[case]
    on = build("torus", dims=[3, 3], hosts=4)
    background = parameters.get("background", {"kind": "uniform", "load": load})
    whole = scenario(on, traffic=HOT | parameters | {"background": background})
    expected = most_beside(on, whole.traffic) or 0.0
    for method, gap in (("exact", 1e-5), ("approx", 0.02)):
        (mcf,) = ceilings(whole, [ceiling_spec("mcf", method=method, gap=gap)])
        assert mcf.lower <= expected * (1 + 1e-6) <= mcf.upper * (1 + 2e-6)
        assert mcf.upper <= mcf.lower * (1 + gap) + 1e-9
    (split,) = ceilings(whole, [ceiling_spec("split")])
    assert certified_limit(whole) == pytest.approx(split.upper) and split.upper <= expected * (1 + 1e-6)
    assert ("not the network" in mcf.note) == (case == "hosts bind")
    assert ("alone cannot be carried" in mcf.note) == (case == "background is too much")


def test_other_ceilings_beside_a_background_are_right_or_omitted():
    on = build("torus", dims=[3, 3], hosts=4)
    whole = scenario(on, traffic=HOT | {"hosts": 8, "background": {"kind": "uniform", "load": 0.5}}, vcs=8)
    kinds = ("mcf", "mcf_paths", "split", "total", "bounds", "cuts", "hm", "decomposition")
    rows = {row.ceiling: row for row in ceilings(whole, [ceiling_spec(kind) for kind in kinds], [0.1, 0.45])}
    assert rows["split"].upper <= rows["mcf_paths"].upper * (1 + 1e-6) <= rows["mcf"].upper * (1 + 2e-6)
    at, _ = whole.at(rows["split"].upper)
    (full,) = ceilings(at, [ceiling_spec("split")])
    assert full.upper == pytest.approx(1)
    (total,) = ceilings(whole.at(0.45)[0], [ceiling_spec("total")], [1.0])
    assert (rows["total"].load, rows["total"].upper) == (0.45, pytest.approx(total.upper))
    assert all(math.isnan(rows[kind].upper) and "background" in rows[kind].note for kind in kinds[4:])
    with pytest.raises(FluidError, match="does not grow as a whole"):
        Problem.of(on, whole.traffic)


def test_what_is_not_carried_counts_against_what_grows():
    row = {"load": 0.5, "offered": 0.5, "accepted": 0.45}
    assert carried(row) == pytest.approx(0.45)
    assert carried({**row, "background": 0.3, "saturated": True}) == pytest.approx(0.5 * 0.15 / 0.2)
    assert carried({**row, "background": 0.3, "saturated": False}) == 0.5
    assert carried({**row, "background": 0.48, "saturated": True}) == 0


CONFIG = """
topology: {kind: torus, dims: [3, 3], hosts_per_switch: 2}
routing: {kind: ecmp}
traffic: {kind: hotspot, hosts: [1], fraction: 1, background: {kind: uniform, load: 0.2}}
loads: [0.3, 0.85]
measure: {warmup: 200, ticks: 1000, ci: null}
ceilings: [mcf]
"""


@pytest.mark.long
def test_a_run_is_told_from_the_load_of_the_hotspot(tmp_path, capsys):
    file, folder = tmp_path / "hot.yaml", tmp_path / "out"
    file.write_text(CONFIG)
    assert main(["run", str(file), "--out", str(folder), "--jobs", "1"]) == 0
    assert "not the network" in capsys.readouterr().out
    run = Run.read(folder)
    assert [(row["load"], row["saturated"]) for row in run.rows] == [("0.3", "False"), ("0.85", "True")]
    for row in run.rows:
        assert float(row["saturated_from"]) == pytest.approx(0.8)
        assert float(row["background"]) == pytest.approx(0.2)
        assert float(row["offered"]) == pytest.approx(0.2 + float(row["load"]) / 18, rel=0.05)
    (mark,) = run.thetas()
    assert mark.upper == pytest.approx(0.2 + 0.8 / 18)
    assert main(["ceilings", str(file)]) == 0
    assert "host 1 binds, not the network" in " ".join(capsys.readouterr().out.split())
    assert main(["ceilings", str(file), "--save", str(tmp_path / "saved")]) == 2
    assert "cannot be saved" in capsys.readouterr().err and not (tmp_path / "saved").exists()


WRONG = {
    "{kind: uniform}": "background.load",
    "{kind: uniform, load: 0}": "background.load",
    "{kind: uniform, load: lots}": "background.load",
    "{load: 0.1}": "background.kind",
    "{kind: unifrom, load: 0.1}": "background.kind",
    "{kind: uniform, load: 0.1, packet_flits: 4}": "background.packet_flits",
    "{kind: shift, by: none, load: 0.1}": "background.by",
    "{kind: perm, load: 0.1}": "background.x",
    "{kind: longest_matching, tie_breaks: 2, load: 0.1}": "background",
    "{kind: hotspot, load: 0.1, background: {kind: uniform, load: 0.1}}": "background.background",
}


@pytest.mark.parametrize("background", WRONG)
def test_a_wrong_background_is_refused_by_its_key(background):
    with pytest.raises(ConfigError) as error:
        read("hot.yaml", text=CONFIG.replace("{kind: uniform, load: 0.2}", background))
    assert [mistake.key for mistake in error.value.errors] == [f"traffic.{WRONG[background]}"]


def test_a_background_beyond_the_host_channels_is_refused():
    on = build("torus", dims=[2, 2])
    twice = replace(table_traffic("matrix", on, np.ones((4, 4)), hose=False))
    assert twice.rate.max() == 4
    with pytest.raises(SpecError, match="exceeds the rate of a host's channel"):
        from flitlab.models.traffic import hotspot

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hotspot, "nested", lambda *_: twice)
            hotspot.with_background(make("traffic", kind="hotspot").build(on), {"kind": "matrix", "load": 0.5})
    with pytest.raises(ValueError, match=r"Scenario\.at"):
        make_packets(traffic(on), (1,), (1.0,))


@pytest.mark.parametrize(
    "change",
    [
        "switching: {mode: datagram}", "experiment: relative",
        "experiment: search\nsearch: {vary: topology.hosts_per_switch, range: [1, 4]}",
    ],
)  # fmt: skip
def test_a_background_is_refused_where_demand_grows_as_a_whole(change):
    with pytest.raises(ConfigError, match=r"traffic\.background.*is not for"):
        read("hot.yaml", text=CONFIG + change)


def test_a_load_beyond_what_hosts_create_is_refused_with_its_own_number():
    text = CONFIG.replace("hosts: [1]", "hosts: 18").replace("load: 0.2}}", "load: 0.9}, arrivals: onoff}")
    with pytest.raises(ConfigError, match=r"load 0\.85 asks for more"):
        read("hot.yaml", text=text)
