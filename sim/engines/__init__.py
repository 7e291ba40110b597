"""The two engines: ``reference`` (SimPy, readable) and ``compiled`` (Numba, fast); equal packet for packet."""

from flitlab.sim.engines.base import Engine


def engine(name: str) -> Engine:
    """The engine called ``reference`` or ``compiled``. Raises ``KeyError``."""
    if name == "compiled":
        from flitlab.sim.engines.compiled.engine import CompiledEngine

        return CompiledEngine()
    if name == "reference":
        from flitlab.sim.engines.reference import ReferenceEngine

        return ReferenceEngine()
    raise KeyError(name)
