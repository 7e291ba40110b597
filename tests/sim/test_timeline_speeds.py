# SPDX-License-Identifier: Apache-2.0
"""Links that slow down and return while flits move: against programs of a few lines, and what is rejected."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import PacketLog, Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.report.folder.frames import read_csv
from tests import long_after
from tests.scenarios import line
from tests.sim.test_flit_times import MODES, ONES, chain
from tests.sim.test_timeline_vct import NEVER, happening


def slow(tick: int, factor: float, *links: tuple[int, int]) -> dict:
    """An event that slows links."""
    return {"at_tick": tick, "slow": {"links": [list(link) for link in links]}, "factor": factor}


def restore(tick: int, *links: tuple[int, int]) -> dict:
    """An event after which links are as built; the routing never learns of it."""
    return {"at_tick": tick, "restore": {"links": [list(link) for link in links]}, "reroute_after": NEVER}


def deliveries(mode: str, created: list[int], flits: int, ticks: list, times: dict[str, int]) -> list[int]:
    """The ticks at which packets reach the end of a row of switches, in their order, tick by tick.

    ticks: of each channel, the one of the host first and last, a function of the tick at which a flit or packet starts.
    """
    ready = [[tick] * flits for tick in created]  # at which each flit can be sent
    for number, of_flit in enumerate(ticks):
        injects, ejects = number == 0, number == len(ticks) - 1
        header, switch = (0, 0) if injects else (times["header"], times["switch"])
        delay = switch + times["injection" if injects else "ejection" if ejects else "link"] - 1
        now, sent, arrived = 0, -1, list[list[int]]()
        for packet in ready:
            arrived.append([])
            if mode == "wormhole":
                for flit, tick in enumerate(packet):
                    now = max(now, tick if flit else max(tick, sent + 1) + header)  # a head requests the VC first
                    arrived[-1].append(now + delay + of_flit(now))
                    sent, now = now, now + of_flit(now)
            else:
                now = max(now, packet[0] + header)
                while any(now + flit * of_flit(now) < tick for flit, tick in enumerate(packet)):
                    now += 1
                arrived[-1] = [now + delay + (flit + 1) * of_flit(now) for flit in range(flits)]
                now += flits * of_flit(now)
        ready = arrived
    return [packet[-1] for packet in ready]


def of_events(built: int, changes: list[tuple[int, int]]):
    """The ticks of a flit as a function of the tick. changes: (tick, ticks of a flit from then on), ascending."""
    return lambda tick: next((ticks for since, ticks in reversed(changes) if since <= tick), built)


@pytest.mark.parametrize("mode", long_after(3, MODES))
@pytest.mark.parametrize("rows", long_after(1, [5, 130]))
def test_packets_of_a_row_arrive_when_a_program_says(engine_name, mode, rows):
    """Rows of 1 to 3 channels between two hosts; drawn are speeds, delays, lengths, loads and events."""
    rng, packets = Random(rows), 0
    for _ in range(rows):
        between = [rng.choice([1, 1, 2, 3]) for _ in range(rng.randint(1, 3))]
        host, flits = rng.choice([1, 1, 2]), rng.choice([1, 2, 5])
        if min(host, *between) > 1:
            between[0] = 1  # the tick is the time of a flit on some channel
        times = {name: rng.randint(name != "header", 4) for name in ONES}
        events, changes = [], [list[tuple[int, int]]() for _ in between]
        for tick in sorted(rng.sample(range(300), 6)):
            c = rng.randrange(len(between))
            built, is_slow = between[c], bool(changes[c]) and changes[c][-1][1] > between[c]
            ticks = built if is_slow and rng.random() < 0.6 else built * rng.choice([2, 3, 7])
            event = slow(tick, built / ticks, (c, c + 1)) if ticks > built else restore(tick, (c, c + 1))
            events.append(event | {"at_tick": tick})
            changes[c].append((tick, ticks))
        case = happening(chain(mode, [host, *between], flits, buffer_flits=2000, vcs=1, **times), events)
        run = start(engine_name, case, rng.choice([0.1, 0.5, 1.0]) / host, rng.randrange(99), log=True)
        run.advance(700)
        log = run.log()
        order = np.argsort(log.created, kind="stable")
        of_flit = [of_events(host, []), *map(of_events, between, changes), of_events(host, [])]
        expected = deliveries(mode, log.created[order].tolist(), flits, of_flit, times)
        assert log.delivered[order].tolist() == expected
        packets += len(expected)
    assert packets > 20 * rows


ONCE = [  # events of the one channel between two hosts; ticks at which a packet of four flits, sent at 0, is delivered
    ([], 8, 8), ([slow(2, 1 / 3, (0, 1))], 8, 14), ([slow(1, 1 / 3, (0, 1))], 16, 16),
    ([slow(0, 1 / 3, (0, 1)), restore(4, (0, 1))], 16, 10), ([slow(0, 1 / 3, (0, 1)), restore(1, (0, 1))], 8, 8),
]  # fmt: skip


@pytest.mark.parametrize("mode", long_after(3, MODES))
@pytest.mark.parametrize(("events", "packets", "flits"), ONCE)
def test_what_has_begun_ends_at_the_old_speed(engine_name, mode, events, packets, flits):
    """A packet in vct and ideal, in which the channel is granted at 1; a flit under wormhole, at 1, 2, 3 and 4."""
    case = chain(mode, [1, 1], 4)
    created = lone_delivery("reference", case).created[0]
    later = [event | {"at_tick": event["at_tick"] + int(created)} for event in events]
    log = lone_delivery(engine_name, happening(case, later) if later else case)
    assert log.delivered[0] - created == (flits if mode == "wormhole" else packets)


def lone_delivery(engine_name: str, case: Scenario) -> PacketLog:
    """The log of a run that sends a few packets that never meet."""
    run = start(engine_name, case, 0.01, 2, log=True)
    run.advance(800)
    return run.log()


@pytest.mark.parametrize("mode", long_after(3, MODES))
@pytest.mark.parametrize("n", [2, 5])
def test_a_saturated_flow_has_the_rate_of_the_epoch(engine_name, mode, n):
    """Rate 1, then 1/n over the slow link, then 1 again, to the flit: four VCs deliver four packets in turn."""
    case = chain(mode, [1, 1, 1], 4, buffer_flits=64)
    run = start(engine_name, happening(case, [slow(500, 1 / n, (0, 1)), restore(1300, (0, 1))]), 1.0, 1)
    rates = []
    for begin, length in ((200, 160), (700, 112 * n), (1600, 160)):
        run.advance(begin)
        before = run.scalars()[Scalar.DELIVERED_FLITS]
        run.advance(begin + length)
        rates.append(int(run.scalars()[Scalar.DELIVERED_FLITS] - before) / length)
    assert rates == [1, 1 / n, 1]


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (
            0.3,
            r"takes 1 tick on link 0-1 as built, and would take 3.33333 .*0.333333 \(3 ticks\) or 0.25 \(4 ticks\)",
        ),
        (0.75, r"would take 1.33333 .* nearest is 1 \(1 tick\) or 0.5 \(2 ticks\)"),
        (0.001, r"256 at most: the nearest is 0.00390625 \(256 ticks\)"),
    ],
)
def test_factors_without_whole_ticks_are_rejected_with_the_nearest(factor, expected):
    with pytest.raises(SpecError, match=expected) as error:
        happening(chain("vct", [1, 1], 4), [slow(1, 0.5, (0, 1)), slow(9, factor, (0, 1))])
    assert error.value.key == "timeline[1].factor"


def test_a_failed_link_has_no_speed_until_it_returns():
    case = chain("vct", [1, 1], 4)
    failure = {"at_tick": 1, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    with pytest.raises(SpecError, match="has failed") as error:
        happening(case, [failure, slow(9, 0.5, (0, 1))])
    assert error.value.key == "timeline[1].slow.links[0]"
    restore = {"at_tick": 8, "restore": {"links": [[0, 1]]}}
    assert happening(case, [failure, restore, slow(9, 0.5, (0, 1))]).timeline is not None


def test_a_factor_is_of_the_channel_as_built():
    """Two thirds of a channel of two ticks a flit are three ticks; factors may be rounded to six digits."""
    case = chain("vct", [1, 2], 4)
    assert happening(case, [slow(9, 0.666667, (0, 1))]).timeline is not None
    with pytest.raises(SpecError, match=r"0.666667 \(3 ticks\) or 0.5 \(4 ticks\)"):
        happening(case, [slow(9, 0.6, (0, 1))])


ROW = """\
topology: {kind: mesh, dims: [3]}
routing: {kind: minimal}
switching: {mode: vct}
traffic: {kind: shift, by: 1, packet_flits: 4}
loads: [1.0]
measure: {ticks: 6000}
timeline:
- {at_tick: 2000, slow: {links: [[0, 1]]}, factor: 0.25}
- {at_tick: 4000, restore: {links: [[0, 1]]}}
ceilings: [split]
outputs: {figures: [], html: false}
"""


@pytest.mark.parametrize("mode", long_after(0, MODES))
def test_ceilings_of_epochs_know_slow_links(tmp_path, mode):
    """Each direction of the link carries one of the three flows."""
    (tmp_path / "c.yaml").write_text(ROW)
    changes = ["--set", f"switching.mode={mode}"]
    assert main(["run", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "run"), "--jobs", "1", *changes]) == 0
    split = [row for row in read_csv(tmp_path / "run" / "epochs.csv") if row["ceiling"] == "split"]
    assert [row["what"] for row in split] == ["", "link 0-1 at 0.25 of the rate", "link 0-1 returns"]
    by_epoch = [float(row["upper"]) for row in split]
    assert by_epoch[0] == by_epoch[2] == 4 * by_epoch[1]


@pytest.mark.parametrize(("capacity", "unit"), [(1, "load"), (0.5, "flits/tick/host")])
def test_epochs_have_the_unit_of_the_other_ceilings(tmp_path, capacity, unit):
    """Half a flit per tick is load 1 of slow hosts."""
    text = ROW.replace("dims: [3]", f"dims: [3], host_capacity: {capacity}").replace("000", "00")  # ticks
    (tmp_path / "c.yaml").write_text(text)
    arguments = ["run", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "run"), "--engine", "reference"]
    assert main([*arguments, "--jobs", "1"]) == 0
    for name in ("epochs.csv", "ceilings.csv"):
        assert {row["unit"] for row in read_csv(tmp_path / "run" / name)} == {unit}


@pytest.mark.parametrize("mode", ["deflection", "vct", "wormhole"])
def test_deflection_rejects_slow_links(tmp_path, mode):
    (tmp_path / "c.yaml").write_text(ROW)
    changes = [f"switching.mode={mode}", "routing.kind=deflection", "traffic={kind: uniform}"]
    with pytest.raises(ConfigError, match="slow is not for packets that are deflected"):
        read(tmp_path / "c.yaml", changes)


def test_a_timeline_knows_which_event_slowed_what():
    events = [slow(5, 0.5, (0, 1)), slow(5, 0.25, (1, 2)), restore(7, (0, 1))]
    topology = line(3)
    routing = make("routing", kind="minimal")
    timeline = make_timeline(topology, [Event.model_validate(event) for event in events], routing, None, None)
    assert [epoch.factors for epoch in timeline.epochs] == [(), ((0, 0.5), (1, 0.25)), ()]


@pytest.mark.parametrize(
    ("events", "reroutes"),
    [
        ([slow(10, 0.5, (0, 1)), {"at_tick": 20, "restore": {"links": [[0, 1]]}}], ()),
        ([slow(10, 0.5, (0, 1)) | {"reroute_after": 3}, {"at_tick": 20, "restore": {"links": [[0, 1]]}}], (13, 20)),
        ([slow(10, 0.5, (0, 1)), {"at_tick": 20, "restore": {"links": [[0, 1]]}, "reroute_after": 0}], ()),
        ([{"at_tick": 10, "fail": {"links": [[1, 2]]}}, slow(15, 0.5, (0, 1)),
          {"at_tick": 20, "restore": {"links": [[0, 1]]}}, {"at_tick": 30, "restore": {"links": [[1, 2]]}}], (10, 30)),
        ([slow(10, 0.5, (0, 1)), {"at_tick": 15, "fail": {"links": [[1, 2]]}},
          {"at_tick": 20, "restore": {"links": [[0, 1]]}}], (15, 20)),
        ([{"at_tick": 10, "fail": {"links": [[1, 2]]}, "reroute_after": 5}, slow(12, 0.5, (0, 1)),
          {"at_tick": 20, "restore": {"links": [[0, 1]]}}], (15, 20)),  # the late reroute is on the slow network
        ([{"at_tick": 10, "fail": {"links": [[1, 2]]}, "reroute_after": 15}, slow(12, 0.5, (0, 1)),
          {"at_tick": 20, "restore": {"links": [[0, 1]]}}], (25,)),
        ([slow(5, 0.5, (0, 1)), {"at_tick": 10, "fail": {"links": [[0, 1]]}},
          {"at_tick": 20, "restore": {"links": [[0, 1]]}, "reroute_after": NEVER},
          {"at_tick": 30, "fail": {"links": [[0, 1]]}}], (10,)),  # the link has failed, whatever its rate would be
    ],
)  # fmt: skip
def test_the_routing_learns_of_the_end_of_slowness_that_it_knows(events, reroutes):
    topology, routing = make("topology", kind="torus", dims=[3, 3]).build(), make("routing", kind="minimal")
    parsed = [Event.model_validate(event) for event in events]
    assert make_timeline(topology, parsed, routing, routing.build(topology), Fraction(1)).reroutes == reroutes
