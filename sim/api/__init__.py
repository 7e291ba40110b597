# SPDX-License-Identifier: Apache-2.0
"""The Python interface: configurations to check, run and analyse, and single questions answered in memory.

>>> from flitlab import Experiment, ceiling, design, simulate
>>> simulate({"kind": "torus", "dims": [4, 4]}, "minimal", "uniform", 0.3).accepted  # doctest: +SKIP
>>> ceiling({"kind": "torus", "dims": [4, 4]}, "uniform").upper  # doctest: +SKIP
>>> design(256, 16).front[["design", "cost_per_host"]]  # doctest: +SKIP
>>> experiment = Experiment.load("configs/quick.yaml", loads=[0.2, 0.6], seeds=[1])  # doctest: +SKIP
>>> experiment.run(jobs=1).results[["scenario", "load", "accepted", "latency_mean"]]  # doctest: +SKIP
>>> ax = experiment.plot("latency_load")  # doctest: +SKIP
"""

from flitlab.sim.api.designs import NetworkDesign, design
from flitlab.sim.api.experiment import Experiment, RunError
from flitlab.sim.api.questions import Simulation, ceiling, simulate
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.experiment.store import StoreError

__all__ = [
    "ConfigError", "Experiment", "NetworkDesign", "RunError", "Simulation", "StoreError", "ceiling", "design",
    "simulate",
]  # fmt: skip
