# SPDX-License-Identifier: Apache-2.0
"""One thread for each process: processes use the cores, and sums of several threads are not the same at every run."""

import os


def one_thread() -> None:
    """Asks numerical libraries for one thread, unless the user has asked for others. Call before importing numpy."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
