# SPDX-License-Identifier: Apache-2.0
"""The text of a configuration: YAML of the 1.2 core schema, no duplicate keys, every value with its line.

PyYAML itself keeps the last of two equal keys, reads ``no`` as False and ``1e-3`` as text, and forgets lines. So only
its nodes are used, with libyaml if PyYAML was built with it (five times faster); scalars are resolved here.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.resolver import BaseResolver

from flitlab.models.arrays import OUT_OF_RANGE, is_in_range
from flitlab.models.gc_disabled import gc_disabled
from flitlab.models.topology.formats import HEAD, topology_sign
from flitlab.models.topology.formats.misplaced import misplaced
from flitlab.sim.config.diagnostics import (
    MAX_VALUE_LENGTH,
    ConfigError,
    Diagnostic,
    Diagnostics,
    KeyPath,
    NewErrors,
    key_path,
    parse_path,
    show,
)

try:
    from yaml.cyaml import CParser
except ImportError:
    CParser = None

Scalar = str | int | float | None
"""A value that is neither a mapping nor a list; true and false are whole numbers to Python."""

Key = str | KeyPath
"""A key of a configuration: its path, or the text of the path, ``switching.vcs``."""

MAX_DEPTH = 100
"""Nesting depth of mappings and lists that is accepted."""

_COMMENT = re.compile(r"(?:^|(?<=[ \n]))#[^\"'\r\n\x85\u2028\u2029]*")
"""A comment up to its first quote: in a multi-line text, what follows may be outside it again."""

_READ_DIFFERENTLY = re.compile(r"[\t\ufeff?!]|[|>][-+0-9]*#")
"""Syntax that libyaml and the parser in Python may read differently."""

MAX_FILE_BYTES = 20_000_000
"""Longer files are rejected."""

MAX_NODES = 200_000
"""Values, after expansion of aliases, of the largest file that is accepted."""

_UNTAGGED = {f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map")}
"""Tags that the parser gives to values without a tag."""

_SCALARS: list[tuple[re.Pattern[str], Callable[[str], Scalar]]] = [
    (re.compile(r"(|~|null|Null|NULL)"), lambda text: None),
    (re.compile(r"(true|True|TRUE)"), lambda text: True),
    (re.compile(r"(false|False|FALSE)"), lambda text: False),
    (re.compile(r"[-+]?[0-9]{1,400}"), int),
    (re.compile(r"0o[0-7]{1,400}"), lambda text: int(text, 8)),
    (re.compile(r"0x[0-9a-fA-F]{1,400}"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), lambda text: float(text.replace(".", ""))),
]


_NON_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and lone surrogates: escapes can name them, but no text file can hold them."""


@dataclass(frozen=True, eq=False)
class Node:
    """A value with its file and line.

    Parameters
    ----------
    value: a dict of Nodes, a list of Nodes or a scalar.
    file: as the user named it.
    line: of the key (in a mapping) or of the value (in a list); None outside a file.
    """

    value: Any
    file: str
    line: int | None = None

    @property
    def where(self) -> str:
        """``file:line``, or the file alone if the line is unknown."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def is_map(self) -> bool:
        """Whether this is a mapping."""
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether this is a list."""
        return isinstance(self.value, list)

    @property
    def is_scalar(self) -> bool:
        """Whether this is neither a mapping nor a list."""
        return not (self.is_map or self.is_list)

    def without(self, *keys: str) -> "Node":
        """A mapping without some keys."""
        return self.with_value({key: node for key, node in self.value.items() if key not in keys})

    def with_value(self, value: object) -> "Node":
        """A node with another value and the same file and line."""
        return Node(value, self.file, self.line)

    def plain(self) -> Any:
        """The value as plain dicts, lists and scalars, without lines."""
        if self.is_map:
            return {key: node.plain() for key, node in self.value.items()}
        if self.is_list:
            return [node.plain() for node in self.value]
        return self.value

    def get(self, *path: str | int) -> "Node | None":
        """The node at a path, or None."""
        node: Node | None = self
        for part in path:
            if node is None:
                return None
            node = node._child(part)
        return node

    def nearest(self, path: Sequence[str | int]) -> "Node":
        """The node at a path or, where that does not exist, its closest ancestor."""
        node = self
        for part in path:
            child = node._child(part)
            if child is None:
                break
            node = child
        return node

    def _child(self, part: str | int) -> "Node | None":
        child: Node | None = None
        if self.is_map:
            child = self.value.get(part)
        elif self.is_list and isinstance(part, int) and 0 <= part < len(self.value):
            child = self.value[part]
        return child


def wrap(value: object, file: str, line: int | None = None) -> Node:
    """Plain values as Nodes with a common file and line.

    Parameters
    ----------
    value: dicts, lists and scalars.
    file: name in messages.
    line: of all nodes, None outside a file.
    """
    if isinstance(value, dict):
        value = {key: wrap(item, file, line) for key, item in value.items()}
    elif isinstance(value, list):
        value = [wrap(item, file, line) for item in value]
    return Node(value, file, line)


class ConfigDocument:
    """A configuration as written, or a part of it, and the diagnostics of it found so far.

    Checks name the key of an error; the document adds file, line and value.

    Parameters
    ----------
    root: the node of the whole configuration.
    diagnostics: grows; several documents of one file may share it.
    path: of the part; keys are relative to it.
    """

    def __init__(self, root: Node, diagnostics: Diagnostics, path: KeyPath = ()):
        self.root, self.diagnostics, self.path = root, diagnostics, path

    def part(self, *path: str | int) -> "ConfigDocument":
        """The part below a path."""
        return ConfigDocument(self.root, self.diagnostics, (*self.path, *path))

    @property
    def whole(self) -> "ConfigDocument":
        """The document of which this is a part."""
        return ConfigDocument(self.root, self.diagnostics)

    def reject(self, key: Key, problem: str, choices: Iterable[object] = (), suggestion: str | None = None) -> None:
        """Add an error at a key, with the value that is written there.

        Parameters
        ----------
        key: a missing key has no value, and the line of its closest ancestor.
        problem: what is wrong.
        choices: what would be right.
        suggestion: the choice that was probably meant.
        """
        where, path, value = self._written(key)
        self.diagnostics.reject(where, path, problem, value, choices, suggestion)

    def warn(self, key: Key, problem: str) -> None:
        """Add a warning at a key whose value is allowed but probably not meant."""
        self.diagnostics.warnings.append(Diagnostic(*self._written(key), f"warning: {problem}"))

    def new_errors(self) -> NewErrors:
        """The errors that will be added from now on."""
        return self.diagnostics.new_errors()

    def _written(self, key: Key) -> tuple[str, str, str]:
        """``file:line``, path and value of a key."""
        path = self.path + (parse_path(key) if isinstance(key, str) else key)
        while path and self.root.get(*path) is None and self.root.nearest(path).is_scalar:
            path = path[:-1]  # a scalar has no keys: the error is the scalar itself
        node = self.root.get(*path)
        return self.root.nearest(path).where, key_path(path), "" if node is None else show(node.plain())

    def has(self, *path: str | int) -> bool:
        """Whether a path exists in the configuration, null included."""
        return self.root.get(*self.path, *path) is not None

    def at(self, *path: str | int) -> Any:
        """The value at a path as plain dicts, lists and scalars; None if the path does not exist."""
        node = self.root.get(*self.path, *path)
        return None if node is None else node.plain()

    def where(self, *path: str | int) -> str:
        """``file:line`` of a path, or of its closest ancestor that exists."""
        return self.root.nearest((*self.path, *path)).where


def load_file(path: str | Path, diagnostics: Diagnostics, text: str | None = None) -> Node:
    """The mapping in a YAML file.

    Parameters
    ----------
    path: of the file; the name in messages if ``text`` is given.
    diagnostics: gets the errors that do not stop the parser: duplicate keys, tags, NaN.
    text: the content, in place of that of the file.

    Raises
    ------
    ConfigError: a file that cannot be read or parsed, is of another kind, is empty or holds no mapping.
    """
    content = read_text(path) if text is None else text
    if text is None and (kind := _other_kind(content[:HEAD])):
        raise _unreadable(path, f"is no configuration of flitlab; {kind}")
    node = load_text(content, str(path), diagnostics, lines=text is None)
    if node.value is None:
        raise _unreadable(path, "is empty")
    if not node.is_map:
        raise _unreadable(node.where, "must be a mapping of keys to values", show(node.plain()))
    return node


def _other_kind(head: str) -> str:
    """What a file is that is no configuration, and where it is read; '' where that is unknown. head: its beginning."""
    if name := topology_sign(head):
        return f"this is a topology ({name}): simrun topology FILE, or topology: {{kind: file, path: FILE}}"
    return misplaced(head, configuration=True)


def _unreadable(where: str | Path, problem: str, value: str = "") -> ConfigError:
    """The error of a file that holds no configuration."""
    return ConfigError([Diagnostic(str(where), "", value, problem)])


_piped: dict[str, bytes] = {}
"""Path of a pipe -> what was read from it: a pipe gives its content once, and commands read a file several times."""


def read_text(path: str | Path) -> str:
    """The text of a file or a pipe. Raises :class:`~flitlab.sim.config.diagnostics.ConfigError` if it cannot be read,
    also for a pipe without a writer, which would never end.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            os.set_blocking(file.fileno(), True)
            content = file.read(MAX_FILE_BYTES + 1)
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                content = content or _piped.get(str(path), b"")
                if not content:
                    raise _unreadable(path, "is a pipe that nothing was written to")
                _piped[str(path)] = content
        if len(content) > MAX_FILE_BYTES:
            raise _unreadable(path, f"is longer than {MAX_FILE_BYTES:,} bytes")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(path, "is not a text file (UTF-8)") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None


def base_of(path: str | Path) -> Path:
    """The folder that relative paths in a file start from: its own, of a pipe the current one."""
    return Path.cwd() if Path(path).is_fifo() else Path(path).resolve().parent


def load_text(text: str, file: str, diagnostics: Diagnostics, lines: bool = True, path: KeyPath = ()) -> Node:
    """One YAML document as a Node; a Node of None if it is empty.

    Parameters
    ----------
    text: the document.
    file: name in messages.
    diagnostics: as for :func:`load_file`.
    lines: whether messages give line numbers.
    path: of the key that has the document as its value.

    Raises
    ------
    ConfigError: a text that cannot be parsed.
    """
    reader = _Reader(file, lines, diagnostics)
    with gc_disabled():
        root = reader.composed(text)
        node = None if root is None else reader.convert(root, root, path, ())
    return Node(None, file) if node is None or node.value is None else node


class _Reader:
    """Converts composed YAML nodes and collects errors."""

    def __init__(self, file: str, lines: bool, diagnostics: Diagnostics):
        self.file, self.lines, self.diagnostics = file, lines, diagnostics
        self.count = 0

    def where(self, mark: yaml.Mark | None) -> str:
        return f"{self.file}:{mark.line + 1}" if mark and self.lines else self.file

    def composed(self, text: str) -> yaml.Node | None:
        """Raises :class:`~flitlab.sim.config.diagnostics.ConfigError`."""
        try:
            return compose(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = "YAML syntax: " + ", ".join(filter(None, (error.context, error.problem)))
            raise _unreadable(self.where(mark), problem) from None
        except yaml.YAMLError as error:
            problem = "is not a text file: " + " ".join(str(error).split())
            raise _unreadable(self.file, problem) from None

    def report_error(self, node: yaml.Node, path: KeyPath, value: str, problem: str) -> None:
        self.diagnostics.reject(self.where(node.start_mark), path, problem, value)

    def convert(self, node: yaml.Node, line_node: yaml.Node, path: KeyPath, parents: tuple[yaml.Node, ...]) -> Node:
        """A composed node as a Node.

        line_node: the node whose line is kept (the key in a mapping). parents: enclosing nodes, to detect aliases
        inside their own anchor.
        """
        self.count += 1
        if self.count > MAX_NODES:
            raise _unreadable(self.where(node.start_mark), f"expands to more than {MAX_NODES:,} values")
        value: Scalar | dict[str, Node] | list[Node] = None
        if node in parents:
            self.report_error(node, path, "", "an alias inside its own anchor")
        elif node.tag not in _UNTAGGED:
            self.report_error(
                node, path, "", f"the tag {node.tag.replace('tag:yaml.org,2002:', '!!')} is not supported"
            )
        elif isinstance(node, yaml.MappingNode):
            value = self.mapping(node, path, (*parents, node))
        elif isinstance(node, yaml.SequenceNode):
            value = [self.convert(item, item, (*path, i), (*parents, node)) for i, item in enumerate(node.value)]
        else:
            value = self.scalar(node, path)
        return Node(value, self.file, line_node.start_mark.line + 1 if self.lines else None)

    def mapping(self, node: yaml.MappingNode, path: KeyPath, parents: tuple[yaml.Node, ...]) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.report_error(key_node, path, "", "a key must be a plain name")
                continue
            key = key_node.value
            if not key:
                self.report_error(key_node, path, "", "a key has no name")
            elif _NON_TEXT.search(key):
                self.report_error(key_node, (*path, repr(key)), "", "is not text")
            elif key in nodes:
                first = f" (first on line {nodes[key].line})" if self.lines else ""
                self.report_error(key_node, (*path, key), "", f"duplicate key{first}")
            else:
                nodes[key] = self.convert(value_node, key_node, (*path, key), parents)
        return nodes

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Scalar:
        if non_text := _NON_TEXT.search(node.value):
            self.report_error(node, path, "", f"holds {non_text[0]!r}, which is not text")
            return None
        if node.style:
            return str(node.value)
        value = resolve(node.value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.report_error(
                node, path, node.value if len(node.value) <= MAX_VALUE_LENGTH else "", "must fit into 64 bits"
            )
            return None
        if not isinstance(value, float):
            return value
        if value != value:
            self.report_error(node, path, node.value, "must be a number, not NaN")
        elif "inf" not in node.value.lower() and not is_in_range(node.value):
            self.report_error(node, path, node.value, OUT_OF_RANGE)
            return None
        return value + 0.0  # so that no number is -0.0


@lru_cache(maxsize=10_000)
def resolve(text: str) -> Scalar:
    """A plain YAML scalar as null, bool, int, float or str, by the YAML 1.2 core schema.

    >>> [resolve(text) for text in ("1e-3", "no", "0x10", ".inf", "")]
    [0.001, 'no', 16, inf, None]
    """
    for pattern, make in _SCALARS:
        if pattern.fullmatch(text):
            return make(text)
    return text


def compose(text: str) -> yaml.Node | None:
    """The node of the one document in a text; None if it is empty.

    Raises ``yaml.YAMLError`` with the message of the parser in Python, whichever parses.
    """
    if CParser is not None and not _READ_DIFFERENTLY.search(_COMMENT.sub("", text)):
        try:
            return yaml.compose(text, Loader=_Libyaml)
        except (yaml.YAMLError, UnicodeError):
            pass  # the parser in Python accepts the text, or words the error
    return yaml.compose(text, Loader=_PyYAML)


class _Shallow(Composer):
    """A composer that rejects deep nesting before Python reaches its recursion limit."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node:
        """The next node of the document."""
        if self.depth > MAX_DEPTH:
            problem = f"is nested too deeply, in more than {MAX_DEPTH} mappings and lists"
            raise ComposerError(None, None, problem, self.peek_event().start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _PyYAML(_Shallow, yaml.BaseLoader):
    """PyYAML's own parser."""


if CParser is not None:

    class _Libyaml(_Shallow, CParser, BaseResolver):
        """libyaml's parser."""

        def __init__(self, text: str):
            CParser.__init__(self, text)
            Composer.__init__(self)
            BaseResolver.__init__(self)
