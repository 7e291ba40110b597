"""Moore-type bounds: how many switches a degree can reach within so many hops."""


def moore_aspl(n: int, degree: int, directed: bool) -> float:
    """Lower bound on the ASPL of n switches with at most ``degree`` channels out of each.

    At most degree**h switches are h hops away, with bi-directional links degree (degree - 1)**(h - 1);
    the bound fills these levels greedily. Raises ``ValueError`` if so few channels cannot connect n switches.
    Source: UNI section III-A ("Ideal"); Cerf, Cowan, Mullin and Stanton, Networks 4, 1974.
    """
    left, level, hops, total = n - 1, degree, 1, 0
    while left > 0:
        if level == 0:
            raise ValueError(f"{n} switches of degree {degree} cannot be connected")
        reached = min(level, left)
        total += hops * reached
        left -= reached
        level *= degree if directed else degree - 1
        hops += 1
    return total / (n - 1) if n > 1 else 0.0
