# SPDX-License-Identifier: Apache-2.0
"""What goes from one region of a network to others, each of which a thread of its own simulates.

Threads meet after every window of ``lookahead`` ticks, in which nothing that one region does reaches another, and each
takes out what the others have posted to it. There are two sets of boxes, which are used in turn, so that nobody posts
where somebody else may still be reading.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inner
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.sim.engines.compiled.barrier import make_barrier, wait_at_barrier
from flitlab.sim.engines.compiled.memory import aligned, aligned_records
from flitlab.sim.engines.compiled.records import PACKET

# Places in Mail.own: the region, which set of boxes is in use, the first box to post to less 1, and meetings so far.
PARTITION, ACTIVE_SET, OUTBOX_BASE, BARRIERS_PASSED = range(4)

# Places in Mail.count. In its box to itself a region in which hosts run a program says whether there are packets, and
# when the next event is.
PACKETS, CONTROL, ACTIVE, NEXT_EVENT = range(4)

_LINE = 8  # int64s in a cache line


class Mailboxes(NamedTuple):
    """The boxes of all regions, as one of them sees them.

    regions: how many. ahead: ticks of a window. own: int64, see above. meeting: of all threads. The box from region a
    to b of a set s is (s * regions + a) * regions + b. count: int64 [boxes, 8], what is in each. packets: PACKET [boxes
    * entries], of which ``next`` is the tick at which they are ready to be routed. notes: uint32 [boxes *
    entries, 4]: an input VC, the tick from which on room in it is usable, its flits; or a send, the tick at which all
    of its message will have been delivered, 0.
    """

    partitions: int
    lookahead: int
    private: Ints
    barrier: Ints
    count: Ints
    packets: np.ndarray
    control: Words


def make_mailboxes(partitions: int, lookahead: int, packets: int, control: int) -> list[Mailboxes]:
    """Make empty boxes as each region sees them; packets, notes: entries of a box."""
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
    """Make the mail of a network that is one region, which posts nothing."""
    return make_mailboxes(1, LONGEST_RUN, 0, 0)[0]


@inner
def append_entry(mailboxes, entries, remote_partition, kind):
    """Count one more entry of a kind in the box to region ``remote_partition`` - 1, and return its place.

    Entries: of that kind.
    """
    mailbox = mailboxes.private[OUTBOX_BASE] + remote_partition
    position = mailboxes.count[mailbox, kind]
    mailboxes.count[mailbox, kind] = position + 1
    return first_entry(mailboxes, entries, mailbox) + position


@inner
def first_entry(mailboxes, entries, mailbox):
    """Return the place of the first entry of a box; entries: of a kind."""
    return mailbox * (len(entries) // len(mailboxes.count))


@inner
def synchronize(mailboxes):
    """Wait for all regions to come to the end of their window; False if that is called off."""
    mailboxes.private[BARRIERS_PASSED] += 1
    return wait_at_barrier(mailboxes.barrier, mailboxes.private[BARRIERS_PASSED] * mailboxes.partitions)


@inner
def mailbox_from(mailboxes, partition):
    """Return the box in which another region has posted what is for this one."""
    return (
        mailboxes.private[ACTIVE_SET] * mailboxes.partitions + partition
    ) * mailboxes.partitions + mailboxes.private[PARTITION]


@inner
def swap_mailboxes(mailboxes):
    """Take the other set of boxes into use, and empty those of this region."""
    mailboxes.private[ACTIVE_SET] = 1 - mailboxes.private[ACTIVE_SET]
    mailboxes.private[OUTBOX_BASE] = (
        mailboxes.private[ACTIVE_SET] * mailboxes.partitions + mailboxes.private[PARTITION]
    ) * mailboxes.partitions - 1
    for remote_partition in range(1, mailboxes.partitions + 1):
        mailboxes.count[mailboxes.private[OUTBOX_BASE] + remote_partition, PACKETS] = 0
        mailboxes.count[mailboxes.private[OUTBOX_BASE] + remote_partition, CONTROL] = 0


@inner
def publish_next_event(mailboxes, active, event):
    """Tell the other regions, before a meeting, whether there are packets here, and when the next event is."""
    for remote_partition in range(1, mailboxes.partitions + 1):
        active |= mailboxes.count[mailboxes.private[OUTBOX_BASE] + remote_partition, PACKETS] > 0
    mailbox = mailbox_from(mailboxes, mailboxes.private[PARTITION])
    mailboxes.count[mailbox, ACTIVE] = active
    mailboxes.count[mailbox, NEXT_EVENT] = event


@inner
def earliest_event(mailboxes):
    """Return the first event of all regions, after a meeting; 0 if there are packets anywhere."""
    earliest, active = np.int64(LONGEST_RUN), np.int64(0)
    for partition in range(mailboxes.partitions):
        mailbox = (mailboxes.private[ACTIVE_SET] * mailboxes.partitions + partition) * mailboxes.partitions + partition
        active |= mailboxes.count[mailbox, ACTIVE]
        earliest = min(earliest, mailboxes.count[mailbox, NEXT_EVENT])
    return np.int64(0) if active else earliest
