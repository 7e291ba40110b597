# SPDX-License-Identifier: Apache-2.0
"""What every topology in a configuration has in common: hosts, capacities, failures."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from flitlab.models.faults import refuse
from flitlab.models.registry import Spec, SpecError, is_third_party, nested, warn
from flitlab.models.topology.failures import Failures
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import refuse_if_huge
from flitlab.models.topology.names import OF_HOSTS, switch_names
from flitlab.models.topology.rates import CapacityOf
from flitlab.models.topology.sound import connection_faults, sound_topology


class TopologySpec(Spec):
    """Keys that every topology takes. A family adds its own and defines :meth:`graph`.

    hosts: a number for each switch, or {switch: number} by the numbers or labels of those that have some.
    """

    hosts_per_switch: int = 1
    hosts: list[int] | dict[str, int] | None = None
    host_capacity: float = 1.0
    capacity: float = 1.0
    capacity_of: CapacityOf | None = None
    failures: Failures | None = None

    def graph(self) -> Topology:
        """Switches and channels, with hosts where the family says how many stand where.

        Raises :class:`~flitlab.models.registry.SpecError` where no such graph exists.
        """
        raise NotImplementedError

    def build(self) -> Topology:
        """The whole topology: the graph, looked at, with its capacities and its hosts, less what fails of it.

        ``hosts_per_switch`` goes to every switch; in a family that has switches without hosts (a fat tree's
        core, say), to every switch that has some. Unless it is given, no hosts remain none where the family (or
        a file) says that there are none. Failures come last.

        Raises :class:`~flitlab.models.registry.SpecError` where the parameters describe no strongly connected graph,
        or one that the failures disconnect.
        """
        return self.validated(self._whole)

    def validated(self, give: Callable[[], Topology]) -> Topology:
        """What a method of the family gives: a topology (see :mod:`flitlab.models.topology.sound`), and connected."""
        foreign = is_third_party(self)
        built = sound_topology(give(), copy=foreign, by=give.__name__)
        if foreign:
            refuse(connection_faults(built))
        return built

    def _whole(self) -> Topology:
        self._check_common()
        topology = sound_topology(self.graph())
        if pair := topology.unreachable_pair():
            u, v = map(switch_names(topology).label, pair)
            problem = f"no path from switch {u} to switch {v}"
            raise SpecError(f"{self.kind}: not strongly connected with these parameters: {problem}")
        topology = self._with_hosts(topology)
        topology = replace(topology, capacity=topology.capacity * self.capacity)
        topology = self.capacity_of.set_on(topology) if self.capacity_of else topology
        return self.failures.strike(topology) if self.failures else topology

    def _with_hosts(self, topology: Topology) -> Topology:
        given = self.model_fields_set
        if self.hosts is not None:
            counts = self._host_counts(topology, self.hosts)
            if "hosts_per_switch" in given:
                raise SpecError("give either hosts or hosts_per_switch", key="hosts")
            refuse_if_huge(sum(counts), "hosts", "hosts")
            topology = _rehosted(topology, counts, "hosts")
        elif "hosts_per_switch" in given or not topology.hosts_stated:
            places = topology.host_count > 0 if topology.hosts else np.ones(topology.switches, bool)
            refuse_if_huge(int(places.sum()) * self.hosts_per_switch, "hosts_per_switch", "hosts")
            topology = _rehosted(topology, places * self.hosts_per_switch, "hosts_per_switch")
        host_capacity = self.host_capacity if "host_capacity" in given else topology.host_capacity
        return replace(topology, host_capacity=host_capacity)

    def _host_counts(self, topology: Topology, hosts: list[int] | dict[str, int]) -> list[int]:
        """The hosts of every switch."""
        if isinstance(hosts, list):
            if len(hosts) != topology.switches:
                raise SpecError(f"{len(hosts)} entries for {topology.switches} switches", key="hosts")
            return hosts
        names, counts = switch_names(topology), [0] * topology.switches
        taken: dict[int, str] = {}
        for name, count in hosts.items():
            v = names.number(name, "hosts")
            if (other := taken.setdefault(v, name)) != name:
                raise SpecError(f"names a switch twice: {other!r} and {name!r}", key="hosts")
            counts[v] = count
        return counts

    def refuse_other_hosts(self, why: str) -> None:
        """Raise ``SpecError`` if the common keys place hosts in a family whose own parameters do so."""
        for key in ("hosts", "hosts_per_switch"):
            if key in self.model_fields_set:
                raise SpecError(f"{why} already says where hosts are: leave this out", key=key)

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


def _rehosted(topology: Topology, counts: npt.ArrayLike, key: str) -> Topology:
    """A topology with other hosts, which have no names of their own any more.

    Hosts keep their delays where every switch has as many as before; else a warning at ``key`` says that these are
    dropped.
    """
    notes = {name: note for name, note in topology.notes.items() if name not in OF_HOSTS}
    delay = topology.host_delay
    if delay is not None and not np.array_equal(np.broadcast_to(counts, topology.switches), topology.host_count):
        dropped = np.count_nonzero(delay)
        warn(f"replaces hosts of which {dropped} have channels with delays of their own: these are dropped", key)
        delay = None
    return replace(topology, notes=notes).with_hosts(counts, topology.host_capacity, delay)


def build_nested(parameters: dict[str, Any], key: str) -> Topology:
    """The topology that a parameter of another one describes.

    parameters: the mapping, with ``kind``. key: name of the parameter, for errors.

    Raises :class:`~flitlab.models.registry.SpecError` whose key leads to the offending place.
    """
    topology: Topology = nested("topology", parameters, key, lambda spec: spec.build())
    return topology
