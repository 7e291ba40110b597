# SPDX-License-Identifier: Apache-2.0
"""The entry point: certified ceilings of an instance."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flitlab.fluid.ceiling import NO_THETA, Ceiling, theta_unit
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec, ceiling_spec, kind_of
from flitlab.fluid.problem import FluidError
from flitlab.models.application.workload import Workload
from flitlab.models.cputime import CpuTime
from flitlab.models.instance import Instance
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.validation import unchanged
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.session import Session
from flitlab.models.validation import require_type


def ceilings(
    instance: Instance,
    specs: Sequence[CeilingSpec],
    loads: Sequence[float] = (),
    *,
    program: Scenario[SwitchingMode, Workload] | None = None,
    keep_flow: bool = False,
) -> list[Ceiling]:
    """The ceilings of an instance, in the order of ``specs``.

    Equal input gives equal results, except for ``seconds`` (of CPU).

    Parameters
    ----------
    instance : Instance
        Topology, traffic and routes. A ceiling that needs paths is omitted, with the reason, where the instance has no
        routes or they do not fix the traffic split.
    specs : sequence of CeilingSpec
        Kinds and their keys; ``total`` gives one row per load, other kinds a row per quantity.
    loads : sequence of float
        Loads of ``total``.
    program : Scenario or None
        The scenario with a program, for ``makespan``.
    keep_flow : bool
        Keep the flows that prove lower bounds, which may be large.

    Raises
    ------
    FluidError
        The demand is zero, or no path joins two switches with demand.
    """
    context = Context(instance, loads, program)
    rows = [row for spec in specs for row in _timed(_rows(spec, instance, context))]
    return rows if keep_flow else [replace(row, flow=None) for row in rows]


def _timed(rows: Iterator[Ceiling]) -> Iterator[Ceiling]:
    """Fill in the CPU seconds of every row, without the compilation of kernels."""
    spent = CpuTime()
    for row in rows:
        yield replace(row, seconds=spent.seconds)
        spent = CpuTime()


def _rows(spec: CeilingSpec, instance: Instance, context: Context) -> Iterator[Ceiling]:
    """The rows of a kind, or the omitted row with its reason.

    Raises ``ValueError`` for invalid rows, and for a third-party kind that changes the topology.
    """
    if reason := spec.absent(instance) or _grows_in_part(spec, instance):
        yield Ceiling.omitted(spec.kind, theta_unit(instance.topology), reason)
        return
    names = set()
    with unchanged(instance.topology, spec.rows):
        for row in spec.rows(instance, context):
            _check(spec, row)
            names.add(row.ceiling)
            yield row
    if spec.kind not in names and not (spec.by_load and not context.loads):
        raise ValueError(f"ceiling {spec.kind} has no row of that name")


def _check(spec: CeilingSpec, row: Ceiling) -> None:
    """Raise ``ValueError`` for an invalid row: wrong type or name, or an empty interval."""
    require_type(row, Ceiling, "rows")
    if row.ceiling.partition(":")[0] != spec.kind:
        raise ValueError(f"a row of ceiling {spec.kind} is called {row.ceiling!r}")
    if row.lower > row.upper:
        raise ValueError(f"{row.ceiling}: its lower end {row.lower:g} is above its upper end {row.upper:g}")
    if math.isnan(row.lower) and math.isnan(row.upper) and row.method != "omitted":
        raise ValueError(f"{row.ceiling} has neither a lower nor an upper end; Ceiling.omitted says why there is none")


def _grows_in_part(spec: CeilingSpec, instance: Instance) -> str:
    return "" if instance.traffic.background is None or spec.beside_background else NO_THETA


def drawn_ceilings(session: Session, traffic: Traffic, kinds: Sequence[str]) -> dict[str, float]:
    """Ceilings over the paths that a datagram run drew.

    Parameters
    ----------
    session : Session
        The run.
    traffic : Traffic
        Its demand.
    kinds : sequence of str
        Kinds of ceilings.

    Returns
    -------
    dict
        Column of results.csv -> value.

    Raises
    ------
    FluidError
        The LPs would be too large.
    """
    return {name: value for kind in kinds for name, value in kind_of(kind).drawn(session, traffic).items()}


__all__ = ["Ceiling", "CeilingSpec", "FluidError", "ceiling_spec", "ceilings", "drawn_ceilings"]
