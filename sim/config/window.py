# SPDX-License-Identifier: Apache-2.0
"""The default window of a saturation search."""

import math

from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import PACKETS
from flitlab.sim.config.experiments import SaturationConfig
from flitlab.sim.config.schema import Config, MeasureConfig

PROBE_PACKET_TIMES = 1500
"""Packet times of the shortest probe, warm-up included."""

MIN_PROBE_TICKS = 45_000
"""Ticks of the shortest probe, for short packets."""

WINDOW_KEYS = frozenset({"warmup", "ticks", "ci", "max_ticks"})
"""Keys of ``measure:`` that replace the default window."""


def measure_of_search(config: Config, scenario: Scenario) -> MeasureConfig:
    """``measure:``, with the default first window of a saturation search unless it sets one.

    Probes lengthen it until their verdict is clear, see :mod:`flitlab.sim.measure.probe`.
    """
    measure = config.measure
    searched = isinstance(config.placing, SaturationConfig) and scenario.counted == PACKETS
    if not searched or measure.model_fields_set & WINDOW_KEYS:
        return measure
    return with_packet_times(measure, scenario, PROBE_PACKET_TIMES)


def with_packet_times(measure: MeasureConfig, scenario: Scenario, times: int) -> MeasureConfig:
    """``measure:`` with a window of ``times`` packet times, a third of them warm-up.

    Parameters
    ----------
    measure: the section.
    scenario: has the mean packet length.
    times: packet times of the whole run.
    """
    ticks = max(math.ceil(times * scenario.source.mean_flits), MIN_PROBE_TICKS)
    return measure.model_copy(update={"warmup": ticks // 3, "ticks": ticks - ticks // 3, "ci": None})
