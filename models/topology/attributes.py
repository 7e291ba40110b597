# SPDX-License-Identifier: Apache-2.0
"""Attributes of nodes and edges in graph files: labels, and numbers under other names than ours."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SIMILAR_WORDS = {
    "capacity": ("capacity", "bandwidth", "speed", "throughput", "weight", "bw", "cap", "rate", "gbps", "mbps"),
    "delay": ("delay", "latency", "length", "distance", "lat", "dist", "rtt"),
    "hosts": ("hosts", "host", "servers", "server", "terminals", "endpoints", "concentration"),
}
"""What a topology reads -> words in the names that other programs use for it."""

LABELS = ("label", "name")
"""Attributes of nodes, in lower case, that are labels."""


def unread_attributes(elements: Iterable[Mapping[str, Any]], kind: str, read: str) -> list[str]:
    """List attributes that look like a capacity, a delay or a number of hosts but are not read.

    Parameters
    ----------
    elements: the attributes of each edge or node.
    kind: ``capacity``, ``delay`` or ``hosts``.
    read: the attribute that is read as such.

    Returns
    -------
    Their names, sorted; empty where the attribute that is read is present.
    """
    numbers: set[str] = set()
    for data in elements:
        if read in data:
            return []
        numbers |= {name for name, value in data.items() if name not in numbers and _is_number(value)}
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


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def labels_of(nodes: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, str], str]:
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


def _label(data: Mapping[str, Any], attribute: str) -> str:
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
