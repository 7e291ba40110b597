# SPDX-License-Identifier: Apache-2.0
"""Congestion windows of senders: NSCC, one like that of DCTCP, and a constant one.

Source: Ultra Ethernet Specification 1.0 (2025), section on network signalled congestion control.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.spray.layout import (
    Rules,
    Senders,
    WindowControl,
)


@kernel
def widest(r: Rules, s: Senders, i: Int) -> float:
    """The limit of the window of sender i, in bytes. It follows the least round trip measured.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders.
    i: the flow.
    """
    return r.most_bdp * float(s.seq[i].base_rtt) * r.rate


@kernel
def window_on_ack(r: Rules, s: Senders, i: Int, news: Int, marked: bool, sample: Int, now: Int) -> None:
    """Adjust the window of sender i to an acknowledgement.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    news: newly acknowledged bytes.
    marked: whether the acknowledged packet had an ECN mark.
    sample: its round trip, ticks, already in BASE; -1: unknown.
    now: the present tick.
    """
    if r.window == WindowControl.NSCC:
        _nscc_on_ack(r, s, i, np.int64(news), marked, np.int64(sample), np.int64(now))
    elif r.window == WindowControl.DCTCP:
        window = s.win[i].window
        window += -float(news) / 3.0 if marked else float(news) * float(r.mtu) / window
        s.win[i].window = max(window, float(r.mtu))


@kernel
def window_on_trim(r: Rules, s: Senders, i: Int, size: Int, now: Int) -> None:
    """Adjust the window of sender i to a trimmed packet.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    size: bytes of the packet.
    now: the present tick.
    """
    if r.window == WindowControl.NSCC:
        _nscc_on_trim(r, s, i, np.int64(size), np.int64(now))
    elif r.window == WindowControl.DCTCP:
        s.win[i].window = max(s.win[i].window - float(size), float(r.mtu))


@kernel
def window_on_timeout(r: Rules, s: Senders, i: Int, size: Int) -> None:
    """Adjust the window of sender i to a packet that timed out.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    size: bytes of the packet.
    """
    if r.window == WindowControl.NSCC or r.window == WindowControl.DCTCP:
        s.win[i].window = max(s.win[i].window - float(size), float(r.mtu))


@kernel
def _clip(r: Rules, s: Senders, i: Int) -> None:
    s.win[i].window = max(min(s.win[i].window, widest(r, s, i)), float(r.mtu))


@kernel
def _average(r: Rules, s: Senders, i: Int, delay: float, is_late: bool) -> None:
    """Update the slow average of delays. A late packet without a mark lowers it, because its queue is draining."""
    sample = 0.25 * float(s.seq[i].base_rtt) if is_late else delay
    s.win[i].average = (1.0 - r.weight) * s.win[i].average + r.weight * sample


@kernel
def _adapts(r: Rules, s: Senders, i: Int, bad: bool, is_lost: bool, delay: float, now: Int) -> bool:
    """Whether the window was set to the bytes received in the last period, or must still rest after that."""
    seq = s.seq[i]
    if bad and seq.ignored < seq.ignore:
        return True
    if now <= seq.adapt_at:
        return False
    pressed = seq.trigger != 0 or is_lost or delay > 4.0 * r.target
    fires = seq.adapt_at != 0 and pressed and float(seq.adapt_bytes) < widest(r, s, i) / 8.0
    if fires:
        s.win[i].window = max(float(seq.adapt_bytes), float(r.mtu))
        seq.ignore = seq.flight
        seq.ignored = 0
        seq.trigger = 0
    seq.adapt_bytes = 0
    seq.adapt_at = now + seq.base_rtt + np.int64(r.target)
    return fires


@device_function
def _nscc_on_ack(r: Rules, s: Senders, i: Int, news: Int, marked: bool, sample: Int, now: Int) -> None:
    seq, win = s.seq[i], s.win[i]
    delay = float(sample - seq.base_rtt) if sample >= 0 else win.average
    seq.adapt_bytes += news
    seq.ignored += news
    seq.adjust += news
    _average(r, s, i, delay, not marked and delay > r.target)
    if _adapts(r, s, i, marked, False, delay, now):
        win.pending = 0.0
        seq.adjust = 0
        return
    if delay >= r.target:
        if marked:
            _decrease(r, s, i, now)
        else:
            win.pending += r.fair * float(news)
    elif not marked and not _is_fast(r, s, i, news, delay):
        win.pending += r.alpha * float(news) * (r.target - delay)
    _clip(r, s, i)
    _adjust(r, s, i, now)


@kernel
def _is_fast(r: Rules, s: Senders, i: Int, news: Int, delay: float) -> bool:
    """Whether the window grows fast, as it does after a whole window with nearly no queueing delay."""
    seq, win = s.seq[i], s.win[i]
    if delay >= r.near:
        seq.near_bytes = seq.is_fast = 0
        return False
    seq.near_bytes += news
    if float(seq.near_bytes) > win.window:
        seq.is_fast = 1
    if seq.is_fast == 0:
        return False
    win.window += r.fast * float(news)
    return True


@kernel
def _decrease(r: Rules, s: Senders, i: Int, now: Int) -> None:
    seq, win = s.seq[i], s.win[i]
    seq.near_bytes = seq.is_fast = 0
    average = win.average
    if average > r.target and now - seq.cut_at >= seq.base_rtt:
        win.window *= max(1.0 - r.gamma * (average - r.target) / average, 0.5)
        seq.cut_at = now


@kernel
def _adjust(r: Rules, s: Senders, i: Int, now: Int) -> None:
    """Apply the gathered increase to the window, after enough bytes or time."""
    seq, win = s.seq[i], s.win[i]
    passed = now - seq.eta_at
    if seq.adjust <= r.gate and passed <= r.rtt0:
        return
    win.window += win.pending / win.window
    if passed >= r.rtt0:
        win.window += r.eta
        seq.eta_at = now
    win.pending = 0.0
    seq.adjust = 0
    _clip(r, s, i)


@device_function
def _nscc_on_trim(r: Rules, s: Senders, i: Int, size: Int, now: Int) -> None:
    seq = s.seq[i]
    seq.ignored += size
    _average(r, s, i, float(r.rtt0), False)
    seq.trigger = 1
    if not _adapts(r, s, i, True, True, float(r.rtt0), now):
        s.win[i].window -= float(size)
        _clip(r, s, i)
