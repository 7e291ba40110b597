# SPDX-License-Identifier: Apache-2.0
"""SLEEK loss recovery: a sender detects dropped packets by later arrivals, or by a probe that overtook them.

Source: Ultra Ethernet Specification 1.0 (2025), section on loss recovery without trimming.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
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
"""Packet number of a probe."""

_LEAST = 5.0
"""Fewest packets received out of order that indicate a loss."""


@device_function
def recover(r: Rules, s: Senders, i: Int, expected: Int, received: Int, number: Int, now: Int) -> None:
    """Queue the packets of sender i that count as lost for retransmission, after an acknowledgement.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    expected, received, number: of the acknowledgement (:func:`flitlab.models.rules.spray.sender.on_ack`).
    now: the present tick.
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
    """Whether packets in flight count as lost."""
    seq, payload = s.seq[i], float(r.mtu - r.header)
    if number == PROBE:
        return bool(float(now - seq[PROBED] - seq[BASE]) < r.target)
    beyond = (received - expected * r.mtu + r.mtu - 1) // r.mtu
    most = min(1.5 * s.win[i, WINDOW], widest(r, s, i))
    return bool(seq[RESENDS_PENDING] == 0 and float(beyond) >= max(most / payload, _LEAST))


@kernel
def _send_again(r: Rules, s: Senders, i: Int) -> None:
    """Queue the missing packets of the first window for retransmission, each once per recovery."""
    seq = s.seq[i]
    end = min(seq[RECOVER], seq[UNA] + np.int64(s.win[i, WINDOW] / float(r.mtu - r.header)))
    for number in range(max(seq[RECOVERED], seq[UNA]), end):
        if has(s.in_flight, seq[WORD], number):
            queue_resend(r, s, i, number)
    seq[RECOVERED] = max(seq[RECOVERED], end)


@device_function
def next_probe_check(r: Rules, s: Senders, i: Int, now: Int) -> int:
    """The tick at which sender i checks its probe timer next.

    An acknowledgement may bring the timer forward. A check at least every round trip notices it.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    now: the present tick.

    Returns
    -------
    The tick, -1 if the timer does not run.
    """
    seq = s.seq[i]
    if seq[PROBE_AT] < 0:
        return np.int64(-1)
    return max(min(seq[PROBE_AT], now + seq[BASE]), now + 1)


@device_function
def probe(r: Rules, s: Senders, i: Int, now: Int) -> int:
    """Send a probe of sender i if it is due.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    now: the present tick.

    Returns
    -------
    Its entropy value, -1: it is not due.
    """
    seq = s.seq[i]
    if seq[PROBE_AT] < 0 or seq[PROBE_AT] > now:
        return np.int64(-1)
    seq[PROBED], seq[PROBE_AT] = now, now + 5 * seq[BASE]
    return choose_entropy(r, s, i)
