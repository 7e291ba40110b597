"""A column of results.csv: how many of the hosts were heard."""

import numpy as np

from flitlab.sim.measure.columns.registry import column
from flitlab.sim.measure.window import Window


@column("packets", "hosts_heard", "", "share of hosts that are heard")
def hosts_heard(window: Window) -> float:
    """Share of the hosts of which a flit arrived in the window."""
    return float(np.mean(window.after.delivered.sources > window.before.delivered.sources))
