# SPDX-License-Identifier: Apache-2.0
"""Rate and delays of links that a file states in units of its own, and delays as ticks of a switching mode."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, inf

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError
from flitlab.models.topology.attributes import DELAY_COLUMNS
from flitlab.models.topology.graph import Topology

LINK_GBPS = "link_gbps"
"""Note with the rate that a file states for a channel of capacity 1, Gbit/s."""

OF_HOSTS_NS = "host_delay_ns"
"""Note with the delays of host channels that a file states, [hosts], ns."""

_MAX_TICKS = 10**9


def stated_delays(topology: Topology) -> tuple[Floats, Floats] | None:
    """Return the delays that the file states in a unit of time; None if it states none, or some in ticks, too.

    Returns
    -------
    Delays of channels, float64 [channels], and of host channels, float64 [hosts], ns.
    """
    unit = next((unit for unit in DELAY_COLUMNS if unit in topology.columns), None)
    if topology.has_delays or (unit is None and OF_HOSTS_NS not in topology.notes):
        return None
    of_channels = np.zeros(topology.channels) if unit is None else DELAY_COLUMNS[unit] * topology.columns[unit]
    return of_channels, np.array(topology.notes.get(OF_HOSTS_NS, [0.0] * topology.hosts), np.float64)


def note_problem(notes: Notes, hosts: int) -> str:
    """Return what is wrong with the notes on rate and delays of links; '' if nothing is.

    Parameters
    ----------
    notes: of a topology.
    hosts: number of its hosts.
    """
    rate, delays = notes.get(LINK_GBPS, 1.0), notes.get(OF_HOSTS_NS, [0.0] * hosts)
    if not _is_number(rate) or not 0 < rate < inf:
        return f"notes['{LINK_GBPS}'] must be a positive number"
    if not isinstance(delays, list) or len(delays) != hosts or not all(map(_is_number, delays)):
        return f"notes['{OF_HOSTS_NS}'] must list a number for each of {hosts} hosts"
    return "" if all(0 <= delay < inf for delay in delays) else f"notes['{OF_HOSTS_NS}'] must be 0 or more, and finite"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def notes_of_links(base: Topology, hosts: int | None = None) -> Notes:
    """Return the notes on rate and delays of links, for a network that is made of another one.

    Parameters
    ----------
    base: the network of the file.
    hosts: number of hosts, those of ``base`` first. A new one has the delay of those, if all are equal, else 0. None:
        as many as in ``base``.
    """
    notes = {key: base.notes[key] for key in (LINK_GBPS, OF_HOSTS_NS) if key in base.notes}
    if (stated := notes.get(OF_HOSTS_NS)) and hosts is not None:
        common = stated[0] if len(set(stated)) == 1 else 0.0
        notes[OF_HOSTS_NS] = [*stated, *[common] * (hosts - len(stated))]
    return notes


def with_stated_delays(topology: Topology, tick_ns: Fraction) -> Topology:
    """Return the topology with the delays that its file states, in ticks, rounded up.

    The stated delay includes the tick of propagation that a channel has in any switching mode.

    Parameters
    ----------
    topology: with :func:`stated_delays`.
    tick_ns: nanoseconds of a tick.

    Raises
    ------
    SpecError: a delay is negative, or of more than 1e9 ticks.
    """
    stated = stated_delays(topology)
    assert stated is not None
    delay, host_delay = (_ticks(part, tick_ns) for part in stated)
    return replace(topology, delay=delay, host_delay=host_delay if host_delay.any() else None)


def _ticks(delay: Floats, tick_ns: Fraction) -> Ints:
    """Ticks of delays in ns, beside the one that every channel has."""
    values, index = np.unique(delay, return_inverse=True)
    if len(values) and not 0 <= values[0] <= values[-1] <= _MAX_TICKS * float(tick_ns):
        raise SpecError(
            f"delays of {values[0]:g} to {values[-1]:g} ns must be from 0 to {_MAX_TICKS:.0e} ticks", "path"
        )
    ticks = [max(ceil(Fraction(repr(value)) / tick_ns) - 1, 0) for value in values.tolist()]
    return np.array(ticks, np.int64)[index]
