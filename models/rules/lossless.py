# SPDX-License-Identifier: Apache-2.0
"""Priority flow control: charges of input ports, and the pauses of the outputs before them.

An input port of a switch is the end of one channel. Packets are charged to it from their arrival until the end of their
service at an output. Above XOFF it sends a PAUSE to the server of its channel, below XON a RESUME. Where switches have
a shared buffer, XOFF is a share of what is free in it (dynamic threshold).

Source: IEEE 802.1Q-2018, clause 36 (priority-based flow control). Choudhury and Hahne, Dynamic queue length thresholds
for shared-memory packet switches, IEEE/ACM Transactions on Networking 6(2), 1998, doi:10.1109/90.664262.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from flitlab.models.arrays import Int, Ints
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import Stream, below_wide, draw

PORT = np.dtype(
    [
        ("charged", np.int64),  # bytes charged to the input port at the end of the channel
        ("is_pausing", np.int64),  # 1 from its PAUSE to its RESUME
        ("xoff", np.int64),  # bytes above which it sends PAUSE
        ("xon", np.int64),  # bytes below which it sends RESUME
        ("delay", np.int64),  # ticks of a PAUSE or RESUME
        ("paused_at", np.int64),  # tick since which the server of the channel is paused, -1: it is not
        ("frames", np.int64),  # PAUSE frames sent
        ("paused", np.int64),  # ticks of all pauses that have ended
        ("longest", np.int64),  # ticks of the longest of them
        ("peak", np.int64),  # largest charge, bytes
        ("sent", np.int64),  # bytes that the server of the channel, an output of a switch, has sent
        # of a port of a shared buffer
        ("switch", np.int64),  # the switch
        ("headroom", np.int64),  # bytes of ``charged`` in its headroom
        ("most_headroom", np.int64),  # size of the headroom, bytes
        ("shift", np.int64),  # log2 of the share of the free bytes that it may use, negated
        ("fired", np.int64),  # expirations of the watchdog of the server
    ]
)
"""A channel with its server and the input port at its end, two cache lines."""

Ports: TypeAlias = np.recarray
"""PORT [links]."""

SEARCHED = np.int64(1024)
"""First packets of each queue among which the cause of a PAUSE is searched.

The cause is the output of the switch in whose queue most of the bytes wait that came by the channel; of equal ones the
first.
"""


class Buffers(NamedTuple):
    """Shared buffers of switches.

    used: int64 [switches], bytes in the shared part; size: int64 [switches], all of it. reserve: bytes that every port
    has besides. resume: bytes below the threshold at which a port sends RESUME.
    """

    used: Ints
    size: Ints
    reserve: int
    resume: int


def make_ports(xoff: Ints, xon: Ints, delay: Ints) -> Ports:
    """The ports of empty switches.

    Parameters
    ----------
    xoff, xon: int64 [links], thresholds in bytes.
    delay: int64 [links], ticks of a PAUSE or RESUME.
    """
    ports = np.zeros(len(xoff), PORT).view(np.recarray)
    ports.xoff, ports.xon, ports.delay, ports.paused_at = xoff, xon, delay, -1
    return ports


@kernel
def charge(ports: Ports, link: Int, size: Int) -> bool:
    """Charge a packet to the input port at the end of a channel.

    Parameters
    ----------
    ports: PORT [links], changed in place.
    link: the channel.
    size: bytes of the packet.

    Returns
    -------
    Whether the port sends PAUSE.
    """
    port = ports[link]
    port.charged += size
    port.peak = max(port.peak, port.charged)
    if port.charged <= port.xoff or port.is_pausing != 0:
        return False
    port.is_pausing = 1
    port.frames += 1
    return True


@kernel
def release(ports: Ports, link: Int, size: Int) -> bool:
    """Release a packet from the charge of an input port.

    Parameters
    ----------
    ports: PORT [links], changed in place.
    link: the channel that ends at the port.
    size: bytes of the packet.

    Returns
    -------
    Whether the port sends RESUME.
    """
    port = ports[link]
    port.charged -= size
    if port.charged >= port.xon or port.is_pausing == 0:
        return False
    port.is_pausing = 0
    return True


@kernel
def _shared_use(ports: Ports, buffers: Buffers, link: Int) -> int:
    """Bytes of a port in the shared part of the buffer."""
    port = ports[link]
    return np.int64(max(port.charged - port.headroom - buffers.reserve, 0))


@kernel
def _threshold(ports: Ports, buffers: Buffers, link: Int) -> int:
    """Bytes of the shared part that a port may use now."""
    port = ports[link]
    return np.int64((buffers.size[port.switch] - buffers.used[port.switch]) >> port.shift)


@kernel
def admits(ports: Ports, buffers: Buffers, link: Int, size: Int) -> bool:
    """Whether a packet fits the headroom or the shared part; else it is dropped.

    Parameters
    ----------
    ports: PORT [links].
    buffers: of the switches.
    link: the channel by which it came.
    size: bytes of the packet.
    """
    port = ports[link]
    if port.headroom + size <= port.most_headroom:
        return True
    return bool(size + _shared_use(ports, buffers, link) <= _threshold(ports, buffers, link))


@kernel
def charge_shared(ports: Ports, buffers: Buffers, link: Int, size: Int) -> bool:
    """Charge a packet to a port of a shared buffer: its reserve, then the shared part, beyond the threshold headroom.

    Parameters
    ----------
    ports: PORT [links], changed in place.
    buffers: of the switches, changed in place.
    link: the channel by which it came.
    size: bytes of the packet.

    Returns
    -------
    Whether the port sends PAUSE.
    """
    port = ports[link]
    shared = port.charged - port.headroom + size - buffers.reserve
    if shared > 0:
        if shared > _threshold(ports, buffers, link):
            port.headroom += size
        else:
            buffers.used[port.switch] += min(size, shared)
    port.charged += size
    port.peak = max(port.peak, port.charged)
    if port.is_pausing != 0:
        return False
    if port.headroom == 0 and _shared_use(ports, buffers, link) < _threshold(ports, buffers, link):
        return False
    port.is_pausing = 1
    port.frames += 1
    return True


@kernel
def release_shared(ports: Ports, buffers: Buffers, link: Int, size: Int) -> bool:
    """Release a packet from a port of a shared buffer: from its headroom, then the shared part, then the reserve.

    Parameters
    ----------
    ports: PORT [links], changed in place.
    buffers: of the switches, changed in place.
    link: the channel by which it came.
    size: bytes of the packet.

    Returns
    -------
    Whether the port sends RESUME.
    """
    port = ports[link]
    from_headroom = min(port.headroom, size)
    buffers.used[port.switch] -= min(size - from_headroom, _shared_use(ports, buffers, link))
    port.headroom -= from_headroom
    port.charged -= size
    if port.is_pausing == 0 or port.headroom > 0:
        return False
    use = _shared_use(ports, buffers, link)
    if use > 0 and use + buffers.resume > _threshold(ports, buffers, link):
        return False
    port.is_pausing = 0
    return True


@kernel
def switch_pause(ports: Ports, totals: Ints, link: Int, now: Int) -> bool:
    """Pause or resume the server of a channel; PAUSE and RESUME alternate.

    Parameters
    ----------
    ports: PORT [links], changed in place.
    totals: int64 [2], servers that are paused now, and the most that ever were; changed in place.
    link: the channel.
    now: the present tick.

    Returns
    -------
    Whether it is paused now.
    """
    port = ports[link]
    if port.paused_at < 0:
        port.paused_at = now
        totals[0] += 1
        totals[1] = max(totals[1], totals[0])
        return True
    ticks = now - port.paused_at
    port.paused += ticks
    port.longest = max(port.longest, ticks)
    port.paused_at = -1
    totals[0] -= 1
    return False


@kernel
def is_marked(seed: Int, link: Int, times: Int, queued: Int, low: Int, high: Int, span: Int) -> bool:
    """Whether a data packet gets an ECN mark.

    Parameters
    ----------
    seed: of draws.
    link: the link of the queue.
    times: earlier draws of this link.
    queued: bytes in the queue, more than ``low``.
    low: bytes up to which no packet is marked.
    high: bytes above which all packets are marked.
    span: bytes beyond ``low`` over which the probability would rise to 1.
    """
    return bool(queued > high or below_wide(draw(seed, Stream.ECN, link, times), span) < queued - low)
