# SPDX-License-Identifier: Apache-2.0
"""Traces that hosts follow tick by tick: closed forms, a recorded run, equal engines, and errors."""

import csv
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from flitlab.models.application.trace import trace_workload
from flitlab.models.traffic.source import Recorded, Source
from flitlab.sim.cli import main
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests import long_after
from tests.scenarios import build, ideal, scenario

TIMES = "header_ticks: 2, switch_ticks: 1, link_ticks: 3, injection_ticks: 2, ejection_ticks: 1"
MODES = {
    "vct": f"{{mode: vct, vcs: 4, {TIMES}}}",
    "wormhole": f"{{mode: wormhole, vcs: 4, {TIMES}}}",
    "ideal": f"{{mode: ideal, {TIMES}}}",
    "pool": f"{{mode: deflection, {TIMES}}}",
    "vc": f"{{mode: deflection, rule: vc, vcs: 2, {TIMES}}}",
}
ALL = [*MODES, "frame"]
FRAME = f"{{mode: deflection, rule: frame, vcs: 2, {TIMES}}}"
FLITS = 4


def latency(hops, flits):
    """The zero-load latency with the delays above."""
    return 2 + (hops + 1) * (2 + 1) + hops * 3 + 1 + flits - 1


on_either = pytest.mark.parametrize("mode", long_after(1, ["vct on reference", "vct"]))


def packets(folder, mode, rows, *options, head="tick,source,destination,flits,class,after", code=0):
    """The rows of packets.csv of a trace on a ring of six switches with a host each, on both engines or one."""
    mode, _, engine = mode.partition(" on ")
    (folder / "t.csv").write_text("\n".join([*([head] if head else []), *rows, ""]))
    routing = "deflection" if "deflection" in MODES.get(mode, FRAME) else "minimal"
    (folder / "a.yaml").write_text(
        f"topology: {{kind: torus, dims: [6]}}\nrouting: {{kind: {routing}}}\n"
        f"switching: {MODES.get(mode, FRAME)}\ntraffic: {{kind: trace, path: t.csv}}\n"
        "outputs: {figures: [], html: false, channels: true}\nceilings: []\n"
        f"engine: {engine or 'both'}\n"
    )
    assert main(["run", str(folder / "a.yaml"), "--out", str(folder / "out"), *options]) == code
    return table(folder, "packets")


def table(folder, name):
    with (folder / "out" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def column(rows, name):
    return [int(row[name]) for row in rows]


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(1, MODES))
def test_a_packet_alone_takes_the_zero_load_latency(tmp_path, mode):
    (row,) = packets(tmp_path, mode, [f"17,1,3,{FLITS},,"])
    assert row == {
        "scenario": "a", "seed": "1", "row": "0", "source": "1", "destination": "3", "class": "", "flits": "4",
        "created": "17", "started": "17", "delivered": str(17 + latency(2, FLITS)), "hops": "2", "deflections": "0",
    }  # fmt: skip


@pytest.mark.parametrize("mode", long_after(1, ["vct on reference", *MODES]))
def test_the_second_packet_of_a_host_is_delivered_its_length_later(tmp_path, mode):
    rows = packets(tmp_path, mode, [f"0,0,1,{FLITS},,", f"0,0,1,{FLITS},,"])
    assert column(rows, "delivered") == [latency(1, FLITS), latency(1, FLITS) + FLITS]


@pytest.mark.parametrize("mode", long_after(1, ["vct on reference", *MODES]))
def test_a_chain_takes_its_latencies_and_a_tick_between_them(tmp_path, mode):
    """Row i goes from host i to host i + 1, the next one goes on from there or begins elsewhere."""
    first, count, z = 9, 5, latency(1, FLITS)
    for sources in (range(5), [3, 0, 3, 1, 4]):
        ends = [(host, (host + 1) % 6) for host in sources]
        lines = [f"{first},{a},{b},{FLITS},,{'' if i == 0 else i - 1}" for i, (a, b) in enumerate(ends)]
        rows = packets(tmp_path, mode, lines)
        assert column(rows, "delivered")[-1] == first + count * z + count - 1
        assert column(rows, "created") == [first + i * (z + 1) for i in range(count)]


@pytest.mark.long
def test_frames_deliver_a_chain(tmp_path):
    rows = packets(tmp_path, "frame", [f"0,{i},{i + 1},4,,{i - 1 if i else ''}" for i in range(4)])
    assert column(rows, "created")[1:] == [delivered + 1 for delivered in column(rows, "delivered")[:-1]]


@pytest.mark.parametrize("mode", long_after(1, ["vct on reference", *ALL]))
def test_channels_carry_the_hops_of_all_packets(tmp_path, mode):
    rng = np.random.default_rng(5)
    ticks = np.sort(rng.integers(0, 60, 40))
    lines = [f"{t},{a},{b},4,," for t, a, b in zip(ticks, *rng.integers(0, 6, (2, 40)), strict=True)]
    rows, channels = packets(tmp_path, mode, lines), table(tmp_path, "channels")
    of_kind = {kind: [c for c in channels if c["kind"] == kind] for kind in ("network", "injection", "ejection")}
    assert sum(column(of_kind["network"], "flits")) == 4 * sum(column(rows, "hops"))
    assert sum(column(of_kind["network"], "packets")) == sum(column(rows, "hops"))
    for kind, end in (("injection", "source"), ("ejection", "destination")):
        counts = np.bincount(column(rows, end), minlength=6)
        assert column(of_kind[kind], "packets") == counts.tolist()
        assert column(of_kind[kind], "flits") == (4 * counts).tolist()
    (result,) = table(tmp_path, "results")
    assert (int(result["packets"]), int(result["ticks"])) == (40, max(column(rows, "delivered")) + 1)


@on_either
def test_rows_of_a_tick_keep_the_order_of_the_file(tmp_path, mode):
    """Row 2 awaits row 0, which arrives in the tick before its own, and comes before rows 3 and 4 of that tick."""
    tick = latency(1, 1) + 1
    rows = packets(
        tmp_path, mode, ["0,3,4,1,,", "0,0,1,1,,", f"{tick},5,0,1,,0", f"{tick},5,1,1,,", f"{tick},5,2,1,,1"]
    )
    assert column(rows, "created")[2:] == [tick] * 3
    assert column(rows, "started")[2:] == [tick, tick + 1, tick + 2]


@on_either
def test_classes_and_self_destinations_are_kept(tmp_path, mode):
    rows = packets(tmp_path, mode, ["0,2,2,3,bulk,"])
    assert (rows[0]["class"], rows[0]["hops"], rows[0]["delivered"]) == ("bulk", "0", str(latency(0, 3)))


@on_either
def test_max_ticks_ends_a_trace(tmp_path, mode):
    z = latency(1, FLITS)
    lines = [f"0,0,1,{FLITS},,", f"0,0,1,{FLITS},,", "900,1,0,4,,"]
    rows = packets(tmp_path, mode, lines, "--set", f"measure.max_ticks={z + 1}")
    assert [row["delivered"] for row in rows] == [str(z), "", ""]
    assert [row["created"] for row in rows] == ["0", "0", ""]
    (result,) = table(tmp_path, "results")
    assert (result["status"], result["ticks"], result["packets"]) == ("limit", str(z + 1), "1")


@on_either
def test_a_trace_repeats_up_to_max_ticks(tmp_path, mode):
    options = ["--set", "traffic.repeat=true", "--set", "measure.max_ticks=100"]
    rows = packets(tmp_path, mode, ["0,0,1,1,,", "4,1,2,1,,0"], *options)
    assert column(rows, "row") == list(range(40))
    assert column(rows[::2], "created") == list(range(0, 100, 5))
    delivered = column(rows[:28], "delivered")
    assert column(rows[:28], "created")[1::2] == [max(5 * i + 4, delivered[2 * i] + 1) for i in range(14)]


def followed(log, until, hosts):
    """A trace of the packets of a log created before a tick."""
    early = np.flatnonzero(log.created < until)
    order = early[np.lexsort([log.identity[early], log.created[early]])]
    times, when = np.unique(log.created[order], return_inverse=True)
    none = np.full(len(order), -1)
    columns = log.identity[order] % hosts, log.destination[order], log.flits[order]
    return Recorded(tuple(map(Fraction, times.tolist())), False, when, *columns, none, (), False, "", none), order


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(1, ["vct", "wormhole", "ideal", "deflection"]))
def test_a_recorded_run_is_replayed(mode):
    """All deliveries up to a tick depend on packets created before it, all of which are in the trace."""
    keys = {} if mode == "ideal" else {"mode": mode}
    routing = {"kind": "deflection" if mode == "deflection" else "minimal"}
    traffic = {"kind": "uniform", "include_self": True}
    source = Source(
        flits=(FLITS,) if mode == "deflection" else (1, 3, 5), shares=(1.0,) * (1 if mode == "deflection" else 3)
    )
    case = scenario(build("torus", dims=[3, 3]), routing=routing, traffic=traffic, source=source, **keys)
    case = ideal(case) if mode == "ideal" else case
    run, until = start("compiled", case, 0.5, 3, log=True), 300
    run.advance(3000)
    log = run.log()
    trace, order = followed(log, until, case.topology.hosts)
    work = trace_workload(trace, case.topology.hosts, None, one_length=mode == "deflection")
    again = start("both", replace(case, work=work), 1.0, 3, log=True)
    again.advance(until)
    replayed, snapshot = again.log(), again.snapshot()
    early = log.delivered < until
    assert early.sum() > 100
    assert np.array_equal(replayed.identity, log.identity[early])
    for name in ("delivered", "hops", "created", "started", "destination", "flits", "deflections"):
        assert np.array_equal(getattr(replayed, name), getattr(log, name)[early]), name
    assert np.array_equal(order[replayed.send], np.flatnonzero(early))
    assert snapshot.scalars[Scalar.DELIVERED_PACKETS] == early.sum()


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["5,0,1,1,,", "4,0,1,1,,"], "t.csv:3: row 1 is earlier than the row before it; ticks must ascend"),
        (["0,0,9,1,,"], "t.csv:2: 0,0,9,1,,: '9' is no host: hosts are numbered 0 to 5"),
        (["0,0,1,1,,0"], "t.csv:2: row 0 is after a row that is not before it"),
        (["0,0,1,1,,", "0,0,1,1,,7"], "t.csv:3: row 1 is after a row that is not before it"),
        (["0,0,1,1.5,,"], "t.csv:2: 0,0,1,1.5,,: '1.5' is not a whole number, 0 or more"),
        (["-1,0,1,1,,"], "t.csv:2: -1,0,1,1,,: '-1' is not a whole number, 0 or more"),
        (["0,0,1,1,,x"], "t.csv:2: 0,0,1,1,,x: 'x' is not a whole number, 0 or more"),
        (["0,0,1,0,,", "0,0,1,1,,"], "t.csv:2: row 0 has no flits"),
        (["0,0"], "t.csv:2: 0,0: 2 fields where the header has 6"),
        (["9999999999,0,1,1,,"], "t.csv:2: row 0 is later than the last tick of a run"),
    ],
)
def test_bad_rows_are_rejected_with_their_line(tmp_path, capsys, lines, problem):
    with pytest.raises(FileNotFoundError):
        packets(tmp_path, "vct", lines, code=2)
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_sizes_in_bytes_are_no_flits(tmp_path, capsys):
    with pytest.raises(FileNotFoundError):
        packets(tmp_path, "vct", ["0,0,1,20"], head="tick,source,destination,bytes", code=2)
    assert "has sizes in bytes; the column must be flits" in capsys.readouterr().err
