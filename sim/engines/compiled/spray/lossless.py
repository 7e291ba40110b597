# SPDX-License-Identifier: Apache-2.0
"""State and events of lossless queues: pauses of servers, ends of service, and arrivals.

Events of a tick come in the order in which they were scheduled. Hence each is an entry of a calendar, and servers are
not settled later, as those of other queues are (:mod:`flitlab.sim.engines.compiled.spray.links`).
"""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inline
from flitlab.models.rules.lossless import Ports
from flitlab.models.rules.priority_classes import Service
from flitlab.models.rules.watchdog import make_watchdog
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.flow_links import links_of_flows
from flitlab.sim.engines.compiled import State
from flitlab.sim.engines.compiled.memory import aligned_records
from flitlab.sim.engines.compiled.pool import NONE, full_stack
from flitlab.sim.engines.compiled.transport import Growth
from flitlab.sim.engines.transport.spray import PauseCause, cause_table, outputs_of_switches


class _LinkEvent(NamedTuple):
    """Kinds of events of a link, PAUSE of a port. It also stands for RESUME: they alternate."""

    PAUSE: np.int64 = np.int64(0)
    SERVICE_END: np.int64 = np.int64(1)
    ARRIVAL: np.int64 = np.int64(2)


LinkEvent = _LinkEvent()

_KIND_BITS, _KIND_MASK = np.int64(2), np.int64(3)
_ONE, _BIT_MASK, _WORD_SHIFT = np.uint64(1), np.uint64(63), np.uint64(6)

_EVENTS_PER_LINK = 8
"""Unused entries per link, or port: more than the events that a tick adds."""


class Classes(NamedTuple):
    """State of several classes.

    A port is a link and a class: ``link * count + class``. count: of the classes. of_flow: int64 [flows], the class of
    each flow. pauses, limit: of :class:`~flitlab.models.transport.lossless.ClassSettings`. queue: LINK [ports], whose
    fields are those of a class: ``data_bytes``, the list ``DATA``, and at hosts the list ``CONTROL``.
    """

    count: int
    of_flow: Ints
    pauses: Ints
    limit: Ints
    service: Service
    queue: np.ndarray


class Held(NamedTuple):
    """Flows that pauses held: with a packet in the queue of a paused channel, or ready at a paused host, as it resumes.

    links: int64 [flows, columns], of :func:`~flitlab.models.transport.flow_links.links_of_flows`. ticks: int64 [flows,
    columns], ticks of the pauses of that link that held the flow. last: int64 [flows + 1], number of the last pause
    that held the flow, and how many have ended.
    """

    links: Ints
    ticks: Ints
    last: Ints


class Lossless(NamedTuple):
    """State of lossless queues.

    With several classes a port is a link and a class, else a link. ports: PORT [ports], and buffers: of switches, None
    where ports share none (:mod:`flitlab.models.rules.lossless`).
    mark_span: int64 [links]; mark_own: whether a packet counts itself in the queue; at_start: whether packets are
    released at the start of their service; strict: whether control packets are a class of their own
    (:class:`~flitlab.models.transport.lossless.PortSettings`). totals: int64 [2], of
    :func:`~flitlab.models.rules.lossless.switch_pause`. watchdog: a
    :class:`~flitlab.models.rules.watchdog.Watchdog`, None without. The calendar of events has the buckets of the state:
    ``bucket`` is the first entry of a tick, last: uint32 [ticks] its last one. event: int64 [entries], link and kind;
    next_event: uint32 [entries], the next entry of the tick; free: uint32 [entries + 1], unused entries as in a
    :class:`~flitlab.sim.engines.compiled.pool.Pool`. outputs, first_output: of
    :func:`~flitlab.sim.engines.transport.spray.outputs_of_switches`. cause: int64 [entries, PauseCause], channels and
    what paused them, as many as ``causes[0]``; next_cause: int64 [entries], the next one of a channel; announced,
    current, first_cause: int64 [ports], the cause of the last PAUSE sent, that of the pause that lasts, and the first
    one of a channel, NONE if there is none. held: a :class:`Held`, None where links of flows are not known. frames:
    int64 [ports], PAUSE and RESUME frames in flight; stale: int64
    [ports, kinds], events that are to be ignored since the link failed, arrivals by link.
    """

    ports: Ports
    buffers: Any
    mark_span: Ints
    mark_own: bool
    at_start: bool
    strict: bool
    totals: Ints
    watchdog: Any
    last: Words
    event: Ints
    next_event: Words
    free: Words
    outputs: Ints
    first_output: Ints
    cause: Ints
    next_cause: Ints
    causes: Ints
    announced: Ints
    current: Ints
    first_cause: Ints
    held: Any
    frames: Ints
    stale: Ints


def make_lossless(session: SpraySession, ticks: int) -> Lossless | None:
    """Make the state of the lossless queues of a session at tick 0; None if it has none.

    ticks: horizon of the calendar.
    """
    if session.ports is None:
        return None
    settings = session.ports
    ports, buffers = settings.state()
    number, count = len(ports), settings.class_count
    entries = 2 * _EVENTS_PER_LINK * number
    outputs, first_output = outputs_of_switches(session.topology)
    watchdog, hosts = None, session.topology.hosts
    if settings.watchdog is not None:
        channels = session.topology.channels
        watchdog = make_watchdog(*settings.watchdog, number, count * channels, count * (channels + hosts))
    return Lossless(
        ports=ports, buffers=buffers, mark_span=settings.mark_span.copy(),
        mark_own=settings.mark_own, at_start=settings.at_start, strict=settings.strict,
        totals=np.zeros(2, np.int64), watchdog=watchdog,
        last=np.zeros(ticks, np.uint32), event=np.zeros(entries, np.int64),
        next_event=np.zeros(entries, np.uint32), free=full_stack(entries), outputs=outputs, first_output=first_output,
        cause=np.zeros((entries, len(PauseCause)), np.int64), next_cause=np.zeros(entries, np.int64),
        causes=np.zeros(1, np.int64), announced=np.full(number, NONE), current=np.full(number, NONE),
        first_cause=np.full(number, NONE), held=make_held(session), frames=np.zeros(number, np.int64),
        stale=np.zeros((number, 3), np.int64),
    )  # fmt: skip


def make_classes(session: SpraySession, link: Any) -> Classes | None:
    """Make the state of several classes at tick 0; None where there is one.

    link: LINK, the type of the records of links.
    """
    settings = None if session.ports is None else session.ports.classes
    if settings is None:
        return None
    queue = aligned_records(len(settings.limit), link)
    queue["first"] = NONE
    return Classes(
        count=len(settings.names), of_flow=settings.of_flow, pauses=settings.pauses, limit=settings.limit,
        service=settings.service(), queue=queue,
    )  # fmt: skip


def make_held(session: SpraySession) -> Held | None:
    """Make the record of flows that pauses hold; None for programs, and where the links of flows are not known."""
    links = None if session.program is not None else links_of_flows(session)
    if links is None:
        return None
    return Held(links=links, ticks=np.zeros_like(links), last=np.zeros(len(links) + 1, np.int64))


def with_more_events(state: State) -> State:
    """Double the capacity of the calendar, and of the table of causes."""
    lossless = state.lossless
    entries, unused = len(lossless.event), lossless.free[: lossless.free[-1]]
    free = np.zeros(2 * entries + 1, np.uint32)
    free[: len(unused)] = unused
    free[len(unused) : len(unused) + entries] = np.arange(entries, 2 * entries)
    free[-1] = len(unused) + entries
    longer = {name: np.concatenate([part, np.zeros_like(part)]) for name, part in lossless._asdict().items()
              if name in ("event", "next_event", "cause", "next_cause")}  # fmt: skip
    return state._replace(lossless=lossless._replace(free=free, **longer))


def has_no_events(lossless: Lossless) -> bool:
    """Tell whether nothing is scheduled."""
    return int(lossless.free[-1]) == len(lossless.event)


@inline
def class_of(classes, flow):
    """Return the class of a flow; of a single one it is 0."""
    if classes is None:
        return np.int64(0)
    return classes.of_flow[flow]


@inline
def port_of(classes, link, number):
    """Return the port of a link, or the index of a host, for a class; of a single class it is the link."""
    if classes is None:
        return link
    return link * classes.count + number


@inline
def link_of(classes, port):
    """Return the link of a port."""
    if classes is None:
        return port
    return port // classes.count


@inline
def queue_of(classes, state, port):
    """Return the lists of packets of a port; of a single class they are those of the link."""
    if classes is None:
        return state.link[port]
    return classes.queue[port]


@inline
def add_event(lossless, const, state, tick, link, kind):
    """Schedule an event of a link.

    Parameters
    ----------
    tick: int64, later than now, within the horizon of the calendar.
    link: int64; of PAUSE the port.
    kind: of :data:`LinkEvent`.
    """
    top = len(lossless.free) - 1
    lossless.free[top] -= np.uint32(1)
    entry = np.int64(lossless.free[lossless.free[top]])
    lossless.event[entry] = link << _KIND_BITS | kind
    lossless.next_event[entry] = NONE
    bucket = np.uint64(tick & const.mask)
    if state.bucket[bucket] == NONE:
        state.bucket[bucket] = entry
        state.occupied[bucket >> _WORD_SHIFT] |= _ONE << (bucket & _BIT_MASK)
    else:
        lossless.next_event[lossless.last[bucket]] = entry
    lossless.last[bucket] = entry


@inline
def send_pause(lossless, const, state, port, now):
    """Send a PAUSE or RESUME from an input port to the server before it."""
    lossless.frames[port] += 1
    add_event(lossless, const, state, now + lossless.ports[port].delay, port, LinkEvent.PAUSE)


@inline
def is_stale(lossless, link, kind):
    """Tell whether an arrival or a frame is to be ignored, since the link has failed in between."""
    if kind == LinkEvent.PAUSE:
        lossless.frames[link] -= 1
    if lossless.stale[link, kind] == 0:
        return False
    lossless.stale[link, kind] -= 1
    return True


@inline
def take_events(const, state, tick):
    """Empty the bucket of a tick, and return its first event."""
    bucket = np.uint64(tick & const.mask)
    first = np.int64(state.bucket[bucket])
    state.bucket[bucket] = NONE
    state.occupied[bucket >> _WORD_SHIFT] &= ~(_ONE << (bucket & _BIT_MASK))
    return first


@inline
def event_of(lossless, entry):
    """Return the link of an entry, its kind and the next entry of its tick."""
    event, following = lossless.event[entry], np.int64(lossless.next_event[entry])
    return event >> _KIND_BITS, event & _KIND_MASK, following


@inline
def release_event(lossless, entry):
    """Free an entry; returns its link, its kind and the next entry of its tick."""
    top = len(lossless.free) - 1
    lossless.free[lossless.free[top]] = entry
    lossless.free[top] += np.uint32(1)
    return event_of(lossless, entry)


@inline
def is_paused(lossless, port):
    """Tell whether the server of a port is paused; never where queues are not lossless."""
    if lossless is None:
        return False
    return lossless.ports[port].paused_at >= 0


@inline
def pauses_control(lossless):
    """Tell whether a paused server sends no control packets either."""
    return True if lossless is None else not lossless.strict


@inline
def blame(lossless, port, queue):
    """Count a PAUSE for a port by its cause: the queue of a port, or NO_QUEUE."""
    entry = lossless.first_cause[port]
    while entry != NONE and lossless.cause[entry, PauseCause.QUEUE] != queue:
        entry = lossless.next_cause[entry]
    if entry == NONE:
        entry = lossless.causes[0]
        lossless.causes[0] += 1
        lossless.cause[entry, PauseCause.LINK], lossless.cause[entry, PauseCause.QUEUE] = port, queue
        lossless.next_cause[entry] = lossless.first_cause[port]
        lossless.first_cause[port] = entry
    lossless.cause[entry, PauseCause.FRAMES] += 1
    lossless.announced[port] = entry


@inline
def record_pause(lossless, port, paused, since, now):
    """Record that the server of a port was paused, or resumed after a pause since a tick."""
    if paused:
        lossless.current[port] = lossless.announced[port]
        return
    row = lossless.cause[lossless.current[port]]
    if row[PauseCause.PAUSED] == 0:
        row[PauseCause.FIRST] = since
    row[PauseCause.PAUSED] += now - since
    row[PauseCause.LAST] = now


def causes_of(lossless: Lossless | None, tick: int) -> Ints | None:
    """Return ``Counters.causes``, None without lossless queues."""
    if lossless is None:
        return None
    return cause_table(lossless.cause[: lossless.causes[0]], lossless.ports.paused_at, lossless.current, tick)


@inline
def check_event_space(lossless, state):
    """Ask for a larger calendar and table of causes if the next tick might fill one."""
    if lossless is None:
        return
    least = _EVENTS_PER_LINK * len(lossless.ports)
    if lossless.free[len(lossless.free) - 1] < least or len(lossless.cause) - lossless.causes[0] < least:
        state.growth_needed[Growth.EVENTS] = 1
