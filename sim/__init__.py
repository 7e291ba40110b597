"""What happens: engines, measurement, experiments, reports and the command line.

``from sim import Experiment`` is the Python interface; ``import sim`` alone imports nothing else.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.api import Experiment, RunError

__all__ = ["Experiment", "RunError"]


def __getattr__(name: str) -> Any:
    """Imports the Python interface when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sim.threads import one_thread

    one_thread()
    import sim.api

    return getattr(sim.api, name)


def __dir__() -> list[str]:
    """The lazy names too."""
    return sorted([*globals(), *__all__])
