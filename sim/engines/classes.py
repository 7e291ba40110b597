# SPDX-License-Identifier: Apache-2.0
"""Classes of traffic in both engines: the tables of a scenario, and where there can be none."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from flitlab.models.arrays import Bools
from flitlab.models.rules.classes import NO_LIMIT, ClassTables, Process, make_class_tables
from flitlab.models.scenario import Scenario


def class_tables(scenario: Scenario[Any], processes: Sequence[Process]) -> ClassTables | None:
    """Make the tables of the classes of a scenario; None where all packets are of one class.

    Parameters
    ----------
    scenario: of the run.
    processes: of its classes, from :func:`~flitlab.models.rules.classes.make_processes`.

    Raises
    ------
    ValueError: its mode has no classes.
    """
    if not scenario.traffic.classes:
        return None
    if not scenario.switching.has_classes:
        raise ValueError(f"mode {scenario.switching.mode} has no classes of traffic")
    by_class = getattr(scenario.switching, "priority", "none") == "class"
    tables = make_class_tables(scenario.traffic, processes, scenario.switching.vcs, by_class)
    if not scenario.switching.limits_replies:
        tables.reply_limit[:] = NO_LIMIT
    return tables


def has_replies(classes: ClassTables | None) -> bool:
    """Whether hosts reply to packets of a class; classes: of the run, None without."""
    return classes is not None and bool((classes.reply >= 0).any())


def sent_while_draining(classes: ClassTables | None) -> Bools:
    """Whether hosts start packets of each class while they wait for an empty network, bool [classes].

    They do so for replies that a host owes a limited number of: requests in the network may wait for them to leave.

    Parameters
    ----------
    classes: of the run, None without.
    """
    if classes is None:
        return np.zeros(1, bool)
    limited: Bools = (classes.request >= 0) & (classes.reply_limit[classes.request] < NO_LIMIT)
    return limited


def reject_classes(scenario: Scenario[Any], user: str) -> None:
    """Raise ``ValueError`` for a scenario with classes of traffic.

    Parameters
    ----------
    scenario: of the run.
    user: who cannot have them, for the message.
    """
    if scenario.traffic.classes:
        raise ValueError(f"{user} is not for traffic with classes")
