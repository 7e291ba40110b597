# SPDX-License-Identifier: Apache-2.0
"""CPU time of this process, with the time of compiling or loading kernels counted separately."""

import threading
import time

from numba.core import event


class _KernelTime(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Sums the CPU time in which threads hold Numba's compiler lock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread = threading.local()

    def on_start(self, event: object) -> None:
        """Start the clock when the outermost request for the lock begins; compiling a callee nests inside it."""
        depth = getattr(self._thread, "depth", 0)
        if depth == 0:
            self._thread.since = time.thread_time()
        self._thread.depth = depth + 1

    def on_end(self, event: object) -> None:
        """Stop the clock when the outermost lock is released."""
        self._thread.depth -= 1
        if self._thread.depth == 0:
            self.seconds += time.thread_time() - self._thread.since


_kernels = _KernelTime()
event.register("numba:compiler_lock", _kernels)


class CpuTime:
    """CPU time since the object was created.

    >>> spent = CpuTime()
    >>> 0 <= spent.seconds < 1 and spent.compile_s == 0
    True
    """

    def __init__(self) -> None:
        self._began, self._compiled = time.process_time(), _kernels.seconds

    @property
    def seconds(self) -> float:
        """CPU seconds without those of :attr:`compile_s`."""
        return time.process_time() - self._began - self.compile_s

    @property
    def compile_s(self) -> float:
        """CPU seconds of compiling or loading kernels."""
        return _kernels.seconds - self._compiled
