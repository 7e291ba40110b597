# SPDX-License-Identifier: Apache-2.0
"""A context for work that allocates many objects with a common lifetime."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable garbage collection in a block, where it would scan many live objects and free none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
