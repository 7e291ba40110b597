"""The two engines: ``reference`` (SimPy, readable) and ``compiled`` (Numba, fast); equal packet for packet."""

from sim.engines.base import Engine


def engine(name: str) -> Engine:
    """The engine called ``reference`` or ``compiled``. Raises ``KeyError``."""
    if name == "compiled":
        from sim.engines.compiled.engine import CompiledEngine

        return CompiledEngine()
    if name == "reference":
        from sim.engines.reference import ReferenceEngine

        return ReferenceEngine()
    raise KeyError(name)
