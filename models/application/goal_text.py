# SPDX-License-Identifier: Apache-2.0
"""Byte-wise reader of GOAL statements (:mod:`flitlab.models.application.goal`)."""

import numpy as np

from flitlab.models.application.program import Op
from flitlab.models.arrays import Bytes, Int, Ints
from flitlab.models.jit import device_function, inline

# Kinds of statements.
END, COUNT, OPEN, CLOSE, OPERATION, DEPENDENCY, WRONG = range(7)

# Fields that :func:`statement` fills; texts as begin and end offsets.
(KIND, AMOUNT, PEER, TAG, CPU, NIC, LABEL, LABEL_END, OTHER, OTHER_END, EARLY, NUMBER, FIELDS) = range(13)

# Errors of a text, in the order of FAULTS.
(
    NO_STATEMENT, NO_NUMBER, LONG, NO_TO, NO_FROM, NO_BRACE, NO_ATTRIBUTE, NO_LABEL, NO_COLON, NO_OPERATION, NO_END,
    ANY_SOURCE, ANY_TAG, TOO_LARGE, NO_COUNT, COUNT_TWICE, OUTSIDE, INSIDE, NOT_OPEN, NOT_CLOSED, NO_SUCH_RANK,
    RANK_TWICE, UNKNOWN, LABEL_TWICE,
) = range(24)  # fmt: skip

FAULTS = (
    "expected rank, calc, send, recv, a label or }",
    "expected a whole number, 0 or more",
    "the number has more than 18 digits",
    "expected to",
    "expected from",
    "expected {",
    "expected tag, cpu, nic (calc: cpu, nic), each once, or the end of the line",
    "expected a label",
    "expected :, requires or irequires after a label",
    "expected calc, send or recv",
    "expected the end of the line",
    "a receive from any rank (-1): which send it gets would depend on the network; name the rank",
    "a receive with any tag (-1): which send it gets would depend on the network; name the tag",
    "the number is too large: tags lie in 0..2147483647, cpus in 0..32767",
    "expected num_ranks and their number, 1 to 1000000, before anything else",
    "num_ranks occurs twice",
    "an operation outside of any rank",
    "a rank inside of another: a } is missing",
    "} without a rank",
    "the text ends inside of a rank: a } is missing",
    "no such rank: it is not less than num_ranks",
    "this rank occurs twice",
    "no operation of this rank has that label",
    "another operation of this rank has that label",
)

_LETTERS = b"_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SYMBOL = np.array([_LETTERS.find(byte) + 1 for byte in range(256)], np.int64)


def _code(word: str) -> int:
    """A word of at most 10 letters as a number, as in :func:`_word`."""
    code = 0
    for byte in word.encode():
        code = 64 * code + int(SYMBOL[byte])
    return code


_CALC, _SEND, _RECV, _RANK, _NUM_RANKS = map(_code, ("calc", "send", "recv", "rank", "num_ranks"))
_REQUIRES, _IREQUIRES = map(_code, ("requires", "irequires"))
_TO, _FROM, _TAG, _CPU, _NIC, _SMALL, _CAPITAL = map(_code, ("to", "from", "tag", "cpu", "nic", "b", "B"))

_SPACE, _TABULATOR, _RETURN, NEWLINE, _SLASH, _STAR, _HASH, _MINUS, _COLON, _BRACE, _CLOSING = b" \t\r\n/*#-:{}"


@inline
def _skip(text: Bytes, offset: int) -> int:
    """The first offset from ``offset`` on that is neither blank nor in a comment; line ends are not skipped."""
    end = len(text)
    while offset < end:
        byte = text[offset]
        if byte in (_SPACE, _TABULATOR, _RETURN):
            offset += 1
            continue
        if byte == _HASH or (byte == _SLASH and offset + 1 < end and text[offset + 1] == _SLASH):
            while offset < end and text[offset] != NEWLINE:
                offset += 1
        elif byte == _SLASH and offset + 1 < end and text[offset + 1] == _STAR:
            offset += 2
            while offset + 1 < end and not (text[offset] == _STAR and text[offset + 1] == _SLASH):
                offset += 1
            offset += 2
        else:
            break
    return min(offset, end)


@inline
def _word(text: Bytes, offset: int) -> tuple[Int, int]:
    """(code, end) of the word at an offset; (0, at) if there is none.

    A word has letters, digits and _, and does not begin with a digit. The code is unique for words of at most 10
    letters (64 symbols each), and none of these for longer words.
    """
    start, code = offset, np.int64(0)
    while offset < len(text) and SYMBOL[text[offset]] > 0:
        code = 64 * code + SYMBOL[text[offset]]
        offset += 1
    if offset == start or 48 <= text[start] <= 57:
        return np.int64(0), start
    return code if offset - start <= 10 else np.int64(-1), offset


@inline
def _number(text: Bytes, offset: int) -> tuple[Int, int]:
    """(number, end): -1 for a negative one, -2 for none, -3 for more than 18 digits."""
    negative = offset < len(text) and text[offset] == _MINUS
    start = offset + 1 if negative else offset
    offset, value = start, np.int64(0)
    while offset < len(text) and 48 <= text[offset] <= 57:
        value = 10 * value + (text[offset] - 48) if offset - start < 18 else np.int64(-3)
        offset += 1
    if offset == start:
        return np.int64(-2), start
    return np.int64(-1) if negative else value, offset


@inline
def _count(text: Bytes, offset: int, field: Ints, key: int) -> tuple[int, int]:
    """Read a number into ``field[key]``: (next offset, -1), or (offset of the number, error)."""
    offset = _skip(text, offset)
    value, end = _number(text, offset)
    if value == -3:
        return offset, LONG
    if value < 0:
        return offset, NO_NUMBER
    field[key] = value
    return end, -1


@device_function
def _attributes(text: Bytes, offset: int, field: Ints, tags: bool) -> tuple[int, int]:
    """Read the attributes of an operation, in any order: tag t, cpu c, nic n. (next offset, -1), or (offset, error)."""
    field[TAG], field[CPU], field[NIC] = -1, -1, -1
    while True:
        offset = _skip(text, offset)
        code, end = _word(text, offset)
        if code == 0:
            break
        key = TAG if code == _TAG and tags else CPU if code == _CPU else NIC if code == _NIC else KIND
        if key == KIND or field[key] != -1:
            return offset, NO_ATTRIBUTE
        value_at = _skip(text, end)
        if key == TAG and _number(text, value_at)[0] == -1:
            return value_at, ANY_TAG
        offset, fault = _count(text, end, field, key)
        if fault >= 0:
            return offset, fault
        if field[key] > (0x7FFFFFFF if key == TAG else 0x7FFF):
            return value_at, TOO_LARGE
    for key in (TAG, CPU, NIC):
        field[key] = max(field[key], 0)
    return offset, -1


@device_function
def _operation(text: Bytes, offset: int, code: Int, field: Ints) -> tuple[int, int]:
    """Read an operation after its first word, of that code. (next offset, -1), or (offset, error)."""
    offset, fault = _count(text, offset, field, AMOUNT)
    if fault >= 0:
        return offset, fault
    field[PEER] = -1
    if code == _CALC:
        field[KIND] = Op.CALC
        return _attributes(text, offset, field, False)
    field[KIND] = Op.SEND if code == _SEND else Op.RECV
    offset = _skip(text, offset)
    word, end = _word(text, offset)
    if word in (_SMALL, _CAPITAL):
        offset = _skip(text, end)
        word, end = _word(text, offset)
    if word != (_TO if code == _SEND else _FROM):
        return offset, NO_TO if code == _SEND else NO_FROM
    value_at = _skip(text, end)
    if code == _RECV and _number(text, value_at)[0] == -1:
        return value_at, ANY_SOURCE
    offset, fault = _count(text, end, field, PEER)
    if fault >= 0:
        return offset, fault
    return _attributes(text, offset, field, True)


@device_function
def _labelled(text: Bytes, offset: int, field: Ints) -> tuple[int, int]:
    """Read a statement after its label. (kind, next offset), or (WRONG + error, offset)."""
    offset = _skip(text, offset)
    if offset < len(text) and text[offset] == _COLON:
        offset = _skip(text, offset + 1)
        code, end = _word(text, offset)
        if code not in (_CALC, _SEND, _RECV):
            return WRONG + NO_OPERATION, offset
        offset, fault = _operation(text, end, code, field)
        return (OPERATION if fault < 0 else WRONG + fault), offset
    code, end = _word(text, offset)
    if code != _REQUIRES and code != _IREQUIRES:
        return WRONG + NO_COLON, offset
    field[EARLY] = code == _IREQUIRES
    offset = _skip(text, end)
    code, end = _word(text, offset)
    if code == 0:
        return WRONG + NO_LABEL, offset
    field[OTHER], field[OTHER_END] = offset, end
    return DEPENDENCY, end


@device_function
def statement(text: Bytes, offset: int, field: Ints) -> tuple[int, int]:
    """Read the next statement at or after an offset.

    Parameters
    ----------
    text: uint8, the text.
    offset: where to begin.
    field: int64 [FIELDS], filled.

    Returns
    -------
    (kind, next offset), or (WRONG + error, offset of the error).
    """
    offset = _skip(text, offset)
    while offset < len(text) and text[offset] == NEWLINE:
        offset = _skip(text, offset + 1)
    if offset == len(text):
        return END, offset
    if text[offset] == _CLOSING:
        return CLOSE, offset + 1
    code, end = _word(text, offset)
    if code == 0:
        return WRONG + NO_STATEMENT, offset
    field[LABEL] = -1
    if code in (_NUM_RANKS, _RANK):
        kind = COUNT if code == _NUM_RANKS else OPEN
        offset, fault = _count(text, end, field, NUMBER)
        if fault < 0 and code == _RANK:
            offset = _skip(text, offset)
            if offset == len(text) or text[offset] != _BRACE:
                fault = NO_BRACE
            return (kind, offset + 1) if fault < 0 else (WRONG + fault, offset)
    elif code in (_CALC, _SEND, _RECV):
        kind = OPERATION
        offset, fault = _operation(text, end, code, field)
    else:
        field[LABEL], field[LABEL_END] = offset, end
        kind, offset = _labelled(text, end, field)
        fault = -1
    if fault >= 0:
        return WRONG + fault, offset
    if kind >= WRONG:
        return kind, offset
    offset = _skip(text, offset)
    if offset < len(text) and text[offset] != NEWLINE and text[offset] != _CLOSING:
        return WRONG + NO_END, offset
    return kind, offset
