"""Which of the allowed outputs a packet takes."""

from models.jit import kernel
from models.routing.routes import HASH
from models.rules.bits import lowest, popcount, select
from models.rules.draw import FLOW_HASH, ROUTE, below, draw


@kernel
def route_word(seed, host, sequence, hop):
    """The 63-bit draw that belongs to a packet's hop-th decision (0 is at its first switch)."""
    return draw(seed, ROUTE, host, (sequence << 20) | hop)


@kernel
def pick(ports, word):
    """One port of a non-empty set, uniformly."""
    count = popcount(ports)
    if count == 1:
        return lowest(ports)
    return select(ports, below(word, count))


@kernel
def fixed_port(ports, rule, seed, switch, source, destination, hosts, sequence, hop):
    """The port of a RANDOM or HASH choice: the same whenever it is asked for.

    HASH depends on flow (source, destination) and switch, so equal flows part at no switch and
    hashes at consecutive switches are independent.
    """
    if popcount(ports) == 1:
        return lowest(ports)
    if rule == HASH:
        return pick(ports, draw(seed, FLOW_HASH, switch, source * hosts + destination))
    return pick(ports, route_word(seed, source, sequence, hop))
