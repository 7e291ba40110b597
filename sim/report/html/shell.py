# SPDX-License-Identifier: Apache-2.0
"""The frame of every page: a self-contained document with its style, data and script."""

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
    """Write a self-contained page.

    Parameters
    ----------
    path : Path
        The file.
    title : str
        Its title, plain text.
    body : str
        File of this package with the body, whose placeholders are ``$title`` and the ``parts``.
    parts : mapping of str to str
        HTML by placeholder.
    data : JSON-able
        For the script.
    scripts, styles : sequence of str
        Files of this package, in order.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OSError
        If it cannot be written.
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
