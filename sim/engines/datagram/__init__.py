"""The datagram discipline in either engine, or in both side by side."""

from flitlab.models.scenario import Scenario
from flitlab.models.transport.datagram import session_of
from flitlab.models.transport.feeders import with_feeders
from flitlab.models.transport.session import Session
from flitlab.sim.engines.datagram.base import DatagramApplicationRun


def start_application(engine: str, scenario: Scenario, seed: int) -> DatagramApplicationRun:
    """A run of a scenario with a workload, at tick 0 (see :func:`start`); a tick takes ``workload.messages.tick_ns``.

    Raises ``SpecError``; the run raises :class:`~flitlab.sim.engines.datagram.base.MessageLost`.
    """
    return start(engine, session_of(scenario, 1.0, seed))


def start(engine: str, session: Session, trace: bool = False) -> DatagramApplicationRun:
    """A run at tick 0 in the engine ``reference``, ``compiled`` or ``both``. Raises ``KeyError``."""
    if engine == "compiled":
        from flitlab.sim.engines.compiled.datagram import CompiledDatagrams

        return CompiledDatagrams(with_feeders(session), trace)
    if engine == "reference":
        from flitlab.sim.engines.reference.datagram import ReferenceDatagrams

        return ReferenceDatagrams(with_feeders(session), trace)
    if engine == "both":
        from flitlab.sim.engines.datagram.both import BothDatagrams

        return BothDatagrams(start("compiled", session, trace=True), start("reference", session, trace=True))
    raise KeyError(engine)
