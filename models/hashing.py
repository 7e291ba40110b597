# SPDX-License-Identifier: Apache-2.0
"""Content hashes: equal content has an equal hash, on any machine and in any process."""

import hashlib
import json
from typing import Any

import numpy as np


def content_hash(*parts: Any) -> str:
    """SHA-256 (hex) of numpy arrays (dtype, shape and bytes) and JSON-able values, in order.

    >>> content_hash({"b": 1, "a": 2}) == content_hash({"a": 2, "b": 1})
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(json.dumps(part, sort_keys=True, separators=(",", ":")).encode())
        digest.update(b"\0")
    return digest.hexdigest()
