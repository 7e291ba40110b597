# SPDX-License-Identifier: Apache-2.0
"""The base class of placements."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from flitlab.models.application.program import Program
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import Spec, SpecError, is_third_party
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import unchanged
from flitlab.models.validation import Errors, array_errors, contiguous, first_error, notes_errors, raise_errors


class PlacementSpec(Spec):
    """Assigns ranks to hosts, by :meth:`hosts`.

    named: whether the hosts are listed, instead of chosen from the free ones.
    """

    named: ClassVar[bool] = False

    def hosts(self, topology: Topology, program: Program) -> Ints:
        """The host of each rank, int64 [ranks], all different. Raises ``SpecError`` (also for too few hosts).

        Parameters
        ----------
        topology: the network.
        program: the program.
        """
        raise NotImplementedError

    def notes(self, topology: Topology, host: Ints) -> Notes:
        """Notes on a placement for the results (JSON-able).

        Parameters
        ----------
        topology: the network.
        host: int64 [ranks], the host of each rank.
        """
        return {}

    def build(self, topology: Topology, program: Program) -> np.ndarray:
        """The validated host of each rank, int64 [ranks]. Raises ``SpecError``.

        Parameters
        ----------
        topology: the network.
        program: the program.
        """
        return self.validated(self.hosts, topology, program)

    def among(self, topology: Topology, program: Program, free: Ints) -> Ints:
        """The host of each rank, int64 [ranks], of the free hosts only, unless hosts are listed.

        Parameters
        ----------
        topology: the network.
        program: the program.
        free: int64, the free hosts, ascending.

        Raises
        ------
        SpecError: the placement is impossible.
        """
        if self.named or len(free) == topology.hosts:
            return self.build(topology, program)
        delay = None if topology.host_delay is None else topology.host_delay[free]
        ejection = None if topology.ejection is None else topology.ejection[free]
        within = replace(topology, host_switch=topology.host_switch[free], host_delay=delay, ejection=ejection)
        return np.asarray(free[self.build(within, program)], np.int64)

    def validated(
        self, method: Callable[[Topology, Program], np.ndarray], topology: Topology, program: Program
    ) -> np.ndarray:
        """The validated result of a method of the placement: a host of its own for every rank.

        Parameters
        ----------
        method: the method.
        topology: the network.
        program: the program.

        Returns
        -------
        int64 [ranks].

        Raises
        ------
        SpecError: an invalid result.
        """
        with unchanged(topology, method):
            host = method(topology, program)
        raise_errors(host_errors(host, program.ranks, topology.hosts))
        return contiguous(host, np.int64, copy=is_third_party(self))

    def validated_notes(self, topology: Topology, host: Ints) -> Notes:
        """The validated notes on a placement.

        Parameters
        ----------
        topology: the network.
        host: int64 [ranks], the host of each rank.

        Raises
        ------
        SpecError: invalid notes.
        """
        with unchanged(topology, self.notes):
            notes = self.notes(topology, host)
        raise_errors(notes_errors(notes))
        return notes


def host_errors(host: np.ndarray, ranks: int, hosts: int) -> Errors:
    """Errors in the host of each rank.

    Parameters
    ----------
    host: int64 [ranks].
    ranks: number of ranks.
    hosts: number of hosts.

    Returns
    -------
    Kind and text of each error.
    """
    form = list(array_errors("the hosts of the ranks", host, np.integer, ranks))
    yield from form
    if form:
        return
    yield from first_error(
        "outside", np.flatnonzero((host < 0) | (host >= hosts)),
        lambda rank: f"rank {rank} is on host {host[rank]}; hosts are 0 to {hosts - 1}",
    )  # fmt: skip
    used_hosts, times = np.unique(host, return_counts=True)
    if (times > 1).any():
        yield "twice", f"several ranks are on host {used_hosts[times > 1][0]}; every rank needs a host of its own"


def require_enough_hosts(topology: Topology, program: Program) -> None:
    """Raise ``SpecError`` for more ranks than hosts.

    Parameters
    ----------
    topology: the network.
    program: the program.
    """
    if program.ranks > topology.hosts:
        raise SpecError(f"{program.ranks} ranks need {program.ranks} hosts; the network has {topology.hosts}")
