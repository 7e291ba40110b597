# SPDX-License-Identifier: Apache-2.0
"""The set of allowed ports for each pair of switches, in as few bytes as the ports need.

With tables, each hop reads one set at a random address. The cost of a look-up is a cache miss, so a smaller table is
faster. Sets of up to 8 ports take 1 byte, of up to 16 two, and so on.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from flitlab.models.arrays import Bytes, Int, Masks
from flitlab.models.jit import kernel
from flitlab.models.threads import map_row_blocks

_WORD = 8  # bytes that are read at once


class PortSets(NamedTuple):
    """Sets of ports for pairs of switches.

    bytes: uint8 [switches * switches * width + 7], the sets row by row, low byte first, padded for the last 8-byte
    read. width: bytes of a set. switches: their number. mask: uint64, the bits of a set.
    """

    bytes: Bytes
    width: int
    switches: int
    mask: np.uint64


def pack_ports(ports: Masks) -> PortSets:
    """Pack sets of ports.

    Parameters
    ----------
    ports: uint64 [switches, switches], a bit each.

    Returns
    -------
    The packed sets.
    """
    width = max(1, -(-int(ports.max(initial=0)).bit_length() // 8))
    sets = np.zeros(ports.size * width + _WORD - 1, np.uint8)
    map_row_blocks(lambda first, last: _pack(ports[first:last], sets, first * len(ports) * width, width), len(ports))
    return PortSets(sets, width, len(ports), np.uint64(2 ** (8 * width) - 1))


def _pack(ports: Masks, sets: Bytes, offset: int, width: int) -> None:
    """Pack rows of sets of ports into ``sets`` from a place on."""
    for row in ports:
        words = np.ascontiguousarray(row, "<u8").view(np.uint8).reshape(-1, _WORD)
        for byte in range(width):  # a copy of many short rows takes twice as long
            sets[offset + byte : offset + len(row) * width : width] = words[:, byte]
        offset += len(row) * width


@intrinsic
def _word_at(typingctx: Any, array: Any, offset: Any) -> Any:
    """The eight bytes of a uint8 array from an offset on, low byte first, as one number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = context.make_array(array)(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(base, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(array, types.int64), codegen


@kernel
def ports_towards(sets: PortSets, dst_switch: Int, switch: Int) -> np.uint64:
    """The ports by which a packet for a switch may leave the present one: uint64, a bit each.

    Parameters
    ----------
    sets: the sets of ports.
    dst_switch: its destination switch.
    switch: its present switch.
    """
    return _word_at(sets.bytes, set_offset(sets, dst_switch, switch)) & sets.mask


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
    return switch != dst_switch and ports_towards(sets, dst_switch, switch) == 0
