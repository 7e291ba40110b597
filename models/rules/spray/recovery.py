# SPDX-License-Identifier: Apache-2.0
"""SLEEK loss recovery: a sender detects dropped packets by later arrivals, or by a probe that overtook them.

Source: Ultra Ethernet Specification 1.0 (2025), section on loss recovery without trimming.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.spray.layout import (
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
    if seq.recover >= 0 and seq.una >= seq.recover:
        seq.recover = -1
    if seq.recover < 0 and seq.una < seq.next and _detects_loss(r, s, i, expected, received, number, now):
        seq.recover, seq.recovered = seq.next, seq.una
    if seq.recover >= 0:
        _send_again(r, s, i)
    if seq.una >= seq.next:
        seq.probe_at = -1
    elif seq.next == seq.packets:
        seq.probe_at = now + seq.base_rtt + np.int64(r.target)
    else:
        seq.probe_at = now + 3 * seq.base_rtt


@kernel
def _detects_loss(r: Rules, s: Senders, i: Int, expected: Int, received: Int, number: Int, now: Int) -> bool:
    """Whether packets in flight count as lost."""
    seq, payload = s.seq[i], float(r.mtu - r.header)
    if number == PROBE:
        return bool(float(now - seq.probed - seq.base_rtt) < r.target)
    beyond = (received - expected * r.mtu + r.mtu - 1) // r.mtu
    most = min(1.5 * s.win[i].window, widest(r, s, i))
    return bool(seq.resends_pending == 0 and float(beyond) >= max(most / payload, _LEAST))


@kernel
def _send_again(r: Rules, s: Senders, i: Int) -> None:
    """Queue the missing packets of the first window for retransmission, each once per recovery."""
    seq = s.seq[i]
    end = min(seq.recover, seq.una + np.int64(s.win[i].window / float(r.mtu - r.header)))
    for number in range(max(seq.recovered, seq.una), end):
        if has(s.in_flight, seq.word, number):
            queue_resend(r, s, i, number)
    seq.recovered = max(seq.recovered, end)


@device_function
def next_probe_check(s: Senders, i: Int, now: Int) -> int:
    """The tick at which sender i checks its probe timer next.

    An acknowledgement may bring the timer forward. A check at least every round trip notices it.

    Parameters
    ----------
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    now: the present tick.

    Returns
    -------
    The tick, -1 if the timer does not run.
    """
    seq = s.seq[i]
    if seq.probe_at < 0:
        return np.int64(-1)
    return max(min(seq.probe_at, now + seq.base_rtt), now + 1)


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
    if seq.probe_at < 0 or seq.probe_at > now:
        return np.int64(-1)
    seq.probed, seq.probe_at = now, now + 5 * seq.base_rtt
    return choose_entropy(r, s, i)
