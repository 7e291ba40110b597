# SPDX-License-Identifier: Apache-2.0
"""Progress on stderr: a bar on terminals and in notebooks, with the saturation points found so far.

Elsewhere, as in the log of a batch job, one line per minute. Long solutions of a ceiling report in lines of their own.
"""

import logging
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol

from flitlab.sim.measure.saturation import Saturation, saturation
from flitlab.sim.terminal import complain, shown_label

Row = Mapping[str, Any]


def say(text: str) -> None:
    """Print a line to stderr, and flush it."""
    complain(text)
    sys.stderr.flush()


class Progress(Protocol):
    """Receiver of finished points."""

    def advance(self, ticks: int = 0, scenario: str = "", row: Row | None = None) -> None:
        """Count one more point.

        Parameters
        ----------
        ticks: that it simulated.
        scenario: its label.
        row: of results.csv, None if unknown.
        """


class Quiet:
    """Progress without output."""

    def advance(self, ticks: int = 0, scenario: str = "", row: Row | None = None) -> None:
        """Count one more point."""


MAX_SHOWN_SCENARIOS = 8
"""Scenarios that are shown, those with the latest points."""


class Bar:
    """A bar on a terminal, with a line for each of the scenarios with the latest points."""

    def __init__(self, total: int):
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("points"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(), TimeRemainingColumn(),
        )  # fmt: skip
        self._bar = RichProgress(*columns)
        self._task = self._bar.add_task("points", total=total, rate="")
        self._ticks = 0
        self._started = time.monotonic()
        self._rows: dict[str, list[Row]] = {}

    def advance(self, ticks: int = 0, scenario: str = "", row: Row | None = None) -> None:
        """Count one more point."""
        self._ticks += ticks
        rate = self._ticks / max(time.monotonic() - self._started, 1e-9)
        self._bar.update(self._task, advance=1, rate=f"{rate:,.0f} ticks/s" if self._ticks else "")
        if row is not None:
            self._rows[scenario] = [*self._rows.pop(scenario, []), row]

    def __rich__(self) -> Any:
        """The lines for the terminal."""
        from rich.console import Group
        from rich.text import Text

        shown = list(self._rows.items())[-MAX_SHOWN_SCENARIOS:]
        points = [(scenario, saturation(rows)) for scenario, rows in sorted(shown)]
        lines = [
            Text(f"  {shown_label(scenario)}: {estimate(point)}", overflow="ellipsis")
            for scenario, point in points
            if point
        ]
        return Group(*lines, self._bar)


MINUTE = 60.0
"""Seconds between two lines of a run without a terminal."""


class Heartbeat:
    """A line per minute, also while no point is done."""

    def __init__(self, total: int, every: float = MINUTE):
        self._total = total
        self._done = 0
        self._started = time.monotonic()
        self._first = 0.0  # seconds until the first point was done
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, args=(every,), daemon=True)

    def advance(self, ticks: int = 0, scenario: str = "", row: Row | None = None) -> None:
        """Count one more point."""
        self._done += 1
        if self._done == 1:
            self._first = time.monotonic() - self._started

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _beat(self, every: float) -> None:
        while not self._ended.wait(every):
            say(heartbeat(self._done, self._total, time.monotonic() - self._started, self._first))


def heartbeat(done: int, total: int, seconds: float, first: float = 0.0) -> str:
    """The progress of a run as text.

    Parameters
    ----------
    done, total: points.
    seconds: since the start.
    first: seconds until the first point, which may include compilation; the others determine the remaining time.

    >>> heartbeat(0, 40, 60), heartbeat(11, 40, 660, 60), heartbeat(43, 40, 7260)
    ('0 of 40 points after 1 min', '11 of 40 points after 11 min, about 29 min to go', '43 points after 2 h 1 min')
    >>> heartbeat(1, 40, 60, 58)
    '1 of 40 points after 1 min'
    """
    text = f"{done} of {total} points" if done <= total else f"{done} points"
    text += f" after {_minutes(seconds)}"
    if not 1 < done < total:
        return text
    return text + f", about {_minutes((seconds - first) * (total - done) / (done - 1))} to go"


def _minutes(seconds: float) -> str:
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def estimate(point: Saturation) -> str:
    """The saturation point of a scenario as text.

    >>> from flitlab.sim.measure.saturation import saturation
    >>> rows = [{"load": load, "seed": 1, "saturated": load > 0.4} for load in (0.2, 0.4, 0.6)]
    >>> estimate(saturation(rows)), estimate(saturation(rows[:2])), estimate(saturation(rows[2:]))
    ('saturates between 0.4 and 0.6', 'not saturated, carries 0.4', 'saturates below 0.6')
    """
    if math.isinf(point.upper):
        return f"not saturated, carries {point.lower:.3g}"
    if point.lower == 0:
        return f"saturates below {point.upper:.3g}"
    return f"saturates between {point.lower:.3g} and {point.upper:.3g}"


class _SolverLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def show_solvers() -> None:
    """Print to stderr what the solvers of ceilings log in this process: the progress of long solutions."""
    logger = logging.getLogger("flitlab.fluid")
    if not logger.handlers:
        logger.setLevel(logging.INFO)
        logger.addHandler(_SolverLog())


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """Report on ``total`` points."""
    notebook = _can_show_in_notebook()
    if total == 0:
        yield Quiet()
    elif not (notebook or sys.stderr.isatty()):
        with Heartbeat(total) as beats:
            yield beats
    else:
        from rich.console import Console
        from rich.live import Live

        bar = Bar(total)
        with Live(bar, console=Console(stderr=not notebook), refresh_per_second=4):
            yield bar


def _can_show_in_notebook() -> bool:
    """Whether this is a notebook with ipywidgets, which can show updates."""
    if "ipykernel" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter
