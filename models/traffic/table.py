"""What patterns given by a weighted matrix have in common."""

import numpy as np
from scipy import sparse

from models.registry import SpecError
from models.topology.graph import Topology
from models.traffic.traffic import TABLE, Traffic


def table_traffic(kind: str, topology: Topology, matrix, *, hose: bool = True, notes: dict | None = None) -> Traffic:
    """A demand matrix [hosts, hosts] (dense or sparse, non-negative), scaled to the hose unless ``hose`` is False.

    Raises ``SpecError`` for an all-zero matrix.
    """
    rows = sparse.csr_array(matrix)
    rows.eliminate_zeros()
    rows.sort_indices()
    busiest = max(rows.sum(axis=0).max(initial=0), rows.sum(axis=1).max(initial=0))
    if busiest <= 0:
        raise SpecError("no demand at all", key="kind")
    weight = rows.data.astype(float) / (busiest if hose else 1.0)
    start, column = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    rate = np.add.reduceat(np.append(weight, 0.0), start[:-1]) * (np.diff(start) > 0)
    return Traffic(
        kind, topology, TABLE, rate, start=start, column=column, weight=weight, notes=notes or {}
    )
