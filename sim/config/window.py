# SPDX-License-Identifier: Apache-2.0
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
    """``measure:``, with the window of a search for saturation where it gives none, and loads are searched for.

    The queue of a channel takes a time in inverse proportion to the square of its distance from saturation to settle. A
    routing that balances loads has nearly all of its channels close to it at once.
    """
    measure = config.measure
    searched = isinstance(config.placing, SaturationConfig) and scenario.counted == PACKETS
    if not searched or measure.model_fields_set & CHOSEN:
        return measure
    from flitlab.fluid.certain import full_on_the_way

    return lasting(measure, scenario, BALANCED if full_on_the_way(scenario.instance) >= MANY else USUAL)


def lasting(measure: MeasureConfig, scenario: Scenario, times: int) -> MeasureConfig:
    """``measure:`` with a window of so many packet times, a third of which is warm-up."""
    ticks = max(math.ceil(times * scenario.source.mean_flits), LEAST)
    return measure.model_copy(update={"warmup": ticks // 3, "ticks": ticks - ticks // 3, "ci": None})
