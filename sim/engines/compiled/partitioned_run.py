# SPDX-License-Identifier: Apache-2.0
"""One run on several threads, each of which has a region of the network."""

from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import DELIVERED_PACKETS, HOPS_MAX, OCCUPANCY_MAX
from flitlab.sim.engines.compiled.barrier import CALLED_OFF

SUMS = "scalars", "histogram", "hops", "deflections", "by_source"
"""Counters of which every region has its own."""


class Team:
    """The regions of a run, which are simulated side by side.

    kernel: of a discipline, a module with ``split``, ``fold`` and ``advance``. whole: the state of all, whose counters
    are up to date between calls of :meth:`advance`.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario, constants: Any, state: Any, threads: int):
        self._kernel, self._hosts = kernel, scenario.topology.hosts
        self._constants, self.whole, self._regions = kernel.split(scenario, constants, state, threads)
        self._helpers = ThreadPoolExecutor(threads - 1)

    def advance(self, now: int, until: int) -> int:
        """Simulate the ticks from ``now`` to ``until`` - 1, or to an earlier one, which is returned, where logs are."""
        if len(self.whole.tally.log):
            until = min(until, now + self._make_room())
        first, *others = self._regions
        move = self._kernel.advance
        move(self._constants, first, now, now)  # what has to be compiled is, before anybody waits
        try:
            running = [self._helpers.submit(move, self._constants, region, now, until) for region in others]
            move(self._constants, first, now, until)
            for future in running:
                future.result()
        except BaseException:
            first.mail.meeting[CALLED_OFF] = 1
            raise
        self._count()
        return until

    def complete(self) -> Any:
        """Return the state of all with the packets in the network and the log, too."""
        whole = self._kernel.fold(self._constants, self.whole, self._regions)
        if not len(whole.tally.log):
            return whole
        logs = [region.tally.log[: region.tally.scalars[DELIVERED_PACKETS]] for region in self._regions]
        return whole._replace(tally=whole.tally._replace(log=np.concatenate(logs)))

    def _make_room(self) -> int:
        """Make room in every log; returns for how many ticks that is enough."""
        ticks = max(1, len(self.whole.tally.log) // self._hosts - 1)
        for place, region in enumerate(self._regions):
            log, used = region.tally.log, region.tally.scalars[DELIVERED_PACKETS]
            if used + (ticks + 1) * self._hosts > len(log):
                log = np.concatenate([log, np.zeros_like(log)])
                self._regions[place] = region._replace(tally=region.tally._replace(log=log))
        return ticks

    def _count(self) -> None:
        """Add up what the regions have counted."""
        tallies = [region.tally for region in self._regions]
        for name in SUMS:
            np.sum([getattr(tally, name) for tally in tallies], axis=0, out=getattr(self.whole.tally, name))
        if self.whole.program is not None:
            totals = [region.program.ranks.totals for region in self._regions]
            np.sum(totals, axis=0, out=self.whole.program.ranks.totals)
        for most in (HOPS_MAX, OCCUPANCY_MAX):
            self.whole.tally.scalars[most] = max(tally.scalars[most] for tally in tallies)
