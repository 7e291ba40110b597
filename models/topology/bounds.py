# SPDX-License-Identifier: Apache-2.0
"""Moore-type bounds on what a number of switches of a degree can reach with any wiring.

``degree`` counts the channels out of a switch. With ``directed`` they may be uni-directional; without, each belongs to
a bi-directional link, so that the channel back reaches no new switch.
"""

from collections.abc import Iterator


def _levels(degree: int, directed: bool) -> Iterator[int]:
    """Yield the most switches at 1, 2, … hops."""
    level = degree
    while True:
        yield level
        level *= degree if directed else degree - 1


def _most_at(count: int, degree: int, directed: bool) -> list[int]:
    """Return the numbers of switches at 1, 2, … hops, filled greedily up to ``count``.

    Raises ``ValueError`` if the degree is too small to reach that many.
    """
    filled: list[int] = []
    for level in _levels(degree, directed):
        if count <= 0:
            return filled
        if level <= 0:
            raise ValueError(f"switches of degree {degree} cannot be connected")
        filled.append(min(level, count))
        count -= level
    return filled


def moore_order(degree: int, diameter: int, directed: bool) -> int:
    """Compute the most switches of a degree and a diameter: 1 + d + d (d - 1) + ... or, directed, 1 + d + d**2 + ...

    Parameters
    ----------
    degree: most channels out of a switch.
    diameter: most hops between two switches.
    directed: whether channels may be uni-directional.
    """
    return 1 + sum(level for level, _ in zip(_levels(degree, directed), range(diameter), strict=False))


def moore_diameter(n: int, degree: int, directed: bool) -> int:
    """Compute the least diameter of n switches of at most this degree.

    Directed: ceil(log_d(n (d - 1) + 1)) - 1. Raises ``ValueError`` if they cannot be connected.

    Parameters
    ----------
    n: number of switches.
    degree: most channels out of a switch.
    directed: whether channels may be uni-directional.

    Source: DBG Lemma 1.
    """
    return len(_most_at(n - 1, degree, directed))


def moore_aspl(n: int, degree: int, directed: bool) -> float:
    """Compute a lower bound on the ASPL of n switches with at most ``degree`` channels out of each.

    At most degree**h switches are h hops away, with bi-directional links degree (degree - 1)**(h - 1); the bound fills
    these levels greedily. Raises ``ValueError`` if the degree is too small to connect n switches.

    Parameters
    ----------
    n: number of switches.
    degree: most channels out of a switch.
    directed: whether channels may be uni-directional.

    Source: UNI section III-A ("Ideal"); Cerf, Cowan, Mullin and Stanton, Networks 4, 1974.
    """
    return _mean_level(_most_at(n - 1, degree, directed))


def shortest_paths_length(n: int, degree: int, k: int) -> float:
    """Compute LK(n, degree, k), a lower bound on the mean length of the k shortest paths of all ordered pairs.

    A switch has at most degree**h paths of h hops; k (n - 1) of them fill these levels greedily.

    Parameters
    ----------
    n: number of switches.
    degree: most channels out of a switch.
    k: paths per pair.

    Source: DBG Lemma 2.
    """
    return _mean_level(_most_at(k * (n - 1), degree, True))


def paths_within_bound(n: int, degree: int, hops: int) -> int:
    """Compute floor((r + r**2 + … + r**hops) / (n - 1)): some pair has no more paths within ``hops`` hops.

    Parameters
    ----------
    n: number of switches.
    degree: most channels out of a switch.
    hops: most hops of a path.

    Source: DBG Lemma 3.
    """
    paths: int = sum(degree**h for h in range(1, hops + 1)) // (n - 1)
    return paths


def link_load_bound(n: int, degree: int) -> float:
    """Compute LK(n, degree, 1) (n - 1) / degree: some channel carries at least that if every ordered pair sends 1.

    Source: DBG Lemma 4.
    """
    return shortest_paths_length(n, degree, 1) * (n - 1) / degree


def covering_hops(n: int, degree: int) -> int:
    """Return the least H with degree**H >= n: the hop limit of DBG's ALLPATH(H) (section IV-A).

    Raises ``ValueError`` if the degree is 1 and n is not.
    """
    if degree < 2 < n + 1 and n > 1:
        raise ValueError("a degree of at least 2 is needed")
    hops = 0
    while degree**hops < n:
        hops += 1
    return hops


def _mean_level(filled: list[int]) -> float:
    total = sum(filled)
    return sum(hops * count for hops, count in enumerate(filled, 1)) / total if total else 0.0
