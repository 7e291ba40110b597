# SPDX-License-Identifier: Apache-2.0
"""Attributes of nodes and edges in graph files: labels, and numbers under other names than ours."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from flitlab.models.delimited import is_number
from flitlab.models.mappings import Fields

SIMILAR_WORDS = {
    "capacity": ("capacity", "bandwidth", "speed", "throughput", "weight", "bw", "cap", "rate", "gbps", "mbps"),
    "delay": ("delay", "latency", "length", "distance", "lat", "dist", "rtt"),
    "hosts": ("hosts", "host", "servers", "server", "terminals", "endpoints", "concentration"),
}
"""What a topology reads -> words in the names that other programs use for it."""

DELAY_COLUMNS = {"delay_ns": 1, "delay_us": 1000}
"""Columns of channels that are delays in a unit of time -> its nanoseconds."""

LABELS = ("label", "name")
"""Attributes of nodes, in lower case, that are labels."""


def unread_attributes(elements: Iterable[Fields], kind: str, read: str) -> list[str]:
    """List attributes that look like a capacity, a delay or a number of hosts but are not read.

    Parameters
    ----------
    elements: the attributes of each edge or node.
    kind: ``capacity``, ``delay`` or ``hosts``.
    read: the attribute that is read as such; delays in a unit of time are read, too.

    Returns
    -------
    Their names, sorted; empty where an attribute that is read is present.
    """
    numbers: set[str] = set()
    known = {read, *(DELAY_COLUMNS if kind == "delay" else ())}
    for data in elements:
        if not known.isdisjoint(data):
            return []
        numbers |= {name for name, value in data.items() if name not in numbers and is_number(value)}
    return sorted(name for name in numbers if _is_like(name, kind))


def unread_warning(names: Sequence[str], kind: str, key: str = "") -> str:
    """Return a warning that attributes are not read, '' without any.

    Parameters
    ----------
    names: of the attributes.
    kind: what they look like, as in :func:`unread_attributes`.
    key: the configuration key that names the attribute to read; '' without such a key.
    """
    if not names:
        return ""
    plural, what = len(names) > 1, "nodes" if kind == "hosts" else "edges"
    text = f"attribute{'s' if plural else ''} {', '.join(names)} of {what} {'are' if plural else 'is'} not read"
    if not key:
        return f"{text}; only {kind} is read"
    return f"{text}; {key}{'' if plural else f': {names[0]}'} reads {'one of them' if plural else 'it'}"


def _is_like(name: str, kind: str) -> bool:
    """Whether a name contains a word for such an attribute; short words must be separate, as in max_bw or MaxBw."""
    words = {word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", name)}
    return any(word in words or (len(word) > 4 and word in name.lower()) for word in SIMILAR_WORDS[kind])


def labels_of(nodes: Mapping[str, Fields]) -> tuple[dict[str, str], str]:
    """Return the label of each node by its id, and a warning of labels that are not unique.

    A node's name is its label (or name, where nodes have no labels), or its id where the label is missing or not
    unique.

    Parameters
    ----------
    nodes: id -> attributes.

    Returns
    -------
    id -> label or id; and the warning, '' without any.
    """
    for attribute in LABELS:
        labels = {key: text for key, data in nodes.items() if (text := _label(data, attribute))}
        if labels:
            count = Counter(labels.values())
            names = {key: labels[key] if count[labels.get(key, "")] == 1 else key for key in nodes}
            return names, _shared([label for label, times in count.items() if times > 1], count)
    return {key: key for key in nodes}, ""


def _label(data: Fields, attribute: str) -> str:
    """Return the attribute of this name, in any case, as text; '' if it is missing."""
    return next((str(value).strip() for name, value in data.items() if name.lower() == attribute), "")


def _shared(repeated_labels: Sequence[str], count: Mapping[str, int]) -> str:
    if not repeated_labels:
        return ""
    nodes, more = (
        sum(count[label] for label in repeated_labels),
        f" and {len(repeated_labels) - 1} more" if len(repeated_labels) > 1 else "",
    )
    return f"label {repeated_labels[0]!r}{more}: not unique, so that these {nodes} nodes go by their ids"


def numeric_columns(edges: list[Fields]) -> dict[str, list[float]]:
    """Return the attributes that all edges have and that are finite numbers, except those with a field of their own.

    edges: the attributes of each.
    """
    names = set(edges[0]).intersection(*edges[1:]) - {"capacity", "delay", "reverse"} if edges else set()

    def is_finite(value: object) -> bool:
        return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))

    return {
        name: [float(data[name]) for data in edges]
        for name in sorted(name for name in names if isinstance(name, str))
        if all(is_finite(data[name]) for data in edges)
    }


def host_delays(nodes: list[tuple[str, Fields]], counts: list[int]) -> list[int] | None:
    """Return the delays of all hosts in order, from lists at nodes; None where no node has one.

    nodes: (description for messages, attributes). counts: hosts of each. Raises ``ValueError``.
    """
    if not any("host_delay" in data for _, data in nodes):
        return None
    delays: list[int] = []
    for (what, data), count in zip(nodes, counts, strict=True):
        listed = data.get("host_delay", [0] * count)
        if not isinstance(listed, list) or len(listed) != count:
            raise ValueError(f"{what}: host_delay = {listed!r} must list the delays of its {count} hosts")
        delays += numbers_of([(what, {"host_delay": delay}) for delay in listed], "host_delay", 0, int)
    return delays


def ejection_switches(
    nodes: list[tuple[str, Fields]], counts: list[int], index: Mapping[Hashable, int]
) -> list[int] | None:
    """Return the switches where hosts eject, from lists at nodes; None where no node has one.

    nodes, counts: as for :func:`host_delays`; a node without a list ejects its hosts itself. index: the switch of each
    node. Raises ``ValueError``.
    """
    if not any("ejection" in data for _, data in nodes):
        return None
    switches: list[int] = []
    for v, ((what, data), count) in enumerate(zip(nodes, counts, strict=True)):
        listed = data.get("ejection")
        if listed is None:
            switches += [v] * count
        elif not isinstance(listed, list) or len(listed) != count or any(node not in index for node in listed):
            raise ValueError(f"{what}: ejection = {listed!r} must list the nodes where its {count} hosts eject")
        else:
            switches += [index[node] for node in listed]
    return switches


def numbers_of(elements: list[tuple[str, Fields]], name: str, default: float, kind: type) -> list[Any]:
    """Return the numbers of an attribute.

    Parameters
    ----------
    elements: (description for messages, attributes) of each node or edge.
    name: the attribute.
    default: where it is missing.
    kind: float, for positive numbers, or int, for whole numbers from 0.

    Raises
    ------
    ValueError: it is no such number.
    """
    numbers = []
    for what, data in elements:
        value = data.get(name, default)
        try:
            number = kind(value)
            wrong = not (0 <= number < float("inf")) or (kind is float and number == 0) or number != float(value)
        except (TypeError, ValueError, OverflowError):
            wrong = True
        if wrong:
            must = "a positive number" if kind is float else "a whole number from 0"
            raise ValueError(f"{what}: {name} = {value!r} must be {must}")
        numbers.append(number)
    return numbers
