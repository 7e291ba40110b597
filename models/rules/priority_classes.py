# SPDX-License-Identifier: Apache-2.0
"""Service of the classes of a lossless network: which class a server serves next.

A server is that of a switch's output, or of a host. Strict classes go first, in their order. The others have turns of a
number of bytes (surplus round robin): the class in turn sends until it has used them up, and what it sends beyond them
is missing in its next turn. A class that has nothing to send, or is paused, when the server chooses another one loses
the rest of its turn.

Source: Adiseshu, Parulkar and Varghese, A reliable and scalable striping protocol, SIGCOMM 1996 (surplus round robin,
for links). Its turns are those of Shreedhar and Varghese, Efficient fair queuing using deficit round-robin, IEEE/ACM
Transactions on Networking 4(3), 1996, doi:10.1109/90.502236; it need not know the size of a packet before.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Ints
from flitlab.models.jit import kernel

NO_CLASS = np.int64(-1)


class Service(NamedTuple):
    """The service of classes by all servers.

    strict: int64 [classes], 1: it goes before the others. quantum: int64 [classes], bytes of a turn, a full packet at
    least. turn: int64 [links], class in turn. credit: int64 [links * classes], bytes that a class may still send in
    its turn, by link and class.
    """

    strict: Ints
    quantum: Ints
    turn: Ints
    credit: Ints


def make_service(strict: Ints, quantum: Ints, links: int) -> Service:
    """The service before the first packet: the first class that is not strict begins its turn.

    Parameters
    ----------
    strict, quantum: int64 [classes], as in :class:`Service`.
    links: of the network.
    """
    first = int(np.argmin(strict))
    credit = np.zeros((links, len(strict)), np.int64)
    credit[:, first] = quantum[first]
    return Service(strict, quantum, np.full(links, first), credit.ravel())


@kernel
def next_class(s: Service, link: Int, ready: Int) -> int:
    """The class that a server serves next, or NO_CLASS.

    Parameters
    ----------
    s: of all servers, changed in place.
    link: the link of the server.
    ready: bits of the classes that have something to send, and are not paused.
    """
    count, one = len(s.strict), np.int64(1)
    if ready == 0:
        return NO_CLASS
    for number in range(count):
        if s.strict[number] != 0 and ready >> number & one != 0:
            return np.int64(number)
    turn = s.turn[link]
    while ready >> turn & one == 0 or s.credit[link * count + turn] <= 0:
        if ready >> turn & one == 0:
            s.credit[link * count + turn] = min(s.credit[link * count + turn], 0)
        turn = (turn + 1) % count
        if s.strict[turn] == 0 and ready >> turn & one != 0:
            s.credit[link * count + turn] += s.quantum[turn]
    s.turn[link] = turn
    return np.int64(turn)


@kernel
def count_sent(s: Service, link: Int, number: Int, size: Int) -> None:
    """Count a packet that a server sends against the turn of its class.

    Parameters
    ----------
    s: of all servers, changed in place.
    link: the link of the server.
    number: the class.
    size: bytes of the packet.
    """
    if s.strict[number] == 0:
        s.credit[link * len(s.strict) + number] -= size
