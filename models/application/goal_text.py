# SPDX-License-Identifier: Apache-2.0
"""Byte-wise reader of GOAL statements (:mod:`flitlab.models.application.goal`)."""

import numpy as np

from flitlab.models.application.program import CALC, RECV, SEND
from flitlab.models.arrays import Bytes, Int, Ints
from flitlab.models.jit import inner, routine

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


@inner
def _skip(text: Bytes, at: int) -> int:
    """The first offset from ``at`` on that is neither blank nor in a comment; line ends are not skipped."""
    end = len(text)
    while at < end:
        byte = text[at]
        if byte in (_SPACE, _TABULATOR, _RETURN):
            at += 1
        elif byte == _HASH or (byte == _SLASH and at + 1 < end and text[at + 1] == _SLASH):
            while at < end and text[at] != NEWLINE:
                at += 1
        elif byte == _SLASH and at + 1 < end and text[at + 1] == _STAR:
            at += 2
            while at + 1 < end and not (text[at] == _STAR and text[at + 1] == _SLASH):
                at += 1
            at += 2
        else:
            break
    return min(at, end)


@inner
def _word(text: Bytes, at: int) -> tuple[Int, int]:
    """(code, end) of the word at an offset; (0, at) if there is none.

    A word has letters, digits and _, and does not begin with a digit. The code is unique for words of at most 10
    letters (64 symbols each), and none of these for longer words.
    """
    start, code = at, np.int64(0)
    while at < len(text) and SYMBOL[text[at]] > 0:
        code = 64 * code + SYMBOL[text[at]]
        at += 1
    if at == start or 48 <= text[start] <= 57:
        return np.int64(0), start
    return code if at - start <= 10 else np.int64(-1), at


@inner
def _number(text: Bytes, at: int) -> tuple[Int, int]:
    """(number, end): -1 for a negative one, -2 for none, -3 for more than 18 digits."""
    negative = at < len(text) and text[at] == _MINUS
    start = at + 1 if negative else at
    at, value = start, np.int64(0)
    while at < len(text) and 48 <= text[at] <= 57:
        value = 10 * value + (text[at] - 48) if at - start < 18 else np.int64(-3)
        at += 1
    if at == start:
        return np.int64(-2), start
    return np.int64(-1) if negative else value, at


@inner
def _count(text: Bytes, at: int, field: Ints, key: int) -> tuple[int, int]:
    """Read a number into ``field[key]``: (next offset, -1), or (offset of the number, error)."""
    at = _skip(text, at)
    value, end = _number(text, at)
    if value == -3:
        return at, LONG
    if value < 0:
        return at, NO_NUMBER
    field[key] = value
    return end, -1


@routine
def _attributes(text: Bytes, at: int, field: Ints, tags: bool) -> tuple[int, int]:
    """Read the attributes of an operation, in any order: tag t, cpu c, nic n. (next offset, -1), or (offset, error)."""
    field[TAG], field[CPU], field[NIC] = -1, -1, -1
    while True:
        at = _skip(text, at)
        code, end = _word(text, at)
        if code == 0:
            break
        key = TAG if code == _TAG and tags else CPU if code == _CPU else NIC if code == _NIC else KIND
        if key == KIND or field[key] != -1:
            return at, NO_ATTRIBUTE
        place = _skip(text, end)
        if key == TAG and _number(text, place)[0] == -1:
            return place, ANY_TAG
        at, fault = _count(text, end, field, key)
        if fault >= 0:
            return at, fault
        if field[key] > (0x7FFFFFFF if key == TAG else 0x7FFF):
            return place, TOO_LARGE
    for key in (TAG, CPU, NIC):
        field[key] = max(field[key], 0)
    return at, -1


@routine
def _operation(text: Bytes, at: int, code: Int, field: Ints) -> tuple[int, int]:
    """Read an operation after its first word, of that code. (next offset, -1), or (offset, error)."""
    at, fault = _count(text, at, field, AMOUNT)
    if fault >= 0:
        return at, fault
    field[PEER] = -1
    if code == _CALC:
        field[KIND] = CALC
        return _attributes(text, at, field, False)
    field[KIND] = SEND if code == _SEND else RECV
    at = _skip(text, at)
    word, end = _word(text, at)
    if word in (_SMALL, _CAPITAL):
        at = _skip(text, end)
        word, end = _word(text, at)
    if word != (_TO if code == _SEND else _FROM):
        return at, NO_TO if code == _SEND else NO_FROM
    place = _skip(text, end)
    if code == _RECV and _number(text, place)[0] == -1:
        return place, ANY_SOURCE
    at, fault = _count(text, end, field, PEER)
    if fault >= 0:
        return at, fault
    return _attributes(text, at, field, True)


@routine
def _labelled(text: Bytes, at: int, field: Ints) -> tuple[int, int]:
    """Read a statement after its label. (kind, next offset), or (WRONG + error, offset)."""
    at = _skip(text, at)
    if at < len(text) and text[at] == _COLON:
        at = _skip(text, at + 1)
        code, end = _word(text, at)
        if code not in (_CALC, _SEND, _RECV):
            return WRONG + NO_OPERATION, at
        at, fault = _operation(text, end, code, field)
        return (OPERATION if fault < 0 else WRONG + fault), at
    code, end = _word(text, at)
    if code != _REQUIRES and code != _IREQUIRES:
        return WRONG + NO_COLON, at
    field[EARLY] = code == _IREQUIRES
    at = _skip(text, end)
    code, end = _word(text, at)
    if code == 0:
        return WRONG + NO_LABEL, at
    field[OTHER], field[OTHER_END] = at, end
    return DEPENDENCY, end


@routine
def statement(text: Bytes, at: int, field: Ints) -> tuple[int, int]:
    """Read the next statement at or after an offset.

    Parameters
    ----------
    text: uint8, the text.
    at: the offset.
    field: int64 [FIELDS], filled.

    Returns
    -------
    (kind, next offset), or (WRONG + error, offset of the error).
    """
    at = _skip(text, at)
    while at < len(text) and text[at] == NEWLINE:
        at = _skip(text, at + 1)
    if at == len(text):
        return END, at
    if text[at] == _CLOSING:
        return CLOSE, at + 1
    code, end = _word(text, at)
    if code == 0:
        return WRONG + NO_STATEMENT, at
    field[LABEL] = -1
    if code in (_NUM_RANKS, _RANK):
        what = COUNT if code == _NUM_RANKS else OPEN
        at, fault = _count(text, end, field, NUMBER)
        if fault < 0 and code == _RANK:
            at = _skip(text, at)
            if at == len(text) or text[at] != _BRACE:
                fault = NO_BRACE
            return (what, at + 1) if fault < 0 else (WRONG + fault, at)
    elif code in (_CALC, _SEND, _RECV):
        what = OPERATION
        at, fault = _operation(text, end, code, field)
    else:
        field[LABEL], field[LABEL_END] = at, end
        what, at = _labelled(text, end, field)
        fault = -1
    if fault >= 0:
        return WRONG + fault, at
    if what >= WRONG:
        return what, at
    at = _skip(text, at)
    if at < len(text) and text[at] != NEWLINE and text[at] != _CLOSING:
        return WRONG + NO_END, at
    return what, at
