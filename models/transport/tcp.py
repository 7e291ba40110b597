"""TCP NewReno."""

from flitlab.models.registry import register
from flitlab.models.transport.law import Transport, WindowedSpec, law


def additive(windows, rtts, i, credit, mss, memory, now):
    """One packet a round trip."""
    return credit * mss / windows[i]


@register("transport", "tcp")
class Tcp(WindowedSpec):
    """TCP NewReno. With several subflows, each of them is a connection of its own.

    Example: ``transport: {kind: tcp, subflows: 8}``

    Source: Henderson, Floyd, Gurtov, Nishida, RFC 6582, 2012; Allman, Paxson, Blanton, RFC 5681, 2009.
    """

    def transport(self) -> Transport:
        return self.windowed(law(additive))
