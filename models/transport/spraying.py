# SPDX-License-Identifier: Apache-2.0
"""The parameters of a spraying transport."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from flitlab.models.rules.spray import layout

SPRAYING = ("nscc", "rccc", "nscc_rccc", "ndp", "dctcp", "constant", "none", "roce", "dcqcn", "swift", "hpcc", "timely")
"""The kinds that spray."""

Spread = Literal["oblivious", "bitmap", "reps", "mixed", "reps_list"]

MOST_PATHS = 1 << 15


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        below = 1 << (value.bit_length() - 1)
        raise ValueError(f"must be a power of two; nearest {below}, {2 * below}")
    return value


Paths = Annotated[int, Field(ge=1, le=MOST_PATHS), AfterValidator(_power_of_two)]


@dataclass(frozen=True)
class Spraying:
    """How hosts spray, in the units of the configuration.

    window, credit: what limits senders. paths: entropy values of a flow; spread: how one is chosen. ack_bytes: received
    bytes that cause an acknowledgement. init_window: packets, None: 1.5 bandwidth-delay products. target: queueing
    delay as a fraction of the longest round trip, None: 0.75 with trimming, else 1. timeout_us: None: 15 us and six
    full queues. oversubscription: of the network, None: computed, 1: receivers ignore it. rate: of ``Credit.PACED``, as
    a fraction of the network interface. sleek: senders detect losses. flows: of each pair of hosts.
    rdma: the :class:`~flitlab.models.transport.rdma.RdmaSpec` of an RDMA transport, which has one path and uses none of
    the above but ``paths`` and ``flows``; else None. priority_class: name of the class of its packets in lossless
    queues, None: the first.
    """

    window: layout.WindowControl = layout.WindowControl.NONE
    credit: layout.Credit = layout.Credit.NONE
    paths: int = 64
    spread: Spread = "mixed"
    ack_bytes: int = 16384
    init_window: int | None = None
    target: float | None = None
    timeout_us: float | None = None
    oversubscription: float | None = 1.0
    rate: float = 1.0
    sleek: bool = False
    flows: int = 1
    rdma: Any = None
    priority_class: str | None = None
