# SPDX-License-Identifier: Apache-2.0
"""How much of the throughput that any routing could reach does this interconnect deliver, and at what latency?

``from flitlab import Experiment, simulate, ceiling, Topology`` is the Python interface; ``import flitlab`` alone
imports nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flitlab.models.topology.graph import Topology
    from flitlab.sim.api import ConfigError, Experiment, NetworkDesign, RunError, Simulation, ceiling, design, simulate

__version__ = "0.1.0"
"""The version of flitlab: the only place that says it."""

__all__ = [
    "ConfigError", "Experiment", "NetworkDesign", "RunError", "Simulation", "Topology", "ceiling", "design", "simulate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Imports the Python interface when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flitlab.models.gc_disabled import gc_disabled
    from flitlab.models.threads import one_thread

    one_thread()
    with gc_disabled():
        module = import_module("flitlab.models.topology.graph" if name == "Topology" else "flitlab.sim.api")
        return getattr(module, name)


def __dir__() -> list[str]:
    """The interface, with its lazy names, and nothing else."""
    return sorted([*__all__, "__version__"])
