# SPDX-License-Identifier: Apache-2.0
"""Work that makes many objects which all stay, or all go, at its end."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Without garbage collections, which would go through all objects again and again and find nothing to free."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
