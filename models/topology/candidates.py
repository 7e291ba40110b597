# SPDX-License-Identifier: Apache-2.0
"""Members of topology families that some equipment can be wired to, in closed form: nothing is built."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd

from flitlab.models.mappings import Keys


@dataclass(frozen=True)
class Cut:
    """A set of switches with hosts, and the links out of it.

    most, least: hosts in the largest and the smallest such set of the network. links: parallel ones counted.
    matched: whether in a matching of switches of largest distance all of the least hosts send out of the set.
    """

    most: int
    least: int
    links: int
    matched: bool = False


@dataclass(frozen=True)
class Equipment:
    """Identical switches, and the hosts that they connect.

    hosts: to be connected, spread evenly over the switches that have some. ports: of a switch; a host takes one. split:
    links that a port without a host makes, each of capacity 1 / split. most_switches: of a network.
    """

    hosts: int
    ports: int
    split: int = 1
    most_switches: int = 1 << 40

    def links(self, hosts: int) -> int:
        """Links that a switch of that many hosts has ports for."""
        return max(0, self.ports - hosts) * self.split

    def each(self, switches: int) -> int:
        """Hosts of the switches that have most, of as many that share all hosts."""
        return -(-self.hosts // switches)

    @property
    def most_links(self) -> int:
        """Links of a switch without hosts."""
        return self.ports * self.split

    def keys(self, switches: int, with_hosts: int) -> Keys:
        """The configuration keys that spread the hosts evenly over the first of the switches.

        Parameters
        ----------
        switches: of the network.
        with_hosts: number of them that have hosts.
        """
        each, more = divmod(self.hosts, with_hosts)
        if not more:
            return {"hosts_per_switch": each}
        few = [each] * (with_hosts - more) + [0] * (switches - with_hosts)
        return {"hosts": [each + 1] * more + few}


@dataclass(frozen=True)
class Candidate:
    """A network that some equipment can be wired to.

    parameters: its configuration, hosts included, except for ``capacity``. switches, links: of the network; parallel
    links count each. with_hosts: switches that have hosts, evenly. degree: most links of a switch, each parallel one
    counted. radix: most ports in use of a switch. trunk: parallel links of two neighbours. neighbours: most switches
    next to a switch with hosts. cuts: that are known in closed form.
    """

    parameters: Keys
    switches: int
    links: int
    with_hosts: int
    degree: int
    trunk: int = 1
    neighbours: int | None = None
    cuts: tuple[Cut, ...] = field(default=())

    @property
    def kind(self) -> str:
        """Name of its family."""
        return str(innermost(self.parameters)["kind"])


def innermost(parameters: Keys) -> Keys:
    """The keys of a network without its trunks."""
    while parameters["kind"] == "trunked":
        parameters = parameters["of"]
    return parameters


def flat(
    equipment: Equipment, parameters: Keys, switches: int, degree: int, links: int, key: str | None = None
) -> Iterator[Candidate]:
    """Yield a network of switches that all have hosts, with trunks of any number of links that ports allow.

    Of trunks of equal capacity only that of the least ``split`` is taken.

    Parameters
    ----------
    equipment: what there is.
    parameters: of the network, without hosts.
    switches, degree, links: of the network without trunks: number of switches, most links of a switch, all links.
    key: parameter of the family that makes links parallel; None: the network becomes a part of a ``trunked`` one.
    """
    each = equipment.each(switches)
    if not 2 <= switches <= min(equipment.most_switches, equipment.hosts):
        return
    cut = (each, equipment.hosts // switches)
    for trunk in range(1, equipment.links(each) // max(degree, 1) + 1):
        if gcd(trunk, equipment.split) > 1:
            continue
        placed = parameters | equipment.keys(switches, switches)
        if trunk > 1:
            placed = placed | {key: trunk} if key else {"kind": "trunked", "links": trunk, "of": placed}
        yield Candidate(
            placed, switches, links * trunk, switches, degree * trunk, trunk, degree, (Cut(*cut, degree * trunk),)
        )
