# SPDX-License-Identifier: Apache-2.0
"""Patterns with a weighted matrix."""

import numpy as np
import numpy.typing as npt
import scipy

from flitlab.models.arrays import LARGEST, LEAST
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.source import Recorded
from flitlab.models.traffic.traffic import DestinationRule, Traffic

MAX_ENTRIES = 40_000_000
"""Most entries of a demand matrix between hosts: about two gigabytes during construction."""


def table_traffic(
    kind: str,
    topology: Topology,
    matrix: "npt.ArrayLike | scipy.sparse.sparray",
    *,
    hose: bool = True,
    notes: Notes | None = None,
    recorded: Recorded | None = None,
) -> Traffic:
    """Build traffic from a demand matrix, scaled to the hose model unless ``hose`` is False.

    Parameters
    ----------
    kind: of the pattern.
    topology: the network.
    matrix: [hosts, hosts], dense or sparse, 0 or more.
    hose: whether to scale the largest row or column sum to 1.
    notes: notes of the traffic.
    recorded: the messages whose sum it is.

    Raises
    ------
    SpecError: all entries are 0.
    """
    rows = scipy.sparse.csr_array(matrix)
    rows.eliminate_zeros()
    rows.sort_indices()
    busiest = max(rows.sum(axis=0).max(initial=0), rows.sum(axis=1).max(initial=0))
    if busiest <= 0:
        raise SpecError("no demand at all", key="kind")
    weight = rows.data.astype(float) / (busiest if hose else 1.0)
    start, column = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    rate = np.add.reduceat(np.append(weight, 0.0), start[:-1]) * (np.diff(start) > 0)
    return Traffic(
        kind,
        topology,
        DestinationRule.TABLE,
        rate,
        start=start,
        column=column,
        weight=weight,
        notes=notes or {},
        recorded=recorded,
    )


def validate_scale(traffic: Traffic) -> None:
    """Raise ``SpecError`` (key: normalise) for unscaled demands that are too small or too large for doubles.

    Loads, ceilings and squares of demands would underflow or overflow.
    """
    busiest = float(max(traffic.rate.max(), traffic.column_sums.max()))
    if not LEAST <= busiest <= LARGEST:
        problem = (
            f"the busiest host sends or receives {busiest:g} flits per tick at load 1: must be from {LEAST:g} to "
            f"{LARGEST:g}, or scaled to 1"
        )
        raise SpecError(problem, key="normalise", choices=("hose",))


def per_host(topology: Topology, matrix: "npt.ArrayLike | scipy.sparse.sparray") -> "scipy.sparse.csr_array":
    """Convert demand [switches, switches] to demand [hosts, hosts], divided evenly over the hosts at both ends.

    Raises
    ------
    SpecError: a switch without hosts has demand, or there are more than MAX_ENTRIES pairs of hosts.

    Parameters
    ----------
    topology: the network.
    matrix: float64 [switches, switches], dense or sparse.
    """
    matrix = scipy.sparse.csr_array(matrix)
    topology.require_one_switch("states demand between switches", "level")
    count, host_switch = topology.host_count, topology.host_switch
    without_hosts = np.flatnonzero((matrix.sum(axis=0) + matrix.sum(axis=1) > 0) & (count == 0))
    if len(without_hosts):
        name = switch_names(topology).label(without_hosts[0])
        raise SpecError(f"switch {name} has demand but no hosts", key="path")
    used = scipy.sparse.coo_array(matrix)
    limit_size(int(count[used.row] @ count[used.col]), "kind", "demands between hosts", MAX_ENTRIES)
    hosts = np.arange(topology.hosts)
    share = scipy.sparse.csr_array(
        (1.0 / count[host_switch], (hosts, host_switch)), (topology.hosts, topology.switches)
    )
    return scipy.sparse.csr_array(share @ matrix @ share.T)
