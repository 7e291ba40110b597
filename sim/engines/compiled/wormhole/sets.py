"""Sets of a switch's input VCs, or of its output VCs, as rows of 64-bit words.

``size``, in the constants, is a tuple that ends in the number of words of a row. Its length is part of its type: it
has one entry where one word does, so that code for switches of up to 64 VCs is compiled without loops over words.
"""

import numpy as np

from models.jit import inner
from models.rules.allocate import above, first_after
from models.rules.bits import lowest

U = np.uint64
ONE = U(1)
SIX = U(6)
LOW = U(63)


@inner
def words(size):
    """Words of a row."""
    return 1 if len(size) == 1 else size[-1]


@inner
def word_of(size, member):
    """Index of the word that a member is in."""
    return member >> SIX if len(size) > 1 else U(0)


@inner
def slot(size, row, w):
    """Place of word ``w`` of a row: rows lie one after another, so that those of one word need no multiplication."""
    return U(row) if len(size) == 1 else U(row) * U(words(size)) + U(w)


@inner
def bit(member):
    """The member's bit in its word."""
    return ONE << (member & LOW)


@inner
def put(size, sets, row, member):
    """Add a member."""
    sets[slot(size, row, word_of(size, member))] |= bit(member)


@inner
def put_range(size, sets, row, low, count):
    """Add ``count`` members (1 .. 64) from ``low`` on."""
    bits = (~U(0) >> (U(64) - count)) << (low & LOW)
    w = word_of(size, low)
    sets[slot(size, row, w)] |= bits
    if len(size) > 1 and (low & LOW) + count > U(64):
        sets[slot(size, row, w + ONE)] |= ~U(0) >> (U(128) - count - (low & LOW))


@inner
def drop(size, sets, row, member):
    """Remove a member."""
    sets[slot(size, row, word_of(size, member))] &= ~bit(member)


@inner
def has(size, sets, row, member):
    """Whether it is a member."""
    return sets[slot(size, row, word_of(size, member))] & bit(member) != 0


@inner
def is_empty(size, sets, row):
    """Whether there is no member."""
    some = U(0)
    for w in range(words(size)):
        some |= sets[slot(size, row, w)]
    return some == 0


@inner
def clear(size, sets, row):
    """Remove all members."""
    for w in range(words(size)):
        sets[slot(size, row, w)] = 0


@inner
def member_of(w, word):
    """The least member of a word that is not empty."""
    return (U(w) << SIX) | U(lowest(word))


@inner
def first(size, sets, row, last):
    """The member of a set that is not empty that comes first after ``last``, going round."""
    if len(size) == 1:
        return U(first_after(sets[row], last))
    w = last >> SIX
    later = above(sets[slot(size, row, w)], last & LOW)
    while later == 0:
        w = w + ONE if w + ONE < U(words(size)) else U(0)
        later = sets[slot(size, row, w)]
    return member_of(w, later)
