# SPDX-License-Identifier: Apache-2.0
"""The set of allowed ports for each pair of switches: tables, and tables in as few bytes as the ports need.

A table is uint64 [t, v], bit p of entry [t, v] for port p of switch v; uint64 [t, v, 2] in a network with over 64
channels out of a switch, where a set is two masks. Functions serve both.

With packed tables, each hop reads one set at a random address. The cost of a look-up is a cache miss, so a smaller
table is faster. Sets of up to 8 ports take 1 byte, of up to 16 two, and so on.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from flitlab.models.arrays import Bools, Bytes, Int, Integers, Masks, PortSet
from flitlab.models.jit import kernel
from flitlab.models.jit.intrinsics import BaseContext, Context, Intrinsic, IRBuilder, Signature, Value, Values
from flitlab.models.rules.bits import WORD, integer_of, is_empty, ports_of
from flitlab.models.threads import map_row_blocks

_BYTES = WORD // 8  # of a mask


def table_shape(switches: int, degree: int) -> tuple[int, ...]:
    """The shape of a table of port sets.

    Parameters
    ----------
    switches: their number.
    degree: most channels out of a switch.
    """
    return (switches, switches) if degree <= WORD else (switches, switches, 2)


def allows(ports: Masks, t: Integers | Int, v: Integers | Int, port: Integers | Int) -> Bools:
    """Whether the set of each (t, v) has a port.

    Parameters
    ----------
    ports: uint64 [switches, switches] or [switches, switches, 2], a table of port sets.
    t, v, port: integers, of shapes that are broadcast.
    """
    bit = np.asarray(port, np.uint64)
    if ports.ndim == 2:
        masks = ports[t, v]
    else:
        word, bit = np.divmod(bit, np.uint64(WORD))
        masks = ports[t, v, word]
    allowed: Bools = (masks >> bit & np.uint64(1)).astype(bool)
    return allowed


def allow(ports: Masks, t: Integers | Int, v: Integers | Int, port: Integers | Int) -> None:
    """Add a port to the set of each (t, v).

    Parameters
    ----------
    ports: uint64 [switches, switches] or [switches, switches, 2], a table of port sets, changed in place.
    t, v, port: integers, of shapes that are broadcast.
    """
    word, bit = np.divmod(np.asarray(port, np.uint64), np.uint64(WORD))
    np.bitwise_or.at(ports, tuple(np.broadcast_arrays(t, v, word))[: ports.ndim], np.uint64(1) << bit)


@kernel
def ports_at(row: Masks, switch: Int) -> PortSet:
    """The set of a switch in a row of a table, uint64 [switches] or [switches, 2]."""
    if row.ndim == 1:
        return row[switch]
    return row[switch, 0], row[switch, 1]


@kernel
def set_ports(row: Masks, switch: Int, ports: PortSet) -> None:
    """Set the set of a switch in a row of a table, uint64 [switches] or [switches, 2]."""
    if row.ndim == 1:
        row[switch] = ports
    else:
        row[switch, 0], row[switch, 1] = ports  # type: ignore[misc]  # as the row is wide


class PortSets(NamedTuple):
    """Sets of ports for pairs of switches.

    bytes: uint8 [switches * switches * width + 7], the sets row by row, low byte first, padded for the last 8-byte
    read (15 and 16-byte in a wide network). width: bytes of a set. switches: their number. mask: the bits of a set.
    """

    bytes: Bytes
    width: int
    switches: int
    mask: PortSet


def pack_ports(ports: Masks) -> PortSets:
    """Pack sets of ports.

    Parameters
    ----------
    ports: uint64 [switches, switches] or [switches, switches, 2], a table of port sets.

    Returns
    -------
    The packed sets.
    """
    words = 1 if ports.ndim == 2 else ports.shape[2]
    low, high = int(ports.max(initial=0)), int(ports[..., 1].max(initial=0)) if words > 1 else 0
    width = _BYTES + -(-high.bit_length() // 8) if high else max(1, -(-low.bit_length() // 8))
    sets = np.zeros(len(ports) ** 2 * width + words * _BYTES - 1, np.uint8)
    map_row_blocks(lambda first, last: _pack(ports[first:last], sets, first * len(ports) * width, width), len(ports))
    bits = 2 ** (8 * width) - 1
    mask = np.uint64(bits & (1 << WORD) - 1)
    return PortSets(sets, width, len(ports), (mask, np.uint64(bits >> WORD)) if words > 1 else mask)


def empty_row(sets: PortSets, switches: int) -> Masks:
    """A row of empty sets, as wide as packed ones.

    Parameters
    ----------
    sets: packed sets.
    switches: number of sets.
    """
    return np.zeros((switches, 2) if isinstance(sets.mask, tuple) else switches, np.uint64)


def _pack(ports: Masks, sets: Bytes, offset: int, width: int) -> None:
    """Pack rows of sets of ports into ``sets`` from a place on."""
    for row in ports:
        words = np.ascontiguousarray(row, "<u8").view(np.uint8).reshape(len(row), -1)
        for byte in range(width):  # a copy of many short rows takes twice as long
            sets[offset + byte : offset + len(row) * width : width] = words[:, byte]
        offset += len(row) * width


@intrinsic
def _set_at(typingctx: Context, array: types.Type, offset: types.Type, mask: types.Type) -> Intrinsic:
    """The set of ports in a uint8 array from an offset on, low byte first, with the bits of a mask of as many words."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Values) -> Value:
        base = context.make_array(array)(context, builder, args[0]).data
        bits = integer_of(builder, args[2])
        address = builder.bitcast(builder.gep(base, [args[1]]), bits.type.as_pointer())
        return ports_of(builder, builder.and_(builder.load(address, align=1), bits))

    return mask(array, types.int64, mask), codegen


@kernel
def ports_towards(sets: PortSets, dst_switch: Int, switch: Int) -> PortSet:
    """The set of ports by which a packet for a switch may leave the present one.

    Parameters
    ----------
    sets: the sets of ports.
    dst_switch: its destination switch.
    switch: its present switch.
    """
    return _set_at(sets.bytes, set_offset(sets, dst_switch, switch), sets.mask)


@kernel
def set_offset(sets: PortSets, dst_switch: Int, switch: Int) -> int:
    """The offset in ``sets.bytes`` of the ports from a switch towards another.

    Parameters
    ----------
    sets: the sets of ports.
    dst_switch: its destination switch.
    switch: its present switch.
    """
    return np.int64(dst_switch * sets.switches + switch) * sets.width


@kernel
def has_no_port(sets: PortSets, dst_switch: Int, switch: Int) -> bool:
    """Whether a switch has no port towards another switch.

    Parameters
    ----------
    sets: the sets of ports.
    dst_switch: its destination switch.
    switch: its present switch.
    """
    return switch != dst_switch and is_empty(ports_towards(sets, dst_switch, switch))
