# SPDX-License-Identifier: Apache-2.0
"""Proofs of limits, small enough to be checked by hand: a cut, host channels, hop counts, or channel prices."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from flitlab.fluid.bounds import volumetric
from flitlab.fluid.ceiling import Ceiling, theta_unit
from flitlab.fluid.certificate import Certificate, verify_total
from flitlab.fluid.cut import CutNetwork
from flitlab.fluid.cuts import all_cuts
from flitlab.fluid.hosts import host_bound, host_certificate
from flitlab.fluid.verify import saved_of, verify
from flitlab.models.instance import Instance
from flitlab.models.mappings import JsonObject
from flitlab.models.topology.names import Names, host_names, switch_names
from flitlab.sim.judge.quantity import Quantity, Unit

MAX_CUT_SWITCHES = 2048
"""Switches up to which cuts are searched; on larger networks, prices are the proof."""

MAX_LISTED = 50
"""Channels that a witness lists; the certificate file has all."""


@dataclass(frozen=True, eq=False)
class Witness:
    """The proof that nothing exceeds (or, of a latency, is below) ``bound``.

    kind: ``cut``, ``hosts``, ``hops``, ``lengths``, ``offer`` or ``zero_load``. statement: the proof in a sentence.
    ceiling: the ceiling that it proves, '' if none. bound: a load, flits/tick/host, or ticks, see ``bound_unit``.
    facts: JSON values; rates are flits/tick of the network. proof: the row that is saved, None where the statement is
    complete.
    """

    kind: str
    statement: str
    ceiling: str
    bound: float
    bound_unit: str
    facts: JsonObject = field(default_factory=dict)
    proof: Ceiling | None = None

    def plain(self) -> JsonObject:
        """The witness as a JSON object."""
        own = {"kind": self.kind, "statement": self.statement, "ceiling": self.ceiling or None}
        return own | {"bound": self.bound, "bound_unit": self.bound_unit} | self.facts


class UnconfirmedError(RuntimeError):
    """A certificate that the independent verifier rejects: a defect of flitlab."""


def confirmed_upper(instance: Instance, row: Ceiling) -> float:
    """The upper end that a certificate proves, by the independent verifier.

    Raises :class:`UnconfirmedError` where that exceeds the row's upper end.
    """
    saved = saved_of(instance, row)
    verified = verify(instance, saved)
    if problem := verified.unproven(saved):
        raise UnconfirmedError(f"{row.ceiling}: {problem}")
    return max(verified.upper, row.upper)


def witness_of_theta(instance: Instance, row: Ceiling, claimed: Quantity) -> Witness:
    """The simplest proof that a claimed load is not carried: hosts, a cut, hops, or prices.

    Parameters
    ----------
    instance : Instance
        The network and its traffic.
    row : Ceiling
        The ceiling that the load exceeds, with its certificate.
    claimed : Quantity
        The load.
    """
    simple = () if row.ceiling == "mcf_paths" else _simple_witnesses(instance, claimed)
    for witness in simple:
        if witness.bound < claimed.low:
            return witness
    return _price_witness(instance, row, claimed)


def _simple_witnesses(instance: Instance, claimed: Quantity) -> Iterator[Witness]:
    unit, load, at_load = claimed.unit, claimed.value, f"At a load of {claimed}"
    topology, traffic = instance.topology, instance.traffic
    names, hosts = switch_names(topology), host_bound(topology, traffic)
    if np.isfinite(hosts):
        z = host_certificate(topology, traffic)
        prices, word = (z.injection, "sends") if z.injection.any() else (z.ejection, "receives")
        host = int(np.argmax(prices))
        name = host_names(topology).value(host)
        demand = float((traffic.rate if z.injection.any() else traffic.column_sums)[host])
        statement = (
            f"{at_load} host {name} {word} {unit.flow(demand * load)}, and its channel takes "
            f"{unit.flow(topology.host_capacity)}: no load above {unit.at_most(hosts)} passes it."
        )
        row = _row(instance, "bounds:hosts", hosts, z)
        yield Witness("hosts", statement, "hosts", confirmed_upper(instance, row), row.unit, {"host": name}, row)
    if topology.switches <= MAX_CUT_SWITCHES and bool(traffic.switch_pairs()[2].size):
        for cut in sorted(all_cuts(topology, traffic), key=lambda cut: cut.upper)[:1]:
            inside, outside = np.flatnonzero(cut.side).tolist(), np.flatnonzero(~cut.side).tolist()
            smaller, verb = (inside, "leave") if len(inside) <= len(outside) else (outside, "enter")
            crossing = np.flatnonzero(cut.certificate.network)
            statement = (
                f"{at_load} {unit.flow(cut.demand * load)} {verb} the {len(smaller)} switches "
                f"{_listed(names, smaller)}, over channels of {unit.flow(cut.capacity)} together: "
                f"no load above {unit.at_most(cut.upper)} crosses."
            )
            facts = {
                "capacity": cut.capacity, "demand": cut.demand, "side": names.values(inside),
                "channels": _channels(instance, crossing),
            }  # fmt: skip
            row = _row(instance, f"cuts:{cut.name}", cut.upper, cut.certificate)
            yield Witness("cut", statement, "cut", confirmed_upper(instance, row), row.unit, facts, row)
        volume_bound = volumetric(topology, traffic)
        assert volume_bound.certificate is not None
        capacity = float(topology.capacity.sum())
        statement = (
            f"{at_load} demands x hops need {unit.flow(load * capacity / volume_bound.upper)} of capacity, and "
            f"all channels together have {unit.flow(capacity)}: no load above {unit.at_most(volume_bound.upper)} fits."
        )
        row = _row(instance, "bounds:volumetric", volume_bound.upper, volume_bound.certificate)
        yield Witness(
            "hops", statement, "volumetric", confirmed_upper(instance, row), row.unit, {"capacity": capacity}, row
        )


def _row(instance: Instance, name: str, upper: float, z: Certificate) -> Ceiling:
    return Ceiling(name, None, float("nan"), upper, theta_unit(instance.topology), "", 0.0, "", z)


def _listed(names: Names, switches: list[int]) -> str:
    names_listed = " ".join(map(names.label, switches[:MAX_LISTED]))
    return f"({names_listed}{' ...' if len(switches) > MAX_LISTED else ''})"


def _price_witness(instance: Instance, row: Ceiling, claimed: Quantity) -> Witness:
    """The channel prices of a ceiling, with the highest ones listed."""
    z = row.certificate
    assert z is not None
    worth = z.capacity_worth(instance.topology)
    over = " over the routes of the claim" if row.ceiling == "mcf_paths" else ""
    statement = (
        f"Certificate (LP duality): at these channel prices a load of {claimed} costs "
        f"{100 * claimed.value / row.upper:.4g} % of what the network's capacity is worth{over}: no load above "
        f"{claimed.unit.at_most(row.upper)} is carried."
    )
    order = np.argsort(-z.network, kind="stable")
    facts = {
        "capacity_length": worth, "priced_channels": int((z.network > 0).sum()),
        "channels": _channels(instance, order[z.network[order] > 0], z.network),
    }  # fmt: skip
    return Witness("lengths", statement, row.ceiling, confirmed_upper(instance, row), row.unit, facts, row)


def witness_of_total(instance: Instance, row: Ceiling, claimed: Quantity, senders: int, offered: str) -> Witness:
    """The proof that senders do not deliver a claimed throughput: a cut, or prices.

    Parameters
    ----------
    instance : Instance
        The network and its traffic.
    row : Ceiling
        A ceiling ``total`` with its certificate.
    claimed : Quantity
        The throughput.
    senders : int
        Hosts that send.
    offered : str
        The load, in words.
    """
    hosts, unit = instance.topology.hosts, claimed.unit
    for witness in _cut_witnesses(instance, row, unit, senders, offered):
        if witness.bound * hosts < claimed.low * senders:
            return witness
    z = row.certificate
    assert z is not None and row.load is not None
    worth = z.capacity_worth(instance.topology)
    nearer = row.upper * hosts - worth
    statement = (
        f"{offered}, {_arriving(unit, row.upper, hosts, senders)}. Certificate (LP duality): at these channel "
        f"prices the network's capacity is worth {unit.flow(worth)}"
    )
    if nearer > 1e-6 * worth:
        statement += f", and the offers of pairs at a cost below 1, each times 1 minus its cost, {unit.flow(nearer)}"
    statement += "."
    order = np.argsort(-z.network, kind="stable")
    facts: JsonObject = {"load": row.load, "capacity_length": worth}
    facts["channels"] = _channels(instance, order[z.network[order] > 0], z.network)
    return Witness("lengths", statement, "total", confirmed_upper(instance, row), row.unit, facts, row)


def _arriving(unit: Unit, bound: float, hosts: int, senders: int) -> str:
    """The largest possible delivery in words. bound: flits/tick/host, of all hosts."""
    return (
        f"at most {unit.flow_at_most(bound * hosts)} are delivered to all {hosts} hosts together, however unfairly, "
        f"which is {unit.at_most(bound * hosts / senders)}"
    )


def _cut_witnesses(instance: Instance, row: Ceiling, unit: Unit, senders: int, offered: str) -> Iterator[Witness]:
    """Proofs by the sparsest cut, in the directions in which more is offered than can cross."""
    topology, traffic, load = instance.topology, instance.traffic, row.load
    assert load is not None
    if topology.switches > MAX_CUT_SWITCHES or not traffic.switch_pairs()[2].size:
        return
    inside = min(all_cuts(topology, traffic), key=lambda cut: cut.upper).side
    network = CutNetwork.of(topology, traffic)
    cuts = [cut for cut in (network.cut("cut", side) for side in (inside, ~inside)) if cut.upper < load]
    if not cuts:
        return
    z = Certificate.on_network(topology, np.maximum.reduce([cut.certificate.network for cut in cuts]))
    bound = verify_total(topology, traffic, load, z) / topology.hosts
    demand, capacity = load * sum(cut.demand for cut in cuts), sum(cut.capacity for cut in cuts)
    smaller = np.flatnonzero(inside if 2 * inside.sum() <= len(inside) else ~inside).tolist()
    names = switch_names(topology)
    switches = f"the {len(smaller)} switches {_listed(names, smaller)}"
    statement = (
        f"{offered}, {unit.flow(demand)} are to cross between {switches} and the others, "
        f"over channels of {unit.flow(capacity)}; so {_arriving(unit, bound, topology.hosts, senders)}."
    )
    facts = {
        "load": load, "capacity": capacity, "demand": demand, "side": names.values(smaller),
        "channels": _channels(instance, np.flatnonzero(z.network)),
    }  # fmt: skip
    proof = replace(row, lower=0.0, upper=bound, certificate=z, flow=None)
    yield Witness("cut", statement, "total", confirmed_upper(instance, proof), row.unit, facts, proof)


def _channels(instance: Instance, channels: np.ndarray, length: np.ndarray | None = None) -> list[list[object]]:
    """[from, to], or [from, to, price], of the first channels."""
    names, src, dst = switch_names(instance.topology), instance.topology.src, instance.topology.dst
    listed = channels[:MAX_LISTED].tolist()
    ends = [names.values((src[c], dst[c])) for c in listed]
    return [[*pair, *([] if length is None else [float(length[c])])] for pair, c in zip(ends, listed, strict=True)]
