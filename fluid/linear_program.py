# SPDX-License-Identifier: Apache-2.0
"""The linear program of a maximum concurrent flow, as a file for other solvers.

Its maximum is theta. Columns: ``theta`` and flows in flits/tick, ``f_T_C`` toward switch T over channel C, or over
paths ``p_S_T_N``, the N-th path from switch S to T. Rows: ``c_C``, the capacity of channel C; ``b_T_V``, the balance
at switch V of what flows toward T (supply is theta * demand), or ``d_S_T``, the demand from S to T.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import highspy
import numpy as np
from scipy import sparse

from flitlab.fluid.hosts import host_bound
from flitlab.fluid.mcf.arcs import usable
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import FluidError, Problem, require_memory
from flitlab.models.arrays import Floats
from flitlab.models.files import replacing
from flitlab.models.instance import Instance

ENTRY_BYTES = 400
"""Bytes per entry of the matrix while a model is written: indices, names and the copy of HiGHS."""


@dataclass(frozen=True)
class Size:
    """The size of a model."""

    rows: int
    columns: int
    entries: int


class _Constraints(NamedTuple):
    """Rows that are equations, and channels used, by column. equations: [rows, columns + 1], the last is theta.

    use: [channels, columns].
    """

    equations: sparse.csc_array
    use: sparse.csc_array
    row_names: list[str]
    column_names: list[str]


def write_concurrent_flow(instance: Instance, kind: str, file: Path) -> Size:
    """Write the linear program of ``mcf`` or ``mcf_paths``; its objective, to be maximised, is theta.

    Parameters
    ----------
    instance : Instance
        Topology, traffic and routes.
    kind : str
        ``mcf`` or ``mcf_paths``.
    file : Path
        ``*.mps`` or ``*.lp``.

    Returns
    -------
    Size
        Of the model.

    Raises
    ------
    FluidError
        The ceiling has no such program, or it is too large.
    OSError
        The file cannot be written.
    """
    if instance.traffic.background is not None:
        raise FluidError("demand beside a background has no linear program in theta alone")
    problem = Problem.of(instance.topology, instance.traffic, instance.routes if kind == "mcf_paths" else None)
    if problem.paths is None and (problem.by_path or problem.via_intermediate):
        raise FluidError("routes over intermediate switches, or of limited length, have too many paths for a file")
    part = _arcs(problem) if problem.paths is None else _paths(problem, problem.paths)
    lp = _model(part, problem.graph.capacity, host_bound(instance.topology, instance.traffic))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    with tempfile.TemporaryDirectory() as scratch:  # HiGHS does not say why it cannot write
        written = Path(scratch, file.name)
        if highs.writeModel(str(written)) == highspy.HighsStatus.kError:
            raise FluidError("HiGHS could not write the model")
        with written.open("rb") as model, replacing(file) as copy:
            shutil.copyfileobj(model, copy)
    return Size(lp.num_row_, lp.num_col_, len(lp.a_matrix_.index_))


def _arcs(problem: Problem) -> _Constraints:
    """Flow toward every destination over every channel that it may use."""
    graph, demand = problem.graph, problem.demand
    require_memory(ENTRY_BYTES * 3.0 * len(demand.target) * graph.channels, "the linear program")
    nodes = graph.nodes
    i, channel = np.nonzero(usable(problem))
    count = len(i)
    column = np.concatenate([np.arange(count), np.arange(count), np.full(demand.size, count)])
    row = np.concatenate([i * nodes + graph.src[channel], i * nodes + graph.dst[channel],
                          demand.row * nodes + demand.source])  # fmt: skip
    value = np.concatenate([np.ones(count), np.full(count, -1.0), -demand.amount])
    balance = sparse.csr_array((value, (row, column)), (len(demand.target) * nodes, count + 1))
    kept = np.delete(np.arange(balance.shape[0]), np.arange(len(demand.target)) * nodes + demand.target)
    use = sparse.csc_array((np.ones(count), (channel, np.arange(count))), (graph.channels, count))
    names = [f"b_{demand.target[r // nodes]}_{r % nodes}" for r in kept.tolist()]
    columns = [f"f_{demand.target[t]}_{c}" for t, c in zip(i.tolist(), channel.tolist(), strict=True)]
    return _Constraints(sparse.csc_array(balance[kept]), use, names, columns)


def _paths(problem: Problem, paths: Paths) -> _Constraints:
    """Flow over every path of every pair of switches with demand."""
    demand, count = problem.demand, len(paths.flow)
    require_memory(ENTRY_BYTES * float(len(paths.channel) + count), "the linear program")
    row = np.concatenate([paths.commodity, np.arange(demand.size)])
    column = np.concatenate([np.arange(count), np.full(demand.size, count)])
    value = np.concatenate([np.ones(count), -demand.amount])
    served = sparse.csc_array((value, (row, column)), (demand.size, count + 1))
    of_path = np.repeat(np.arange(count), paths.hops)
    use = sparse.csc_array((np.ones(len(of_path)), (paths.channel, of_path)), (problem.graph.channels, count))
    pairs = [f"{s}_{t}" for s, t in zip(demand.source.tolist(), demand.destination.tolist(), strict=True)]
    number = np.arange(count) - paths.first[paths.commodity]
    columns = [f"p_{pairs[k]}_{n}" for k, n in zip(paths.commodity.tolist(), number.tolist(), strict=True)]
    return _Constraints(served, use, [f"d_{pair}" for pair in pairs], columns)


def _model(part: _Constraints, capacity: Floats, most: float) -> highspy.HighsLp:
    """The model: equations = 0, use <= capacity, 0 <= theta <= most."""
    theta = sparse.csc_array((len(capacity), 1))
    matrix = sparse.csc_array(sparse.vstack([part.equations, sparse.hstack([part.use, theta])]))
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    flows, zero = matrix.shape[1] - 1, np.zeros(part.equations.shape[0])
    lp.col_cost_ = np.append(np.zeros(flows), 1.0)
    lp.col_lower_ = np.zeros(flows + 1)
    lp.col_upper_ = np.append(np.full(flows, highspy.kHighsInf), most)
    lp.row_lower_ = np.concatenate([zero, np.full(len(capacity), -highspy.kHighsInf)])
    lp.row_upper_ = np.concatenate([zero, capacity])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    lp.col_names_ = [*part.column_names, "theta"]
    lp.row_names_ = [*part.row_names, *(f"c_{c}" for c in range(len(capacity)))]
    return lp
