# SPDX-License-Identifier: Apache-2.0
"""Failures of links and switches under wormhole switching.

A failed link drops every packet that has flits on it or holds a VC of it; a failed switch drops those with flits in it.
At the start of that tick all flits of a dropped packet vanish, the rest of it is not sent, its VCs are free, and
senders have the credits for its flits back. Credits in flight arrive. The packet that becomes head packet may request a
VC in the same tick.
"""

from collections.abc import Sequence

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.sim.engines.reference.faults import ReferenceFaults
from flitlab.sim.engines.reference.packet import Packet


class WormholeFaults(ReferenceFaults):
    """Faults of a network of wormhole switches; network: a :class:`WormholeNetwork`."""

    def locations(self) -> list[tuple[Packet, int]]:
        """Packets with a flit on a channel, or a VC of it, and packets with a flit in a switch."""
        locations = []
        for channel, (output, _) in enumerate(self.network.outputs):
            locations += [(flit.packet, channel) for vc in output.vcs for flit in vc.in_flight]
            locations += [(vc.packet, channel) for vc in output.vcs if vc.packet is not None]
        for location, switch in enumerate(self.network.switches, len(self.channel_up)):
            locations += [(flit.packet, location) for vc in switch.input_vcs for flit in vc.flits]
        return locations

    def drop(self, packets: Sequence[Packet] | np.ndarray, tick: int) -> None:
        """Drop packets with all their flits, and free their VCs and credits."""
        super().drop(packets, tick)
        for switch in self.network.switches:
            for outlet in (outlet for output in switch.outputs for outlet in output.vcs):
                if outlet.packet is not None and outlet.packet.dropped:
                    outlet.release()
            for vc in switch.input_vcs:
                vc.remove_dropped(tick)
        for host in self.network.hosts:
            for injection in host.injections:
                if injection.flit is not None and injection.flit.packet.dropped:
                    host.network.replies.end(injection.flit.packet, tick)
                    self.network.queues.release(self.network.source_of(injection.flit.packet), tick)
                    injection.flit = None

    def block(self, channels: Ints, tick: int) -> None:
        for channel in channels:
            self.network.outputs[channel][0].works = False

    def unblock(self, channels: Ints, tick: int) -> None:
        for channel in channels:
            self.network.outputs[channel][0].works = True

    def blocked_packets(self, tick: int) -> Sequence[Packet]:
        vcs = [vc for switch in self.network.switches for vc in switch.input_vcs if vc.requests_vc(tick - 1)]
        return [vc.flits[0].packet for vc in vcs if not all(outlet.channel.works for outlet in vc.outlets)]
