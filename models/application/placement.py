# SPDX-License-Identifier: Apache-2.0
"""What a placement is asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from flitlab.models.application.program import Program
from flitlab.models.arrays import Ints
from flitlab.models.faults import Found, array_faults, at_first, notes_faults, plain, refuse
from flitlab.models.registry import Spec, SpecError, is_third_party
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.sound import unchanged


class PlacementSpec(Spec):
    """Decides which host runs which rank, by :meth:`hosts`.

    named: whether hosts are named, and not chosen from those that are free.
    """

    named: ClassVar[bool] = False

    def hosts(self, topology: Topology, program: Program) -> Ints:
        """int64 [ranks], the host of each rank, all different. Raises ``SpecError`` (also for too few hosts)."""
        raise NotImplementedError

    def notes(self, topology: Topology, host: Ints) -> dict[str, Any]:
        """What a reader of results should know (JSON-able) of the hosts that it gave, int64 [ranks]."""
        return {}

    def build(self, topology: Topology, program: Program) -> np.ndarray:
        """int64 [ranks], the host of each rank, looked at. Raises ``SpecError``."""
        return self.validated(self.hosts, topology, program)

    def among(self, topology: Topology, program: Program, free: Ints) -> Ints:
        """int64 [ranks], the host of each rank where only the hosts ``free`` are, unless hosts are named.

        free: int64, ascending. Raises ``SpecError``.
        """
        if self.named or len(free) == topology.hosts:
            return self.build(topology, program)
        delay = None if topology.host_delay is None else topology.host_delay[free]
        within = replace(topology, host_switch=topology.host_switch[free], host_delay=delay)
        return np.asarray(free[self.build(within, program)], np.int64)

    def validated(
        self, method: Callable[[Topology, Program], np.ndarray], topology: Topology, program: Program
    ) -> np.ndarray:
        """What a method of the placement gives: a host of its own for every rank."""
        with unchanged(topology, method):
            host = method(topology, program)
        refuse(host_errors(host, program.ranks, topology.hosts))
        return plain(host, np.int64, copy=is_third_party(self))

    def validated_notes(self, topology: Topology, host: Ints) -> dict[str, Any]:
        """The notes, looked at. Raises ``SpecError``."""
        with unchanged(topology, self.notes):
            notes = self.notes(topology, host)
        refuse(notes_faults(notes))
        return notes


def host_errors(host: np.ndarray, ranks: int, hosts: int) -> Found:
    """What is wrong with an array that is to say on which host each rank is."""
    form = list(array_faults("the hosts of the ranks", host, np.integer, ranks))
    yield from form
    if form:
        return
    yield from at_first(
        "outside", np.flatnonzero((host < 0) | (host >= hosts)),
        lambda rank: f"rank {rank} is on host {host[rank]}; hosts are 0 to {hosts - 1}",
    )  # fmt: skip
    used_hosts, times = np.unique(host, return_counts=True)
    if (times > 1).any():
        yield "twice", f"several ranks are on host {used_hosts[times > 1][0]}; every rank needs a host of its own"


def require_enough_hosts(topology: Topology, program: Program) -> None:
    """Raise ``SpecError`` for more ranks than hosts."""
    if program.ranks > topology.hosts:
        raise SpecError(f"{program.ranks} ranks need as many hosts; the network has {topology.hosts}")
