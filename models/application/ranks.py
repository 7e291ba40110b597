# SPDX-License-Identifier: Apache-2.0
"""The number of ranks of a program."""

from collections.abc import Callable, Iterator
from itertools import islice

from flitlab.models.registry import SpecError


def choose_ranks(requested_ranks: int | None, hosts: int, allowed: Callable[[int], bool], rule: str) -> int:
    """The requested number of ranks, or the largest that a program allows on the hosts.

    Parameters
    ----------
    requested_ranks: the configured number, None: the largest.
    hosts: number of hosts.
    allowed: whether the program runs on so many ranks.
    rule: allowed numbers, in words after "must be".

    Raises
    ------
    SpecError: the number is not possible (key ``ranks``); the nearest ones are choices.
    """
    if requested_ranks is not None and not allowed(requested_ranks):
        raise SpecError(f"must be {rule}", "ranks", _neighbouring_choices(requested_ranks, hosts, allowed))
    if requested_ranks is not None and requested_ranks > hosts:
        raise SpecError(
            f"is more than the {hosts} hosts of the topology", "ranks", _neighbouring_choices(hosts + 1, hosts, allowed)
        )
    ranks = requested_ranks or next(_down(hosts, allowed), None)
    if ranks is None:
        raise SpecError(f"must be {rule}; no such number fits the {hosts} hosts of the topology", "ranks")
    return ranks


def _down(start: int, allowed: Callable[[int], bool]) -> Iterator[int]:
    return filter(allowed, range(start, 0, -1))


def _neighbouring_choices(requested_ranks: int, hosts: int, allowed: Callable[[int], bool]) -> list[str]:
    """The allowed number below, and the one above if there are enough hosts."""
    after = islice(filter(allowed, range(requested_ranks + 1, hosts + 1)), 1)
    return [str(ranks) for ranks in (*islice(_down(min(requested_ranks - 1, hosts), allowed), 1), *after)]


def is_power_of_two(ranks: int) -> bool:
    """Whether ranks = 2^k."""
    return ranks & (ranks - 1) == 0
