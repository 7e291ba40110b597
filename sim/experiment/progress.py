"""Progress on stderr: a bar on a terminal, a few plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, Self


class Progress(Protocol):
    """Told of every finished point."""

    def advance(self, ticks: int = 0) -> None:
        """One more point is done, which simulated ``ticks``."""


class Quiet:
    """Says nothing."""

    def advance(self, ticks: int = 0) -> None:
        """One more point is done."""


LULL = 20.0
"""Seconds after which a plain line says that nothing has ended yet."""


class Lines:
    """A plain line at every tenth of the way, but not more often than every two seconds; and after every lull."""

    def __init__(self, total: int):
        self.total = total
        self.done = 0
        self.ticks = 0
        self.started = self.spoken = time.monotonic()
        self.said = 0

    def advance(self, ticks: int = 0) -> None:
        """One more point is done."""
        self.done += 1
        self.ticks += ticks
        now = time.monotonic()
        tenth = 10 * self.done // self.total
        if self.done == self.total or (tenth > self.said and now - self.spoken > 2):
            self.said, self.spoken = tenth, now
            elapsed = max(now - self.started, 1e-9)
            left = elapsed / self.done * (self.total - self.done)
            rate = f"{self.ticks / elapsed:,.0f} ticks/s, " if self.ticks else ""
            text = f"{self.done}/{self.total} points, {rate}{left:.0f} s left"
            print(text, file=sys.stderr, flush=True)

    def wait(self) -> None:
        """Says that work goes on, if nothing has been said for a while."""
        now = time.monotonic()
        if now - self.spoken >= LULL:
            self.spoken = now
            text = f"{self.done}/{self.total} points after {now - self.started:.0f} s, at work"
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def awaited(self) -> Iterator[Self]:
        """Calls :meth:`wait` from time to time while work goes on in other processes."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(LULL / 4):
                self.wait()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield self
        finally:
            ended.set()
            watcher.join()


class Bar:
    """A bar on a terminal."""

    def __init__(self, bar, task):
        self.bar = bar
        self.task = task
        self.ticks = 0
        self.started = time.monotonic()

    def advance(self, ticks: int = 0) -> None:
        """One more point is done."""
        self.ticks += ticks
        rate = self.ticks / max(time.monotonic() - self.started, 1e-9)
        self.bar.update(self.task, advance=1, rate=f"{rate:,.0f} ticks/s" if self.ticks else "")


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """Reports on ``total`` points."""
    if total == 0:
        yield Quiet()
    elif not sys.stderr.isatty():
        with Lines(total).awaited() as lines:
            yield lines
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("points"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(), TimeRemainingColumn(),
        )  # fmt: skip
        with RichProgress(*columns, console=Console(stderr=True)) as bar:
            yield Bar(bar, bar.add_task("points", total=total, rate=""))
