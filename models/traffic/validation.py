# SPDX-License-Identifier: Apache-2.0
"""Validation of traffic: a demand matrix of a topology's hosts."""

from itertools import chain

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.demand import DestinationRule, Traffic
from flitlab.models.validation import (
    Errors,
    array_errors,
    contiguous,
    copy_fields,
    first_error,
    is_whole,
    notes_errors,
    raise_errors,
    require_type,
)

_INTEGERS = ("fixed", "start", "column")

ROUNDING = 1e-9
"""Relative difference that a host's rate may have from the sum of its demands."""


def validate_traffic(topology: Topology, traffic: Traffic, copy: bool = False, method: str = "build") -> Traffic:
    """Validate traffic and return it with arrays as compiled code requires them.

    Parameters
    ----------
    topology: the network.
    traffic: the traffic to validate.
    copy: whether to copy all arrays, so that nothing else can write to them.
    method: name of the method that returned it, for messages.

    Raises
    ------
    FaultyError: with one of each kind of :func:`traffic_errors`.
    """
    require_type(traffic, Traffic, method)
    raise_errors(chain(traffic_errors(topology, traffic), zero_demand_errors(traffic)))
    numbers = {name: contiguous(getattr(traffic, name), np.int64, copy) for name in _INTEGERS}
    rates = {name: contiguous(getattr(traffic, name), np.float64, copy) for name in ("rate", "weight")}
    alternates = tuple(validate_traffic(topology, alternate, copy) for alternate in traffic.alternates)
    background = None if traffic.background is None else validate_traffic(topology, traffic.background, copy)
    return copy_fields(
        Traffic,
        traffic,
        topology=topology,
        law=int(traffic.law),
        alternates=alternates,
        background=background,
        **numbers,
        **rates,
    )


def traffic_errors(topology: Topology, traffic: Traffic) -> Errors:
    """Yield the errors of traffic, without those of its alternates."""
    form = list(_form_errors(topology, traffic))
    yield from form
    if form:
        return
    rate = traffic.rate
    yield from first_error(
        "rate", np.flatnonzero(~((rate >= 0) & np.isfinite(rate))),
        lambda host: f"rate of host {host} is {rate[host]}: it must be 0 or more and finite",
    )  # fmt: skip
    if traffic.law == DestinationRule.FIXED:
        yield from _fixed_errors(traffic)
    elif traffic.law == DestinationRule.TABLE:
        yield from _table_errors(traffic)
    elif traffic.law == DestinationRule.UNIFORM and topology.hosts < 2:
        yield "hosts", f"UNIFORM needs two hosts or more; the topology has {topology.hosts}"


def zero_demand_errors(traffic: Traffic) -> Errors:
    """Yield an error if no host sends; a program may compute and send nothing."""
    if not (np.asarray(traffic.rate) > 0).any():
        yield "rate", "no host sends anything: all rates are 0"


def _form_errors(topology: Topology, traffic: Traffic) -> Errors:
    hosts, law = topology.hosts, traffic.law
    if not isinstance(traffic.kind, str):
        yield "kind", f"kind must be a text, and is {traffic.kind!r}"
    if not isinstance(traffic.topology, Topology) or traffic.topology.hosts != hosts:
        yield "topology", "topology must be the topology that the method received"
    if not is_whole(law) or law not in (
        DestinationRule.UNIFORM,
        DestinationRule.UNIFORM_SELF,
        DestinationRule.FIXED,
        DestinationRule.TABLE,
    ):
        yield (
            "law",
            f"law is {law!r}: it must be UNIFORM, UNIFORM_SELF, FIXED or TABLE of flitlab.models.traffic.traffic",
        )
        return
    yield from notes_errors(traffic.notes)
    if not isinstance(traffic.alternates, tuple):
        yield "alternates", "alternates must be a tuple of traffic"
    if traffic.background is not None and not isinstance(traffic.background, Traffic):
        yield "background", "background must be traffic, or None"
    elif traffic.background is not None and (traffic.background.background is not None or traffic.alternates):
        yield "background", "background goes with no alternates, and has no background of its own"
    entries = len(traffic.column) if law == DestinationRule.TABLE and np.ndim(traffic.column) == 1 else 0
    lengths = {
        "fixed": hosts if law == DestinationRule.FIXED else 0,
        "start": hosts + 1 if law == DestinationRule.TABLE else 0,
        "column": entries,
    }
    yield from array_errors("rate", traffic.rate, np.floating, hosts)
    for name, length in lengths.items():
        yield from array_errors(name, getattr(traffic, name), np.integer, length)
    yield from array_errors("weight", traffic.weight, np.floating, entries)


def _fixed_errors(traffic: Traffic) -> Errors:
    to, hosts = traffic.fixed, len(traffic.rate)
    yield from first_error(
        "destination", np.flatnonzero((to < -1) | (to >= hosts)),
        lambda host: f"host {host} sends to host {to[host]}; hosts are 0 to {hosts - 1} (-1: to none)",
    )  # fmt: skip
    yield from first_error(
        "nowhere", np.flatnonzero((to == -1) & (traffic.rate > 0)),
        lambda host: f"host {host} has a rate of {traffic.rate[host]} and no destination",
    )  # fmt: skip


def _table_errors(traffic: Traffic) -> Errors:
    start, column, weight, rate = traffic.start, traffic.column, traffic.weight, traffic.rate
    hosts = len(rate)
    if start[0] != 0 or start[-1] != len(column) or (start[1:] < start[:-1]).any():
        yield "start", f"start must rise from 0 to the number of entries, {len(column)}"
        return
    source: Ints = np.repeat(np.arange(hosts), np.diff(start))
    yield from first_error(
        "destination", np.flatnonzero((column < 0) | (column >= hosts)),
        lambda k: f"host {source[k]} sends to host {column[k]}; hosts are 0 to {hosts - 1}",
    )  # fmt: skip
    wrong = np.flatnonzero(~((weight > 0) & np.isfinite(weight)))
    yield from first_error(
        "demand", wrong,
        lambda k: f"the demand of host {source[k]} for host {column[k]} is {weight[k]}: it must be positive and finite "
        "(leave out what is 0)",
    )  # fmt: skip
    if len(wrong):
        return
    total = np.bincount(source, weight, hosts)
    yield from first_error(
        "sum", np.flatnonzero(~(np.abs(total - rate) <= ROUNDING * total)),
        lambda host: f"rate of host {host} is {rate[host]}, and its demands add up to {total[host]}",
    )  # fmt: skip
