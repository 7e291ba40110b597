# SPDX-License-Identifier: Apache-2.0
"""The watchdog of priority flow control: an output that is paused too long discards its queue, and ignores PAUSE."""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.lossless import Ports

WATCHED = np.dtype(
    [
        ("asked", np.int64),  # 1 from a PAUSE that came to its RESUME, whether it is obeyed or not
        ("restore_at", np.int64),  # tick until which PAUSE is ignored, -1: it is obeyed
        ("is_set", np.int64),  # 1 if a timer is set
    ]
)
"""The server of a channel."""

Servers: TypeAlias = np.recarray
"""WATCHED [links]."""


class Watchdog(NamedTuple):
    """The watchdogs of all outputs of switches.

    period: ticks of a pause after which one expires. restore: ticks for which PAUSE is ignored then. first_host,
    first_output: links from ``first_host`` to ``first_output`` - 1 are hosts, which have none.
    """

    period: int
    restore: int
    first_host: int
    first_output: int
    servers: Servers


class Action(IntEnum):
    """What a server does when its timer expires."""

    NONE = 0
    DISCARD = 1  # its queue, and it is resumed
    PAUSE = 2  # again


def make_watchdog(period: int, restore: int, links: int, first_host: int, first_output: int) -> Watchdog:
    """The watchdogs at tick 0.

    Parameters
    ----------
    period, restore, first_host, first_output: as in :class:`Watchdog`.
    links: of the network.
    """
    servers = np.zeros(links, WATCHED).view(np.recarray)
    servers.restore_at = -1
    return Watchdog(period, restore, first_host, first_output, servers)


@kernel
def obeys(w: Watchdog, link: Int) -> bool:
    """Whether a server obeys a PAUSE or RESUME that came now.

    Parameters
    ----------
    w: the watchdogs, changed in place.
    link: the channel of the server.
    """
    server = w.servers[link]
    server.asked = 1 - server.asked
    return bool(server.restore_at < 0)


@kernel
def timer_tick(w: Watchdog, ports: Ports, link: Int) -> int:
    """The tick of the timer that a server has to set now; -1: none.

    Parameters
    ----------
    w: the watchdogs, changed in place.
    ports: PORT [links].
    link: the channel of the server.
    """
    server = w.servers[link]
    if server.is_set != 0 or (link >= w.first_host and link < w.first_output):
        return np.int64(-1)
    tick = np.int64(-1)
    if server.restore_at >= 0:
        tick = np.int64(server.restore_at)
    elif ports[link].paused_at >= 0:
        tick = np.int64(ports[link].paused_at + w.period)
    server.is_set = np.int64(tick >= 0)
    return tick


@kernel
def on_timer(w: Watchdog, ports: Ports, link: Int, now: Int) -> int:
    """Process the timer of a server; then it may need another one.

    Parameters
    ----------
    w: the watchdogs, changed in place.
    ports: PORT [links], changed in place.
    link: the channel of the server.
    now: the present tick.

    Returns
    -------
    :class:`Action`.
    """
    server, port = w.servers[link], ports[link]
    server.is_set = 0
    if server.restore_at >= 0:
        if now < server.restore_at:
            return np.int64(Action.NONE)
        server.restore_at = -1
        return np.int64(Action.PAUSE if server.asked != 0 else Action.NONE)
    if port.paused_at < 0 or now < port.paused_at + w.period:
        return np.int64(Action.NONE)
    port.fired += 1
    server.restore_at = now + w.restore
    return np.int64(Action.DISCARD)
