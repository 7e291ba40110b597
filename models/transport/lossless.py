# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: thresholds of priority flow control, and the marks of their outputs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints


@dataclass(frozen=True)
class Lossless:
    """Queues that pause the output before them instead of dropping: ``switching.queue`` of kind lossless.

    xoff_packets, xon_packets: full payloads charged to an input port above which it sends PAUSE, and below which it
    sends RESUME. mark_probability: of the ECN mark at the upper threshold of ``switching.ecn``; above it all packets
    are marked. mark_own: a packet counts itself as part of the queue that it leaves.
    """

    xoff_packets: int = 15
    xon_packets: int = 12
    mark_probability: float = 1.0
    mark_own: bool = False


class PortSettings(NamedTuple):
    """The settings of lossless ports, int64 [links] each, by the channel that ends at the port.

    xoff, xon: bytes. delay: ticks of a PAUSE or RESUME. mark_span: bytes of queue beyond the lower ECN threshold over
    which the probability of a mark would rise to 1. mark_own: whether a packet counts itself.
    """

    xoff: Ints
    xon: Ints
    delay: Ints
    mark_span: Ints
    mark_own: bool


def port_settings(lossless: Lossless, payload: int, delay: Ints, low: Ints, high: Ints) -> PortSettings:
    """The settings of all ports.

    Parameters
    ----------
    lossless: the keys.
    payload: bytes of a full payload.
    delay: int64 [links], ticks of a PAUSE or RESUME.
    low, high: int64 [links], ECN thresholds in bytes.
    """
    same = np.ones(len(delay), np.int64)
    span = np.ceil((high - low) / lossless.mark_probability).astype(np.int64)
    return PortSettings(
        payload * lossless.xoff_packets * same, payload * lossless.xon_packets * same, delay, span, lossless.mark_own
    )
