# SPDX-License-Identifier: Apache-2.0
"""Mailboxes between the partitions of a network, each of which a thread simulates.

Threads meet at a barrier after each lookahead window, within which no partition affects another; then each reads its
mailboxes. There are two sets of mailboxes, used in turn: nothing is written into a set that is being read.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inline
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.sim.engines.compiled.barrier import make_barrier, wait_at_barrier
from flitlab.sim.engines.compiled.memory import aligned, aligned_records
from flitlab.sim.engines.compiled.records import PACKET

# Entries of Mailboxes.private: the partition, the set in use, the first mailbox to write less 1, barriers so far.
PARTITION, ACTIVE_SET, OUTBOX_BASE, BARRIERS_PASSED = range(4)

# Columns of Mailboxes.count. With a program, each partition publishes in the mailbox to itself whether it has packets
# (ACTIVE), and the tick of its next event.
PACKETS, CONTROL, ACTIVE, NEXT_EVENT = range(4)

_LINE = 8  # int64s in a cache line


class Mailboxes(NamedTuple):
    """Mailboxes of all partitions, as one of them sees them.

    The mailbox from partition a to b in set s is number (s * partitions + a) * partitions + b.

    partitions: how many. lookahead: ticks of a window. private: int64, of this partition, see above. barrier: of all
    threads. count: int64 [mailboxes, 8], entries in each. packets: PACKET [mailboxes * entries]; ``next`` is the tick
    at which the packet is ready to be routed. control: uint32 [mailboxes * entries, 4]: (credit index, tick from which
    on the credits are usable, flits), or (send, tick at which its message will have been delivered, 0).
    """

    partitions: int
    lookahead: int
    private: Ints
    barrier: Ints
    count: Ints
    packets: np.ndarray
    control: Words


def make_mailboxes(partitions: int, lookahead: int, packets: int, control: int) -> list[Mailboxes]:
    """Make empty mailboxes.

    Parameters
    ----------
    partitions: how many.
    lookahead: ticks of a window.
    packets, control: capacity of a mailbox, in entries.

    Returns
    -------
    The mailboxes as each partition sees them.
    """
    mailbox_count, barrier = 2 * partitions * partitions, make_barrier(partitions)
    count = np.zeros((mailbox_count, _LINE), np.int64)
    packet_entries, control_entries = (
        aligned_records(mailbox_count * packets, PACKET),
        aligned(mailbox_count * control, 4, np.uint32),
    )
    private = [np.array([partition, 0, partition * partitions - 1, 0], np.int64) for partition in range(partitions)]
    return [
        Mailboxes(
            partitions=partitions, lookahead=lookahead, private=own, barrier=barrier, count=count,
            packets=packet_entries, control=control_entries
        )
        for own in private
    ]  # fmt: skip


def no_mailboxes() -> Mailboxes:
    """Make the mailboxes of a network with a single partition, which sends nothing."""
    return make_mailboxes(1, LONGEST_RUN, 0, 0)[0]


@inline
def append_entry(mailboxes, entries, remote_partition, kind):
    """Append an entry of a kind to the mailbox to partition ``remote_partition`` - 1, and return its index.

    Parameters
    ----------
    mailboxes: of this partition.
    entries: the array of that kind, ``packets`` or ``control``.
    remote_partition: int64, the receiving partition plus 1.
    kind: PACKETS or CONTROL.

    Returns
    -------
    int64, index in ``entries``.
    """
    mailbox = mailboxes.private[OUTBOX_BASE] + remote_partition
    position = mailboxes.count[mailbox, kind]
    mailboxes.count[mailbox, kind] = position + 1
    return first_entry(mailboxes, entries, mailbox) + position


@inline
def first_entry(mailboxes, entries, mailbox):
    """Return the index of the first entry of a mailbox.

    Parameters
    ----------
    mailboxes: of this partition.
    entries: the array of a kind.
    mailbox: int64, its number.
    """
    return mailbox * (len(entries) // len(mailboxes.count))


@inline
def synchronize(mailboxes):
    """Wait at the barrier for all partitions; False if the run is cancelled."""
    mailboxes.private[BARRIERS_PASSED] += 1
    return wait_at_barrier(mailboxes.barrier, mailboxes.private[BARRIERS_PASSED] * mailboxes.partitions)


@inline
def mailbox_from(mailboxes, partition):
    """Return the mailbox that a partition has written for this one."""
    return (
        mailboxes.private[ACTIVE_SET] * mailboxes.partitions + partition
    ) * mailboxes.partitions + mailboxes.private[PARTITION]


@inline
def swap_mailboxes(mailboxes):
    """Switch to the other set of mailboxes, and empty those that this partition writes."""
    mailboxes.private[ACTIVE_SET] = 1 - mailboxes.private[ACTIVE_SET]
    mailboxes.private[OUTBOX_BASE] = (
        mailboxes.private[ACTIVE_SET] * mailboxes.partitions + mailboxes.private[PARTITION]
    ) * mailboxes.partitions - 1
    for remote_partition in range(1, mailboxes.partitions + 1):
        mailboxes.count[mailboxes.private[OUTBOX_BASE] + remote_partition, PACKETS] = 0
        mailboxes.count[mailboxes.private[OUTBOX_BASE] + remote_partition, CONTROL] = 0


@inline
def publish_next_event(mailboxes, active, event):
    """Publish, before a barrier, whether this partition has packets, and the tick of its next event.

    Parameters
    ----------
    mailboxes: of this partition.
    active: int64, 1 if this partition has packets.
    event: int64, tick.
    """
    for remote_partition in range(1, mailboxes.partitions + 1):
        active |= mailboxes.count[mailboxes.private[OUTBOX_BASE] + remote_partition, PACKETS] > 0
    mailbox = mailbox_from(mailboxes, mailboxes.private[PARTITION])
    mailboxes.count[mailbox, ACTIVE] = active
    mailboxes.count[mailbox, NEXT_EVENT] = event


@inline
def earliest_event(mailboxes):
    """Return, after a barrier, the earliest event of all partitions; 0 if any has packets."""
    earliest, active = np.int64(LONGEST_RUN), np.int64(0)
    for partition in range(mailboxes.partitions):
        mailbox = (mailboxes.private[ACTIVE_SET] * mailboxes.partitions + partition) * mailboxes.partitions + partition
        active |= mailboxes.count[mailbox, ACTIVE]
        earliest = min(earliest, mailboxes.count[mailbox, NEXT_EVENT])
    return np.int64(0) if active else earliest
