"""The life of one packet, tick by tick, observed from outside in either engine: neither of them knows of it."""

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.trace.base import Life, Watch, follow


def watch(engine: str, scenario: Scenario, load: float, seed: int, identity: int) -> Watch:
    """A run of the engine ``reference`` or ``compiled``, at tick 0, with an eye on one packet. Raises ``KeyError``."""
    if engine == "compiled":
        from flitlab.sim.engines.trace.compiled import WATCHES

        return WATCHES[scenario.switching.mode](scenario, load, seed, identity)
    if engine == "reference":
        from flitlab.sim.engines.trace.reference import WATCHES as IN_REFERENCE

        return IN_REFERENCE[scenario.switching.mode](scenario, load, seed, identity)
    raise KeyError(engine)


def trace(engine: str, scenario: Scenario, load: float, seed: int, identity: int, until: int | None = None) -> Life:
    """What happens to a packet before tick ``until``, at most to its delivery.

    until: by default 100,000 ticks after its creation. Raises ``ValueError`` if the packet is not created by then.
    """
    return follow(lambda: watch(engine, scenario, load, seed, identity), scenario, load, seed, identity, until)
