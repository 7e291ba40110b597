# SPDX-License-Identifier: Apache-2.0
"""Parses a text into the nodes of PyYAML, with libyaml if PyYAML was built with it (five times faster).

The choice of the parser must not change a result. Texts that the two read differently (tabs, explicit keys, tags, byte
order marks) go to the parser in Python, which also words all error messages.
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
"""Nesting depth of mappings and lists that is accepted."""

_COMMENT = re.compile(r"(?:^|(?<=[ \n]))#[^\"'\r\n\x85\u2028\u2029]*")
"""A comment up to its first quote: in a multi-line text, what follows may be outside it again."""

_READ_DIFFERENTLY = re.compile(r"[\t\ufeff?!]|[|>][-+0-9]*#")
"""Syntax that libyaml and the parser in Python may read differently."""


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

    def compose_node(self, parent: Any, index: Any) -> Any:
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
