# SPDX-License-Identifier: Apache-2.0
"""Content hashes: equal content has an equal hash, on any machine and in any process."""

import hashlib
import json

import numpy as np


def content_hash(*values: object) -> str:
    """SHA-256 (hex) of numpy arrays (dtype, shape and bytes) and JSON-able values, in order.

    >>> content_hash({"b": 1, "a": 2}) == content_hash({"a": 2, "b": 1})
    True
    """
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).data)
        else:
            digest.update(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())
        digest.update(b"\0")
    return digest.hexdigest()
