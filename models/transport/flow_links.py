# SPDX-License-Identifier: Apache-2.0
"""The links that the data of flows may cross, where switches only hash."""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import njit
from flitlab.models.rules.spray.ports import AtSwitch, flow_key
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.uncontended_spray import Network, network_of, walk_channels

_NONE = -1
_MOST = 1 << 24
"""Numbers of the array of all flows."""


def links_of_flows(session: SpraySession) -> Ints | None:
    """The links of all entropy values of each flow, with the first routes: int64 [flows, columns], -1 where there is none.

    None where switches choose ports themselves, or there are too many flows.

    Parameters
    ----------
    session: the session.
    """  # noqa: E501
    topology, flows = session.topology, session.flows
    entropies = max(rules.paths for rules in session.transports)
    longest = topology.switches if session.hops is None else int(session.hops.max(initial=0))
    if session.port_choice.policy != AtSwitch.ECMP or len(flows.source) * entropies * longest > _MOST:
        return None
    links = np.full((len(flows.source), entropies * longest + 2), _NONE, np.int64)
    links[:, -2] = topology.channels + flows.source
    links[:, -1] = topology.channels + topology.hosts + flows.destination
    paths = np.array([rules.paths for rules in session.transports], np.int64)[session.flows.kinds]
    src_switch, dst_switch = (
        topology.host_switch[hosts].astype(np.int64) for hosts in (flows.source, flows.destination)
    )
    _fill(network_of(session), src_switch, dst_switch, paths, longest, links)
    return links


@njit
def _fill(network: Network, src_switch: Ints, dst_switch: Ints, paths: Ints, longest: int, links: Ints) -> None:
    """Write the channels of each entropy value of each flow, ``longest`` columns for each."""
    path = np.zeros(len(network.channels.out_start), np.int64)
    for i in range(len(paths)):
        for entropy in range(paths[i]):
            hops, _ = walk_channels(network, src_switch[i], dst_switch[i], flow_key(i, False), paths[i], entropy, path)
            for hop in range(min(hops, longest)):
                links[i, entropy * longest + hop] = path[hop]
