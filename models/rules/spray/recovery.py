# SPDX-License-Identifier: Apache-2.0
"""SLEEK: a sender finds out that packets were dropped by what came beyond them, or by a probe that came before them.

Source: Ultra Ethernet Specification 1.0 (2025), section on loss recovery without trimming.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel, routine
from flitlab.models.rules.spray.layout import (
    BASE,
    NEXT,
    PACKETS,
    PROBE_AT,
    PROBED,
    RECOVER,
    RECOVERED,
    RESENDS_PENDING,
    UNA,
    WINDOW,
    WORD,
    Rules,
    Senders,
    has,
    queue_resend,
)
from flitlab.models.rules.spray.spread import choose_entropy
from flitlab.models.rules.spray.window import widest

PROBE = np.int64(-2)
"""What a probe has instead of the number of a packet."""

_LEAST = 5.0
"""Packets that came out of order below which none counts as lost."""


@routine
def recover(r: Rules, s: Senders, i: Int, expected: Int, received: Int, number: Int, now: Int) -> None:
    """Sender i has taken in an acknowledgement: let what counts as lost now wait to be sent again.

    expected, received, number: as it says (:func:`flitlab.models.rules.spray.sender.on_ack`).
    """
    seq = s.seq[i]
    if seq[RECOVER] >= 0 and seq[UNA] >= seq[RECOVER]:
        seq[RECOVER] = -1
    if seq[RECOVER] < 0 and seq[UNA] < seq[NEXT] and _detects_loss(r, s, i, expected, received, number, now):
        seq[RECOVER], seq[RECOVERED] = seq[NEXT], seq[UNA]
    if seq[RECOVER] >= 0:
        _send_again(r, s, i)
    if seq[UNA] >= seq[NEXT]:
        seq[PROBE_AT] = -1
    elif seq[NEXT] == seq[PACKETS]:
        seq[PROBE_AT] = now + seq[BASE] + np.int64(r.target)
    else:
        seq[PROBE_AT] = now + 3 * seq[BASE]


@kernel
def _detects_loss(r: Rules, s: Senders, i: Int, expected: Int, received: Int, number: Int, now: Int) -> bool:
    """Whether packets under way count as lost."""
    seq, payload = s.seq[i], float(r.mtu - r.header)
    if number == PROBE:
        return bool(float(now - seq[PROBED] - seq[BASE]) < r.target)
    beyond = (received - expected * r.mtu + r.mtu - 1) // r.mtu
    most = min(1.5 * s.win[i, WINDOW], widest(r, s, i))
    return bool(seq[RESENDS_PENDING] == 0 and float(beyond) >= max(most / payload, _LEAST))


@kernel
def _send_again(r: Rules, s: Senders, i: Int) -> None:
    """Let the first window of what is missing wait to be sent again, each packet once in a recovery."""
    seq = s.seq[i]
    end = min(seq[RECOVER], seq[UNA] + np.int64(s.win[i, WINDOW] / float(r.mtu - r.header)))
    for number in range(max(seq[RECOVERED], seq[UNA]), end):
        if has(s.in_flight, seq[WORD], number):
            queue_resend(r, s, i, number)
    seq[RECOVERED] = max(seq[RECOVERED], end)


@routine
def next_probe_check(r: Rules, s: Senders, i: Int, now: Int) -> int:
    """The tick in which sender i looks next at its timer for probes, -1: it does not run.

    An acknowledgement may bring that forward; a look at least every round trip finds it out.
    """
    seq = s.seq[i]
    if seq[PROBE_AT] < 0:
        return np.int64(-1)
    return max(min(seq[PROBE_AT], now + seq[BASE]), now + 1)


@routine
def probe(r: Rules, s: Senders, i: Int, now: Int) -> int:
    """Let sender i, if it is time, send a probe: its entropy, -1: it is not."""
    seq = s.seq[i]
    if seq[PROBE_AT] < 0 or seq[PROBE_AT] > now:
        return np.int64(-1)
    seq[PROBED], seq[PROBE_AT] = now, now + 5 * seq[BASE]
    return choose_entropy(r, s, i)
