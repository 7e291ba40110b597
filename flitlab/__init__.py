"""How much of the throughput that any routing could reach does this interconnect deliver, and at what latency?

``from flitlab import Experiment`` is the Python interface; ``import flitlab`` alone imports nothing else.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flitlab.sim.api import Experiment, RunError

__all__ = ["Experiment", "RunError"]


def __getattr__(name: str) -> Any:
    """Imports the Python interface when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flitlab.sim.threads import one_thread

    one_thread()
    import flitlab.sim.api

    return getattr(flitlab.sim.api, name)


def __dir__() -> list[str]:
    """The lazy names too."""
    return sorted([*globals(), *__all__])
