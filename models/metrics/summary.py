"""What is said of every topology, asked for or not."""

from models.metrics.moore import moore_aspl
from models.topology.distances import distance_counts, mean_hops
from models.topology.graph import Topology


def summary(topology: Topology) -> dict:
    """What ``simrun topology`` prints, JSON-able; degrees count channels *out of* a switch.

    Raises ``ValueError`` if the topology is not strongly connected.
    """
    counts = distance_counts(topology)
    degree = topology.out_degree
    return {
        "kind": topology.kind,
        "switches": topology.switches,
        "channels": topology.channels,
        "hosts": topology.hosts,
        "directed": topology.directed,
        "degree_min": int(degree.min()),
        "degree_max": int(degree.max()),
        "diameter": len(counts) - 1,
        "aspl": mean_hops(counts),
        "moore_aspl": moore_aspl(topology.switches, int(degree.max()), topology.directed),
        "edge_hash": topology.edge_hash,
        "notes": topology.notes,
    }
