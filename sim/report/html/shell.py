# SPDX-License-Identifier: Apache-2.0
"""The frame that every page has: a document with its style, data and script inside, which loads nothing else."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from flitlab.models.files import replace_file


def write_page(
    path: Path, title: str, body: str, parts: Mapping[str, str], data: Any, scripts: Sequence[str],
    styles: Sequence[str] = ("style.css",),
) -> Path:  # fmt: skip
    """Writes a self-contained page.

    body: the file of this package that holds its body, whose placeholders are ``$title`` and the ``parts`` (HTML).
    data: JSON-able, for the script. scripts, styles: files of this package, in order. Raises ``OSError``.
    """
    title = escape(title)
    text = Template(_resource("shell.html")).substitute(
        title=title, style="".join(map(_resource, styles)),
        body=Template(_resource(body)).substitute(parts, title=title).rstrip(),
        data=json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        script="\n".join(map(_resource, scripts)),
    )  # fmt: skip
    replace_file(path, text)
    return path


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")
