# SPDX-License-Identifier: Apache-2.0
"""Ticks that a flit takes on the channels of a network whose links change speed."""

from math import ceil, floor

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError
from flitlab.models.timeline.epochs import Epoch, Timeline
from flitlab.models.topology.flit_times import MAX_FLIT_TICKS, flit_times
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import join_path, switch_names

_ROUNDING = 2e-6  # factors may be rounded to 6 digits, such as 0.333333


def slowed_flit_ticks(topology: Topology, rate: Floats) -> Ints:
    """Return the ticks of a flit on each channel between switches, int64 [channels].

    Parameters
    ----------
    topology: the network as built.
    rate: float64 [channels], share of its rate as built that each channel has; see :func:`check_flit_ticks`.
    """
    return np.rint(flit_times(topology).channel / rate).astype(np.int64)


def flit_ticks_by_epoch(topology: Topology, timeline: Timeline | None) -> Ints:
    """Return the ticks of a flit on each channel between switches, as built and in every epoch.

    Parameters
    ----------
    topology: the network as built.
    timeline: None for a network that does not change.

    Returns
    -------
    int64 [1 + epochs, channels].
    """
    epochs = () if timeline is None else timeline.epochs
    ticks = [flit_times(topology).channel, *(slowed_flit_ticks(topology, epoch.rate) for epoch in epochs)]
    return np.array(ticks)


def slowest_flit_of_epochs(topology: Topology, timeline: Timeline | None) -> int:
    """Return the ticks of a flit on the slowest channel of any epoch.

    Parameters
    ----------
    topology: the network as built.
    timeline: None for a network that does not change.
    """
    return int(flit_ticks_by_epoch(topology, timeline).max(initial=flit_times(topology).host))


def check_flit_ticks(timeline: Timeline) -> None:
    """Check that a flit takes whole ticks on every channel in every epoch.

    Parameters
    ----------
    timeline: the events.

    Raises
    ------
    SpecError: a factor gives no whole number of ticks, or more than :data:`MAX_FLIT_TICKS`; ``key`` is the path to it.
    """
    built = flit_times(timeline.topology).channel
    for epoch in timeline.epochs:
        ticks = built / epoch.rate
        whole = np.clip(np.rint(ticks), built, MAX_FLIT_TICKS)
        wrong = np.flatnonzero(np.abs(whole / ticks - 1) > _ROUNDING)
        if len(wrong):
            raise _not_whole(timeline.topology, epoch, int(wrong[0]), int(built[wrong[0]]))


def _not_whole(topology: Topology, epoch: Epoch, channel: int, built: int) -> SpecError:
    """The error of a factor that gives no whole ticks on a channel, with the nearest that do; built: its ticks."""
    factor = float(epoch.rate[channel])
    ticks = built / factor
    near = sorted({min(max(limit, built), MAX_FLIT_TICKS) for limit in (floor(ticks), ceil(ticks))})
    ends = join_path(map(switch_names(topology).label, (topology.src[channel], topology.dst[channel])))
    choices = " or ".join(f"{built / n:.6g} ({n} tick{'s' * (n > 1)})" for n in near)
    problem = (
        f"a flit takes {built} tick{'s' * (built > 1)} on link {ends} as built, and would take "
        f"{ticks:.6g} from tick {epoch.tick} on; it takes whole ticks, {MAX_FLIT_TICKS} at most: the nearest is "
        f"{choices}"
    )
    event = next((index for index, slowed in epoch.factors if slowed == factor), None)
    return SpecError(problem, key="timeline" if event is None else f"timeline[{event}].factor")
