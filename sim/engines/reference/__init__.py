"""The reference engine: the model as SimPy processes, the executable specification.

Read in this order: ``clock`` (time and its phases), ``packet``, ``network`` (what every discipline has:
hosts, outputs, the life of a packet), then a file for each discipline, ``vct``, ``wormhole`` and
``deflection``; ``ledger`` only counts. ``ranks`` is what hosts do that run a program.
"""

from typing import Any

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.reference.deflection import DeflectionNetwork
from flitlab.sim.engines.reference.flow import FlowNetwork
from flitlab.sim.engines.reference.network import Network
from flitlab.sim.engines.reference.vct import VctNetwork
from flitlab.sim.engines.reference.wormhole import WormholeNetwork

_DISCIPLINES: dict[str, type[Network]] = {
    "vct": VctNetwork,
    "wormhole": WormholeNetwork,
    "deflection": DeflectionNetwork,
}


class ReferenceEngine:
    """Starts runs of the reference engine."""

    def start(self, scenario: Scenario, load: float, seed: int, log: bool = False, shuffle: int = 0) -> Any:
        """A run at tick 0.

        ``shuffle``: a seed for the order of everything that the model leaves open (which of the
        processes, switches and hosts comes first within a phase); 0: the order in which they were made.
        Raises ``ValueError`` for a switching mode other than ``vct``, ``wormhole``, ``deflection`` and ``flow``, and in
        that for a routing that decides by congestion.
        """
        mode = scenario.switching.mode
        if mode == "flow":
            return FlowNetwork(scenario, seed, shuffle)
        if mode not in _DISCIPLINES:
            raise ValueError(f"switching mode {mode!r}; choices: {', '.join(_DISCIPLINES)}, flow")
        return _DISCIPLINES[mode](scenario, load, seed, log, shuffle)
