# SPDX-License-Identifier: Apache-2.0
"""Names of switches and hosts: labels from files, and numbers.

All readers of a switch or host name call :meth:`Names.number`, and all writers call :meth:`Names.label` or
:meth:`Names.value`. The notes of a topology store labels:

* ``labels``: a text, or None, for each switch. ``ids``: a second name for each switch, where a file has both.
* ``nodes``: a name for each host, where a file names its hosts. Without, the only host of switch ``Bern`` is ``Bern``,
too, and several are ``Bern/0``, ``Bern/1``, ...
* ``names``: ``labels`` where numbers are not accepted as names.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal
from unicodedata import normalize

import numpy as np

from flitlab.models.arrays import Bools
from flitlab.models.closest_match import closest_match
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError
from flitlab.models.topology.file_delays import OF_HOSTS_NS
from flitlab.models.topology.graph import Topology

Name = int | str
"""Type of the name of a switch or host in a configuration: a number, or a label."""

Which = Literal["labels", "numbers"]
"""Type of the keys ``names``: which names are accepted, where a name may be a label or a number."""

OF_SWITCHES = ("labels", "ids")
"""Notes that have an entry for each switch."""

OF_HOSTS = ("nodes", OF_HOSTS_NS)
"""Notes that have an entry for each host."""

MAX_LISTED = 8
"""Most names that an error lists."""


@dataclass(frozen=True, eq=False)
class Names:
    """The names of the switches, the hosts or the racks of a topology.

    Parameters
    ----------
    what: ``switch``, ``host`` or ``rack``, for messages.
    count: number of switches (hosts, racks); their numbers are 0 to count - 1.
    labels: the label of each, None without one; empty if none has a label.
    others: further names of each, as ``labels``.
    numbered: whether numbers are accepted as names.
    hints: explanations of names that denote something similar (a switch, where hosts are named).
    """

    what: str
    count: int
    labels: Sequence[str | None] = ()
    others: Sequence[str | None] = ()
    numbered: bool = True
    hints: Mapping[str, str] | None = None

    def only(self, which: Which | None) -> "Names":
        """Return labels without numbers, or numbers without labels; None: unchanged."""
        if which == "numbers":
            return Names(self.what, self.count)
        return self if which is None else replace(self, numbered=not self.labelled)

    @property
    def labelled(self) -> bool:
        """Whether any of them has a label."""
        return any(label is not None for label in self.labels)

    def label(self, number: int) -> str:
        """Return the label of a switch (host, rack), or its number as text."""
        return str(self.value(number))

    def value(self, number: int) -> Name:
        """Return the label of a switch (host, rack), or its number, as tables and JSON contain it."""
        label = self.labels[number] if len(self.labels) else None
        return int(number) if label is None else label

    def values(self, numbers: Iterable[int]) -> list[Name]:
        """Return the :meth:`value` of each number."""
        if not self.labelled:
            return [int(number) for number in numbers]
        return [self.value(number) for number in numbers]

    @cached_property
    def _numbers_of(self) -> dict[str, set[int]]:
        """Label -> the numbers that have it."""
        numbers_of: dict[str, set[int]] = defaultdict(set)
        for names in (self.labels, self.others):
            for number, name in enumerate(names):
                if name is not None:
                    numbers_of[_key(name)].add(number)
        return dict(numbers_of)

    @cached_property
    def _resolved(self) -> dict[Name, int]:
        """Cache of resolved names."""
        return {}

    def number(self, name: Name, key: str | None = None, where: str = "") -> int:
        """Return the number of a switch (host, rack) from its name.

        Parameters
        ----------
        name: a label or a number; a text of digits may be either.
        key: configuration key, for the error.
        where: location in a file, for the error.

        Raises
        ------
        SpecError: nothing has this name, or it is ambiguous.
        """
        if (cached := self._resolved.get(name)) is not None:
            return cached
        text = _key(str(name))
        candidates = self._numbers_of.get(text, set()) | self._by_number(text)
        if len(candidates) != 1 or (self.hints and text in self.hints):
            problem = self._ambiguous(text, candidates) if candidates else self._unknown(text)
            raise SpecError(f"{where}: {problem}" if where else problem, key)
        return self._resolved.setdefault(name, next(iter(candidates)))

    def is_name(self, text: str) -> bool:
        """Whether a text is a name, possibly of several."""
        return _key(text) in self._numbers_of or bool(self._by_number(_key(text)))

    def _by_number(self, text: str) -> set[int]:
        """Return the number that a text of digits denotes, if numbers are accepted and it is in range."""
        is_number = self.numbered and re.fullmatch(_DIGITS, text) and int(text) < self.count
        return {int(text)} if is_number else set()

    def _ambiguous(self, text: str, candidates: set[int]) -> str:
        same = self._by_number(text)
        which = "topology.names says which of the two count: labels or numbers"
        if self.hints and text in self.hints:
            return f"{text!r} is the number of a {self.what}, and {self.hints[text]}; {which}"
        if not same:
            listed = _listed(sorted(candidates))
            return f"{text!r} is the name of {len(candidates)} {plural(self.what)}, of numbers {listed}"
        other, kind = min(candidates - same), "label" if text in map(_key, filter(None, self.labels)) else "id"
        return f"{text!r} is the number of one {self.what} and the {kind} of another, whose number is {other}; {which}"

    def _unknown(self, text: str) -> str:
        if self.hints and text in self.hints:
            return f"{text!r} {self.hints[text]}"
        if not self.count:
            return f"{text!r} is no {self.what}: there are none"
        accepted = [f"{plural(self.what)} are numbered 0 to {self.count - 1}"] if self.numbered else []
        if self.labelled:
            accepted.insert(0, f"labels are {_listed([label for label in self.labels if label is not None])}")
        suggestion = closest_match(text, self._numbers_of) if self._numbers_of else None
        return f"{text!r} is no {self.what}: {', and '.join(accepted)}" + (
            f"; did you mean {suggestion!r}?" if suggestion else ""
        )


def _key(text: str) -> str:
    """Normalise a name for look-ups: strip blanks, compose Unicode."""
    return normalize("NFC", text).strip()


_DIGITS = "[0-9]{1,18}"
"""Regular expression of the number of a switch or host."""


def plural(what: str) -> str:
    """Return the plural of ``switch``, ``host`` or ``rack``."""
    return f"{what}es" if what.endswith("ch") else f"{what}s"


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(str, names[:MAX_LISTED])) + (", ..." if len(names) > MAX_LISTED else "")


def switch_names(topology: Topology) -> Names:
    """Return the names of a topology's switches."""
    notes = topology.notes
    labels, ids = (_entries(notes, key, topology.switches) for key in OF_SWITCHES)
    return Names("switch", topology.switches, labels, ids, notes.get("names") != "labels" or not labels)


def host_names(topology: Topology) -> Names:
    """Return the names of a topology's hosts: their own, or those derived from the labels of switches."""
    count, notes = topology.hosts, topology.notes
    numbered = notes.get("names") != "labels"
    nodes = _entries(notes, "nodes", count)
    if nodes:
        return Names("host", count, nodes, (), numbered)
    switches = switch_names(topology)
    if not switches.labelled:
        return Names("host", count)
    labels = _host_labels(topology, switches.labels)
    ids = _host_labels(topology, switches.others) if len(switches.others) else ()
    return Names("host", count, labels, ids, numbered, _hints(topology, switches.labels))


def rack_names(topology: Topology, racks: Sequence[int]) -> Names:
    """Return the names of a topology's racks, the switches with hosts.

    racks: int64, numbers of these switches, in the order of the racks.
    """
    switches = switch_names(topology)
    labels, ids = ([names[v] for v in racks] if len(names) else [] for names in (switches.labels, switches.others))
    return Names("rack", len(racks), labels, ids, switches.numbered)


def _entries(notes: Notes, key: str, count: int) -> list[str | None]:
    """Return names in the notes as texts; [] if they are missing or their number is wrong."""
    names = notes.get(key)
    if not isinstance(names, list) or len(names) != count:
        return []
    return [None if name is None else str(name) for name in names]


def _host_labels(topology: Topology, labels: Sequence[str | None]) -> list[str | None]:
    """Return the label of each host, derived from the labels of switches."""
    index = np.arange(topology.hosts) - topology.host_start[topology.host_switch]
    has_several_hosts = topology.host_count > 1
    host_labels: list[str | None] = []
    for v, k in zip(topology.host_switch.tolist(), index.tolist(), strict=True):
        label = labels[v]
        host_labels.append(label if label is None or not has_several_hosts[v] else f"{label}/{k}")
    return host_labels


def _hints(topology: Topology, labels: Sequence[str | None]) -> dict[str, str]:
    """Return an explanation for each label of a switch that is no name of a host."""
    hints = {}
    for label, hosts in zip(labels, topology.host_count.tolist(), strict=True):
        if label is not None and hosts != 1:
            own = f"whose {hosts} hosts are {label}/0 to {label}/{hosts - 1}" if hosts else "which has no hosts"
            hints[_key(label)] = f"is a switch, {own}"
    return hints


def names_of_part(topology: Topology, switches: Bools, hosts: Bools) -> Notes:
    """Return the notes with names for a part of a topology.

    Parameters
    ----------
    topology: the whole network.
    switches: bool [switches], those of the part.
    hosts: bool [hosts], those of the part.

    Returns
    -------
    The notes ``labels``, ``ids`` and ``nodes``, as far as they exist.
    """
    notes = {}
    for keys, part in ((OF_SWITCHES, switches), (OF_HOSTS, hosts)):
        for key in keys:
            if _entries(topology.notes, key, len(part)):
                notes[key] = [topology.notes[key][i] for i in np.flatnonzero(part).tolist()]
    return notes


def extended_names(topology: Topology, added: int) -> Notes:
    """Return the notes with names for a topology with ``added`` unnamed switches."""
    notes = topology.notes
    names_of = {key: _entries(notes, key, topology.switches) for key in OF_SWITCHES}
    extended: Notes = {key: [*names, *[None] * added] for key, names in names_of.items() if names}
    return extended | ({"names": notes["names"]} if extended and "names" in notes else {})


def join_path(names: Iterable[str]) -> str:
    """Format a path: the names of its switches with ``-`` between them.

    A name that contains ``-``, a quote or a blank at an end is quoted, with quotes in it doubled.

    >>> join_path(["0", "12"]), join_path(["a", "c0-0"])
    ('0-12', 'a-"c0-0"')
    """
    return "-".join(_quoted(name) for name in names)


def split_path(text: str) -> list[str]:
    """Parse a path that :func:`join_path` has written into names of switches.

    Raises ``ValueError`` for other texts.

    >>> split_path('a-"c0-0"-7')
    ['a', 'c0-0', '7']
    """
    if not re.fullmatch(f"{_ONE}(-{_ONE})*", text, re.DOTALL):
        raise ValueError(f"{text!r} is no path: names of switches with - between them")
    names = [match[0] for match in re.finditer(_ONE, text, re.DOTALL)]
    return [name[1:-1].replace('""', '"') if name.startswith('"') else name for name in names]


_ONE = r'(?:"(?:[^"]|"")*"|[^"-][^"-]*)'
"""Regular expression of one name in a path."""


def _quoted(name: str) -> str:
    if name and name == name.strip() and not re.search('["-]', name):
        return name
    return '"' + name.replace('"', '""') + '"'
