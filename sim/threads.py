# SPDX-License-Identifier: Apache-2.0
"""One thread per process: processes use the cores, and sums over several threads are not reproducible."""

import os


def one_thread() -> None:
    """Set numerical libraries to one thread, unless the user has set a number. Call before importing numpy."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
