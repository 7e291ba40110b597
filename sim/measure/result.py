# SPDX-License-Identifier: Apache-2.0
"""What is known of a run that has been measured."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flitlab.models.arrays import Floats
from flitlab.sim.engines.base import Flows


@dataclass(frozen=True)
class Result:
    """What is known of a run that has been measured.

    row: the measured columns of results.csv. detail: rows of further tables and what figures need, by name, JSON-able;
    :func:`~flitlab.sim.measure.measure.measure` adds ``compile_s``, CPU seconds of making kernels ready, which are not
    in ``cpu_s``. delivered, present: flits (of datagrams, bytes) delivered in the window, and in the network at its
    start. window: ticks of it, in the time that a channel of capacity 1 takes for a flit, or a byte. capacity: float64
    [channels], of the channels between switches on average in the window, where the network changed; None where it
    did not. parts: the epochs of a network that changed, from the beginning of the run.
    """

    row: dict[str, Any]
    detail: dict[str, Any]
    delivered: Flows
    present: Flows
    window: float
    capacity: Floats | None = field(default=None, kw_only=True)
    parts: "tuple[Part, ...]" = field(default=(), kw_only=True)


@dataclass(frozen=True)
class FlowsResult(Result):
    """What is known of a run of flows.

    throughput: float64 [flows], of the window, as a fraction of what a network interface sends.
    """

    throughput: Floats


class Part(NamedTuple):
    """What was delivered in an epoch of a run, and was in the network as it began: as in :class:`Result`."""

    epoch: int
    delivered: Flows
    present: Flows
    window: float
