# SPDX-License-Identifier: Apache-2.0
"""Specifications from Python: objects, names and mappings, converted to the form of a configuration."""

import io
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from flitlab.models.delimited import quoted
from flitlab.models.mappings import Keys
from flitlab.models.registry import Parameters, SpecError, UnknownKindError, kind_key, make, recorded_warnings
from flitlab.models.topology.formats.own_json import json_text
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names, switch_names
from flitlab.models.topology.validation import topology_errors
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.validation import error_texts
from flitlab.sim.config.diagnostics import ConfigError, Diagnostic
from flitlab.sim.config.schema import SECTIONS
from flitlab.sim.config.text import MAX_DEPTH


def configuration(mapping: Mapping[str, object], topology: object = None) -> Keys:
    """A mapping as a plain configuration; it may hold names, objects and arrays in place of specifications.

    topology: a topology that is given outside of the mapping. Raises
    :class:`~flitlab.sim.config.diagnostics.ConfigError` for an object that is no specification.
    """
    sections = _sections(mapping, mapping.get("topology", topology))
    if isinstance(cases := sections.get("cases"), list | tuple):
        shared = sections.get("topology", topology)
        sections["cases"] = [
            _sections(case, case.get("topology", shared)) if isinstance(case, Mapping) else case for case in cases
        ]
    return {key: plain(value, key) for key, value in sections.items()}


def _sections(mapping: Mapping[str, object], topology: object) -> Keys:
    """A mapping with its components in the form of a configuration."""
    sections = {str(key): value for key, value in mapping.items()}
    return sections | {name: _options(name, sections[name], topology) for name in SECTIONS if name in sections}


MAX_DIGITS = 400
"""Digits of a whole number beyond which YAML rejects it, see :mod:`flitlab.sim.config.text`."""


def plain(value: object, key: str = "", parents: tuple[object, ...] = ()) -> Any:
    """Mappings, lists and scalars as YAML knows them, from what is usual in Python.

    Parameters
    ----------
    value: numbers and texts of Python and NumPy, arrays of them, series of pandas, paths, lists, tuples, ranges,
        mappings.
    key: path of the value in the configuration, for errors.
    parents: the mappings and lists that hold the value, outermost first.

    Raises
    ------
    ConfigError: any other value, masked arrays, a mapping or list that contains itself.
    """
    if value is None or isinstance(value, bool | np.bool_):
        return value if value is None else bool(value)
    if isinstance(value, str | Path):
        return str.__str__(value) if isinstance(value, str) else str(value)
    if isinstance(value, int | np.integer):
        if abs(int(value)) >= 10**MAX_DIGITS:
            raise _value_error(key, f"must have at most {MAX_DIGITS} digits")
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ma.MaskedArray):
        raise _value_error(key, "is a masked array: fill in its masked entries")
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return value.tolist() if value.dtype.itemsize <= 8 else plain(list(value), key)
    if any(value is one for one in parents):
        raise _value_error(key, "contains itself")
    if len(parents) > MAX_DEPTH:
        raise _value_error(key.partition(".")[0].partition("[")[0], f"is nested more than {MAX_DEPTH} deep")
    inside = (*parents, value)
    if isinstance(value, Mapping):
        return {str(name): plain(item, f"{key}.{name}".lstrip("."), inside) for name, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item, f"{key}[{i}]", inside) for i, item in enumerate(value)]
    what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    hint = "; make a list of it" if isinstance(value, Iterable) and not isinstance(value, bytes) else ""
    raise _value_error(key, f"is {what}; must be a real number, a text, a list or a mapping{hint}")


def _value_error(key: str, problem: str) -> ConfigError:
    return ConfigError([Diagnostic("configuration", key, "", problem)])


def component(category: str, value: object, topology: object = None) -> Any:
    """A component in the form of a configuration, from its name, its specification or an object.

    Parameters
    ----------
    category : str
        ``topology``, ``routing``, ``traffic``, ...
    value : object
        The component.
    topology : object
        The given topology, to which a matrix of demands belongs.

    Raises
    ------
    ConfigError
        The object is no such component.
    """
    if isinstance(value, str):
        return {kind_key(category): value}
    if isinstance(value, Parameters):
        return value.model_dump(mode="json", exclude_unset=True)
    if category == "topology" and (graph := topology_of(value)) is not None:
        return {"kind": "file", "text": json_text(graph)}
    if category == "topology" and isinstance(value, Mapping) and "graph" in value:
        return _with_keys(value)
    if category == "traffic" and (frame := _labelled(value)) is not None:
        graph = graph_of(topology)
        return {"kind": "matrix", "text": frame, "level": _level_of_names(value, graph), "normalise": "none"}
    if category == "traffic" and (matrix := _matrix(value)) is not None:
        level = "host" if isinstance(value, Traffic) else _level(matrix, topology)
        return {"kind": "matrix", "text": _pairs(matrix), "names": "numbers", "level": level, "normalise": "none"}
    if category == "application" and isinstance(value, list | tuple):  # of jobs
        return [component(category, job) if isinstance(job, Parameters) else job for job in value]
    if value is None or isinstance(value, Mapping):
        return value
    taken = {
        "topology": ", a Topology, a networkx graph", "application": ", a list of jobs",
        "traffic": ", a Traffic, a square matrix, a data frame",
    }  # fmt: skip
    problem = f"is a {type(value).__name__}; must be a name, a mapping{taken.get(category, '')} or a specification"
    raise ConfigError([Diagnostic("configuration", category, "", problem)])


def topology_of(value: object, pair_directions: bool | None = None) -> Topology | None:
    """The topology of an object or a networkx graph; None of anything else.

    A switch has one host unless the graph says otherwise. pair_directions: whether opposite edges are links. Raises
    :class:`~flitlab.sim.config.diagnostics.ConfigError` for a graph that is no network.
    """
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(value, networkx.Graph):
        try:
            value = Topology.from_networkx(value, pair_directions=bool(pair_directions))
        except ValueError as error:
            raise ConfigError([Diagnostic("configuration", "topology", "", str(error))]) from None
    if not isinstance(value, Topology):
        return None
    if texts := error_texts(topology_errors(value)):
        raise ConfigError([Diagnostic("configuration", "topology", "", text) for text in texts])
    return value if value.hosts_stated or value.hosts else value.with_hosts(1, value.host_capacity)


def _with_keys(value: Mapping[str, Any]) -> Keys:
    """A graph with keys of ``kind: file``: ``{"graph": graph, "pair_directions": True}``."""
    keys = {key: item for key, item in value.items() if key != "graph"}
    if (graph := topology_of(value["graph"], keys.get("pair_directions"))) is None or keys.pop(
        "kind", "file"
    ) != "file":
        problem = "graph must be a networkx graph or a Topology, and kind file or left out"
        raise ConfigError([Diagnostic("configuration", "topology", "", problem)])
    return {"kind": "file", "text": json_text(graph), **keys}


def _options(category: str, value: object, topology: object) -> object:
    """A component, or all options of a sweep."""
    if isinstance(value, Mapping) and isinstance(value.get("sweep"), list | tuple):
        return {**value, "sweep": [component(category, option, topology) for option in value["sweep"]]}
    return component(category, value, topology)


def _matrix(value: Any) -> "scipy.sparse.csr_array | None":
    """A square matrix of demands; None of anything else. Raises ``ConfigError``."""
    if isinstance(value, Traffic):
        source, target, amount = value.pairs()
        hosts = value.topology.hosts
        return scipy.sparse.csr_array((amount, (source, target)), (hosts, hosts))
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if not (isinstance(value, np.ndarray) or scipy.sparse.issparse(value)):
        return None
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        problem = f"a matrix of demands is square; this one is {' x '.join(map(str, value.shape))}"
        raise ConfigError([Diagnostic("configuration", "traffic", "", problem)])
    if isinstance(value, np.ma.MaskedArray):
        raise _value_error("traffic", "is a masked array: fill in its masked entries")
    if value.dtype.kind not in "biuf":
        raise _value_error("traffic", f"is a matrix of {value.dtype}; demands are real numbers")
    return scipy.sparse.csr_array(value, dtype=float)


def _pairs(matrix: "scipy.sparse.csr_array") -> str:
    """The lines ``src,dst,demand`` of a matrix."""
    entries, text = scipy.sparse.coo_array(matrix), io.StringIO("src,dst,demand\n")
    text.seek(0, io.SEEK_END)
    for u, v, amount in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True):
        if amount:
            text.write(f"{u},{v},{amount!r}\n")
    return text.getvalue()


def _labelled(value: Any) -> str | None:
    """A data frame with labels other than 0, 1, ... as a CSV table; None of anything else."""
    if not (hasattr(value, "to_csv") and hasattr(value, "columns")):
        return None
    ends = [list(map(str, value.index)), list(map(str, value.columns))]
    if all(names == list(map(str, range(len(names)))) for names in ends):
        return None
    lines = [",".join(map(quoted, ["", *ends[1]]))]
    rows = zip(ends[0], value.to_numpy().tolist(), strict=True)
    lines += [",".join([quoted(name), *map(repr, row)]) for name, row in rows]
    return "\n".join(lines) + "\n"


def _level_of_names(frame: Any, graph: Topology | None) -> str:
    """Whether the labels of a data frame are those of switches or hosts."""
    if graph is None:
        return "host"
    names = [str(name) for ends in (frame.index, frame.columns) for name in ends]
    of_hosts = all(map(host_names(graph).is_name, names))
    return "switch" if not of_hosts and all(map(switch_names(graph).is_name, names)) else "host"


def graph_of(topology: object) -> Topology | None:
    """The topology of an object or a specification; None where that is wrong."""
    graph = topology_of(topology)
    if graph is not None:
        return graph
    try:
        with recorded_warnings():  # issued again when the configuration is read
            built: Topology = make("topology", **plain(component("topology", topology))).build()
    except (KeyError, TypeError, ValueError, SpecError, UnknownKindError):
        return None  # reading the configuration reports the error
    return built


def _level(matrix: "scipy.sparse.csr_array", topology: object) -> str:
    """Whether a matrix has the size of the hosts or the switches. Raises ``ConfigError``."""
    if (graph := graph_of(topology)) is None:
        return "host"
    size = matrix.shape[0]
    if size == graph.hosts:
        return "host"
    if size == graph.switches:
        return "switch"
    problem = f"a matrix of {size}; there are {graph.hosts} hosts and {graph.switches} switches"
    raise ConfigError([Diagnostic("configuration", "traffic", "", problem)])
