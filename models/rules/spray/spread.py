# SPDX-License-Identifier: Apache-2.0
"""The choice of the entropy value, and so of the path, of each packet, and what senders learn about them."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.rules.spray.layout import (
    CELLS,
    Feedback,
    Rules,
    Senders,
    Spread,
)

_WORST = 15
"""The largest penalty of an entropy value."""

_EXPLORED = 16
"""Packets that take random entropy values after ``reps`` was frozen."""


@kernel
def choose_entropy(r: Rules, s: Senders, i: Int) -> int:
    """The entropy value of the next packet of sender i: 0 .. paths - 1.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    """
    if r.paths == 1:
        return np.int64(0)
    if r.spread == Spread.OBLIVIOUS:
        return _walk(r, s, i)
    return _by_feedback(r, s, i)


@kernel
def first_entropy(r: Rules, i: Int, number: Int) -> int:
    """The entropy value of a packet as :func:`choose_entropy` chooses it before any feedback.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    i: the flow.
    number: the packet.
    """
    if r.spread == Spread.REPS_LIST and number < r.paths:
        return (number + 1) % r.paths
    if r.spread == Spread.REPS or r.spread == Spread.REPS_LIST:
        return below(draw(r.seed, Stream.ENTROPY, i, number if r.spread == Spread.REPS else number - r.paths), r.paths)
    return number % r.paths ^ below(draw(r.seed, Stream.ROUND_MASK, i, number // r.paths), r.paths)


@device_function
def _by_feedback(r: Rules, s: Senders, i: Int) -> int:
    if r.spread == Spread.BITMAP:
        return _unpenalised(r, s, i)
    if r.spread == Spread.REPS:
        return _recycled(r, s, i)
    seq = s.seq[i]
    if r.spread == Spread.REPS_LIST and seq.opened < min(np.int64(s.win[i].window) // r.mtu, r.paths):
        seq.opened += 1
        return seq.opened % r.paths
    if seq.queue_head < seq.queue_tail:
        slot = seq.queue_head & (s.queue.shape[1] - 1)
        seq.queue_head += 1
        return np.int64(s.queue[i, slot])
    return _unpenalised(r, s, i) if r.spread == Spread.MIXED else _random(r, s, i)


@kernel
def _here(r: Rules, s: Senders, i: Int) -> int:
    """The present entropy value of the walk. Every round has another order."""
    seq = s.seq[i]
    if seq.walk >= r.paths:
        seq.walk = 0
        seq.mask = below(draw(r.seed, Stream.ROUND_MASK, i, seq.rounds), r.paths)
        seq.rounds += 1
    return seq.walk ^ seq.mask


@kernel
def _walk(r: Rules, s: Senders, i: Int) -> int:
    entropy = _here(r, s, i)
    s.seq[i].walk += 1
    return entropy


@kernel
def _unpenalised(r: Rules, s: Senders, i: Int) -> int:
    """The next entropy value of the walk without a penalty. The first one skipped loses 1 of its penalty."""
    entropy = _walk(r, s, i)
    for step in range(r.paths):
        if s.penalty[i, entropy] == 0:
            break
        if step == 0:
            s.penalty[i, entropy] -= np.uint8(1)
        entropy = _walk(r, s, i)
    return entropy


@kernel
def _random(r: Rules, s: Senders, i: Int) -> int:
    s.seq[i].drawn += 1
    return below(draw(r.seed, Stream.ENTROPY, i, s.seq[i].drawn - 1), r.paths)


@kernel
def _recycled(r: Rules, s: Senders, i: Int) -> int:
    """The oldest good entropy value not used again; frozen: all stored ones in turn; else a random one."""
    seq = s.seq[i]
    if seq.frozen > 0 and seq.written > 0:
        cell = seq.read % seq.written
        seq.read = cell + 1
        return s.ring[i, cell]
    if seq.explore > 0:
        seq.explore -= 1
        return _random(r, s, i)
    if seq.valid > 0:
        cell = (seq.head - seq.valid) % CELLS
        seq.valid -= 1
        return s.ring[i, cell]
    return _random(r, s, i)


@kernel
def learn(r: Rules, s: Senders, i: Int, entropy: Int, what: Int, now: Int) -> None:
    """Record the feedback of an entropy value.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    entropy: the entropy value.
    what: GOOD, MARKED, TRIMMED, or TIMED_OUT (of no value in particular).
    now: the present tick.
    """
    if r.spread != Spread.OBLIVIOUS and r.paths > 1:
        _learn(r, s, i, np.int64(entropy), np.int64(what), np.int64(now))


@device_function
def _learn(r: Rules, s: Senders, i: Int, entropy: Int, what: Int, now: Int) -> None:
    seq = s.seq[i]
    if r.spread == Spread.REPS:
        _refill(r, s, i, entropy, what, now)
        return
    if r.spread != Spread.REPS_LIST and what != Feedback.GOOD:
        worse = np.int64(s.penalty[i, entropy]) + (
            1 if what == Feedback.MARKED else 4 if what == Feedback.TRIMMED else _WORST
        )
        s.penalty[i, entropy] = np.uint8(min(worse, np.int64(_WORST)))
    if r.spread != Spread.BITMAP and what == Feedback.GOOD and seq.queue_tail - seq.queue_head < s.queue.shape[1]:
        s.queue[i, seq.queue_tail & (s.queue.shape[1] - 1)] = np.uint16(entropy)
        seq.queue_tail += 1


@kernel
def _refill(r: Rules, s: Senders, i: Int, entropy: Int, what: Int, now: Int) -> None:
    seq = s.seq[i]
    if seq.frozen > 0 and now >= seq.frozen:
        seq.frozen = seq.head = seq.valid = seq.written = 0
        seq.explore = _EXPLORED
    if what == Feedback.TIMED_OUT:
        if r.trims != 0 and seq.frozen == 0 and seq.explore == 0:
            seq.frozen = now + r.freeze
            seq.read = 0
    elif what == Feedback.GOOD:
        s.ring[i, seq.head] = entropy
        seq.head = (seq.head + 1) % CELLS
        seq.valid = min(seq.valid + 1, CELLS)
        seq.written = min(seq.written + 1, CELLS)
