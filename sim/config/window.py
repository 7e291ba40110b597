# SPDX-License-Identifier: Apache-2.0
"""How long a search for saturation measures, where ``measure:`` does not say."""

import math

from flitlab.models.scenario import Scenario
from flitlab.models.switching.discipline import PACKETS
from flitlab.sim.config.experiments import SaturationConfig
from flitlab.sim.config.schema import Config, MeasureConfig

PROBE_PACKET_TIMES = 1500
"""Packet times of the shortest probe, warm-up included."""

MIN_PROBE_TICKS = 45_000
"""Ticks of it, however short packets are."""

WINDOW_KEYS = frozenset({"warmup", "ticks", "ci", "max_ticks"})
"""Keys of ``measure:``; any of them that is given leaves the others at their defaults."""


def measure_of_search(config: Config, scenario: Scenario) -> MeasureConfig:
    """``measure:``, with the first window of a search for saturation where it gives none, and loads are searched for.

    Probes lengthen it as far as their verdict needs it, see :mod:`flitlab.sim.measure.probe`.
    """
    measure = config.measure
    searched = isinstance(config.placing, SaturationConfig) and scenario.counted == PACKETS
    if not searched or measure.model_fields_set & WINDOW_KEYS:
        return measure
    return with_packet_times(measure, scenario, PROBE_PACKET_TIMES)


def with_packet_times(measure: MeasureConfig, scenario: Scenario, times: int) -> MeasureConfig:
    """``measure:`` with a window of so many packet times, a third of which is warm-up."""
    ticks = max(math.ceil(times * scenario.source.mean_flits), MIN_PROBE_TICKS)
    return measure.model_copy(update={"warmup": ticks // 3, "ticks": ticks - ticks // 3, "ci": None})
