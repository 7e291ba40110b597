# SPDX-License-Identifier: Apache-2.0
"""Wrong input: every mistake at once, one line each, with file, line, key, value, choices, and a suggestion."""

import pytest

from flitlab.fluid.kinds.spec import kinds
from flitlab.models.closest_match import closest_match
from flitlab.models.registry import CATEGORIES, names
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

GOOD = """\
topology: {kind: imase, n: 16, degree: 3, hosts_per_switch: 2}
routing: {kind: minimal}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.1]
"""


@pytest.fixture
def mistakes(tmp_path, monkeypatch):
    """The lines that a configuration is refused with."""
    monkeypatch.chdir(tmp_path)

    def lines(text, sets=()):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(ConfigError) as caught:
            read("c.yaml", sets)
        return [str(mistake) for mistake in caught.value.errors]

    return lines


def test_good_is_good(tmp_path):
    (tmp_path / "c.yaml").write_text(GOOD)
    (case,) = read(tmp_path / "c.yaml").cases
    assert case.label == "c" and case.scenario is not None


def test_all_at_once(mistakes):
    found = mistakes(
        "topology: {kind: imasee, n: 16}\nrouting: {kind: minimal, selct: hash}\nseads: [1]\n"
        "traffic: {kind: uniform, packet_flit: 4}\nloads: [0.1, 1.2]\nmeasure:\n  ticks: many\n"
        "switching: {mode: datagrams}\n"
    )
    assert len(found) == 7
    starts = (
        "c.yaml:1: topology.kind = imasee: unknown topology; choices: ",
        "c.yaml:2: routing.selct = hash: unknown key; choices: ",
        "c.yaml:3: seads = [1]: unknown key; choices: ",
        "c.yaml:4: traffic.packet_flit = 4: unknown key; choices: ",
        "c.yaml:5: loads[1] = 1.2: must be less than or equal to 1",
        "c.yaml:7: measure.ticks = many: must be a valid integer",
        "c.yaml:8: switching.mode = datagrams: is not one of the choices; choices: datagram, deflection (hot_potato), ",
    )
    for start in starts:
        assert sum(line.startswith(start) for line in found) == 1, start
    for word in ("imase", "select", "seeds", "packet_flits"):
        assert any(line.endswith(f"did you mean '{word}'?") for line in found), word


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("topology.n: 16.5", "topology.n = 16.5: must be a valid integer"),
        ("topology.n: '16'", "topology.n = '16': must be a valid integer"),
        ("topology.n: true", "topology.n = true: must be a valid integer"),
        ("topology.n: 1", "topology.n = 1: must be greater than or equal to 2"),
        ("topology: 3", "topology = 3: must be the name of a kind, or a mapping"),
        ("topology: {n: 3}", "topology.kind: is missing; choices: "),
        ("topology: null", "topology = null: is missing: experiment load_sweep needs it"),
        ("topology.host_capacity: .inf", "topology.host_capacity = .inf: must be finite in a simulation"),
        ("topology.capacity: 0.00321", "topology.capacity = 0.00321: "),
        ("topology.hosts: 1", "topology.hosts = 1: must be a list or a mapping; the hosts of every switch "),
        ("topology.hosts: many", "topology.hosts = many: must be a list or a mapping"),
        ("topology.hosts: [1, a]", "topology.hosts[1] = a: must be a valid integer"),
        ("topology.hosts: {0: 1.5}", "topology.hosts.0 = 1.5: must be a valid integer"),
        ("topology.hosts: [1]", "topology.hosts = [1]: 1 entries for 16 switches"),
        ("routing: null", "routing = null: is missing"),
        ("routing.vc_policy: hopp", "routing.vc_policy = hopp: is not one of the choices; choices: any, hop, "),
        ("traffic.packet_flits: 0", "traffic.packet_flits = 0: must be greater than or equal to 1"),
        ("traffic.packet_flits: [{flits: 1}]", "traffic.packet_flits[0].share: is missing"),
        (
            "traffic.arrivals: posson",
            "traffic.arrivals = posson: is not one of the choices; choices: bernoulli, poisson",
        ),
        ("loads: []", "loads = []: must have at least 1 item"),
        ("loads: 0", "loads = 0: must be greater than or equal to 0.000001"),
        ("loads: {from: 0.5, to: 0.1, step: 0.1}", "loads: from is above to"),
        ("loads: {from: 0.5, to: 1.1, step: 0.1}", "loads.to = 1.1: must be less than or equal to 1"),
        ("loads: [0.1, 0.1]", "loads = [0.1, 0.1]: 0.1 is listed twice"),
        ("seeds: 3", "seeds = 3: must be a list"),
        ("seeds: [-1]", "seeds[0] = -1: must be greater than or equal to 0"),
        ("schema: 2", "schema = 2: is not one of the choices; choices: 1"),
        ("name: a/b", "name = a/b: must be the name of a folder"),
        ("experiment: applications", "experiment = applications: is not one of the choices; choices: load_sweep"),
        ("experiment: lod_sweep", "experiment = lod_sweep: is not one of the choices; choices: load_sweep"),
        ("ceilings: [mfc]", "ceilings[0] = mfc: unknown ceiling; choices: bounds, "),
        ("ceilings: [{kind: mcf, gap: 2}]", "ceilings[0].gap = 2: must be less than 1"),
        ("outputs: {figures: [hops]}", "outputs.figures[0] = hops: is not one of the choices; choices: accepted_load"),
        ("published: [{where: x}]", "published[0].value: is missing"),
        ("published: [{where: x, value: 1, tolerance: small}]", "published[0].tolerance = small: must be a number or"),
        ("switching: {vcs: 1}", "switching.vcs = 1: rising needs a VC for each channel of the longest route"),
        ("measure: {warmup: 1e9, ticks: 1e8, ci: null}", "measure: up to 1,000,000,000 ticks of warm-up"),
        ("measure: {ticks: 5e8}", "measure: up to 500,000,000 ticks of warm-up and 1,000,000,000"),
        ("switching: {buffer_flits: 3}", "switching.buffer_flits = 3: must hold a whole packet, 4 flits"),
        ("switching: {mode: deflection}", "switching.mode = deflection: needs routing.kind: deflection"),
        ("switching: {link_ns: 3}", "switching.link_ns = 3: needs switching.flit_ns"),
        (
            "switching: {flit_ns: 1, link_ns: 3, link_ticks: 3}",
            "switching.link_ns = 3: give either link_ns or link_ticks",
        ),
        ("switching: {link_ticks: 0}", "switching.link_ticks = 0: must be greater than or equal to 1"),
        ("switching: {header_ticks: -1}", "switching.header_ticks = -1: must be greater than or equal to 0"),
        ("switching: {flit_ns: .inf}", "switching.flit_ns = .inf: must be a finite number"),
        ("plugins: [none.py]", "plugins[0] = none.py: No such file or directory"),
        ("plugins: [no_such_module]", "plugins[0] = no_such_module: cannot be loaded: ModuleNotFoundError"),
        ("topology.nn: 3", "topology.nn = 3: unknown key; choices: a, b, "),
        ("topology: {kind: file, path: none.txt}", "topology.path = none.txt: "),
        ("topology: {kind: torus, dims: [4, 0]}", "topology.dims[1] = 0: must be "),
        ("topology: {kind: rrg, n: 3, degree: 5}", "topology.degree = 5: must be below n = 3"),
        ("traffic.kind: nonsense", "traffic.kind = nonsense: unknown traffic; choices: adversarial, all_to_all"),
    ],
)
def test_one_mistake(mistakes, change, expected):
    key, _, value = change.partition(": ")
    found = mistakes(GOOD, [f"{key}={value}"])
    assert len(found) == 1
    assert found[0].startswith(f"--set: {expected}")


KINDS = {category: names(category) for category in CATEGORIES} | {"ceiling": list(kinds())}


@pytest.mark.parametrize("category", KINDS)
def test_two_letters_exchanged_still_mean_that_kind(category):
    for kind in KINDS[category]:
        for i in range(len(kind) - 1):
            word = kind[:i] + kind[i + 1] + kind[i] + kind[i + 2 :]
            assert word in KINDS[category] or closest_match(word, KINDS[category]) == kind, word


def test_a_ceiling_whose_letters_are_exchanged(mistakes):
    assert mistakes(GOOD, ["ceilings=[mfc]"])[0].endswith("; did you mean 'mcf'?")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("flit_ns=2", "switching.flit_ns"),
        ("vcs=4", "switching.vcs"),
        ("topology.vcs=4", "switching.vcs"),
        ("routing.packet_flits=4", "messages.packet_flits or traffic.packet_flits"),
        ("outputs.vc_policy=hop", "routing.vc_policy"),
        ("measure.path_draw=distinct", "routing.path_draw"),
        ("hosts_per_switch=2", "topology.hosts_per_switch"),
        ("degree=2", "topology.degree"),
        ("gap=0.1", "ceilings[].gap"),
        ("ticks=100", "measure.ticks"),
    ],
)
def test_a_key_that_is_known_elsewhere(mistakes, change, place):
    (found,) = mistakes(GOOD, [change])
    assert f": unknown key; its place is {place}; choices: " in found and "did you mean" not in found


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("switching.vc_buf_size=8", "buffer_flits"),
        ("switching.link_delay=5", "link_ns"),
        ("collective.size=1GB", "size_bytes"),
        ("traffic.flow_size=1MB", "sizes"),
        ("traffic={kind: incast, degree: 8}", "senders"),
        ("traffic={kind: matrix, file: demand.csv}", "path"),
        ("topology={kind: mesh, k: 8, n: 2}", "dims"),
        ("routing={kind: ecmp, select: hash}", "per"),
    ],
)
def test_a_key_by_its_name_in_other_simulators_or_without_its_unit(mistakes, change, key):
    found = [line for line in mistakes(GOOD, [change]) if ": unknown key; " in line]
    assert found[0].endswith(f"; did you mean {key!r}?") and "its place" not in found[0]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("topology={kind: xgft}", "clos"),
        ("routing=west_first", "minimal"),
        ("routing=O1TURN", "table"),
        ("routing=adaptive_escape", "minimal"),
    ],
)
def test_a_kind_of_other_simulators(mistakes, change, kind):
    (found,) = mistakes(GOOD, [change])
    assert found.endswith(f"; did you mean {kind!r}?")


def test_a_kind_that_is_no_text_beside_an_unknown_key(mistakes):
    text = """\
experiment: application
topology: {kind: mesh, dims: [2, 2]}
routing: {kind: minimal}
application: {kind: false}
switching: {mode: flow, applicaton: 1}
"""
    assert any("switching.applicaton = 1: unknown key" in line for line in mistakes(text))


def test_energy_that_is_switched_on_names_the_profiles(mistakes):
    (found,) = mistakes(GOOD, ["outputs.energy=true"])
    assert ": is not one of the choices; choices: 800g, 400g, " in found


def test_a_key_of_another_kind_names_it(mistakes):
    found = mistakes(GOOD, ["traffic.classes=[]", "routing.k=3"])
    assert [line.partition(": is ")[2].partition(";")[0] for line in found] == [
        "not for kind minimal, but for kinds ksp and llskr", "not for kind uniform, but for kind classes",
    ]  # fmt: skip


def test_a_key_of_a_case_that_is_known_elsewhere_or_nowhere(mistakes):
    text = GOOD + "cases: [{label: a, flit_ns: 2}, {label: b, outputs: {}}, {label: c, topologi: {}}]\n"
    found = [line.partition("; choices")[0] for line in mistakes(text)]
    assert found == [
        "c.yaml:5: cases[0].flit_ns = 2: unknown key; its place is switching.flit_ns",
        "c.yaml:5: cases[1].outputs: cannot differ between cases",
        "c.yaml:5: cases[2].topologi: unknown key",
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{from: 1, to: 1000000000, step: 1}", "more than 20,000 values are too many"),
        (f"{{from: 1, to: {10**18}, step: 0.5}}", "more than 20,000 values are too many"),
        ("{from: 1, to: .inf, step: 1}", "from, to and step must be finite"),
        ("{from: one, to: 2, step: 1}", "from, to and step must be numbers"),
        ("{from: 2, to: 1, step: 1}", "from is above to"),
        ("{from: 1, to: 2, step: 0}", "step must be above 0"),
        ("{from: 1, to: 2}", "must be a list of values, {from, to, step} or {from, to, per_decade}"),
    ],
)
def test_a_range_says_what_is_wrong_with_it(mistakes, given, problem):
    for key in ("seeds", "topology.seed"):
        assert mistakes(GOOD, [f"{key}={{sweep: {given}}}"]) == [f"--set: {key}.sweep: {problem}"]


def test_a_range_that_begins_at_no_number(mistakes):
    found = mistakes(GOOD, ["seeds={sweep: {from: .nan, to: 1, step: 1}}"])
    assert "must be a number, not NaN" in found[0]


@pytest.mark.parametrize("file", [".c.yaml", "..yaml", "n" * 201 + ".yaml"])
def test_a_file_whose_name_cannot_be_that_of_a_folder(tmp_path, file):
    (tmp_path / file).write_text(GOOD)
    with pytest.raises(ConfigError, match="must be the name of a folder"):
        read(tmp_path / file)
    assert read(tmp_path / file, ["name=other"]).name == "other"


@pytest.mark.parametrize("letter", ["n", "é"])
def test_names_are_as_long_as_file_systems_allow(mistakes, tmp_path, letter):
    most = letter * (200 // len(letter.encode()))
    assert mistakes(GOOD, [f"name={most}{letter}"])[0].startswith(
        "--set: name: must be the name of a folder, at most 200 bytes long, not 20"
    )
    (tmp_path / f"{read(tmp_path / 'c.yaml', [f'name={most}'], quick=True).name}-quick.view.html").touch()


def test_a_pattern_that_needs_a_power_of_two(mistakes):
    (found,) = mistakes(GOOD, ["topology.n=12", "traffic={kind: bit_reversal}"])
    assert found.startswith("--set: traffic.kind = bit_reversal: needs a power-of-two number of hosts")


def test_unknown_keys_of_set(mistakes):
    assert mistakes(GOOD, ["topology.degre=4"])[0].startswith("--set: topology.degre = 4: unknown key; choices: ")


def test_the_line_of_a_swept_option(mistakes):
    text = GOOD.replace("degree: 3", "degree:\n    {sweep: [\n      3,\n      x]}")
    assert mistakes(text) == ["c.yaml:4: topology.degree = x: must be a valid integer"]


def test_every_scenario_is_built_and_equal_mistakes_are_said_once(mistakes):
    text = GOOD.replace("{kind: minimal}", "{sweep: [{kind: minimal}, {kind: deflection}]}")
    text += "switching:\n  vcs: {sweep: [1, 2]}\n"
    found = mistakes(text)
    assert [line.partition(": rising")[0] for line in found] == [
        "c.yaml:6: switching.vcs = 1",
        "c.yaml:6: switching.vcs = 2",
    ]


def test_build_mistakes_join_those_of_the_schema(mistakes):
    mix = "[{flits: 1, share: 1}, {flits: 2, share: 1}]}"
    found = mistakes(GOOD.replace("minimal}", "deflection}").replace("4}", mix) + "seeds: x\n")
    assert found == [
        "c.yaml:5: seeds = x: must be a list",
        "c.yaml:3: traffic.packet_flits: deflection needs packets of one length",
    ]


def test_disconnected_graphs_and_negative_demands(mistakes, tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n2 3\n")
    (tmp_path / "bad.txt").write_text("0 1\n1 x y z 3\n")
    (tmp_path / "m.csv").write_text("src,dst,demand\n0,1,-2\n")
    found = mistakes(GOOD, ["topology={kind: file, path: {sweep: [g.txt, bad.txt]}}"])
    assert "not strongly connected" in found[0] and found[0].startswith("--set: topology.path = g.txt: ")
    assert "bad.txt:2: " in found[1]
    (found,) = mistakes(GOOD, ["traffic={kind: matrix, path: m.csv}"])
    assert found.startswith("--set: traffic.path = m.csv: ") and "negative" in found


def test_what_could_not_be_read_is_not_complained_about_twice(mistakes):
    assert mistakes(GOOD.replace("n: 16", "n: .nan")) == ["c.yaml:1: topology.n = .nan: must be a number, not NaN"]


def test_a_failing_plugin_and_a_failing_component(mistakes, tmp_path):
    (tmp_path / "crash.py").write_text("raise RuntimeError('oh no')\n")
    (tmp_path / "odd.py").write_text(
        "from flitlab.models.registry import register\nfrom flitlab.models.topology.spec import TopologySpec\n"
        "@register('topology', 'odd_one')\nclass OddOne(TopologySpec):\n    '''Odd.'''\n"
        "    def graph(self):\n        return 1 / 0\n"
    )
    found = mistakes(GOOD + "plugins: [crash.py, odd.py]\n", ["topology={kind: odd_one}"])
    assert found[0].startswith("c.yaml:5: plugins[0] = crash.py: cannot be loaded: RuntimeError: oh no (")
    assert "topology: could not be built: ZeroDivisionError: division by zero" in found[1] and "odd.py:7" in found[1]
    from flitlab.models.registry import _registered

    del _registered["topology"]["odd_one"]


def test_warns_of_deflection_that_will_collapse(tmp_path):
    (tmp_path / "c.yaml").write_text(
        GOOD.replace("minimal", "deflection") + "switching: {header_ticks: 40, hold_packets: 3}\n"
    )
    (warning,) = read(tmp_path / "c.yaml").warnings
    assert "c.yaml:5: switching.hold_packets = 3: warning: 3 packets" in warning and "= 60" in warning


def test_a_published_value_of_no_scenario_is_refused(tmp_path):
    path = tmp_path / "lost.yaml"
    path.write_text(
        "schema: 1\nname: lost\nexperiment: metrics\n"
        "topology: {kind: imase, n: {sweep: [16, 32]}, degree: 3}\n"
        "published:\n  - {where: x, scenario: {n: 17}, quantity: aspl, value: 2.0}\n"
    )
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert str(caught.value.errors[0]).endswith(
        "lost.yaml:6: published[0].scenario: does not name one scenario; choices: n=16, n=32"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            GOOD.replace("[0.1]", "{from: 0.1, to: 0.9, step: 1e-9}"),
            "c.yaml:4: loads: more than 10,000 loads are too many",
        ),
        (
            GOOD.replace("[0.1]", "{from: 0.1, to: .inf, step: 0.1}"),
            "c.yaml:4: loads.to = .inf: must be a finite number",
        ),
        (GOOD.replace("n: 16", "n: 0x" + "f" * 5000), "c.yaml:1: topology.n: must be a valid integer"),
        (GOOD + "ceilings: [mcf, {kind: mcf}]\n", "c.yaml:5: ceilings[1]: mcf is listed twice"),
        (GOOD + "seeds: []\n", "c.yaml:5: seeds = []: must have at least 1 item"),
        (
            GOOD + "switching: {link_ticks: 10000000}\n",
            "c.yaml:5: switching.link_ticks = 10000000: must be less than or equal to 1000000",
        ),
        (
            GOOD + "switching: {flit_ns: 1e-6, link_ns: 1e90}\n",
            "c.yaml:5: switching.link_ns = 1e+90: must be at most 1000000 ticks of flit_ns",
        ),
        (
            GOOD + "engine: {sweep: [compiled, reference]}\n",
            "c.yaml:5: engine: cannot differ between scenarios; choices: topology, capacity_of, routing, "
            "switching, traffic, transport, application, placement, messages, timeline, collective, loads, seeds, "
            "measure, ceilings, relative, search, metrics",
        ),
    ],
)
def test_what_would_never_end_or_mean_nothing(mistakes, text, expected):
    assert mistakes(text) == [expected]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (GOOD + "'<<': {seeds: [1]}\n", "c.yaml:5: <<: unknown key; choices: "),
        (GOOD.replace("kind: uniform", "<n>: 3, kind: uniform"), "c.yaml:3: traffic.<n> = 3: unknown key; choices: "),
        (GOOD + "'<map>': 3\n", "c.yaml:5: <map> = 3: unknown key; choices: "),
        (GOOD + "²: 3\n", "c.yaml:5: ² = 3: unknown key; choices: "),
        (GOOD + "'.': 3\n", "c.yaml:5: . = 3: unknown key; choices: "),
        (GOOD + "'': 3\n", "c.yaml:5: a key has no name"),
        (GOOD + '"a\\0": 3\n', r"c.yaml:5: 'a\x00': is not text"),
        (GOOD + 'name: "a\\e[31m"\n', r"c.yaml:5: name: holds '\x1b', which is not text"),
        (GOOD + 'name: "a\\0b"\n', r"c.yaml:5: name: holds '\x00', which is not text"),
    ],
)
def test_keys_and_texts_that_nobody_would_choose(mistakes, text, start):
    (line,) = mistakes(text)
    assert line.startswith(start)


@pytest.mark.parametrize(
    ("change", "start"),
    [
        ("²=3", "--set: ² = 3: unknown key; choices: "),
        ("topology.²=3", "--set: topology.² = 3: unknown key; choices: "),
        (f"loads.{'9' * 5000}=3", "--set: loads."),
        (".".join("a" * 2000) + "=3", "--set: a.a."),
        ("..=3", "--set: ..=3: must have the form key.path=value"),
        ("seeds=[1, 1e308]", "--set: seeds[1] = 1e308: must be 0 or have a magnitude"),
        ("measure.ticks=1e-320", "--set: measure.ticks = 1e-320: must be 0 or have a magnitude"),
    ],
)
def test_strange_changes(mistakes, change, start):
    (line,) = mistakes(GOOD, [change])
    assert line.startswith(start)


def test_quick_keys_that_lead_nowhere(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(GOOD + f"quick: {{'..': 3, '{'.'.join('a' * 101)}': 3}}\n")
    with pytest.raises(ConfigError) as caught:
        read(path, quick=True)
    first, second = map(str, caught.value.errors)
    assert first.endswith("quick...: names no key; must have the form key.path")
    assert second.endswith("is nested too deeply, in more than 100 mappings and lists")


def test_a_shift_by_more_than_a_machine_number(mistakes, tmp_path):
    by = 32 * 10**20 + 3
    problem = f"c.yaml:3: traffic.by = {by}: must fit into 64 bits"
    assert mistakes(GOOD.replace("kind: uniform", f"kind: shift, by: {by}")) == [problem]
    (tmp_path / "c.yaml").write_text(GOOD.replace("kind: uniform", f"kind: shift, by: {32 * 10**16 + 3}"))
    (case,) = read(tmp_path / "c.yaml").cases
    assert case.scenario.traffic.fixed[1] == 4


def test_a_matrix_that_asks_for_more_than_a_packet_a_tick(mistakes, tmp_path):
    (tmp_path / "m.csv").write_text("0,1,9\n")
    text = GOOD.replace("kind: uniform", "kind: matrix, path: m.csv, normalise: none")
    problem = "c.yaml:4: loads = [0.5]: load 0.5 asks for more than one packet per tick and host"
    assert mistakes(text.replace("[0.1]", "[0.5]")) == [problem]


def test_flows_too_small_for_their_load(mistakes):
    sets = ["traffic.sizes={kind: fixed, bytes: 19}", "switching={mode: spray, mtu_bytes: 4150}"]
    problem = "load 0.5 in flows of 19 bytes opens more than one flow per host and packet time"
    (found,) = mistakes(GOOD.replace("[0.1]", "[0.5]"), [*sets, "measure={seconds: 0.001}"])
    assert found == f"c.yaml:4: loads = [0.5]: {problem}: each sends 0.02 of a full packet"  # 83 of 4,150 bytes


def test_a_matrix_that_is_no_text(mistakes, tmp_path):
    (tmp_path / "m.csv").write_bytes(b"\xff0,1,2\n")
    text = GOOD.replace("kind: uniform", "kind: matrix, path: m.csv")
    assert mistakes(text) == ["c.yaml:3: traffic.path = m.csv: is not a text file (UTF-8)"]


def test_escape_needs_buffers_for_whole_packets(mistakes, tmp_path):
    text = GOOD + "switching: {mode: wormhole, vcs: 2, buffer_flits: 3}\n"
    sets = ["topology={kind: mesh, dims: [3, 3]}", "routing={kind: minimal, select: adaptive, vc_policy: escape}"]
    found = mistakes(text, [*sets, "traffic.packet_flits=4"])
    assert (
        len(found) == 1 and "switching.buffer_flits = 3: must hold a whole packet, 4 flits; with vc_policy" in found[0]
    )
    plain = ["routing={kind: dor}", sets[0], "traffic.packet_flits=4"]  # without escape channels, wormhole needs less
    assert read(tmp_path / "c.yaml", plain).cases
    study = read(tmp_path / "c.yaml", [*sets, "traffic.packet_flits=3"])
    assert not study.cases[0].scenario.switching.may_deadlock


@pytest.mark.parametrize(
    ("name", "policy"),
    [("adaptive_escape", "escape"), ("torus-dateline", "dateline"), ("hop_based", "hop"), ("hops", "hop")],
)
def test_a_vc_policy_by_a_longer_name(mistakes, name, policy):
    for change in (f"routing.vc_policy={name}", f"routing.vc_policy={{kind: {name}}}"):
        (found,) = mistakes(GOOD, [change])
        assert found.endswith(f"; did you mean {policy!r}?")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("timeline=[{at_us: 5, fail: {switches: [1]}, reroute_after: 100ms}]",
         "timeline[0].reroute_after = 100ms: must be a number without a unit: microseconds with at_us, ticks with "
         "at_tick; .inf: never"),
        ("measure.ticks=30us", "measure.ticks = 30us: must be a valid integer without a unit, of ticks"),
        ("measure.warmup=5us", "measure.warmup = 5us: must be auto, or a number without a unit, of ticks"),
        ("loads=0.1..0.9", "loads = '0.1..0.9': must be a number, a list of numbers, or a range {from, to, step}"),
    ],
)  # fmt: skip
def test_the_forms_of_a_number(mistakes, change, problem):
    assert mistakes(GOOD, [change]) == [f"--set: {problem}"]
