# SPDX-License-Identifier: Apache-2.0
"""The base class of topology families: hosts, capacities, failures."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Discriminator, Tag

from flitlab.models.mappings import Keys
from flitlab.models.registry import Spec, SpecError, is_third_party, nested, warn
from flitlab.models.topology.candidates import Candidate, Equipment
from flitlab.models.topology.failures import Failures
from flitlab.models.topology.file_delays import OF_HOSTS_NS
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.links import CapacityOf
from flitlab.models.topology.names import OF_HOSTS, switch_names
from flitlab.models.topology.validation import connection_errors, validate_topology
from flitlab.models.validation import raise_errors


def _shape(value: object) -> str | None:
    return "<list>" if isinstance(value, list | tuple) else "<map>" if isinstance(value, dict) else None


HostCounts = Annotated[
    Annotated[list[int], Tag("<list>")] | Annotated[dict[str, int], Tag("<map>")],
    Discriminator(_shape, "hosts", "must be a list or a mapping; the hosts of every switch are hosts_per_switch"),
]
"""Hosts of each switch, or of some by number or label."""


class TopologySpec(Spec):
    """Keys that every topology takes. A family adds its own and defines :meth:`graph`."""

    hosts_per_switch: int = 1
    """Hosts of every switch that has some."""
    hosts: HostCounts | None = None
    """Hosts of each switch, or of switches by number or label."""
    host_capacity: float = 1.0
    """Rate of the channels of a host. .inf: unlimited, for ceilings."""
    capacity: float = 1.0
    """Rate of every channel between switches."""
    capacity_of: CapacityOf | None = None
    """Rates of chosen channels."""
    failures: Failures | None = None
    """Links and switches that fail before the run."""
    delays: Literal["file", "switching"] | None = None
    """Whether delays of links that a file states in a unit of time apply, beside those of switching. null: they do,
    unless switching states the delay of links."""

    def graph(self) -> Topology:
        """Build switches and channels, with hosts where the family places them itself.

        Raises :class:`~flitlab.models.registry.SpecError` where no such graph exists.
        """
        raise NotImplementedError

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Yield the members of this family that some equipment can be wired to; none unless a family says so.

        ``simrun design`` and ``flitlab.design`` search them. Sizes are in closed form, so that nothing is built.
        """
        yield from ()

    @classmethod
    def larger(cls, candidate: Candidate, today: Equipment, equipment: Equipment) -> Iterator[Candidate]:
        """Yield the networks of more hosts that a member can become; all members of the family unless it says more.

        ``simrun design`` plans the growth of a network among them, and counts the cables that stay.

        Parameters
        ----------
        candidate: the member, a network of ``today``.
        today: switches and hosts of today.
        equipment: the same switches, and more hosts.
        """
        yield from cls.candidates(equipment)

    def build(self) -> Topology:
        """Build the whole topology: the validated graph, with capacities and hosts, without what fails.

        ``hosts_per_switch`` applies to every switch; in a family with switches without hosts (the core of a fat tree),
        to every switch that has hosts. If the key is absent and the family (or a file) states that there are no hosts,
        none are added. Failures come last.

        Raises :class:`~flitlab.models.registry.SpecError` where the parameters describe no strongly connected graph, or
        one that the failures disconnect.
        """
        return self.validated(self._complete_topology)

    def build_part_connected(self) -> Topology:
        """Build the topology as :meth:`build` does; switches of one from a file may have no path to others."""
        return self.build()

    def validated(self, method: Callable[[], Topology]) -> Topology:
        """Return what a method of the family builds, validated; a user's own topology must also be connected.

        See :mod:`flitlab.models.topology.validation`. Raises ``FaultyError``.
        """
        third_party = is_third_party(self)
        built = validate_topology(method(), copy=third_party, method=method.__name__)
        if third_party:
            raise_errors(connection_errors(built))
        return built

    def _complete_topology(self) -> Topology:
        self._check_common()
        topology = validate_topology(self.graph())
        self._require_connected(topology)
        return self._with_common_keys(topology)

    def _require_connected(self, topology: Topology) -> None:
        if pair := topology.unreachable_pair():
            u, v = map(switch_names(topology).label, pair)
            problem = f"no path from switch {u} to switch {v}"
            if topology.is_multistage:
                raise SpecError(f"{self.kind}: {problem}, where hosts inject and eject")
            raise SpecError(f"{self.kind}: not strongly connected with these parameters: {problem}")

    def _with_common_keys(self, topology: Topology) -> Topology:
        topology = self._with_hosts(topology)
        topology = replace(topology, capacity=topology.capacity * self.capacity)
        topology = self.capacity_of.apply_to(topology) if self.capacity_of else topology
        return self.failures.apply_to(topology) if self.failures else topology

    def _with_hosts(self, topology: Topology) -> Topology:
        set_keys = self.model_fields_set
        if self.hosts is not None:
            counts = self._host_counts(topology, self.hosts)
            if "hosts_per_switch" in set_keys:
                raise SpecError("give either hosts or hosts_per_switch", key="hosts")
            limit_size(sum(counts), "hosts", "hosts")
            topology = _with_other_hosts(topology, counts, "hosts")
        elif "hosts_per_switch" in set_keys or not topology.hosts_stated:
            places = topology.host_count > 0 if topology.hosts else np.ones(topology.switches, bool)
            limit_size(int(places.sum()) * self.hosts_per_switch, "hosts_per_switch", "hosts")
            topology = _with_other_hosts(topology, places * self.hosts_per_switch, "hosts_per_switch")
        host_capacity = self.host_capacity if "host_capacity" in set_keys else topology.host_capacity
        return replace(topology, host_capacity=host_capacity)

    def _host_counts(self, topology: Topology, hosts: list[int] | dict[str, int]) -> list[int]:
        """Return the number of hosts of every switch."""
        if isinstance(hosts, list):
            if len(hosts) != topology.switches:
                raise SpecError(f"{len(hosts)} entries for {topology.switches} switches", key="hosts")
            return hosts
        names, counts = switch_names(topology), [0] * topology.switches
        name_of: dict[int, str] = {}
        for name, count in hosts.items():
            v = names.number(name, "hosts")
            if (other := name_of.setdefault(v, name)) != name:
                raise SpecError(f"names a switch twice: {other!r} and {name!r}", key="hosts")
            counts[v] = count
        return counts

    def reject_other_hosts(self, key_with_hosts: str) -> None:
        """Raise ``SpecError`` if the common keys place hosts in a family whose own parameters do so."""
        for key in ("hosts", "hosts_per_switch"):
            if key in self.model_fields_set:
                raise SpecError(f"{key_with_hosts} already says where hosts are: leave this out", key=key)

    def _check_common(self) -> None:
        if self.hosts_per_switch < 0:
            raise SpecError("must be 0 or more", key="hosts_per_switch")
        counts = self.hosts.values() if isinstance(self.hosts, dict) else self.hosts or ()
        if min(counts, default=0) < 0:
            raise SpecError("must be 0 or more each", key="hosts")
        if not self.host_capacity > 0:
            raise SpecError("must be positive (.inf is allowed for ceilings)", key="host_capacity")
        if not self.capacity > 0 or self.capacity == float("inf"):
            raise SpecError("must be positive and finite", key="capacity")


def _with_other_hosts(topology: Topology, counts: npt.ArrayLike, key: str) -> Topology:
    """Return a topology with other hosts, which have no names of their own.

    Hosts keep their delays if every switch keeps its number of hosts; else they are dropped, with a warning at ``key``,
    but for a delay in ns that all have.
    """
    topology.require_one_switch("places hosts by switch", key)
    notes = {name: note for name, note in topology.notes.items() if name not in OF_HOSTS}
    delay, stated = topology.host_delay, topology.notes.get(OF_HOSTS_NS)
    if np.array_equal(np.broadcast_to(counts, topology.switches), topology.host_count):
        notes |= {} if stated is None else {OF_HOSTS_NS: stated}
    elif delay is not None or (stated and any(stated)):
        if stated and len(set(stated)) == 1:
            notes[OF_HOSTS_NS] = stated[:1] * int(np.broadcast_to(counts, topology.switches).sum())
        else:
            dropped = np.count_nonzero(np.array(stated if delay is None else delay))
            warn(f"replaces the hosts; the delays of {dropped} hosts' channels are dropped", key)
        delay = None
    return replace(topology, notes=notes).with_hosts(counts, topology.host_capacity, delay)


def build_nested(parameters: Keys, key: str) -> Topology:
    """Build the topology that a parameter of another topology describes.

    Parameters
    ----------
    parameters: the mapping, with ``kind``.
    key: name of the parameter, for errors.

    Raises
    ------
    SpecError: it cannot be built; ``key`` is the path to the offending parameter.
    """
    topology: Topology = nested("topology", parameters, key, lambda spec: spec.build())
    topology.require_one_switch("is made of networks whose hosts have one switch", key)
    return topology
