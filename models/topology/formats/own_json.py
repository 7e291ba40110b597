# SPDX-License-Identifier: Apache-2.0
"""The project's own lossless JSON format."""

import json
import math
import re
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, NoReturn

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.models.mappings import Notes
from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.file_delays import note_problem
from flitlab.models.topology.formats.common import FormatError, json_of, text_of, write_lines, wrong_reverse
from flitlab.models.topology.formats.format import FileFormat, without_attributes
from flitlab.models.topology.graph import HOPS, Grid, Topology
from flitlab.models.topology.limits import MAX_SIZE

_Whole = Annotated[int, Field(ge=0)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Channel(NamedTuple):
    src: _Whole
    dst: _Whole
    capacity: _Positive
    delay: _Whole
    reverse: Annotated[int, Field(ge=-1)]


class _Grid(BaseModel):
    dims: list[Annotated[int, Field(ge=1)]]
    wrap: bool
    coordinates: list[list[_Whole]]


class _Document(BaseModel):
    """The JSON form: one array [src, dst, capacity, delay, reverse] per channel, hosts counted by switch.

    ``reverse`` is the index of the opposite channel, or -1. host_delay: of each host, switch by switch. ejection: the
    switch where each host ejects, if it is not where it injects. columns: further numbers of channels, by name.
    subnets: equal copies that the network consists of.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["flitlab-topology"] = "flitlab-topology"
    version: Literal[1] = 1
    kind: str
    switches: Annotated[int, Field(ge=1)]
    host_capacity: _Positive | Literal["inf"] = 1.0
    hosts: list[_Whole]
    host_delay: list[_Whole] | None = None
    ejection: list[_Whole] | None = None
    default_weight: Literal["hops", "delay"] = "hops"
    columns: dict[str, list[_Finite]] = {}
    subnets: Annotated[int, Field(ge=1)] = 1
    grid: _Grid | None = None
    notes: Notes = {}
    channels: list[_Channel]


def write_json(topology: Topology, path: FilePath) -> list[str]:
    """Write everything that a topology contains, one channel per line; :func:`read_json` restores it.

    Returns an empty list: all features are kept.
    """
    write_lines(path, [json_text(topology)])
    return []


def json_text(topology: Topology) -> str:
    """Return the text that :func:`write_json` writes, without the last newline."""
    grid, more = topology.grid, {name: values.tolist() for name, values in topology.columns.items()}
    head = {
        "format": "flitlab-topology",
        "version": 1,
        "kind": topology.kind,
        "switches": topology.switches,
        "host_capacity": topology.host_capacity if math.isfinite(topology.host_capacity) else "inf",
        "hosts": topology.host_count.tolist(),
        **({} if topology.host_delay is None else {"host_delay": topology.host_delay.tolist()}),
        **({} if topology.ejection is None else {"ejection": topology.ejection.tolist()}),
        **({} if topology.default_weight == HOPS else {"default_weight": topology.default_weight}),
        **({"columns": more} if more else {}),
        **({} if topology.subnets == 1 else {"subnets": topology.subnets}),
        "grid": grid and {"dims": grid.dims, "wrap": grid.wrap, "coordinates": grid.coordinates.tolist()},
        "notes": topology.notes,
    }
    columns = (topology.src, topology.dst, topology.capacity, topology.delay, topology.reverse)
    channels = [json.dumps(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in head.items()]
    lines.append('"channels": [\n' + ",\n".join(channels) + "\n]")
    return "\n".join(["{", ",\n".join(lines), "}"])


def read_json(path: Readable) -> Topology:
    """Read a file of :func:`write_json`, or a manual one of the same form. Raises ``OSError`` or
    :class:`FormatError`.
    """
    text = text_of(path)

    def fail(message: str, *location: int | str) -> NoReturn:
        where = ".".join(map(str, location)) or "topology"
        raise FormatError(path, _line_of(text, location), f"{where}: {message}") from None

    keys = _keys(json_of(path, text))  # pydantic takes the last of two equal keys
    try:
        document = _Document.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        if "nodes" in keys and {"links", "edges"} & keys:
            raise FormatError(path, 1, "a graph of nodes and links: format: node_link reads it") from None
        fail(first["msg"], *first["loc"])

    n = document.switches
    if sum(document.hosts) > MAX_SIZE:
        fail(f"{sum(document.hosts)} in all; at most {MAX_SIZE} are built", "hosts")
    if sum(document.hosts) % document.subnets:
        fail(f"{document.subnets} do not divide {sum(document.hosts)} hosts", "subnets")
    if len(document.hosts) != n:
        fail(f"{len(document.hosts)} entries for {n} switches", "hosts")
    if document.host_delay is not None and len(document.host_delay) != sum(document.hosts):
        fail(f"{len(document.host_delay)} entries for {sum(document.hosts)} hosts", "host_delay")
    if document.ejection is not None:
        if len(document.ejection) != sum(document.hosts):
            fail(f"{len(document.ejection)} entries for {sum(document.hosts)} hosts", "ejection")
        if (last := max(document.ejection, default=0)) >= n:
            fail(f"unknown switch {last}: there are {n}", "ejection")
    for name, values in document.columns.items():
        if len(values) != len(document.channels):
            fail(f"{len(values)} entries for {len(document.channels)} channels", "columns", name)
    arcs = np.array([channel[:2] for channel in document.channels], np.int64).reshape(-1, 2)
    unknown = np.flatnonzero((arcs >= n).any(axis=1))
    if len(unknown):
        fail(f"unknown switch {arcs[unknown[0]].max()}: there are {n}", "channels", int(unknown[0]))
    reverse = np.array([channel.reverse for channel in document.channels], np.int64)
    wrong = wrong_reverse(arcs, reverse)
    if wrong is not None:
        fail(f"reverse {reverse[wrong]} is not the opposite channel", "channels", wrong)
    grid = None
    if document.grid is not None:
        dims = tuple(document.grid.dims)
        rows = [row for row in document.grid.coordinates if len(row) == len(dims)]
        coordinates = np.array(rows, np.int64).reshape(-1, len(dims))
        if len(document.grid.coordinates) != n or len(rows) != n or (coordinates >= dims).any():
            fail(f"coordinates do not place {n} switches in {dims}", "grid")
        grid = Grid(dims, document.grid.wrap, coordinates)
    if problem := note_problem(document.notes, sum(document.hosts)):
        fail(problem, "notes")
    topology = Topology.from_channels(
        document.kind, n, arcs, reverse,
        capacity=[channel.capacity for channel in document.channels],
        delay=[channel.delay for channel in document.channels], columns=document.columns,
        default_weight=document.default_weight, subnets=document.subnets, grid=grid, notes=document.notes,
    )  # fmt: skip
    return topology.with_hosts(document.hosts, float(document.host_capacity), document.host_delay, document.ejection)


def _keys(document: object) -> set[str]:
    """Return the keys of a JSON document; none if it is no mapping."""
    return set(document) if isinstance(document, dict) else set()


def _line_of(text: str, location: Sequence[int | str]) -> int:
    """Return the line where the value at a path of keys and indices begins, by parsing the JSON as YAML."""
    try:
        node = yaml.compose(text.replace("\t", " "), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return 1
    for step in location:
        if isinstance(node, yaml.MappingNode):
            values = [value for key, value in node.value if key.value == step]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            values = node.value[step : step + 1]
        else:
            values = []
        if not values:
            break
        node = values[0]
    line: int = node.start_mark.line + 1
    return line


FORMATS = (FileFormat("json", (".json",), re.compile(r'"switches"\s*:'), without_attributes(read_json), write_json),)
