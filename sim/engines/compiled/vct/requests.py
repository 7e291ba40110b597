# SPDX-License-Identifier: Apache-2.0
"""Requests of head packets for an output, in order of age.

A request is two int64s: an age key, and the packed VC range and length of the packet. The first INLINE_REQUESTS lie in
the output's cache line, the others in ``VctState.requests`` behind all outputs. The age key is
:func:`~flitlab.models.rules.allocate.age_key` of the tick from which on the packet may be granted and its input VC;
with ``by_rank``, of its rank and its input VC: the rank is the tick of its creation, or follows from its class of
traffic.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.allocate import age_key
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.route import usable_ports
from flitlab.models.rules.tables import Selection, VcPolicy
from flitlab.models.rules.vc import NOT_HELD, allowed_vcs
from flitlab.sim.engines.compiled.flit_times import ALWAYS, fed_from, held_ticks
from flitlab.sim.engines.compiled.records import NONE, Tick, vcs_of_packet
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.compiled.vct.credits import select_downstream_vc
from flitlab.sim.engines.compiled.vct.state import (
    INLINE_REQUESTS,
    OUTPUT_WORDS,
    REQUESTS_WORD,
)

# A request, packed: the first allowed VC of the downstream input, the number of allowed VCs, the flits of the packet.
_VC_COUNT_SHIFT, _FLITS_SHIFT = 32, 40
_VC_MASK, _COUNT_MASK = 0xFFFFFFFF, 0xFF

_ONE = np.uint64(1)


@inline
def downstream_input_of_output(state, output):
    """Return the input at the end of an output; NONE if the output ejects."""
    return np.int64(state.output[output].downstream_input)


@inline
def channel_of_output(state, output):
    """Return the channel of an output; NONE if the output ejects."""
    return np.int64(state.output[output].channel)


@inline
def allowed_downstream_vc_range(const, state, packet, output):
    """Return the VCs of the downstream input that the VC policy allows a packet: (first, one past the last).

    VCs are numbers in that input.
    """
    record = state.pool.packet[packet]
    low, high = vcs_of_packet(const.net.classes, const, record)
    channel = channel_of_output(state, output)
    src_switch = const.net.host_switch[record.src_host]
    dst_switch = const.net.ejection_switch[record.dst_host]
    input_vc = np.int64(record.input_vc)
    switch = np.int64(state.vc[input_vc].switch)
    route, hop = np.int64(record.route), np.int64(record.hop)
    port = output - const.net.ports.out_base[switch]
    held_vc = input_vc % const.vcs - low if const.policy == VcPolicy.RISING and hop > 0 else NOT_HELD
    first_vc, end_vc = allowed_vcs(
        const.routes,
        route,
        const.policy,
        high - low,
        hop,
        const.rings,
        src_switch,
        dst_switch,
        channel,
        switch,
        port,
        held_vc,
    )
    return low + first_vc, low + end_vc


@inline
def allowed_ports_of_adaptive_packet(const, state, packet, switch):
    """Return the ports that an adaptive packet may take at a switch, uint64, a bit each."""
    record = state.pool.packet[packet]
    dst_switch = np.int64(const.net.ejection_switch[record.dst_host])
    route, hop = np.int64(record.route), np.int64(record.hop)
    return usable_ports(const.routes, route, hop, switch, dst_switch)


@inline
def _pack_vc_range_and_flits(const, state, packet, output):
    """Pack the request of a packet for an output; a request for an ejection channel has no VC."""
    flits = np.int64(state.pool.packet[packet].flits) << _FLITS_SHIFT
    if downstream_input_of_output(state, output) == NONE:
        return flits
    first_vc, end_vc = allowed_downstream_vc_range(const, state, packet, output)
    return flits | ((end_vc - first_vc) << _VC_COUNT_SHIFT) | first_vc


@inline
def select_downstream_vc_for_request(const, state, output, request):
    """Select the downstream VC for a packed request, among those that the request allows.

    Parameters
    ----------
    output: int64, the output that is requested; it does not eject.
    request: int64, packed first VC, number of VCs, and flits (:func:`read_vc_range_and_flits_of_request`).

    Returns
    -------
    (VC, score), int64, as of :func:`~flitlab.sim.engines.compiled.vct.credits.select_downstream_vc`; the VC is NONE if
    none has space.
    """
    first_vc, end_vc = unpack_vc_range_of_request(request)
    return select_downstream_vc(
        const, state, const.reserved_vcs, output, first_vc, end_vc, unpack_packet_flits_of_request(request)
    )


@inline
def unpack_vc_range_of_request(request):
    """Unpack the VCs of a request: (first, one past the last)."""
    first_vc = request & _VC_MASK
    return first_vc, first_vc + ((request >> _VC_COUNT_SHIFT) & _COUNT_MASK)


@inline
def unpack_packet_flits_of_request(request):
    """Unpack the length of the packet of a request, in flits."""
    return request >> _FLITS_SHIFT


@inline
def array_index_of_request(const, output, i):
    """Return the index in ``VctState.requests`` of the age key of request ``i`` of an output.

    The packed request follows its key. Both possible indices are computed: a branch would often be mispredicted.
    """
    inline_index, overflow_index = (
        output * OUTPUT_WORDS + REQUESTS_WORD,
        output * const.overflow_words + const.overflow_start,
    )
    return np.uint64((inline_index if i < INLINE_REQUESTS else overflow_index) + 2 * i)


@inline
def read_age_key_of_request(const, state, output, i):
    """Read the age key of request ``i`` of an output."""
    return state.requests[array_index_of_request(const, output, i)]


@inline
def read_vc_range_and_flits_of_request(const, state, output, i):
    """Read the packed request ``i`` of an output."""
    return state.requests[array_index_of_request(const, output, i) + _ONE]


@inline
def _write_request_at_index(const, state, output, i, age, request):
    """Write request ``i`` of an output."""
    index = array_index_of_request(const, output, i)
    state.requests[index] = age
    state.requests[index + _ONE] = request


@inline
def _copy_request_to_index(const, state, output, i, to):
    """Copy request ``i`` of an output to position ``to``."""
    _write_request_at_index(
        const,
        state,
        output,
        to,
        read_age_key_of_request(const, state, output, i),
        read_vc_range_and_flits_of_request(const, state, output, i),
    )


@inline
def eligible_tick_of_request(const, state, age):
    """Return the tick from which on the head packet with an age key may be granted."""
    return np.int64(state.vc[age & _VC_MASK].eligible_at) if const.by_rank else age >> 32


@inline
def is_older_age_key(const, state, age, other_age):
    """Tell whether one age key comes before another."""
    if const.by_rank and age >> 32 == other_age >> 32:
        vc, other_vc = age & _VC_MASK, other_age & _VC_MASK
        return age_key(eligible_tick_of_request(const, state, age), vc) < age_key(
            eligible_tick_of_request(const, state, other_age), other_vc
        )
    return age < other_age


@inline
def insert_request_and_schedule_output(const, state, packet, output, eligible_at, age):
    """Insert the request of a head packet, in order of age, and schedule the output.

    Parameters
    ----------
    packet, output: int64.
    eligible_at: int64, tick from which on the packet may be granted.
    age: int64, its age key.
    """
    i = np.int64(state.output[output].requests_waiting)
    state.output[output].requests_waiting = i + 1
    while i > 0 and is_older_age_key(const, state, age, read_age_key_of_request(const, state, output, i - 1)):
        _copy_request_to_index(const, state, output, i - 1, i)
        i -= 1
    _write_request_at_index(const, state, output, i, age, _pack_vc_range_and_flits(const, state, packet, output))
    schedule(state.output_wheel, output, max(eligible_at, np.int64(state.output[output].busy_until)))


@inline
def remove_request_at_index(const, state, output, i):
    """Remove request ``i`` of an output."""
    count = np.int64(state.output[output].requests_waiting) - 1
    state.output[output].requests_waiting = count
    while i < count:
        _copy_request_to_index(const, state, output, i + 1, i)
        i += 1


@inline
def remove_request_with_age_key(const, state, output, age):
    """Remove the request with an age key from an output."""
    for i in range(np.int64(state.output[output].requests_waiting)):
        if read_age_key_of_request(const, state, output, i) == age:
            remove_request_at_index(const, state, output, i)
            return


@inline
def count_older_requests_of_output(const, state, output, age):
    """Count the requests of an output that come before an age key."""
    i = 0
    while i < state.output[output].requests_waiting and is_older_age_key(
        const, state, read_age_key_of_request(const, state, output, i), age
    ):
        i += 1
    return i


@inline
def keep_tail_arrival(output_ticks, const, state, packet, output, ready_at):
    """Keep the tick at which the tail of a packet arrives, where channels differ in speed.

    Parameters
    ----------
    output_ticks: ``const.output_ticks``.
    packet: int64.
    output: int64, through which it is sent; of a packet that its host sends, the output to that host.
    ready_at: int64, tick at which its header will have been read.
    """
    if output_ticks is not None:
        record = state.pool.packet[packet]
        behind = held_ticks(output_ticks, output, np.int64(record.flits) - 1)
        record.arrives_at = ready_at - const.header_ticks + behind


@inline
def head_packet_feeds_from(output_ticks, state, packet, output):
    """Return the tick from which the head packet of an input VC never starves an output (``fed_from``).

    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is None:
        return ALWAYS
    record = state.pool.packet[packet]
    return fed_from(output_ticks, output, np.int64(record.arrives_at), np.int64(record.flits))


@inline
def head_packet_is_fed_from(output_ticks, const, state, vc, packet):
    """Return the tick from which the head packet of an input VC never starves one of its allowed outputs.

    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is None:
        return ALWAYS
    output = np.int64(state.pool.packet[packet].output)
    if const.rule != Selection.ADAPTIVE or output != NONE:
        return head_packet_feeds_from(output_ticks, state, packet, output)
    switch, earliest = np.int64(state.vc[vc].switch), Tick.NEVER
    ports = allowed_ports_of_adaptive_packet(const, state, packet, switch)
    while not is_empty(ports):
        output = np.int64(const.net.ports.out_base[switch]) + lowest(ports)
        ports = without_lowest(ports)
        earliest = min(earliest, head_packet_feeds_from(output_ticks, state, packet, output))
    return earliest


@inline
def _rank_of_packet(classes, record):
    """Return the rank of a packet: the tick of its creation, or a number that is 0 for the greatest priority.

    classes: ``const.net.classes``. record: of the packet.
    """
    if classes is None:
        return np.int64(record.created_at)
    rank = classes.rank[np.int64(record.sequence) % classes.class_count]
    return rank if classes.by_class else np.int64(record.created_at)


@inline
def age_key_of_head_packet(const, record, vc, eligible_at):
    """Return the age key of the requests of the head packet of an input VC.

    Parameters
    ----------
    record: of the packet.
    vc: int64.
    eligible_at: int64, tick from which on the packet may be granted.
    """
    return age_key(_rank_of_packet(const.net.classes, record) if const.by_rank else eligible_at, vc)


@inline
def insert_requests_of_head_packet(const, state, vc, packet, eligible_at):
    """Let the head packet of an input VC request its output, or each allowed output if it is adaptive.

    Parameters
    ----------
    vc, packet: int64.
    eligible_at: int64, tick from which on it may be granted, unless it would starve its output.
    """
    record = state.pool.packet[packet]
    eligible_at = max(eligible_at, head_packet_is_fed_from(const.output_ticks, const, state, vc, packet))
    state.vc[vc].eligible_at = eligible_at
    age = age_key_of_head_packet(const, record, vc, eligible_at)
    if const.rule == Selection.ADAPTIVE and record.output == NONE:
        switch = np.int64(state.vc[vc].switch)
        base = const.net.ports.out_base[switch]
        ports = allowed_ports_of_adaptive_packet(const, state, packet, switch)
        while not is_empty(ports):
            output = base + lowest(ports)
            ports = without_lowest(ports)
            insert_request_and_schedule_output(const, state, packet, output, eligible_at, age)
    else:
        insert_request_and_schedule_output(const, state, packet, np.int64(record.output), eligible_at, age)
