# SPDX-License-Identifier: Apache-2.0
"""Demands in the files of other programs: REPETITA, SNDlib, htsim, ns-3, Noxim and RapidChiplet.

A format is a sign, which is found near the beginning of its files and of no others, and a reader. Readers yield (place
for messages, source, target, demand) and raise ``SpecError`` with file and line.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import NoReturn

from flitlab.models.delimited import is_digits, is_number, number_of
from flitlab.models.flow_files import NS3_SIGN, connection_line, ns3_flows
from flitlab.models.readable import JsonError, Text, head_of, parse_json
from flitlab.models.registry import SpecError, warn
from flitlab.models.topology.formats import FormatError, sndlib, topology_sign
from flitlab.models.topology.formats.misplaced import misplaced

Entry = tuple[str, str, str, str]
"""Place for messages, source, target and demand."""

HEAD = 10_000
"""Characters in which the sign of a format is looked for."""


def known_entries(path: Path | Text) -> Iterator[Entry] | None:
    """Return the demands of a file of another program; None for tables. Raises ``OSError`` or ``SpecError``."""
    if isinstance(path, Path) and not path.is_file():
        return None
    head = _head(path)
    read = next((read for sign, read in FORMATS if sign.search(head)), None)
    if read is None and (format := topology_sign(head)):
        _fail(path, 1, f"is no demand; this is a topology ({format}): topology: {{kind: file, path: FILE}}")
    if read is None and (problem := misplaced(head)):
        _fail(path, 1, f"is no demand; {problem}")
    if read is None:
        return None
    return read(path, path.content if isinstance(path, Text) else head_of(path, -1))


def holds_only_demands(path: Path | Text) -> bool:
    """Whether a file of another program holds demands and no topology. Raises ``OSError``."""
    if isinstance(path, Path) and not path.is_file():
        return False
    head = _head(path)
    return not topology_sign(head) and any(sign.search(head) for sign, _ in FORMATS)


def _head(path: Path | Text) -> str:
    if isinstance(path, Text):
        return path.content[:HEAD]
    return head_of(path, HEAD)


def _fail(path: Path | Text, line: int, problem: str) -> NoReturn:
    raise SpecError(f"{path}:{line}: {problem}", key="path")


def _lines(content: str, comment: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(content.splitlines(), 1):
        if words := line.partition(comment)[0].split():
            yield number, words


def _repetita(path: Path | Text, content: str) -> Iterator[Entry]:
    """``DEMANDS n``, names of columns, then n lines ``label source target bw``; ends by number."""
    lines = _lines(content, "#")
    number, (_, count) = next(lines)
    next(lines, None)
    place = 0
    for place, (number, words) in enumerate(lines, 1):  # noqa: B007
        if len(words) != 4:
            _fail(path, number, f"{len(words)} fields where label, source, target and demand are expected")
        yield f"{path}:{number}", words[1], words[2], words[3]
    if place != int(count):
        _fail(path, number, f"{place} demands where {count} are announced")


def _sndlib(path: Path | Text, content: str) -> Iterator[Entry]:
    try:
        for line, source, target, value in sndlib.parsed(path).demands:
            yield f"{path}:{line}", source, target, value
    except FormatError as error:
        raise SpecError(str(error), key="path") from None


def _htsim(path: Path | Text, content: str) -> Iterator[Entry]:
    """``source->target [id n] [start ps] size bytes ...``: the demand of a connection is its size."""
    timed = failures = connections = 0
    announced: tuple[int, str] | None = None
    nodes: int | None = None
    for number, words in _lines(content, "#"):
        try:
            line = connection_line(" ".join(words))
        except ValueError as error:
            _fail(path, number, str(error))
        if line is None:
            key = words[0].lower()
            if key not in ("nodes", "connections", "triggers", "trigger", "failures", "failure"):
                _fail(path, number, f"{' '.join(words)[:40]!r} where source->target is expected")
            if key == "nodes":
                if len(words) != 2 or not is_digits(words[1]):
                    _fail(path, number, f"{' '.join(words)[:40]!r} where Nodes and their number are expected")
                nodes = int(words[1])
            failures += key == "failure"
            if key == "connections":
                announced = number, words[-1]
            continue
        connections += 1
        options = line.options
        if nodes is not None and (most := max(int(line.source), int(line.target))) >= nodes:
            _fail(path, number, f"host {most} where Nodes is {nodes}")
        if "size" not in options:
            _fail(path, number, "a connection without size has no demand")
        if not options["size"].strip("0."):
            _fail(path, number, f"size {options['size']} is a long-lived connection, which has no demand")
        timed += options.get("start", "0") not in ("0", "0.0") or any("trigger" in name for name in options)
        yield f"{path}:{number}", line.source, line.target, options["size"]
    if announced and announced[1] != str(connections):
        _fail(path, announced[0], f"{announced[1]} connections are announced, {connections} follow")
    if failures:
        warn(f"{path}: failure lines are not read ({failures}); failures of topology names links", "path")
    if timed:
        warn(f"{path}: sizes are read; starts and triggers of {timed} connections are not", "path")


def _ns3(path: Path | Text, content: str) -> Iterator[Entry]:
    """Flows: the demand of a flow is its size."""
    timed = False
    for line, source, target, size, start in ns3_flows(path, content):
        timed |= start > 0
        yield f"{path}:{line}", str(source), str(target), str(size)
    if timed:
        warn(f"{path}: sizes are read; starts are not", "path")


NOXIM = ("pir", "por", "t_on", "t_off", "t_period")
"""Fields of a line behind source and target."""


def _noxim(path: Path | Text, content: str) -> Iterator[Entry]:
    """``source target pir [por t_on t_off t_period]``: the demand is the packet injection rate.

    What follows it is checked to be numbers, and not read; Noxim has a default for those out of range, such as -1.
    """
    more = 0
    for number, words in _lines(content, "%"):
        if not 3 <= len(words) <= 7:
            _fail(path, number, f"{len(words)} fields where source, target, pir and up to four more are expected")
        for name, word in zip(NOXIM, words[2:], strict=False):
            if not is_number(word) or not isfinite(number_of(word)):
                _fail(path, number, f"{name} {word!r} is not a finite number")
            if name[0] == "t" and not number_of(word).is_integer():
                _fail(path, number, f"{name} {word} is no number of cycles")
        if not 0 <= number_of(words[2]) <= 1:
            _fail(path, number, f"pir {words[2]} is no rate: a node injects 0 to 1 packets a cycle")
        more += len(words) > 3
        yield f"{path}:{number}", words[0], words[1], words[2]
    if more:
        warn(f"{path}: injection rates are read; por, t_on, t_off and t_period of {more} lines are not", "path")


def resembles_noxim(rows: Sequence[Sequence[str]]) -> bool:
    """Whether lines of four to seven fields may be those of a traffic table of Noxim, whose sign is a line of %."""
    if not 4 <= len(rows[0]) <= 7 or all(is_digits(rate) for fields in rows for rate in fields[2:4]):
        return False  # whole numbers are rather those of a matrix
    return all(
        len(fields) == len(rows[0])
        and all(map(is_digits, (*fields[:2], *fields[4:])))
        and all(is_number(rate) and 0 <= number_of(rate) <= 1 for rate in fields[2:4])
        for fields in rows
    )


_PAIR = re.compile(r"__tuple__:\[(\d+), ?(\d+)\]")


def _rapidchiplet(path: Path | Text, content: str) -> Iterator[Entry]:
    """A mapping of ``__tuple__:[source, target]`` to the demand between two chiplets."""
    try:
        demands = parse_json(content)
    except JsonError as error:
        _fail(path, error.line, str(error))
    for key, value in demands.items():
        match = _PAIR.fullmatch(key)
        if match is None:
            _fail(path, 1, f"{key[:40]!r} where __tuple__:[source, target] is expected")
        yield f"{path}: {key}", match[1], match[2], str(value)


FORMATS: tuple[tuple[re.Pattern[str], Callable[[Path | Text, str], Iterator[Entry]]], ...] = (
    (re.compile(r"\A\s*DEMANDS\s+\d{1,12}\s*\n"), _repetita),
    (sndlib.SIGN, _sndlib),
    (re.compile(r"^[ \t]*Connections[ \t]+\d+", re.MULTILINE | re.IGNORECASE), _htsim),
    (NS3_SIGN, _ns3),
    (re.compile(r'\A\s*\{\s*"__tuple__:\[\d+, ?\d+\]"\s*:\s*[\d.]'), _rapidchiplet),
    (re.compile(r"\A(\s*%[^\n]*\n)+\s*\d+\s+\d+\s+[-\d.]"), _noxim),
)
"""Signs and readers."""
