# SPDX-License-Identifier: Apache-2.0
"""Self-contained pages from the templates of this package. Every value is escaped where a template inserts it."""

import base64
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from flitlab.models.files import read_file, replace_file

LARGEST_FIGURE = 300_000
"""The largest static figure that is embedded as SVG, in bytes; a larger one is PNG."""


def render(template: str, **values: object) -> str:
    """Return a page. template: a file of this package."""
    return _environment.get_template(template).render(values)


def write_page(path: Path, template: str, **values: object) -> Path:
    """Write a page and return its file. Raises ``OSError``."""
    replace_file(path, render(template, **values))
    return path


def data_uri(file: Path) -> str:
    """Return a PNG or SVG picture as an address that holds it, so that ids of two SVG pictures do not clash."""
    if file.stat().st_size > LARGEST_FIGURE and file.with_suffix(".png").exists():
        file = file.with_suffix(".png")
    kind = "png" if file.suffix == ".png" else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(read_file(file)).decode('ascii')}"


def _resource(name: str) -> Markup:
    """The text of a style sheet or script of this package."""
    return Markup(_loader.get_source(_environment, name)[0])


_loader = PackageLoader(__package__, "")
_environment = Environment(
    loader=_loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_environment.globals["resource"] = _resource
_environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
