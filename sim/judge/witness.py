# SPDX-License-Identifier: Apache-2.0
"""What proves a limit, small enough to be checked by hand: a cut, host channels, counted hops, or lengths."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flitlab.fluid.bounds import volumetric
from flitlab.fluid.ceiling import Ceiling, theta_unit
from flitlab.fluid.certificate import Certificate, verify_total
from flitlab.fluid.cuts import all_cuts
from flitlab.fluid.cuts.cut import Network
from flitlab.fluid.hosts import host_bound, host_certificate
from flitlab.fluid.saved import Saved
from flitlab.fluid.verify import verify
from flitlab.models.instance import Instance
from flitlab.models.topology.names import Names, host_names, switch_names

MOST_CUT = 2048
"""Switches up to which cuts are looked for: of more, lengths are the proof."""

MOST_LISTED = 50
"""Channels that a witness lists; the file of the certificate has all."""


@dataclass(frozen=True, eq=False)
class Witness:
    """Why nothing can be more (or, of a latency, less) than ``bound``.

    kind: ``cut``, ``hosts``, ``hops``, ``lengths``, ``offer`` or ``zero_load``. statement: the proof in a sentence.
    ceiling: the ceiling that it is of, '' if none. bound: in flits per tick and host, or in ticks. facts: JSON-able.
    proof: the row that is saved, None where the statement is all there is.
    """

    kind: str
    statement: str
    ceiling: str
    bound: float
    facts: dict[str, Any] = field(default_factory=dict)
    proof: Ceiling | None = None

    def plain(self) -> dict[str, Any]:
        """The witness as JSON has it."""
        own = {"kind": self.kind, "statement": self.statement, "ceiling": self.ceiling or None, "bound": self.bound}
        return own | self.facts


class UnconfirmedError(RuntimeError):
    """A certificate that the independent verifier does not confirm: a defect of flitlab."""


def confirmed(instance: Instance, row: Ceiling) -> float:
    """The upper end that a certificate proves, as the verifier finds it that knows no solver.

    Raises :class:`UnconfirmedError` where that is more than the row claims.
    """
    saved = Saved.of(instance, row)
    found = verify(instance, saved)
    if problem := found.unproven(saved):
        raise UnconfirmedError(f"{row.ceiling}: {problem}")
    return max(found.upper, row.upper)


def of_theta(instance: Instance, row: Ceiling, claimed: float) -> Witness:
    """The simplest proof that a load of ``claimed`` is not carried: hosts, a cut, hops, or the lengths of a ceiling.

    row: the ceiling that it exceeds, with its certificate.
    """
    simple = () if row.ceiling == "mcf_paths" else _simple(instance)
    for witness in simple:
        if witness.bound < claimed:
            return witness
    return _of_lengths(instance, row, "at load 1 demands x distances need")


def _simple(instance: Instance) -> Iterator[Witness]:
    topology, traffic = instance.topology, instance.traffic
    names, hosts = switch_names(topology), host_bound(topology, traffic)
    if np.isfinite(hosts):
        z = host_certificate(topology, traffic)
        way, word = (z.injection, "sends") if z.injection.any() else (z.ejection, "receives")
        host = int(np.argmax(way))
        name = host_names(topology).value(host)
        demand = float((traffic.rate if z.injection.any() else traffic.column_sums)[host])
        statement = (
            f"Host {name} {word} {demand:g} flits per tick at load 1, and its channel takes {topology.host_capacity:g}:"
            f" no load above {hosts:.6g} passes it."
        )
        row = _row(instance, "bounds:hosts", hosts, z)
        yield Witness("hosts", statement, "hosts", confirmed(instance, row), {"host": name}, row)
    if topology.switches <= MOST_CUT and bool(traffic.switch_pairs()[2].size):
        for cut in sorted(all_cuts(topology, traffic), key=lambda cut: cut.upper)[:1]:
            inside, outside = np.flatnonzero(cut.side).tolist(), np.flatnonzero(~cut.side).tolist()
            few, verb = (inside, "leaves") if len(inside) <= len(outside) else (outside, "enters")
            crossing = np.flatnonzero(cut.certificate.network)
            statement = (
                f"Whatever {verb} the {len(few)} switches {_listed(names, few)} crosses channels of "
                f"{cut.capacity:g} flits per tick together, and at load 1 that is {cut.demand:.6g}: no load above "
                f"{cut.upper:.6g} crosses."
            )
            facts = {
                "capacity": cut.capacity, "demand": cut.demand, "side": names.values(inside),
                "channels": _channels(instance, crossing),
            }  # fmt: skip
            row = _row(instance, f"cuts:{cut.name}", cut.upper, cut.certificate)
            yield Witness("cut", statement, "cut", confirmed(instance, row), facts, row)
        found = volumetric(topology, traffic)
        assert found.certificate is not None
        capacity = float(topology.capacity.sum())
        statement = (
            f"All channels together move {capacity:g} flits per tick, and at load 1 demands x hops need "
            f"{capacity / found.upper:.6g}: no load above {found.upper:.6g} fits."
        )
        row = _row(instance, "bounds:volumetric", found.upper, found.certificate)
        yield Witness("hops", statement, "volumetric", confirmed(instance, row), {"capacity": capacity}, row)


def _row(instance: Instance, name: str, upper: float, z: Certificate) -> Ceiling:
    return Ceiling(name, None, float("nan"), upper, theta_unit(instance.topology), "", 0.0, "", z)


def _listed(names: Names, switches: list[int]) -> str:
    told = " ".join(map(names.label, switches[:MOST_LISTED]))
    return f"({told}{' ...' if len(switches) > MOST_LISTED else ''})"


def _of_lengths(instance: Instance, row: Ceiling, needed: str) -> Witness:
    """The lengths of a ceiling, the longest channels listed."""
    z = row.certificate
    assert z is not None
    length = z.capacity_length(instance.topology)
    over = " over the routes of the claim" if row.ceiling == "mcf_paths" else ""
    statement = (
        f"Give channels the lengths of this certificate: capacities x lengths are {length:.6g}, and {needed} "
        f"{length / row.upper:.6g} of that{over}, so that no load above {row.upper:.6g} is carried."
    )
    order = np.argsort(-z.network, kind="stable")
    facts = {
        "capacity_length": length, "priced_channels": int((z.network > 0).sum()),
        "channels": _channels(instance, order[z.network[order] > 0], z.network),
    }  # fmt: skip
    return Witness("lengths", statement, row.ceiling, confirmed(instance, row), facts, row)


def of_total(instance: Instance, row: Ceiling, claimed: float) -> Witness:
    """Why hosts do not receive ``claimed`` flits per tick each: a cut that loses enough, or the lengths of a ceiling.

    row: a ceiling ``total`` with its certificate.
    """
    for witness in _lost_at_cut(instance, row):
        if witness.bound < claimed:
            return witness
    z = row.certificate
    assert z is not None and row.load is not None
    length = z.capacity_length(instance.topology)
    statement = (
        f"At load {row.load:.6g}, no more than {row.upper * instance.topology.hosts:.6g} flits per tick arrive at all "
        f"{instance.topology.hosts} hosts together, however unfairly: with the lengths of this certificate a tick "
        f"offers {length:.6g} of length, and what a pair offers adds at most 1 less its distance for each flit."
    )
    order = np.argsort(-z.network, kind="stable")
    facts: dict[str, Any] = {"load": row.load, "capacity_length": length}
    facts["channels"] = _channels(instance, order[z.network[order] > 0], z.network)
    return Witness("lengths", statement, "total", confirmed(instance, row), facts, row)


def _lost_at_cut(instance: Instance, row: Ceiling) -> Iterator[Witness]:
    """What is lost at the sparsest cut, in the directions in which more is offered than can cross."""
    topology, traffic, load = instance.topology, instance.traffic, row.load
    assert load is not None
    if topology.switches > MOST_CUT or not traffic.switch_pairs()[2].size:
        return
    inside = min(all_cuts(topology, traffic), key=lambda cut: cut.upper).side
    network = Network.of(topology, traffic)
    ways = [cut for cut in (network.cut("cut", side) for side in (inside, ~inside)) if cut.upper < load]
    if not ways:
        return
    z = Certificate.on_network(topology, np.maximum.reduce([cut.certificate.network for cut in ways]))
    bound = verify_total(topology, traffic, load, z) / topology.hosts
    demand, capacity = load * sum(cut.demand for cut in ways), sum(cut.capacity for cut in ways)
    few = np.flatnonzero(inside if 2 * inside.sum() <= len(inside) else ~inside).tolist()
    names = switch_names(topology)
    which = f"the {len(few)} switches {_listed(names, few)}"
    statement = (
        f"At load {load:.6g}, {demand:.6g} flits per tick are to cross between {which} "
        f"and the others, over channels of {capacity:g}; so no more than {bound * topology.hosts:.6g} arrive at all "
        f"{topology.hosts} hosts together, however unfairly."
    )
    facts = {
        "load": load, "capacity": capacity, "demand": demand, "side": names.values(few),
        "channels": _channels(instance, np.flatnonzero(z.network)),
    }  # fmt: skip
    proof = replace(row, lower=0.0, upper=bound, certificate=z, flow=None)
    yield Witness("cut", statement, "total", confirmed(instance, proof), facts, proof)


def _channels(instance: Instance, channels: np.ndarray, length: np.ndarray | None = None) -> list[list[Any]]:
    """[from, to], or [from, to, length], of the first channels."""
    names, src, dst = switch_names(instance.topology), instance.topology.src, instance.topology.dst
    listed = channels[:MOST_LISTED].tolist()
    ends = [names.values((src[c], dst[c])) for c in listed]
    return [[*pair, *([] if length is None else [float(length[c])])] for pair, c in zip(ends, listed, strict=True)]
