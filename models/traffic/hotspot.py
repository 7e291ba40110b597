# SPDX-License-Identifier: Apache-2.0
"""Traffic with a share that goes to a few hosts, or all of it to one."""

from dataclasses import replace

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, nested, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Name, host_names
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec, require_two_hosts
from flitlab.models.traffic.validation import ROUNDING


@register("traffic", "hotspot")
class Hotspot(TrafficSpec):
    """A ``fraction`` of every host's packets goes to the hosts in ``hosts`` (equally), the rest is uniform.

    ``hosts`` is a list of hosts (numbers or labels), or how many (the first ones). No host sends to itself: a hot
    host leaves its own share out, and sends less. The matrix is scaled so that the hottest host receives 1 at load 1.

    Where all traffic scales with the load, a hot host's channel saturates early and limits every network alike.
    ``background`` is another pattern at a fixed ``load``, offered in addition; the loads of an experiment then
    apply to the hotspot only.

    Example: ``traffic: {kind: hotspot, hosts: [0, 5], fraction: 0.2}``

    Example: ``traffic: {kind: hotspot, hosts: 4, fraction: 1, background: {kind: uniform, load: 0.3}}``

    Source: Pfister and Norton 1985, doi:10.1109/TC.1985.6312198.
    """

    hosts: int | list[Name] = 1
    """The hot hosts, or how many."""
    fraction: float = Field(default=0.1, gt=0, le=1)
    """Part of the packets that go to hot hosts."""
    background: Keys | None = None
    """Another pattern at a fixed load, in addition."""

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        count = topology.hosts
        hot = self._hot(topology)
        if len(np.unique(hot)) < len(hot):
            raise SpecError("names a host twice", key="hosts")
        matrix = np.full((count, count), (1 - self.fraction) / (count - 1))
        matrix[:, hot] += self.fraction / len(hot)
        np.fill_diagonal(matrix, 0.0)
        traffic = table_traffic(self.kind, topology, matrix, notes={"hot": host_names(topology).values(hot)})
        return traffic if self.background is None else with_background(traffic, self.background)

    def _hot(self, topology: Topology) -> Ints:
        """Return the hot hosts, int64."""
        if not 1 <= (self.hosts if isinstance(self.hosts, int) else len(self.hosts)) <= topology.hosts:
            raise SpecError(f"must be from 1 to {topology.hosts} hosts", key="hosts")
        if isinstance(self.hosts, int):
            return np.arange(self.hosts)
        names = host_names(topology)
        return np.array([names.number(name, f"hosts[{i}]") for i, name in enumerate(self.hosts)], np.int64)


def with_background(traffic: Traffic, background: Keys) -> Traffic:
    """Return traffic that also has a background pattern, which offers a fixed load while ``traffic`` scales.

    Parameters
    ----------
    traffic: the pattern that scales; it is not changed. A background that it has is replaced.
    background: ``kind`` and parameters of the other pattern, and its fixed ``load``, above 0 and at most 1, in flits
        per tick of a host of rate 1.

    Returns
    -------
    A copy of ``traffic`` on the same topology, whose ``background`` has the rates and weights of the other pattern
    times ``load``.

    Raises
    ------
    SpecError: ``load`` is missing or out of range, the pattern cannot be built, has a background of its own or several
        alternates, or a host would send or receive more than the rate of its channel. ``key`` begins with
        ``background``.
    """
    load = background.get("load")
    if load is None:
        raise SpecError("is missing: the fixed load of the background", key="background.load")
    if isinstance(load, bool) or not isinstance(load, int | float) or not 0 < load <= 1:
        raise SpecError("must be a number above 0 and at most 1", key="background.load")
    topology: Topology = traffic.topology
    parameters = {key: value for key, value in background.items() if key != "load"}
    pattern = nested("traffic", parameters, "background", lambda spec: spec.build(topology))
    if pattern.background is not None:
        raise SpecError("has no background of its own", key="background.background")
    if pattern.alternates:
        raise SpecError("must be one demand, not several alternates", key="background")
    if load * max(pattern.rate.max(), pattern.column_sums.max()) > 1 + ROUNDING:
        raise SpecError("exceeds the rate of a host's channel", key="background")
    return replace(traffic, background=replace(pattern, rate=pattern.rate * load, weight=pattern.weight * load))


@register("traffic", "incast")
class Incast(TrafficSpec):
    """Many-to-one traffic: ``senders`` drawn from ``seed`` all send to one ``receiver``, which takes 1 at load 1.

    ``receiver`` is the number or the label of a host.

    Example: ``traffic: {kind: incast, senders: 8, receiver: 0}``

    Source: Chen, Griffith, Liu, Katz, Joseph, WREN 2009, doi:10.1145/1592681.1592693.
    """

    senders: int = Field(default=8, ge=1)
    """Hosts that send."""
    receiver: Name = 0
    """The host that receives."""
    seed: int = Field(default=1, ge=0)
    """Seed that draws the senders."""

    def demand(self, topology: Topology) -> Traffic:
        hosts = topology.hosts
        receiver = host_names(topology).number(self.receiver, "receiver")
        if self.senders >= hosts:
            raise SpecError(f"must be below the {hosts} hosts of the topology", key="senders")
        others = np.delete(np.arange(hosts), receiver)
        senders = np.random.Generator(np.random.Philox(self.seed)).permutation(others)[: self.senders]
        target = np.full(hosts, -1, np.int64)
        target[senders] = receiver
        return fixed_traffic(self.kind, topology, target)
