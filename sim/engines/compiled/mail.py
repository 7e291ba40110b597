# SPDX-License-Identifier: Apache-2.0
"""What goes from one region of a network to others, each of which a thread of its own simulates.

Threads meet after every window of ``ahead`` ticks, in which nothing that one region does reaches another, and each
takes out what the others have posted to it. There are two sets of boxes, which are used in turn, so that nobody posts
where somebody else may still be reading.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inline
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.sim.engines.compiled.meeting import make_meeting, meet
from flitlab.sim.engines.compiled.memory import aligned, records_in_lines
from flitlab.sim.engines.compiled.records import PACKET

# Places in Mail.own: the region, which set of boxes is in use, the first box to post to less 1, and meetings so far.
REGION, SET, BOX, MEETINGS = range(4)

# Places in Mail.count. In its box to itself a region in which hosts run a program says whether there are packets, and
# when the next event is.
PACKETS, NOTES, ACTIVE, NEXT_EVENT = range(4)

_LINE = 8  # int64s in a cache line


class Mail(NamedTuple):
    """The boxes of all regions, as one of them sees them.

    regions: how many. ahead: ticks of a window. own: int64, see above. meeting: of all threads. The box from region a
    to b of a set s is (s * regions + a) * regions + b. count: int64 [boxes, 8], what is in each. packets: PACKET [boxes
    * entries], of which ``next`` is the tick at which they are ready to be routed. notes: uint32 [boxes *
    entries, 4]: an input VC, the tick from which on room in it is usable, its flits; or a send, the tick at which all
    of its message will have been delivered, 0.
    """

    regions: int
    ahead: int
    own: Ints
    meeting: Ints
    count: Ints
    packets: np.ndarray
    notes: Words


def make_mail(regions: int, ahead: int, packets: int, notes: int) -> list[Mail]:
    """Make empty boxes as each region sees them; packets, notes: entries of a box."""
    boxes, meeting = 2 * regions * regions, make_meeting(regions)
    count = np.zeros((boxes, _LINE), np.int64)
    packets_in, notes_in = records_in_lines(boxes * packets, PACKET), aligned(boxes * notes, 4, np.uint32)
    owns = [np.array([region, 0, region * regions - 1, 0], np.int64) for region in range(regions)]
    return [
        Mail(
            regions=regions, ahead=ahead, own=own, meeting=meeting, count=count, packets=packets_in, notes=notes_in
        )
        for own in owns
    ]  # fmt: skip


def no_mail() -> Mail:
    """Make the mail of a network that is one region, which posts nothing."""
    return make_mail(1, LONGEST_RUN, 0, 0)[0]


@inline
def next_entry(mail, entries, lane, kind):
    """Count one more entry of a kind in the box to region ``lane`` - 1, and return its place; entries: of that kind."""
    box = mail.own[BOX] + lane
    place = mail.count[box, kind]
    mail.count[box, kind] = place + 1
    return first_entry(mail, entries, box) + place


@inline
def first_entry(mail, entries, box):
    """Return the place of the first entry of a box; entries: of a kind."""
    return box * (len(entries) // len(mail.count))


@inline
def all_posted(mail):
    """Wait for all regions to come to the end of their window; False if that is called off."""
    mail.own[MEETINGS] += 1
    return meet(mail.meeting, mail.own[MEETINGS] * mail.regions)


@inline
def box_from(mail, region):
    """Return the box in which another region has posted what is for this one."""
    return (mail.own[SET] * mail.regions + region) * mail.regions + mail.own[REGION]


@inline
def turn_over(mail):
    """Take the other set of boxes into use, and empty those of this region."""
    mail.own[SET] = 1 - mail.own[SET]
    mail.own[BOX] = (mail.own[SET] * mail.regions + mail.own[REGION]) * mail.regions - 1
    for lane in range(1, mail.regions + 1):
        mail.count[mail.own[BOX] + lane, PACKETS] = 0
        mail.count[mail.own[BOX] + lane, NOTES] = 0


@inline
def say_whether_idle(mail, active, event):
    """Tell the other regions, before a meeting, whether there are packets here, and when the next event is."""
    for lane in range(1, mail.regions + 1):
        active |= mail.count[mail.own[BOX] + lane, PACKETS] > 0
    box = box_from(mail, mail.own[REGION])
    mail.count[box, ACTIVE] = active
    mail.count[box, NEXT_EVENT] = event


@inline
def next_in_all(mail):
    """Return the first event of all regions, after a meeting; 0 if there are packets anywhere."""
    first, active = np.int64(LONGEST_RUN), np.int64(0)
    for region in range(mail.regions):
        box = (mail.own[SET] * mail.regions + region) * mail.regions + region
        active |= mail.count[box, ACTIVE]
        first = min(first, mail.count[box, NEXT_EVENT])
    return np.int64(0) if active else first
