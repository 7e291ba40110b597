# SPDX-License-Identifier: Apache-2.0
"""``switching:`` is that of one discipline: keys of others are refused, what sweeps share is not."""

from pathlib import Path

import pytest

from flitlab.models.registry import _registered, names, spec_class
from flitlab.models.rules.allocate import AllocatorKind
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines import table

GOOD = """\
topology: {kind: imase, n: 16, degree: 3, hosts_per_switch: 2}
routing: {kind: minimal}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.1]
"""

BUFFERED = {"vct", "wormhole", "deflection"}

SHARED = (
    "switching: {mode: MODE, vcs: 4, buffer_flits: 8, hold_packets: 12, slotted: true, iterations: 1, link_ticks: 2}\n"
)


def mistakes(text, *sets):
    """The lines that a configuration is refused with."""
    Path("c.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read("c.yaml", sets)
    return [str(mistake) for mistake in caught.value.errors]


def modes(text, *sets):
    """The discipline in force in each scenario."""
    return [case.resolved["switching"]["mode"] for case in read("c.yaml", sets, text=text).cases]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "{queue_packets: 100}",
            "switching.queue_packets = 100: is not for mode vct, but for modes datagram and spray",
        ),
        ("{mode: vct, nic_mbps: 64}", "switching.nic_mbps = 64: is not for mode vct, but for modes datagram and spray"),
        ("{mode: wormhole, duplex: half}", "switching.duplex = half: is not for mode wormhole, but for mode flow"),
        (
            "{mode: datagram, vcs: 4}",
            "switching.vcs = 4: is not for mode datagram, but for modes deflection, vct and wormhole",
        ),
        (
            "{link_failures: {links: 1, at_ms: 1}}",
            "switching.link_failures: is not for mode vct, but for mode datagram",
        ),
        (
            "{mode: datagram, header_ns: 4}",
            "switching.header_ns = 4: is not for mode datagram, but for modes deflection, flow, ideal, vct and "
            "wormhole",
        ),
    ],
)
def test_a_key_of_another_discipline(given, problem):
    (found,) = mistakes(GOOD + f"switching: {given}\n")
    assert found.startswith(f"c.yaml:5: {problem}; ") and "choices: " in found


def test_every_key_is_known_to_its_own_discipline_and_foreign_to_the_others():
    keys = {mode: set(spec_class("switching", mode).model_fields) for mode in names("switching")}
    for mode, own in keys.items():
        for key in set().union(*keys.values()) - own:
            found = mistakes(GOOD, f"switching={{mode: {mode}, {key}: 1}}")
            assert any(
                line.startswith(f"--set: switching.{key} = 1: is not for mode {mode}, but for") for line in found
            )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("transport={kind: tcp}", "transport: is not for mode vct, but for modes datagram and spray"),
        (
            "traffic.sizes={kind: fixed, bytes: 100}",
            "traffic.sizes: is not for mode vct, but for modes datagram and spray",
        ),
        (
            "traffic.arrivals=together",
            "traffic.arrivals = together: is not for mode vct, but for modes datagram and spray",
        ),
    ],
)
def test_a_key_beside_switching_of_another_discipline(change, problem):
    assert mistakes(GOOD, change) == [f"--set: {problem}"]


def test_the_allocator_is_one_of_the_mode():
    given = {"vct": ("age", "oldest"), "wormhole": tuple(AllocatorKind)}
    for mode, choices in given.items():
        for allocator in ("age", "oldest", *AllocatorKind):
            change = f"switching={{mode: {mode}, allocator: {allocator}}}"
            if allocator in choices:
                (case,) = read("c.yaml", [change], text=GOOD).cases
                assert case.resolved["switching"]["allocator"] == allocator
            else:
                problem = f"is not for mode {mode}; choices: {', '.join(choices)}"
                assert mistakes(GOOD, change) == [f"--set: switching.allocator = {allocator}: {problem}"]


def test_foreign_keys_join_the_other_mistakes():
    found = mistakes(GOOD + "seeds: x\n", "switching={mode: vct, queue_packets: 3, vcs: 0}", "topology.nn=3")
    assert len(found) == 4


def test_a_foreign_key_does_not_make_other_keys_look_wrong():
    (found,) = mistakes(GOOD.replace("loads: [0.1]\n", ""), "switching={mode: datagram, vcs: 3}")
    assert "switching.vcs = 3: is not for mode datagram" in found
    (found,) = mistakes(GOOD.replace("loads: [0.1]\n", ""), "switching={mode: datagramm}")
    assert found.endswith("did you mean 'datagram'?")


@pytest.mark.parametrize("mode", sorted(BUFFERED - {"deflection"}))
def test_a_sweep_over_routings_shares_the_keys_of_deflection(mode):
    text = GOOD.replace("{kind: minimal}", "{sweep: [{kind: minimal}, {kind: deflection}]}")
    assert modes(text + SHARED.replace("MODE", mode)) == [mode, "deflection"]
    (case,) = read("c.yaml", ["routing={kind: deflection}"], text=GOOD + SHARED.replace("MODE", mode)).cases
    assert (case.resolved["switching"]["hold_packets"], case.resolved["switching"]["slotted"]) == (12, True)


def test_a_sweep_over_modes_shares_what_all_of_them_have():
    assert modes(GOOD + SHARED.replace("MODE", "{sweep: [vct, wormhole]}")) == ["vct", "wormhole"]
    found = mistakes(GOOD + "switching: {mode: {sweep: [vct, datagram]}, vcs: 4}\n")
    assert [line.partition(";")[0] for line in found] == [
        "c.yaml:5: switching.vcs = 4: is not for mode datagram, but for modes deflection, vct and wormhole"
    ]
    swept = "switching: {sweep: [{mode: vct, vcs: 4}, {mode: datagram, nic_mbps: 1000}]}\n"
    assert modes(GOOD.replace("kind: minimal", "kind: ecmp") + swept) == ["vct", "datagram"]


def test_a_case_that_changes_the_mode_keeps_what_both_disciplines_have():
    cases = "cases: [{label: a}, {label: b, switching: {mode: wormhole}}, {label: c, switching: {mode: datagram}}]\n"
    text = GOOD.replace("kind: minimal", "kind: ecmp") + SHARED.replace("mode: MODE, ", "") + cases
    first, second, third = read("c.yaml", text=text).cases
    assert first.resolved["switching"]["mode"] == "vct"
    assert second.resolved["switching"]["buffer_flits"] == 8 and second.ticks["link"] == 2
    assert third.resolved["switching"]["mode"] == "datagram"
    back = "cases: [{label: a}, {label: b, switching: {mode: vct}}]\n"
    text = GOOD.replace("kind: minimal", "kind: ecmp") + "switching: {mode: datagram, nic_mbps: 100}\n" + back
    assert modes(text) == ["datagram", "vct"]


def test_quick_that_changes_the_mode(tmp_path):
    text = GOOD.replace("kind: minimal", "kind: ecmp") + SHARED.replace("MODE", "vct")
    study = read("c.yaml", quick=True, text=text + "quick: {switching: {mode: datagram, nic_mbps: 10}}\n")
    assert study.cases[0].resolved["switching"]["nic_mbps"] == 10


@pytest.mark.parametrize("mode", names("switching"))
def test_the_resolved_keys_are_those_of_the_discipline(mode):
    text = GOOD
    if mode == "deflection":
        text = GOOD.replace("minimal", "deflection")
    if mode == "datagram":
        text = GOOD.replace("minimal", "ecmp")
    if mode == "spray":
        text = GOOD.replace("minimal", "ecmp").replace(
            "{kind: uniform", "{kind: uniform, sizes: {kind: fixed, bytes: 1000000}"
        )
    if mode == "flow":
        text = GOOD[: GOOD.index("traffic")].replace("minimal", "minimal, select: hash")
        text += "experiment: application\napplication: {kind: bt, ranks: 4, class: S, iterations: 1}\n"
    extra = ", flit_ns: 2" if mode == "flow" else ""
    (case,) = read("c.yaml", [f"switching={{mode: {mode}{extra}}}"], text=text).cases
    assert set(case.resolved["switching"]) <= set(spec_class("switching", mode).model_fields)
    assert case.resolved["switching"]["mode"] == mode and case.simulated


PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar, Literal

from flitlab.models.registry import SpecError, register
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.sim.engines.table import runs


@dataclass(frozen=True, kw_only=True)
class Toy(SwitchingMode):
    """A toy."""

    mode: ClassVar[str] = "toy"
    slots: int

    def zero_load_latency(self, topology, hops, flits):
        return hops + flits


@register("switching", "toy")
class ToySpec(SwitchingSpec):
    """A toy that takes one packet a slot."""

    switching_mode: ClassVar[type[Toy]] = Toy
    related_keys: ClassVar[tuple[str, ...]] = ("transport",)
    mode: Literal["toy"]
    slots: int

    def errors(self, topology, routes, flits):
        if self.slots > topology.switches:
            yield SpecError("are more than switches", key="switching.slots")

    def build(self, setting):
        return Toy(slots=self.slots)


@runs(Toy)
def _engines():
    """A toy is read here, and not run."""
'''


@pytest.fixture
def plugin(tmp_path):
    """A discipline of a user's own."""
    (tmp_path / "toy.py").write_text(PLUGIN)
    yield GOOD + "plugins: [toy.py]\n"
    _registered["switching"].pop("toy", None)
    table._entries.pop("toy", None)


def test_a_discipline_of_a_plugin(plugin):
    (case,) = read("c.yaml", ["switching={mode: toy, slots: 3}"], text=plugin).cases
    assert case.resolved["switching"] == {"mode": "toy", "slots": 3} and case.simulated
    assert mistakes(plugin, "switching={mode: toy, slots: 17}") == [
        "--set: switching.slots = 17: are more than switches"
    ]
    assert mistakes(plugin, "switching={mode: toy}")[0].startswith("--set: switching.slots: is missing")
    assert mistakes(plugin, "switching={mode: vct, slots: 3}")[0].startswith(
        "--set: switching.slots = 3: is not for mode vct, but for mode toy; choices: allocator, "
    )
    assert mistakes(plugin, "transport={kind: tcp}") == [
        "--set: transport: is not for mode vct, but for modes datagram, spray and toy"
    ]
    (unknown,) = mistakes(plugin, "switching={mode: toys}")
    assert "is not one of the choices; choices: datagram, deflection (hot_potato), flow, " in unknown
    assert unknown.endswith("toy, vct (virtual_cut_through), wormhole; did you mean 'toy'?")


def test_set_that_changes_the_mode_keeps_what_both_disciplines_have():
    text = GOOD + "switching: {vcs: 4, buffer_flits: 8, link_ticks: 2}\n"
    (case,) = read("c.yaml", ["switching.mode=wormhole"], text=text).cases
    assert {key: case.resolved["switching"][key] for key in ("mode", "vcs", "link_ticks")} == {
        "mode": "wormhole", "vcs": 4, "link_ticks": 2,
    }  # fmt: skip
    refused = mistakes(text, "switching.mode=flow")
    assert refused == ["--set: switching.mode = flow: is for experiment: application"]
