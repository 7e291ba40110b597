# SPDX-License-Identifier: Apache-2.0
"""Proved contribution of latency to the time of a collective.

All times are in ticks, with the delays of a switching mode in an empty network.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from flitlab.fluid.collective.cuts import CollectiveCut
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.graph import Topology

MAX_SOURCES = 1024
"""Switches from which all distances are computed; of more, a sample of this size, which is a proof, too."""


@dataclass(frozen=True, eq=False)
class Latency:
    """Delays of an empty network.

    hop_ticks: [switches, switches] sparse, ticks of the fastest channel between two switches. ends: least ticks of
    both host channels. flit: 1, or the bytes of a flit where ticks are those of bytes. channel_flit, host_flit: ticks
    of a flit itself that are included for a channel between switches, and for a host's. header: ticks that are included
    for a switch, for which only the head of a packet waits. last: ticks for which a host's channel is busy with one
    flit beyond that delay, at least -1. flits_per_tick: the capacity of a channel that moves one flit per tick (one
    byte where ticks are those of bytes).
    """

    hop_ticks: sparse.csr_array
    ends: Fraction
    flit: Fraction
    channel_flit: Fraction
    host_flit: Fraction
    header: Fraction
    last: Fraction
    flits_per_tick: Fraction

    @classmethod
    def of(cls, topology: Topology, switching_mode: SwitchingMode, flit: int = 1) -> "Latency":
        """The delays of a switching mode on a topology.

        Parameters
        ----------
        topology : Topology
            The network.
        switching_mode : SwitchingMode
            The switching mode.
        flit : int
            1; of datagrams, bytes of a packet.
        """
        between, ends = switching_mode.crossing(topology)
        hop_ticks = quickest_channels(topology, between + topology.delay)
        ends += 2 * int(topology.access_delay.min()) if topology.hosts else 0  # at least
        last = switching_mode.serialization_ticks(topology, np.array([float(flit)]))[0]
        on_channel, on_host = switching_mode.flit_in_crossing(topology)
        return cls(
            hop_ticks,
            Fraction(ends),
            Fraction(flit),
            Fraction(on_channel) * flit,
            Fraction(on_host) * flit,
            Fraction(switching_mode.head_delay),
            Fraction(float(last)),
            Fraction(switching_mode.flits_per_tick(topology)),
        )

    def longest(self, network: CollectiveNetwork, sources: Bools, targets: Bools) -> Fraction:
        """The longest latency of a flit between two ranks of a communication.

        A subset of the pairs is enough, since any pair is a proof.

        Parameters
        ----------
        network : CollectiveNetwork
            The network.
        sources, targets : bool [ranks]
            Ranks that send, and that receive.

        Returns
        -------
        Fraction
            Ticks.
        """
        if not sources.any() or not targets.any() or int((sources | targets).sum()) < 2:
            return Fraction(0)
        hop_ticks = self.hop_ticks
        if targets.sum() < sources.sum():  # all distances to a root, in the reversed network
            hop_ticks, sources, targets = hop_ticks.T.tocsr(), targets, sources
        beginning = _sample_sources(np.unique(network.rank_vertex[sources]), network.vertex_transitive)
        distance = dijkstra(hop_ticks, indices=beginning)[:, np.unique(network.rank_vertex[targets])]
        return self.ends + Fraction(float(distance[np.isfinite(distance)].max(initial=0.0))) + self.last

    def cut_latency(self, network: CollectiveNetwork, cut: CollectiveCut) -> Fraction:
        """The least time before the first flit crosses a cut and after the last one has.

        The volume over the capacity of the cut may be added, because it crosses in between. It includes the time of
        every flit itself on the channels of the cut. Where a host is faster than the cut, later flits may catch up with
        their head, which waits at the switches beyond the cut. Elsewhere some host receives, or sends, the whole volume
        over its one channel: with all delays of a head, that takes at least as long. This holds for the kinds that have
        a cut, of which a root or every rank moves all that crosses.

        Parameters
        ----------
        network : CollectiveNetwork
            The network.
        cut : CollectiveCut
            The cut.

        Returns
        -------
        Fraction
            Ticks.
        """
        hosts_bind = network.host is not None and network.host <= cut.capacity
        header = 0.0 if hosts_bind else float(self.header)
        beyond = self.hop_ticks.T.tocsr()
        beyond.data = beyond.data - header
        before = _from(self.hop_ticks, network.rank_vertex[cut.inside])
        after = _from(beyond, network.rank_vertex[~cut.inside]) - header
        crossing = self.hop_ticks.tocoo()
        tail, head = crossing.coords
        leaves = cut.side[tail] & ~cut.side[head]
        separated = (
            network.rank_vertex[cut.side[network.rank_vertex] & ~cut.inside],
            network.rank_vertex[~cut.side[network.rank_vertex] & cut.inside],
        )
        on_channel, on_host = float(self.channel_flit), float(self.host_flit)
        to_cut = np.concatenate(
            [
                (before[tail] + crossing.data)[leaves] - on_channel,
                before[separated[0]] - on_host,
                np.full(len(separated[1]), -on_host),
            ]
        )
        from_cut = np.concatenate([after[head[leaves]], np.zeros(len(separated[0])), after[separated[1]]])
        return self.ends + Fraction(float(to_cut.min())) + Fraction(float(from_cut.min()))


def quickest_channels(topology: Topology, ticks: npt.NDArray[np.floating]) -> sparse.csr_array:
    """[switches, switches] sparse: ticks of the fastest channel between two switches. ticks: float64 [channels]."""
    order = np.lexsort((ticks, topology.dst, topology.src))
    first = np.flatnonzero(np.diff((topology.src * topology.switches + topology.dst)[order], prepend=-1))
    fastest = order[first]
    return sparse.csr_array((ticks[fastest], (topology.src[fastest], topology.dst[fastest])), (topology.switches,) * 2)


def _sample_sources(vertices: Ints, alike: bool) -> Ints:
    """Vertices whose distances are computed: one if the network is vertex-transitive, else up to MAX_SOURCES."""
    if alike:
        return vertices[:1]
    if len(vertices) <= MAX_SOURCES:
        return vertices
    return vertices[np.linspace(0, len(vertices) - 1, MAX_SOURCES).astype(np.int64)]


def _from(hop_ticks: sparse.csr_array, vertices: Ints) -> Floats:
    """float64 [switches]: the least time from any of the vertices."""
    distance: Floats = dijkstra(hop_ticks, indices=np.unique(vertices), min_only=True)
    return distance
