# SPDX-License-Identifier: Apache-2.0
"""Parsing a text into the nodes of PyYAML, by libyaml where PyYAML was built with it: a fifth of the time.

Which of the two parses must not show. What they read differently in places (tabs, explicit keys, tags, byte order
marks) is therefore left to PyYAML's own parser, and so are the messages for what cannot be parsed.
"""

import re
from typing import Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.resolver import BaseResolver

try:
    from yaml.cyaml import CParser
except ImportError:
    CParser = None

MAX_DEPTH = 100
"""A value inside more mappings and lists than this is refused."""

_COMMENT = re.compile(r"(?:^|(?<=[ \n]))#[^\"'\r\n\x85\u2028\u2029]*")
"""A comment, but not from a quote on: in a text of several lines, what follows may stand outside it again."""

_READ_DIFFERENTLY = re.compile(r"[\t\ufeff?!]|[|>][-+0-9]*#")
"""What may have one meaning for libyaml and another for PyYAML's parser."""


def compose(text: str) -> yaml.Node | None:
    """The node of the one document in a text, None if it is empty.

    Raises ``yaml.YAMLError`` with the words of PyYAML's own parser, whichever parses.
    """
    if CParser is not None and not _READ_DIFFERENTLY.search(_COMMENT.sub("", text)):
        try:
            return yaml.compose(text, Loader=_Libyaml)
        except (yaml.YAMLError, UnicodeError):
            pass  # the other parser says it, or knows better
    return yaml.compose(text, Loader=_PyYAML)


class _Shallow(Composer):
    """A composer that gives up before Python does."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The node that begins here."""
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
