"""The datagram discipline in either engine, or in both side by side."""

from models.scenario import Scenario
from models.transport.datagram import session_of
from models.transport.feeders import with_feeders
from models.transport.session import Session
from sim.engines.datagram.base import DatagramApplicationRun


def start_application(engine: str, scenario: Scenario, seed: int) -> DatagramApplicationRun:
    """A run of a scenario with a workload, at tick 0 (see :func:`start`); a tick takes ``workload.messages.tick_ns``.

    Raises ``SpecError``; the run raises :class:`~sim.engines.datagram.base.MessageLost`.
    """
    return start(engine, session_of(scenario, 1.0, seed))


def start(engine: str, session: Session, trace: bool = False) -> DatagramApplicationRun:
    """A run at tick 0 in the engine ``reference``, ``compiled`` or ``both``. Raises ``KeyError``."""
    if engine == "compiled":
        from sim.engines.compiled.datagram import CompiledDatagrams

        return CompiledDatagrams(with_feeders(session), trace)
    if engine == "reference":
        from sim.engines.reference.datagram import ReferenceDatagrams

        return ReferenceDatagrams(with_feeders(session), trace)
    if engine == "both":
        from sim.engines.datagram.both import BothDatagrams

        return BothDatagrams(start("compiled", session, trace=True), start("reference", session, trace=True))
    raise KeyError(engine)
