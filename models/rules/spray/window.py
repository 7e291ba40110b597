# SPDX-License-Identifier: Apache-2.0
"""Congestion windows of senders: NSCC, one like that of DCTCP, and a constant one.

Source: Ultra Ethernet Specification 1.0 (2025), section on network signalled congestion control.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.spray.layout import (
    ADAPT_AT,
    ADAPT_BYTES,
    ADJUST,
    AVERAGE,
    BASE,
    CUT_AT,
    DCTCP,
    ETA_AT,
    FLIGHT,
    IGNORE,
    IGNORED,
    IS_FAST,
    NEAR_BYTES,
    NSCC,
    PENDING,
    TRIGGER,
    WINDOW,
    Rules,
    Senders,
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
    return r.most_bdp * float(s.seq[i, BASE]) * r.rate


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
    if r.window == NSCC:
        _nscc_on_ack(r, s, i, np.int64(news), marked, np.int64(sample), np.int64(now))
    elif r.window == DCTCP:
        window = s.win[i, WINDOW]
        window += -float(news) / 3.0 if marked else float(news) * float(r.mtu) / window
        s.win[i, WINDOW] = max(window, float(r.mtu))


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
    if r.window == NSCC:
        _nscc_on_trim(r, s, i, np.int64(size), np.int64(now))
    elif r.window == DCTCP:
        s.win[i, WINDOW] = max(s.win[i, WINDOW] - float(size), float(r.mtu))


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
    if r.window == NSCC or r.window == DCTCP:
        s.win[i, WINDOW] = max(s.win[i, WINDOW] - float(size), float(r.mtu))


@kernel
def _clip(r: Rules, s: Senders, i: Int) -> None:
    s.win[i, WINDOW] = max(min(s.win[i, WINDOW], widest(r, s, i)), float(r.mtu))


@kernel
def _average(r: Rules, s: Senders, i: Int, delay: float, is_late: bool) -> None:
    """Update the slow average of delays. A late packet without a mark lowers it, because its queue is draining."""
    sample = 0.25 * float(s.seq[i, BASE]) if is_late else delay
    s.win[i, AVERAGE] = (1.0 - r.weight) * s.win[i, AVERAGE] + r.weight * sample


@kernel
def _adapts(r: Rules, s: Senders, i: Int, bad: bool, is_lost: bool, delay: float, now: Int) -> bool:
    """Whether the window was set to the bytes received in the last period, or must still rest after that."""
    seq = s.seq[i]
    if bad and seq[IGNORED] < seq[IGNORE]:
        return True
    if now <= seq[ADAPT_AT]:
        return False
    pressed = seq[TRIGGER] != 0 or is_lost or delay > 4.0 * r.target
    fires = seq[ADAPT_AT] != 0 and pressed and float(seq[ADAPT_BYTES]) < widest(r, s, i) / 8.0
    if fires:
        s.win[i, WINDOW] = max(float(seq[ADAPT_BYTES]), float(r.mtu))
        seq[IGNORE] = seq[FLIGHT]
        seq[IGNORED] = 0
        seq[TRIGGER] = 0
    seq[ADAPT_BYTES] = 0
    seq[ADAPT_AT] = now + seq[BASE] + np.int64(r.target)
    return fires


@device_function
def _nscc_on_ack(r: Rules, s: Senders, i: Int, news: Int, marked: bool, sample: Int, now: Int) -> None:
    seq, win = s.seq[i], s.win[i]
    delay = float(sample - seq[BASE]) if sample >= 0 else win[AVERAGE]
    seq[ADAPT_BYTES] += news
    seq[IGNORED] += news
    seq[ADJUST] += news
    _average(r, s, i, delay, not marked and delay > r.target)
    if _adapts(r, s, i, marked, False, delay, now):
        win[PENDING] = 0.0
        seq[ADJUST] = 0
        return
    if delay >= r.target:
        if marked:
            _decrease(r, s, i, now)
        else:
            win[PENDING] += r.fair * float(news)
    elif not marked and not _is_fast(r, s, i, news, delay):
        win[PENDING] += r.alpha * float(news) * (r.target - delay)
    _clip(r, s, i)
    _adjust(r, s, i, now)


@kernel
def _is_fast(r: Rules, s: Senders, i: Int, news: Int, delay: float) -> bool:
    """Whether the window grows fast, as it does after a whole window with nearly no queueing delay."""
    seq, win = s.seq[i], s.win[i]
    if delay >= r.near:
        seq[NEAR_BYTES] = seq[IS_FAST] = 0
        return False
    seq[NEAR_BYTES] += news
    if float(seq[NEAR_BYTES]) > win[WINDOW]:
        seq[IS_FAST] = 1
    if seq[IS_FAST] == 0:
        return False
    win[WINDOW] += r.fast * float(news)
    return True


@kernel
def _decrease(r: Rules, s: Senders, i: Int, now: Int) -> None:
    seq, win = s.seq[i], s.win[i]
    seq[NEAR_BYTES] = seq[IS_FAST] = 0
    average = win[AVERAGE]
    if average > r.target and now - seq[CUT_AT] >= seq[BASE]:
        win[WINDOW] *= max(1.0 - r.gamma * (average - r.target) / average, 0.5)
        seq[CUT_AT] = now


@kernel
def _adjust(r: Rules, s: Senders, i: Int, now: Int) -> None:
    """Apply the gathered increase to the window, after enough bytes or time."""
    seq, win = s.seq[i], s.win[i]
    passed = now - seq[ETA_AT]
    if seq[ADJUST] <= r.gate and passed <= r.rtt0:
        return
    win[WINDOW] += win[PENDING] / win[WINDOW]
    if passed >= r.rtt0:
        win[WINDOW] += r.eta
        seq[ETA_AT] = now
    win[PENDING] = 0.0
    seq[ADJUST] = 0
    _clip(r, s, i)


@device_function
def _nscc_on_trim(r: Rules, s: Senders, i: Int, size: Int, now: Int) -> None:
    seq = s.seq[i]
    seq[IGNORED] += size
    _average(r, s, i, float(r.rtt0), False)
    seq[TRIGGER] = 1
    if not _adapts(r, s, i, True, True, float(r.rtt0), now):
        s.win[i, WINDOW] -= float(size)
        _clip(r, s, i)
