# SPDX-License-Identifier: Apache-2.0
"""Forged proofs: of what a folder of certificates says only that is confirmed which follows from its configuration.

Every field of every kind of certificate, and of its entry in the index, is changed; the forger then claims whatever
the verifier says is proven, and makes all hashes anew. What is true of a scenario is computed here by other means:
linear programs in rational numbers, all permutations of hosts, and all cuts and partitions of the network.

``python -m tests.sim.test_forged 600`` forges that many, and counts what came of them.
"""

import json
import math
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from flitlab.fluid.saved import Saved
from flitlab.fluid.verify_collective import CollectiveProof
from flitlab.models.instance import Instance
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from flitlab.sim.cli.ceilings import _row as row_of
from flitlab.sim.config.case import Study
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment import certificates
from flitlab.sim.experiment.certificates import INDEX, Verdict, sha256, verify_all
from tests.fluid.rational import exact
from tests.fluid.test_worst_case import by_brute_force

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce", "scatter", "gather", "all_to_all")

CONFIG = f"""\
name: forged
experiment: ceilings
routing: {{kind: minimal}}
loads: [0.4, 0.9]
cases:
  - label: digraph
    topology: {{kind: imase, n: 6, degree: 2, hosts_per_switch: 1, host_capacity: .inf}}
    traffic: {{kind: permutation, seed: 1}}
    ceilings:
      - bounds
      - cuts
      - {{kind: mcf, method: exact}}
      - {{kind: mcf, method: approx, gap: 0.1}}
      - {{kind: mcf_paths, method: exact}}
      - total
      - worst_case
      - {{kind: collective, of: [{", ".join(KINDS)}], ranks: switches, root: 1, amounts: [3, 1, 0, 1, 4, 2]}}
  - label: mesh
    topology: {{kind: mesh, dims: [2, 2], hosts_per_switch: 1, host_capacity: 1}}
    traffic: {{kind: all_to_all}}
    ceilings:
      - {{kind: mcf_paths, method: approx, gap: 0.01}}
      - {{kind: bounds, ports: 3}}
      - {{kind: collective, of: [{", ".join(KINDS[::-1])}], ranks: hosts, root: 2,
         switches: {{multicast: true, reduce: true}}}}
      - {{kind: collective, of: [all_reduce, all_to_all]}}
"""


class Ceilings:
    """What the configuration asks for, written down once more: rows by scenario, and collectives by row."""

    theta = ("bounds", "bounds:volumetric", "bounds:cuts", "bounds:hosts", "cuts", "cuts:brute_force", "cuts:one_node",
             "cuts:two_node", "cuts:expanding", "cuts:eigenvector", "cuts:bisection", "mcf", "mcf_paths")  # fmt: skip
    rows: Mapping[str, tuple[str, ...]] = {
        "digraph": (*theta, "total", "worst_case"),
        "mesh": ("mcf_paths", *(name for name in theta if name.startswith("bounds")), "bounds:equipment"),
    }
    loads = (0.4, 0.9)
    collectives: Mapping[str, list[dict[str, Any]]] = {
        "digraph": [
            {"first": "all_gather", "of": KINDS, "ranks": "switches", "root": [1], "able": "",
             "units": [3, 1, 0, 1, 4, 2]},
        ],
        "mesh": [
            {"first": "all_to_all", "of": KINDS, "ranks": "hosts", "root": [2], "able": "multicast reduce",
             "units": [1] * 4},
            {"first": "all_reduce", "of": ("all_reduce", "all_to_all"), "ranks": "switches", "root": [0], "able": "",
             "units": [1] * 4},
        ],
    }  # fmt: skip


def is_configured(label: str, claim: Saved) -> bool:
    """Whether the configuration asks for the row that a certificate names, of the collective that it names."""
    name = claim.ceiling.partition(":")[2]
    if not isinstance(claim, CollectiveProof):
        loads = Ceilings.loads if claim.ceiling == "total" else ()
        return claim.ceiling in Ceilings.rows[label] and (math.isnan(claim.load) if not loads else claim.load in loads)
    return math.isnan(claim.load) and any(
        claim.collective == (name or one["first"]) and claim.collective in one["of"]
        and (claim.ranks, claim.root.tolist(), claim.able) == (one["ranks"], one["root"], one["able"])
        and claim.units.tolist() == one["units"]
        for one in Ceilings.collectives[label]
    )  # fmt: skip


# What is true


@cache
def study() -> Study:
    return read("forged.yaml", text=CONFIG)


def instance_of(label: str) -> Instance:
    return next(case.instance for case in study().cases if case.label == label)


@cache
def truth(label: str, ceiling: str, load: float, ranks: str, able: str) -> tuple[float, float]:
    """Between what the ceiling of a scenario is; of a collective the root and the units are those of the scenario."""
    instance = instance_of(label)
    topology, traffic, kind = instance.topology, instance.traffic, ceiling.partition(":")[0]
    matrix = traffic.switch_demand
    if kind in KINDS:
        return times(label, ceiling, ranks, able)
    if kind == "total":
        most = float(exact(topology, matrix, load)) / topology.hosts
        return most, most
    busiest = max(traffic.rate.max(), traffic.column_sums.max())
    if kind == "worst_case":
        theta = by_brute_force(topology, instance.routes) / busiest
        return theta, theta
    if ceiling == "bounds:equipment":
        return best_of_equipment(), math.inf
    theta = float(exact(topology, matrix, ports=instance.routes.ports if kind == "mcf_paths" else None))
    theta = min(theta, topology.host_capacity / busiest)
    return theta, theta


def best_of_equipment() -> float:
    """Theta of uniform traffic in the better of two networks of 4 switches of 3 ports and 4 hosts: a bound is no less.

    A ring with a host at each switch, and a triangle with a switch at one corner; both use all ports.
    """
    networks = [([(0, 1), (1, 2), (2, 3), (3, 0)], [1, 1, 1, 1]), ([(0, 1), (1, 2), (2, 0), (0, 3)], [0, 1, 1, 2])]
    best = []
    for links, hosts in networks:
        count = np.array(hosts, float)
        demand = np.outer(count, count) / 3
        np.fill_diagonal(demand, 0)
        best.append(float(exact(Topology.from_links("one", 4, links), demand)))
    return max(best)


def times(label: str, kind: str, ranks: str, able: str) -> tuple[float, float]:
    """The longest time of a collective that any cut or partition proves, twice; of an all-to-all the exact one."""
    topology = instance_of(label).topology
    one = next(one for one in Ceilings.collectives[label] if (one["ranks"], one["able"]) == (ranks, able))
    units, root = one["units"], one["root"][0]
    if kind == "all_to_all":
        demand = np.array(units)[:, None] * (1.0 - np.eye(len(units)))
        at_hosts = topology.host_capacity if ranks == "hosts" else math.inf
        most = max(demand.sum(axis=0).max(), demand.sum(axis=1).max())
        time = float(max(1 / exact(topology, demand), Fraction(0 if math.isinf(at_hosts) else most / at_hosts)))
        return time, time
    longest = max(longest_by_cut(network_of(topology, ranks), kind, units, root), Fraction(0))
    if kind == "all_reduce":
        longest = max(longest, longest_by_parts(network_of(topology, ranks), able))
    return float(longest), float(longest)


def network_of(topology: Topology, ranks: str) -> SimpleNamespace:
    """Arcs with capacities, where ranks on hosts with finite channels are vertices after the switches."""
    arcs = [*zip(topology.src.tolist(), topology.dst.tolist(), map(Fraction, topology.capacity.tolist()), strict=True)]
    n = topology.switches
    if ranks == "hosts" and math.isfinite(topology.host_capacity):
        at = [n + host for host in range(topology.hosts)]
        ends = [(v, n + host) for host, v in enumerate(topology.host_switch.tolist())]
        arcs += [(*end, Fraction(topology.host_capacity)) for u, v in ends for end in ((u, v), (v, u))]
        return SimpleNamespace(vertices=n + topology.hosts, arcs=arcs, ranks=at)
    return SimpleNamespace(vertices=n, arcs=arcs, ranks=np.flatnonzero(topology.host_count).tolist())


def longest_by_cut(network: SimpleNamespace, kind: str, units: list[int], root: int) -> Fraction:
    """The longest time that what must leave some set of vertices takes over the channels that lead out of it."""
    longest = Fraction(0)
    for inside in product((False, True), repeat=network.vertices):
        within = [inside[v] for v in network.ranks]
        if not any(within) or all(within) or within[root] != {"broadcast": True, "scatter": True, "reduce": False,
                                                              "gather": False}.get(kind, within[root]):  # fmt: skip
            continue
        own = sum(amount for amount, here in zip(units, within, strict=True) if here)
        others = sum(units) - own
        leaving = {"all_gather": own, "gather": own, "reduce_scatter": others, "scatter": others}.get(kind, 1)
        out = sum(capacity for u, v, capacity in network.arcs if inside[u] and not inside[v])
        longest = max(longest, leaving / out)
    return longest


def longest_by_parts(network: SimpleNamespace, able: str) -> Fraction:
    """The longest time of an all-reduce that disjoint parts prove which all have ranks; -1: in no part."""
    longest, n = Fraction(0), network.vertices
    if able == "multicast reduce":
        return longest
    for label in product(range(-1, len(network.ranks)), repeat=n):
        parts = {label[v] for v in network.ranks}
        count = len(parts)
        if count < 2 or parts != set(range(count)) or max(label) >= count:
            continue
        out = sum(c for u, v, c in network.arcs if label[u] != label[v] and label[u] >= 0)
        into = sum(c for u, v, c in network.arcs if label[u] != label[v] and label[v] >= 0)
        longest = max(longest, 2 * (count - 1) / {"": min(out, into), "multicast": into, "reduce": out}[able])
    return longest


def outcome(verdict: Verdict) -> str:
    """What came of a claim: rejected, confirmed and so, or confirmed and false."""
    if not verdict.confirmed:
        return "rejected"
    claim, of = verdict.claimed, verdict.of
    assert claim is not None and of is not None
    label, instance = of.label, instance_of(of.label)
    routes = instance.routes.content_hash
    hashes = (instance.topology.content_hash, instance.traffic.content_hash, routes)
    if (of.topology, of.traffic, of.routes) != hashes or not is_configured(label, claim):
        return "false"
    least, most = truth(label, *subject_of(claim))
    so = math.isnan(claim.lower) or claim.lower <= most * (1 + 1e-8)
    return "true" if so and (math.isnan(claim.upper) or least <= claim.upper * (1 + 1e-8)) else "false"


def subject_of(claim: Saved) -> tuple[str, float, str, str]:
    """The collective or ceiling of a claim, its load, and the ranks and abilities of a collective."""
    if isinstance(claim, CollectiveProof):
        return claim.collective, claim.load, claim.ranks, claim.able
    return claim.ceiling, claim.load, "", ""


# What forgers do


@dataclass
class Forgery:
    """A certificate, as the arrays of its file, and its entry in the index."""

    parts: dict[str, np.ndarray]
    entry: dict[str, Any]

    def get(self, name: str) -> Any:
        part = self.parts.get(name, np.array(""))
        return part.item() if part.ndim == 0 else part

    def put(self, **changes: Any) -> None:
        self.parts |= {name: np.asarray(value) for name, value in changes.items()}


NUMBERS = ("load", "lower", "upper")
FACTORS = [0.01, 0.5, 0.99, 1.01, 2.0, 100.0]
NUMERALS = [math.nan, math.inf, 0.0, -1.0, 1e308, 5e-324, 0.4, 0.5, 0.9, 1.0, 1000.0]
WORDS = {
    "collective": [*KINDS, "scan", ""],
    "ranks": ["switches", "hosts", "racks", ""],
    "able": ["", "multicast", "reduce", "multicast reduce", "reduce multicast"],
    "bound": ["1", "1/2", "100", "0", "-1", "x", "1e9"],
    "reached": ["1", "1/100", "x", ""],
    "ceiling": [*Ceilings.theta, "total", "worst_case", "collective", *(f"collective:{kind}" for kind in KINDS),
                "bounds:tub", "bounds:moore", "bounds:equipment", "split", "cuts:mine", "collective:scan", "mcf:mean",
                ""],
}  # fmt: skip


def changed_field(draw: Random, forgery: Forgery, name: str) -> None:
    """Another value of one field."""
    value = forgery.get(name)
    if isinstance(value, str):
        hashes = [getattr(instance_of(label), part).content_hash for label in Ceilings.rows for part in PARTS]
        forgery.put(**{name: draw.choice(WORDS.get(name, ["", "0", *hashes]))})
    elif name in NUMBERS:
        forgery.put(**{name: draw.choice([*NUMERALS, *(value * factor for factor in FACTORS)])})
    elif len(value) == 0:
        forgery.put(**{name: np.ones(draw.choice([1, 4, 6]), value.dtype)})
    else:
        forgery.put(**{name: changed_array(draw, value)})


PARTS = ("topology", "traffic", "routes")


def changed_array(draw: Random, value: np.ndarray) -> np.ndarray:
    at, new = draw.randrange(len(value)), value.copy()
    how = draw.choice(["scaled", "one scaled", "one moved", "swapped", "dropped", "doubled", "shuffled", "zero"])
    if how == "scaled":
        return (value * draw.choice([2, 3, 100])).astype(value.dtype)
    if how == "dropped":
        return np.delete(value, at)
    if how == "doubled":
        return np.insert(value, at, value[at])
    if how == "shuffled":
        return value[draw.sample(range(len(value)), len(value))]
    if how == "swapped":
        new[at] = draw.choice(value)
    elif how == "one moved":
        new[at] += draw.choice([-1, 1])
    else:
        new[at] = 0 if how == "zero" else new[at] * draw.choice([2, 100])
    return new


def multiplied(draw: Random, forgery: Forgery) -> None:
    """All that a certificate of a collective says, for a multiple of the amounts."""
    factor = draw.choice([2, 3, 100])
    forgery.put(units=forgery.get("units") * factor)
    for name in ("bound", "reached"):
        if text := forgery.get(name):
            forgery.put(**{name: str(Fraction(text) * factor)})
    forgery.put(lower=forgery.get("lower") * factor, upper=forgery.get("upper") * factor)


def renamed(draw: Random, forgery: Forgery) -> None:
    """Another collective, with the row of that name."""
    kind = draw.choice(KINDS)
    forgery.put(collective=kind, ceiling=draw.choice(["collective", f"collective:{kind}"]))


def of_another(draw: Random, forgery: Forgery, others: list[Forgery]) -> None:
    """Some fields of another certificate."""
    other = draw.choice(others)
    names = draw.choice([["network", "injection", "ejection"], ["topology", "traffic", "routes"],
                         ["collective", "ranks", "able", "units", "root", "ceiling"], ["part", "of_rank", "bound"],
                         [name for name in other.parts if name not in ("ceiling", "load")]])  # fmt: skip
    forgery.put(**{name: other.parts[name] for name in names if name in other.parts})


def of_another_scenario(draw: Random, forgery: Forgery) -> None:
    """The entry of the index, for another scenario, or for both."""
    forgery.entry["scenarios"] = draw.choice([[0], [1], [0, 1]])


def forged(draw: Random, original: Forgery, name: str, others: list[Forgery]) -> Forgery:
    """A certificate of which a field is changed, and perhaps more."""
    forgery = Forgery(dict(original.parts), dict(original.entry))
    with np.errstate(all="ignore"):
        of_collective = bool(forgery.get("collective"))
        if of_collective and draw.random() < 0.2:
            multiplied(draw, forgery)
        changed_field(draw, forgery, name)
        if of_collective and draw.random() < 0.2:
            renamed(draw, forgery)
        if draw.random() < 0.2:
            of_another(draw, forgery, others)
        if draw.random() < 0.2:
            of_another_scenario(draw, forgery)
    return forgery


def verdicts(folder: Path, forgery: Forgery) -> list[Verdict]:
    """What the verifier says of a folder with that certificate alone, all hashes being right."""
    file = folder / forgery.entry["file"]
    np.savez_compressed(file, **forgery.parts)
    ends = {name: forgery.get(name) for name in NUMBERS}
    forgery.entry |= {name: None if math.isnan(value) else value for name, value in ends.items()}
    forgery.entry |= {"ceiling": forgery.get("ceiling"), "sha256": sha256(file)}
    index = json.loads((folder / INDEX).read_text())
    (folder / INDEX).write_text(json.dumps(index | {"certificates": [forgery.entry]}, allow_nan=False))
    return list(verify_all(folder))


def claims_what_is_proven(forgery: Forgery, verdict: Verdict) -> bool:
    """Takes over what the verifier says is proven; whether there is anything to take over."""
    if sets := re.search(r"the sets prove (\S+), where", verdict.problem):
        forgery.put(bound=sets[1], lower=float(Fraction(sets[1])), upper=math.nan)
        return True
    if trees := re.search(r"the trees reach (\S+), where", verdict.problem):
        forgery.put(reached=trees[1], upper=float(Fraction(trees[1])))
        return True
    if verdict.proven is None or not verdict.problem:
        return False
    lower, upper = verdict.proven.lower, verdict.proven.upper
    forgery.put(lower=lower, upper=upper if lower <= upper or math.isnan(upper) else math.nan)
    return True


def tried(folder: Path, forgery: Forgery) -> str:
    """What comes of a forgery, also once it claims no more than is proven."""
    outcomes = []
    for _ in range(3):
        try:
            answers = verdicts(folder, forgery)
        except ValueError:  # what cannot be written at all, such as infinity in JSON
            outcomes.append("rejected")
            break
        outcomes += map(outcome, answers)
        assert all(row_of(answer)["verdict"] for answer in answers)  # whatever a file says can be printed
        if not claims_what_is_proven(forgery, answers[0]):
            break
    return next((one for one in ("false", "true") if one in outcomes), "rejected")


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    return save(tmp_path_factory.mktemp("forged"))


def save(folder: Path) -> Path:
    (folder / "forged.yaml").write_text(CONFIG)
    assert main(["ceilings", str(folder / "forged.yaml"), "--save", str(folder / "proofs"), "--jobs", "1"]) == 0
    return folder / "proofs"


@pytest.fixture
def proofs(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "proofs"))


def originals(proofs: Path) -> list[Forgery]:
    """All certificates of a folder, and two with trees, which nothing saves from the command line."""
    index = json.loads((proofs / INDEX).read_text())
    saved = [Forgery(dict(np.load(proofs / entry["file"])), entry) for entry in index["certificates"]]
    return [*saved, *(with_trees(one) for one in saved if is_of_trees(one))]


def is_of_trees(forgery: Forgery) -> bool:
    return forgery.entry["scenarios"] == [0] and forgery.entry["ceiling"] in (
        "collective:all_gather", "collective:broadcast",
    )  # fmt: skip


def with_trees(forgery: Forgery) -> Forgery:
    """The certificate with trees of fewest hops out of every root, and the time that data takes along them."""
    topology = instance_of("digraph").topology
    roots = {1: 1} if forgery.get("collective") == "broadcast" else dict(enumerate(forgery.get("units").tolist()))
    load: Counter[tuple[int, int]] = Counter()
    paths: list[tuple[int, int]] = []
    trees, first = [], [0]
    for root, count in roots.items():
        if not count:
            continue
        reached = [root]
        for u in reached:
            for v in topology.dst[topology.src == u].tolist():
                if v not in reached:
                    reached.append(v)
                    paths.append((u, v))
                    load[u, v] += count
        trees += [1, root, count]
        first.append(len(paths))
    kept = Forgery(dict(forgery.parts), {**forgery.entry, "file": f"trees-{forgery.get('collective')}.npz"})
    kept.put(tree=np.array(trees), first=np.array(first), start=np.arange(0, 2 * len(paths) + 1, 2))
    capacity = {(u, v): c for u, v, c in network_of(topology, "switches").arcs}
    time = max(Fraction(many) / capacity[arc] for arc, many in load.items())
    kept.put(vertex=np.array(paths).ravel(), reached=str(time), upper=float(time))
    return kept


def every_kind(forgeries: list[Forgery]) -> dict[tuple[str, int, bool], Forgery]:
    """The first certificate of each ceiling in each scenario, with and without trees."""
    kinds: dict[tuple[str, int, bool], Forgery] = {}
    for one in forgeries:
        kinds.setdefault((one.entry["ceiling"], one.entry["scenarios"][0], bool(one.get("reached"))), one)
    return kinds


def forgeries(proofs: Path, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """What came of ``count`` forgeries, with what each was; every field of every kind takes its turn."""
    others, draw = originals(proofs), Random(seed)
    pairs = [(kind, name) for kind, one in every_kind(others).items() for name in one.parts]
    chosen = (draw.sample(pairs, len(pairs)) * (count // len(pairs) + 1))[:count]
    with mock.patch.object(certificates, "read", cache(certificates.read)):  # it is the same file each time
        for kind, name in chosen:
            forgery = forged(draw, every_kind(others)[kind], name, others)
            yield tried(proofs, forgery), f"{kind}: {name}: {forgery.entry}"


@pytest.mark.long
def test_what_is_not_forged_is_confirmed_and_so(saved):
    answers = list(verify_all(saved))
    assert [answer.problem for answer in answers if answer.problem] == []
    assert {outcome(answer) for answer in answers} == {"true"}
    rows = {(answer.of.label, answer.claimed.ceiling) for answer in answers}
    assert {("digraph", kind) for kind in ("mcf", "mcf_paths", "total", "worst_case", "bounds", "cuts")} <= rows
    assert {(label, f"collective:{kind}") for kind in KINDS for label in ("digraph", "mesh")} <= rows


def test_trees_prove_a_time_that_is_possible(proofs):
    both = [one for one in originals(proofs) if one.get("reached")]
    assert len(both) == 2
    for one in both:
        (answer,) = verdicts(proofs, one)
        assert answer.confirmed and outcome(answer) == "true" and answer.proven.upper == one.get("upper")


def test_the_truth_is_exact_where_both_ends_are_certified(saved):
    """What this file computes by other means lies between the ends, and at them where these meet."""
    for answer in verify_all(saved):
        claim = answer.claimed
        least, _ = truth(answer.of.label, *subject_of(claim))
        if getattr(claim, "bound", ""):
            assert claim.lower == pytest.approx(least, rel=1e-12), subject_of(claim)
        elif claim.ceiling in ("worst_case", "total") or isinstance(claim, CollectiveProof):
            assert claim.lower == pytest.approx(least, rel=2e-3)


def test_no_forged_proof_is_confirmed(proofs):
    outcomes = list(forgeries(proofs, 60, seed=1))
    assert [what for one, what in outcomes if one == "false"] == []
    assert sum(one == "rejected" for one, _ in outcomes) > 30


@pytest.mark.long
def test_none_of_600_forged_proofs_is_confirmed(proofs):
    outcomes = list(forgeries(proofs, 600, seed=2))
    assert [what for one, what in outcomes if one == "false"] == []


@pytest.mark.parametrize("ceiling", ["collective:all_gather", "collective:all_to_all", "collective:broadcast"])
def test_a_hundred_times_the_amounts_are_not_those_of_the_configuration(proofs, ceiling, capsys):
    forgery = next(one for one in originals(proofs) if one.entry["ceiling"] == ceiling)
    draw = Random(1)
    with mock.patch.object(draw, "choice", lambda options: options[-1]):
        multiplied(draw, forgery)
    (answer,) = verdicts(proofs, forgery)
    assert "other amounts of its 6 ranks" in answer.problem
    assert main(["ceilings", "--verify", str(proofs)]) == 3
    assert "confirmed" not in capsys.readouterr().out


@pytest.mark.long
def test_no_multipliers_prove_less_than_a_network_reaches(proofs):
    """Every field of the proof of the bound over all networks is changed five times, then claims what is proven."""
    original = next(one for one in originals(proofs) if one.entry["ceiling"] == "bounds:equipment")
    draw, outcomes = Random(3), Counter[str]()
    with mock.patch.object(certificates, "read", cache(certificates.read)):
        for name in original.parts:
            for _ in range(5):
                forgery = Forgery(dict(original.parts), dict(original.entry))
                with np.errstate(all="ignore"):
                    changed_field(draw, forgery, name)
                outcomes[tried(proofs, forgery)] += 1
    assert outcomes["false"] == 0 and outcomes["rejected"] > 20 and outcomes["true"] > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ports": [4, 1]}, "is of 4 ports, split 1, which the configuration does not ask for"),
        ({"ports": [0, 1]}, "is of 0 ports, split 1"),
        ({"upper": 1.0}, "not proven: upper end 1 (proven is 3)"),
        ({"weight": [np.nan]}, "a multiplier is not finite"),
        ({"level": [99], "row": [0], "weight": [1.0]}, "a multiplier is of no bound"),
        ({"level": [0], "row": [1], "weight": [1.0]}, "a multiplier is of no bound"),
        ({"level": [1], "row": [1], "weight": [1.0], "link": [0.0]}, "3 multipliers of links are needed"),
        ({"level": [0, 0], "row": [0], "weight": [1.0]}, "different lengths"),
        ({"lower": 0.5}, "not proven: lower end 0.5 (nothing proves one)"),
        ({"ceiling": "bounds"}, "unknown arrays"),
    ],
)
def test_a_bound_over_all_networks_is_that_of_the_configured_equipment(proofs, changes, said):
    forgery = next(one for one in originals(proofs) if one.entry["ceiling"] == "bounds:equipment")
    (answer,) = verdicts(proofs, forgery)
    upper = f"{forgery.get('upper'):.9g}"
    said_of = f"theta of uniform traffic and of a worst demand <= {upper}, on any network of this equipment"
    assert answer.confirmed and answer.claimed.statement() == said_of
    if "weight" in changes and len(changes) == 1:
        changes = {"weight": np.full(len(forgery.parts["weight"]), np.nan)}
    forgery.put(**changes)
    (answer,) = verdicts(proofs, forgery)
    assert said in answer.problem


@pytest.mark.parametrize("name", ["bounds:volumetric", "bounds:hosts", "bounds:cuts", "cuts:one_node"])
def test_a_bound_has_the_lengths_of_its_name(proofs, name):
    """Lengths that differ prove some upper end, but neither count hops nor are those of a cut or of hosts."""
    forgery = next(one for one in originals(proofs) if one.entry["ceiling"] == "bounds:volumetric")
    forgery.put(ceiling=name, network=np.arange(1.0, 11), upper=1e3)
    (answer,) = verdicts(proofs, forgery)
    assert "the prices are not those of such a bound" in answer.problem
    forgery.put(ceiling="bounds")
    (answer,) = verdicts(proofs, forgery)
    assert answer.confirmed and outcome(answer) == "true"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        counts: Counter[str] = Counter()
        for result, what in forgeries(save(Path(name)), int(sys.argv[1]), seed=int((sys.argv[2:] or ["0"])[0])):
            counts[result] += 1
            if result == "false":
                print(what)
        print(", ".join(f"{count} {result}" for result, count in counts.items()))
