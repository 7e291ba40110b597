# SPDX-License-Identifier: Apache-2.0
"""Ranks of a collective, and the division of their data."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flitlab.models.application.builder import Builder
from flitlab.models.arrays import Ints


@dataclass(frozen=True)
class Communicator:
    """Groups of equally many ranks. All do the same at the same time, each group for itself.

    groups: int64 [groups, size], all ranks different. Algorithms number the ranks of a group from 0 in this order; the
    root of a rooted collective is number 0. ns_per_byte: time to reduce a byte with another. dims: sides of a grid that
    the ranks of a group form, last coordinate fastest. group: consecutive ranks that are close together.
    """

    builder: Builder
    groups: Ints
    ns_per_byte: float = 0.0
    dims: tuple[int, ...] = ()
    group: int = 1

    @property
    def size(self) -> int:
        """Ranks of a group."""
        members: int = self.groups.shape[1]
        return members

    @property
    def members(self) -> np.ndarray:
        """0 .. size - 1."""
        return np.arange(self.size)

    def among(self, members: Ints) -> "Communicator":
        """Groups of some members of every group.

        Parameters
        ----------
        members: int64 [groups, size], or int64 [size] for one group.
        """
        groups = self.groups[:, np.atleast_2d(members)].reshape(-1, members.shape[-1])
        return Communicator(self.builder, groups, self.ns_per_byte)

    def expect(self, messages: int) -> None:
        """Raise ``SpecError`` if this many messages in each group are too many for a program."""
        self.builder.expect(2 * messages * len(self.groups))

    def exchange(self, source: Ints, target: Ints, size: npt.ArrayLike) -> None:
        """A round of messages between members.

        Parameters
        ----------
        source, target: int64 [messages], members.
        size: bytes, one number or one per message.
        """
        self.builder.exchange(self.groups[:, source], self.groups[:, target], np.asarray(size))

    def reduce(self, member: Ints, size: npt.ArrayLike) -> None:
        """A round in which members reduce received bytes with their own.

        Parameters
        ----------
        member: int64, the members.
        size: bytes, one number or one per member.
        """
        ranks = self.groups[:, member]
        ns = np.broadcast_to(np.asarray(size) * self.ns_per_byte, ranks.shape)
        self.builder.calculate(ns.ravel(), ranks.ravel())


def shares(size: int, parts: int) -> Ints:
    """Bounds of equal parts of ``size`` bytes, as far as bytes allow: int64 [parts + 1]."""
    return np.arange(parts + 1) * size // parts


@dataclass(frozen=True)
class Fold:
    """A power of two of a group's members that act for all of them.

    The first 2 * extra members are pairs of which the odd one acts; all others act for themselves. actor: int64
    [power], the acting members. first: int64 [power + 1]; actor j acts for members first[j] .. first[j + 1] - 1.
    """

    actor: Ints
    first: Ints
    extra: int

    @property
    def silent(self) -> Ints:
        """The members that do not act, int64 [extra]; the next one acts for each."""
        return 2 * np.arange(self.extra)


def fold(size: int) -> Fold:
    """Reduce a group of ``size`` members to the largest power of two (Thakur et al. 2005, 4.4).

    Parameters
    ----------
    size: bytes.
    """
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    j = np.arange(power + 1)
    first = np.where(j < extra, 2 * j, j + extra)
    return Fold(np.where(j < extra, 2 * j + 1, j + extra)[:-1], first, extra)


def distances(size: int) -> list[int]:
    """The powers of two below ``size``, from 1 on.

    Parameters
    ----------
    size: bytes.
    """
    return [1 << k for k in range((size - 1).bit_length())]
