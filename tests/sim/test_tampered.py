# SPDX-License-Identifier: Apache-2.0
"""Certificates that somebody has changed: none is confirmed that claims what is not so.

``python -m tests.sim.test_tampered 300`` changes that many, and counts what came of them.
"""

import json
import shutil
import sys
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.kinds.spec import kind_of
from flitlab.fluid.saved import BadCertificate, Saved
from flitlab.fluid.verify import read_saved, saved_of, verify
from flitlab.fluid.verify_flow import FlowProof
from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from flitlab.sim.config.text import MAX_FILE_BYTES
from flitlab.sim.experiment.certificates import CONFIGURATION, INDEX, sha256
from tests.fluid.fluid_cases import INF, scenario, table
from tests.fluid.rational import exact
from tests.fluid.test_fluid_wide import wide
from tests.scenarios import asked_as_far_as_known

SEEDS = 12
"""Scenarios whose certificates are changed."""


@lru_cache
def case_of(seed: int) -> Scenario:
    """Four or five switches, capacities alike or twelve decades apart, host channels that may bind or are infinite."""
    case = wide(seed, 4 + seed % 2, decades=(0.3, 6)[seed // 2 % 2])
    if seed % 3:
        return case
    topology = case.topology.with_hosts(1, float(np.median(case.topology.capacity)))
    routes = make("routing", kind="minimal").build(topology)
    return scenario(topology, replace(case.traffic, topology=topology), routes)


@lru_cache
def certificates_of(seed: int) -> list[Saved]:
    """Of every ceiling that has one, by exact methods and by approximate ones."""
    case = case_of(seed)
    kinds = [("bounds", "auto"), ("cuts", "auto")]
    kinds += [(kind, method) for kind in ("mcf", "mcf_paths", "total") for method in ("exact", "approx")]
    specs = [asked_as_far_as_known(kind, method=method, gap=0.05) for kind, method in kinds]
    load = 3 * ceilings(case, [ceiling_spec("mcf")])[0].upper
    found = (saved_of(case, row) for row in ceilings(case, specs, [load], keep_flow=True))
    return [claim for claim in found if claim.claims and isinstance(claim, FlowProof)]  # others: test_forged


@lru_cache(maxsize=4096)
def truth(seed: int, ceiling: str, load: float) -> tuple[float, float]:
    """Between what the ceiling that a certificate names really is, in rational numbers."""
    case = case_of(seed)
    topology, traffic, matrix = case.topology, case.traffic, case.traffic.switch_demand
    if ceiling == "total":  # host channels can only take from it, and what they let through of each demand is a part
        most = float(exact(topology, matrix, load)) / topology.hosts
        return (most if np.isinf(topology.host_capacity) else 0.0), most
    theta = float(exact(topology, matrix, ports=case.routes.ports if ceiling == "mcf_paths" else None))
    theta = min(theta, topology.host_capacity / max(traffic.rate.max(), traffic.column_sums.max()))
    return theta, theta


def verdict(seed: int, claim: Saved) -> str:
    """What came of a claim: refused, confirmed and so, or confirmed and wrong."""
    try:
        if not verify(case_of(seed), claim).confirms(claim):
            return "refused"
    except BadCertificate:
        return "refused"
    least, most = truth(seed, claim.ceiling.partition(":")[0], claim.load)
    so = np.isnan(claim.lower) or claim.lower <= most * (1 + 1e-8)
    return "right" if so and (np.isnan(claim.upper) or least <= claim.upper * (1 + 1e-8)) else "wrong"


# What is done to a certificate

ARRAYS = [part.name for part in fields(FlowProof) if part.type in (Floats, Ints)]
LABELS = ["mcf", "mcf_paths", "total", "bounds", "bounds:volumetric", "cuts", "cuts:one_node", "split", "mmf", ""]
NUMBERS = [float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e308, 5e-324, 1e-3, 1.0, 1e3]
FACTORS = [*NUMBERS, 0.5, 0.99, 1.01, 2.0]
TYPES = ["f4", "f2", "c16", "i4", "u8", "bool", "U9", "O"]

OF_ARRAY: dict[str, Callable[[Random, np.ndarray, int], np.ndarray]] = {
    "all scaled": lambda draw, value, at: value * draw.choice(FACTORS),
    "one scaled": lambda draw, value, at: np.where(np.arange(len(value)) == at, value * draw.choice(FACTORS), value),
    "one replaced": lambda draw, value, at: np.where(np.arange(len(value)) == at, draw.choice(NUMBERS), value),
    "another's": lambda draw, value, at: np.where(np.arange(len(value)) == at, draw.choice(value), value),
    "shifted": lambda draw, value, at: value + draw.choice([-1, 1]),
    "one shifted": lambda draw, value, at: value + (np.arange(len(value)) == at),
    "one dropped": lambda draw, value, at: np.delete(value, at),
    "one doubled": lambda draw, value, at: np.insert(value, at, value[at]),
    "the rest dropped": lambda draw, value, at: value[:at],
    "shuffled": lambda draw, value, at: value[draw.sample(range(len(value)), len(value))],
    "of another type": lambda draw, value, at: value.astype(draw.choice(TYPES)),
    "of another shape": lambda draw, value, at: draw.choice([value[None], value[:, None], np.array(value[0])]),
}


def array_changed(draw: Random, claim: Saved, seed: int) -> Saved:
    name = draw.choice(ARRAYS)
    value = getattr(claim, name)
    if len(value) == 0:
        return replace(claim, **{name: np.ones(draw.randint(1, 3), value.dtype)})
    found = OF_ARRAY[draw.choice(sorted(OF_ARRAY))](draw, value, draw.randrange(len(value)))
    keeps = found.dtype.kind == "f" and value.dtype.kind == "i" and draw.random() < 0.8
    return replace(claim, **{name: found.astype(value.dtype) if keeps else found})


def end_changed(draw: Random, claim: Saved, seed: int) -> Saved:
    name = draw.choice(["lower", "upper", "load"])
    own = getattr(claim, name)
    return replace(claim, **{name: draw.choice([own * factor for factor in FACTORS] + NUMBERS)})


def label_changed(draw: Random, claim: Saved, seed: int) -> Saved:
    load = draw.choice([claim.load, float("nan"), claim.upper])
    routes = draw.choice([claim.routes, "", case_of(seed).routes.content_hash])
    return relabelled(claim, draw.choice(LABELS), load=load, routes=routes)


def relabelled(claim: Saved, ceiling: str, **changes: object) -> Saved:
    """The claim that another ceiling has this proof, as a file with another name says it."""
    proof = kind_of(ceiling).proof(ceiling) or type(claim)
    return proof(**vars(claim) | {"ceiling": ceiling, **changes})


def destination_dropped(draw: Random, claim: Saved, seed: int) -> Saved:
    """As a whole: with all its flow, so that everything still fits."""
    if len(claim.node) == 0:
        return commodity_dropped(draw, claim)
    gone = draw.randrange(len(claim.node))
    kept = np.ones(len(claim.flow), bool)
    kept[claim.start[gone] : claim.start[gone + 1]] = False
    start = np.append(0, np.cumsum(np.delete(np.diff(claim.start), gone)))
    return replace(
        claim, node=np.delete(claim.node, gone), start=start, channel=claim.channel[kept], flow=claim.flow[kept]
    )


def commodity_dropped(draw: Random, claim: Saved) -> Saved:
    if len(claim.source) == 0:
        return claim
    gone = draw.randrange(len(claim.source))
    paths = np.ones(len(claim.flow), bool)
    paths[claim.first[gone] : claim.first[gone + 1]] = False
    hops = np.diff(claim.start)
    return replace(
        claim, source=np.delete(claim.source, gone), target=np.delete(claim.target, gone), flow=claim.flow[paths],
        first=np.append(0, np.cumsum(np.delete(np.diff(claim.first), gone))),
        start=np.append(0, np.cumsum(hops[paths])), channel=claim.channel[np.repeat(paths, hops)],
    )  # fmt: skip


def part_of_another(draw: Random, claim: Saved, seed: int) -> Saved:
    """Its lengths, its flow, or all but the claims, from another certificate of the scenario or of another one."""
    other = draw.choice(certificates_of(draw.choice([seed, draw.randrange(SEEDS)])))
    lengths = ["network", "injection", "ejection"]
    names = draw.choice([lengths, [name for name in ARRAYS if name not in lengths], ARRAYS])
    return replace(claim, **{name: getattr(other, name) for name in names})


CHANGES = [array_changed, array_changed, end_changed, label_changed, destination_dropped, part_of_another]


def tampered(draw: Random) -> str:
    """One certificate of some scenario, changed one to three times."""
    seed = draw.randrange(SEEDS)
    claim = draw.choice(certificates_of(seed))
    try:
        with np.errstate(all="ignore"):
            for change in draw.choices(CHANGES, k=draw.randint(1, 3)):
                claim = change(draw, claim, seed)
    except (BadCertificate, ValueError, OverflowError):  # so changed it is not even a certificate, or an array
        return "refused"
    return verdict(seed, claim)


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_no_changed_claim_is_confirmed_that_rational_numbers_refute(draw):
    assert tampered(draw) != "wrong"


def test_what_is_not_changed_is_confirmed():
    for seed in range(SEEDS):
        assert {verdict(seed, claim) for claim in certificates_of(seed)} == {"right"}
    assert len({claim.ceiling.partition(":")[0] for claim in certificates_of(1)}) == 5


def flow_claim(case: Scenario, lower: float, node: list[int], hops: list[int], channel: list[int]) -> Saved:
    """A flow of 1 over every one of the channels, a number of them toward each destination."""
    none, real = np.zeros(0, np.int64), np.zeros(0)
    return FlowProof(
        topology=case.topology.content_hash, traffic=case.traffic.content_hash, routes="", ceiling="mcf",
        load=np.nan, lower=lower, upper=np.nan, network=real, injection=real, ejection=real, node=np.array(node),
        source=none, target=none, first=none, start=np.append(0, np.cumsum(hops)), channel=np.array(channel),
        flow=np.ones(len(channel)),
    )  # fmt: skip


def demand_between(topology: Topology, demand: dict[tuple[int, int], float]) -> Scenario:
    matrix = np.zeros((topology.switches, topology.switches))
    for pair, amount in demand.items():
        matrix[pair] = amount
    return scenario(topology, table(topology, matrix))


def test_little_that_reaches_nothing_is_not_taken_for_rounding():
    """2 -> 3 -> 2 beside 0 -> 1 -> 0: what 0 sends to 2, however little, cannot get there."""
    apart = Topology.from_arcs("apart", 4, [(0, 1), (1, 0), (2, 3), (3, 2)]).with_hosts(1, INF)
    case = demand_between(apart, {(0, 1): 1.0, (0, 2): 1e-14})
    with pytest.raises(BadCertificate, match="from which no allowed path leads on"):
        verify(case, flow_claim(case, 1.0, [1, 2], [1, 0], [0]))


def test_what_is_missing_is_counted_where_distances_are_equal_in_doubles():
    """1 -> 2 over 0 is missing; 0 and 1 are 1e20 and 1e20 + 1 away from 2, and 0 -> 1 needs the same channel."""
    ring = Topology.from_arcs("ring", 3, [(1, 0), (0, 2), (2, 1)], capacity=[1.0, 1e-20, 1.0]).with_hosts(1, INF)
    case = demand_between(ring, {(0, 1): 1.0, (1, 2): 1.0})
    channel = {(int(s), int(t)): c for c, (s, t) in enumerate(zip(ring.src, ring.dst, strict=True))}
    for lower, so in ((0.5e-20, True), (0.51e-20, False), (1e-20, False)):
        claim = flow_claim(case, lower, [1, 2], [2, 0], [channel[0, 2], channel[2, 1]])
        assert verify(case, claim).confirms(claim) == so


def test_only_bounds_and_cuts_have_names_of_their_own():
    for claim in certificates_of(1):
        named = relabelled(claim, f"{claim.ceiling.partition(':')[0]}:mine")
        if claim.ceiling.startswith(("bounds", "cuts")):
            assert verify(case_of(1), named).confirms(named)
        else:
            with pytest.raises(BadCertificate, match="no certificate proves a ceiling"):
                verify(case_of(1), named)


# What the command line says of folders that somebody has changed

CONFIG = """\
topology: {kind: imase, n: 8, degree: 2, host_capacity: .inf}
traffic: {kind: matrix, path: demand.csv}
routing: {kind: minimal}
loads: [0.9, 1.0]
ceilings: [{kind: mcf, gap: 0.2, method: approx}, {kind: mcf, method: exact}, mcf_paths, total]
"""


def write_demand(folder: Path, seed: int) -> None:
    demand = np.random.default_rng(seed).integers(1, 5, (8, 8))
    rows = [f"{s},{t},{demand[s, t]}" for s in range(8) for t in range(8) if s != t]
    (folder / "demand.csv").write_text("\n".join(["src,dst,demand", *rows]) + "\n")


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A folder with a configuration, its demand, and its certificates in the folder ``proofs``."""
    folder = tmp_path_factory.mktemp("saved")
    write_demand(folder, 1)
    (folder / "c.yaml").write_text(CONFIG)
    assert main(["ceilings", str(folder / "c.yaml"), "--save", str(folder / "proofs"), "--jobs", "1"]) == 0
    return folder


@pytest.fixture
def proofs(saved, tmp_path) -> Path:
    """The certificates, to be changed."""
    return Path(shutil.copytree(saved / "proofs", tmp_path / "proofs"))


def index_of(proofs: Path) -> dict:
    return json.loads((proofs / INDEX).read_text())


def change_index(proofs: Path, change: Callable[[dict], object]) -> None:
    index = index_of(proofs)
    change(index)
    (proofs / INDEX).write_text(json.dumps(index))


def entry_of(index: dict, ceiling: str) -> dict:
    """The last certificate of a ceiling: of mcf the exact one, a flow by destination."""
    return [entry for entry in index["certificates"] if entry["ceiling"] == ceiling][-1]


def forge(proofs: Path, ceiling: str, change: Callable[[dict], object]) -> None:
    """Changes a certificate, and what the index says of it accordingly: only the proof itself can tell."""

    def listed(index: dict) -> None:
        entry = entry_of(index, ceiling)
        file = proofs / entry["file"]
        with np.load(file) as archive:
            parts = dict(archive)
        change(parts)
        np.savez_compressed(file, **parts)
        ends = {name: float(parts[name]) for name in ("load", "lower", "upper")}
        entry |= {name: None if np.isnan(value) else value for name, value in ends.items()}
        entry |= {"sha256": sha256(file), "ceiling": str(parts["ceiling"])}

    change_index(proofs, listed)


def check(proofs: Path, capsys, code: int, said: str = "") -> str:
    assert main(["ceilings", "--verify", str(proofs)]) == code
    out, err = capsys.readouterr()
    assert said in out + err
    return out + err


def without_a_destination(parts: dict) -> None:
    end = parts["start"][-2]
    parts |= {"node": parts["node"][:-1], "start": parts["start"][:-1]}
    parts |= {"channel": parts["channel"][:end], "flow": parts["flow"][:end]}


def better(parts: dict, lengths: float) -> None:
    """An upper end just above the lower one, by lengths whose sums overflow or vanish."""
    parts |= {"network": np.full_like(parts["network"], lengths), "upper": parts["lower"] * 1.0001}


FORGERIES = {
    "a destination dropped": ("mcf", without_a_destination, "there is demand for switch 7, but no flow"),
    "a commodity dropped": (
        "total",
        lambda parts: parts.update(flow=np.where(np.arange(len(parts["flow"])) % 2, parts["flow"], 0)),
        "not proven: lower end",
    ),
    "no lengths": (
        "mcf",
        lambda parts: parts.update(dict.fromkeys(("network", "injection", "ejection"), np.zeros(0))),
        "nothing proves one",
    ),
    "no network lengths": ("mcf", lambda parts: parts.update(network=np.zeros(0)), "prices must be"),
    "lengths nan": ("mcf", lambda parts: parts["network"].fill(np.nan), "prices must be"),
    "lengths 0": ("mcf", lambda parts: parts["network"].fill(0), "not proven: upper end"),
    "no flow": (
        "mcf",
        lambda parts: parts.update(
            {name: parts[name][:0] for name in ("node", "start", "channel")}, flow=np.zeros(0)
        ),
        "nothing proves one",
    ),
    "flow nan": ("mcf", lambda parts: parts["flow"].fill(np.nan), "flow must be finite"),
    "flow 0": ("mcf", lambda parts: parts["flow"].fill(0), "not proven: lower end"),
    "lengths 1e308": ("mcf", lambda parts: better(parts, 1e308), "not proven: upper end"),
    "lengths 5e-324": ("mcf", lambda parts: better(parts, 5e-324), "not proven: upper end"),
    "lengths 1e308 of a total": ("total", lambda parts: better(parts, 1e308), "not proven: upper end"),
    "no end": ("mcf", lambda parts: parts.update(lower=np.nan, upper=np.nan), "nothing is claimed"),
    "infinite end": ("mcf", lambda parts: parts.update(upper=np.inf), "the upper end is claimed to be inf"),
    "ends swapped": (
        "total", lambda parts: parts.update(lower=parts["upper"], upper=parts["lower"] * 0.9), "is above the upper one"
    ),
    "a total at no load": ("mcf", lambda parts: parts.update(ceiling=np.array("total")), "must be positive and finite"),
    "a theta at a load": ("mcf", lambda parts: parts.update(load=0.9), "depend on a load"),
    "a total at a load that is none": ("total", lambda parts: parts.update(load=0.8), "no such row: total at load 0.8"),
    "a ceiling that nothing proves": ("mcf", lambda parts: parts.update(ceiling=np.array("split")), "no certificate"),
    "a ceiling that is not there": ("mcf", lambda parts: parts.update(ceiling=np.array("cuts")), "no such row: cuts"),
    "start shifted": ("mcf", lambda parts: parts.update(start=parts["start"] + 1), "do not fit each other"),
    "first shifted": ("mcf_paths", lambda parts: parts.update(start=parts["start"] - 1), "do not fit each other"),
    "better below": ("mcf", lambda parts: parts.update(lower=parts["lower"] * 1.001, upper=1.0), "not proven: lower"),
    "better above": ("mcf", lambda parts: parts.update(upper=parts["upper"] * 0.999, lower=0.0), "not proven: upper"),
    "the routes of something else": ("mcf_paths", lambda parts: parts.update(routes=np.array("0")), "other routes"),
    "numbers of another type": ("mcf", lambda parts: parts.update(flow=parts["flow"] * 1j), "flow must be numbers"),
    "a number as a text": ("mcf", lambda parts: parts.update(lower=np.array("1")), "lower must be a number"),
    "a text of two lines": ("mcf", lambda parts: parts.update(traffic=np.array("\n confirmed")), "a text on one line"),
    "a text of another proof": ("mcf", lambda parts: parts.update(able=np.array("\n confirmed")), "it has unknown"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused_with_the_reason(name, proofs, capsys):
    ceiling, change, said = FORGERIES[name]
    forge(proofs, ceiling, change)
    shown = check(proofs, capsys, 3, said)
    assert shown.count("confirmed") >= 3  # those that nobody has touched


def renamed(index: dict) -> None:
    entry_of(index, "mcf")["file"] = "../c.yaml"


OF_THE_INDEX = {
    "another claim": (lambda index: entry_of(index, "mcf").update(lower=0.1), "the index claims lower 0.1, the certif"),
    "another ceiling": (lambda index: entry_of(index, "mcf").update(ceiling="mcf_paths"), "the index claims ceiling"),
    "another hash": (lambda index: entry_of(index, "mcf").update(sha256="0" * 64), "its SHA-256 differs"),
    "a missing file": (lambda index: entry_of(index, "mcf").update(file="no.npz"), "cannot be read: No such file"),
    "a file outside": (renamed, "lies outside of the folder"),
    "another label": (lambda index: index["scenarios"][0].update(label="x"), "has another label"),
    "another graph": (lambda index: index["scenarios"][0].update(topology="0" * 64), "has another topology"),
    "another demand": (lambda index: index["scenarios"][0].update(traffic="0" * 64), "has another traffic"),
    "no such scenario": (lambda index: entry_of(index, "mcf").update(scenarios=[1]), "for the scenarios [1]"),
    "no scenario": (lambda index: entry_of(index, "mcf").update(scenarios=[]), "for the scenarios []"),
    "another configuration": (lambda index: index.update(configuration="0" * 64), "its SHA-256 differs"),
    "no certificates": (lambda index: index.update(certificates=[]), "the index names no certificates"),
    "no scenarios": (lambda index: index.update(scenarios=[]), "names the scenarios [] of a configuration with 1"),
    "half an index": (lambda index: index.pop("certificates"), "the index is damaged, at certificates"),
    "a number as a text": (lambda index: entry_of(index, "mcf").update(lower="0"), "the index is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_THE_INDEX)
def test_what_the_index_says_must_be_so(name, proofs, capsys):
    change, said = OF_THE_INDEX[name]
    change_index(proofs, change)
    check(proofs, capsys, 3, said)


def stored(path: Path, arrays: dict, compression: int = zipfile.ZIP_DEFLATED) -> None:
    """An archive of files with these contents."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)


def header(shape: str, dtype: str = "<f8") -> bytes:
    """The header of an array in the format of NumPy, version 1.0."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


OVERSIZED = {
    "a decompression bomb": ({"network.npy": (header("(40000000,)"), 320_000_000)}, "it unpacks to more than"),
    "many that are large together": (
        {f"{name}.npy": (header("(3000000,)"), 24_000_000) for name in ("network", "flow", "injection")},
        "it unpacks to more than",
    ),
    "a header of a larger array": ({"network.npy": (header("(99999999999,)"), 80)}, "is not that of its array"),
    "a text of gigabytes": ({"ceiling.npy": (header("()", "<U200000000"), 80)}, "is not that of its array"),
    "another part": (
        {"ceiling.npy": (header("()", "<U3") + "mcf".encode("utf-32-le"), 0), "more.npy": (header("(10,)"), 80)},
        "it has unknown arrays",
    ),
    "no array": ({"network.npy": (b"nothing", 0)}, "is not a valid certificate"),
    "an array alone": (None, "is not a valid certificate"),
}
"""How a file begins that a certificate holds, and how many zeros follow."""


@pytest.mark.parametrize("name", OVERSIZED)
def test_sizes_are_compared_before_anything_is_unpacked(name, tmp_path):
    arrays, said = OVERSIZED[name]
    path = tmp_path / "c.npz"
    if arrays is None:
        path.write_bytes(header("(99999999999,)"))
    else:
        stored(path, {file: begin + bytes(zeros) for file, (begin, zeros) in arrays.items()})
    tracemalloc.start()
    try:
        with pytest.raises(BadCertificate, match=said):
            read_saved(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_certificates_that_compress_too_well_are_written_as_they_are(tmp_path):
    """What is saved can be read: 10 million equal lengths would compress to a thousandth."""
    claim = replace(certificates_of(1)[0], network=np.ones(10_000_000))
    claim.write(tmp_path / "c.npz")
    assert (tmp_path / "c.npz").stat().st_size > 80_000_000
    assert len(read_saved(tmp_path / "c.npz").network) == 10_000_000


def test_an_index_is_of_limited_size(proofs, capsys):
    with (proofs / INDEX).open("a") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    check(proofs, capsys, 3, "the index is longer than 20,000,000 bytes")


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", "\x00"])
def test_an_index_that_is_none_is_refused(text, proofs, capsys):
    (proofs / INDEX).write_text(text)
    check(proofs, capsys, 3, "the index is damaged")


def test_files_that_are_gone_or_changed_are_refused(proofs, capsys):
    index, before = index_of(proofs), sha256(proofs / INDEX)
    shown = check(proofs, capsys, 0, "compare it with what --save printed")
    assert before in shown and index["scenarios"][0]["traffic"][:16] in shown
    first, second = (proofs / entry["file"] for entry in index["certificates"][:2])
    whole = first.read_bytes()
    first.write_bytes(second.read_bytes())
    check(proofs, capsys, 3, "its SHA-256 differs")
    first.write_bytes(whole[:-1])
    check(proofs, capsys, 3, "its SHA-256 differs")
    change_index(proofs, lambda index: index["certificates"][0].update(sha256=sha256(first)))
    check(proofs, capsys, 3, "is not a valid certificate")
    first.unlink()
    check(proofs, capsys, 3, "cannot be read: No such file")
    (proofs / CONFIGURATION).unlink()
    check(proofs, capsys, 3, f"{CONFIGURATION}")
    (proofs / INDEX).unlink()
    check(proofs, capsys, 2, "holds no saved certificates")


def test_another_demand_needs_another_index(saved, tmp_path, capsys):
    """Whoever changes the demand and all that is saved leaves an index with a hash that nobody has printed."""
    write_demand(tmp_path, 1)
    (tmp_path / "c.yaml").write_text(CONFIG)
    proofs = tmp_path / "proofs"
    save = ["ceilings", str(tmp_path / "c.yaml"), "--save", str(proofs), "--jobs", "1"]
    assert main(save) == 0
    before = sha256(proofs / INDEX)
    assert f"SHA-256 of {INDEX}: {before}" in capsys.readouterr().err
    write_demand(tmp_path, 2)
    check(proofs, capsys, 3, "the configuration has another traffic")
    assert main(save) == 0
    capsys.readouterr()
    assert before not in check(proofs, capsys, 0, sha256(proofs / INDEX))


def test_ceilings_of_a_kind_keep_a_file_each_and_others_are_not_taken(proofs, capsys):
    index = index_of(proofs)
    claims = [(entry["ceiling"], entry["load"]) for entry in index["certificates"]]
    assert claims == [("mcf", None), ("mcf", None), ("total", 0.9), ("total", 1.0), ("mcf_paths", None)]
    wide_one, tight = (entry["upper"] - entry["lower"] for entry in index["certificates"][:2])
    assert wide_one > tight
    assert main(["ceilings", "--verify", str(proofs), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["claim"].partition(", ")[2] for row in rows] == [
        "by any routing", "by any routing", "by any routing, at load 0.9", "by any routing, at load 1",
        "over the routes",
    ]  # fmt: skip
    assert all(row["topology"] == index["scenarios"][0]["topology"] for row in rows)
    assert all(row["proven_lower"] >= row["lower"] * (1 - 1e-9) for row in rows)
    stale = proofs / "old.npz"
    stale.write_bytes(b"whatever")
    check(proofs, capsys, 0, f"{stale}: not verified: the index does not list it")


if __name__ == "__main__":
    count = int(sys.argv[1])
    print(f"{count} changed certificates: {dict(Counter(tampered(Random(i)) for i in range(count)))}")
