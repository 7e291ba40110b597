"""How long a search for saturation measures, where ``measure:`` does not say."""

import math

from flitlab.models.scenario import Scenario
from flitlab.models.switching.discipline import PACKETS
from flitlab.sim.config.questions import SaturationConfig
from flitlab.sim.config.schema import Config, MeasureConfig

BALANCED, USUAL = 6000, 1500
"""Packet times of a point, warm-up included: where the routing fills many channels alike, and elsewhere."""

MANY = 0.5
"""A routing fills many channels alike if a packet crosses so many of the fullest, on average."""

LEAST = 45_000
"""Ticks of a point, however short packets are."""

CHOSEN = frozenset({"warmup", "ticks", "ci", "max_ticks"})
"""Keys of ``measure:``; any of them that is given leaves the others at their defaults."""


def measure_of_search(config: Config, scenario: Scenario) -> MeasureConfig:
    """``measure:``, with the window of a search for saturation where the loads of the scenario are searched for."""
    searched = isinstance(config.placing, SaturationConfig) and scenario.counted == PACKETS
    return stable_window(config.measure, scenario) if searched else config.measure


def stable_window(measure: MeasureConfig, scenario: Scenario, usual: int = USUAL) -> MeasureConfig:
    """The window of a search for the load that is carried, a third of which is warm-up, unless one is given.

    usual: packet times where the routing does not fill many channels alike.

    The queue of a channel takes a time in inverse proportion to the square of its distance from saturation to settle. A
    routing that balances loads has nearly all of its channels close to it at once.
    """
    if measure.model_fields_set & CHOSEN:
        return measure
    from flitlab.fluid.certain import full_on_the_way

    times = BALANCED if full_on_the_way(scenario.instance) >= MANY else usual
    ticks = max(math.ceil(times * scenario.source.mean_flits), LEAST)
    return measure.model_copy(update={"warmup": ticks // 3, "ticks": ticks - ticks // 3, "ci": None})
