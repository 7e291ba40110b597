# SPDX-License-Identifier: Apache-2.0
"""One run on several threads, each of which simulates a partition of the network."""

from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled import Constants, State
from flitlab.sim.engines.compiled.barrier import CANCELLED

SUMMED_COUNTERS = "scalars", "histogram", "hops", "deflections", "by_src_host"
"""Counters that each partition keeps and that are summed."""


class PartitionedRun:
    """Partitions of a run, simulated in parallel.

    Parameters
    ----------
    kernel: of a switching mode: a module with ``split_state_into_partitions``, ``merge_partition_states``,
    ``inputs_of_partitions`` and ``advance``.
    scenario, constants, state: of the run at tick 0.
    threads: number of partitions.

    ``merged`` is the state of the whole network; its counters are valid between calls of :meth:`advance`.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario, constants: Constants, state: State, threads: int):
        self._kernel, self._hosts = kernel, scenario.topology.hosts
        self._constants, self.merged, self._partitions = kernel.split_state_into_partitions(
            scenario, constants, state, threads
        )
        self._workers = ThreadPoolExecutor(threads - 1)

    def count_channels(self, merged: State) -> State:
        """Count the traffic of channels in arrays that all partitions share; returns ``merged``.

        merged: state of the whole network with these arrays (see ``RunCounters`` and ``StallCounters``).
        """
        bounds = self._kernel.inputs_of_partitions(self._constants, len(self._partitions)).tolist()
        self.merged = merged
        self._partitions = [
            state._replace(
                counters=state.counters._replace(channels=merged.counters.channels),
                stalls=merged.stalls._replace(first_input=first, end_input=end),
            )
            for state, first, end in zip(self._partitions, bounds, bounds[1:], strict=False)
        ]
        return merged

    def advance(self, now: int, until: int) -> int:
        """Simulate the ticks from ``now`` to ``until`` - 1, or fewer where logs are kept; returns the tick reached."""
        if len(self.merged.counters.log):
            until = min(until, now + self._enlarge_logs())
        first, *rest = self._partitions
        advance_kernel = self._kernel.advance
        advance_kernel(self._constants, first, now, now)  # compile before any thread waits at the barrier
        try:
            futures = [
                self._workers.submit(advance_kernel, self._constants, partition, now, until) for partition in rest
            ]
            advance_kernel(self._constants, first, now, until)
            for future in futures:
                future.result()
        except BaseException:
            first.mailboxes.barrier[CANCELLED] = 1
            raise
        self._sum_counters()
        return until

    def complete(self) -> State:
        """Return the merged state with all packets in the network, and the log."""
        merged = self._kernel.merge_partition_states(self._constants, self.merged, self._partitions)
        if not len(merged.counters.log):
            return merged
        logs = [
            partition.counters.log[: partition.counters.scalars[Scalar.DELIVERED_PACKETS]]
            for partition in self._partitions
        ]
        return merged._replace(counters=merged.counters._replace(log=np.concatenate(logs)))

    def _enlarge_logs(self) -> int:
        """Enlarge the logs; returns the ticks for which they suffice."""
        ticks = max(1, len(self.merged.counters.log) // self._hosts - 1)
        for index, partition in enumerate(self._partitions):
            log, used = partition.counters.log, partition.counters.scalars[Scalar.DELIVERED_PACKETS]
            if used + (ticks + 1) * self._hosts > len(log):
                log = np.concatenate([log, np.zeros_like(log)])
                self._partitions[index] = partition._replace(counters=partition.counters._replace(log=log))
        return ticks

    def _sum_counters(self) -> None:
        """Sum the counters of the partitions."""
        counters = [partition.counters for partition in self._partitions]
        for name in SUMMED_COUNTERS:
            np.sum([getattr(part, name) for part in counters], axis=0, out=getattr(self.merged.counters, name))
        if self.merged.program is not None:
            totals = [partition.program.ranks.totals for partition in self._partitions]
            np.sum(totals, axis=0, out=self.merged.program.ranks.totals)
        for maximum in (Scalar.HOPS_MAX, Scalar.OCCUPANCY_MAX, Scalar.INPUT_PACKETS_MAX):
            self.merged.counters.scalars[maximum] = max(part.scalars[maximum] for part in counters)
