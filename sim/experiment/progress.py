# SPDX-License-Identifier: Apache-2.0
"""Progress on stderr: a bar on terminals and in notebooks, with the saturation points found so far.

Elsewhere, as in the log of a batch job, one line per minute. Long solutions of a ceiling report in lines of their own.
"""

import logging
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from flitlab.models.jit.cache import compilations
from flitlab.models.mappings import Row
from flitlab.sim.measure.saturation import Saturation, saturation
from flitlab.sim.terminal import complain, shown_label


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


class Compiling(NamedTuple):
    """What is to be compiled. kernels: sets of kernels. functions: theirs together, about; None if unknown.

    before: functions that were compiled before the run.
    """

    kernels: int = 0
    functions: int | None = None
    before: int = 0

    @classmethod
    def of(cls, kernels: Mapping[str, int | None]) -> "Compiling":
        """Of sets of kernels with the number of functions of each."""
        known = [count for count in kernels.values() if count]
        return cls(len(kernels), sum(known) if len(known) == len(kernels) else None, compilations())

    def text(self) -> str:
        """The stage, with the number of functions compiled so far, and how many it takes, about."""
        done = compilations() - self.before
        if not done and self.functions is None:
            return COMPILING
        if self.functions is None:
            return f"{COMPILING}: {done} functions"
        return f"{COMPILING}: {done} of about {max(self.functions, done)} functions"


NOTHING = Compiling()
"""Where all kernels are in the cache."""


class Bar:
    """A bar on a terminal, with a line for each of the scenarios with the latest points.

    total: points. compiling: kernels to compile; this stage takes the place of the bar until the first point, and is
    above it until each set of kernels has had a point.
    """

    def __init__(self, total: int, compiling: Compiling = NOTHING):
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = (
            SpinnerColumn(), TextColumn("points"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TextColumn("{task.fields[left]}"),
        )  # fmt: skip
        self._bar = RichProgress(*columns)
        self._task = self._bar.add_task("points", total=total, rate="", left="")
        self._compiling = RichProgress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._stage = self._compiling.add_task(COMPILING, total=None)
        self._compiles = compiling
        self._total = total
        self._times = [time.monotonic()]  # of the start, and of the points that are done
        self._ticks: list[int] = []  # of the points that are done
        self._rows: dict[str, list[Row]] = {}

    def advance(self, ticks: int = 0, scenario: str = "", row: Row | None = None) -> None:
        """Count one more point."""
        self._times.append(time.monotonic())
        self._ticks.append(ticks)
        starts = 1 + self._compiles.kernels
        rate, left = tick_rate(self._times, self._ticks, starts), seconds_left(self._times, self._total, starts)
        self._bar.update(
            self._task,
            advance=1,
            rate="" if rate is None else f"{rate:,.0f} ticks/s",
            left="" if left is None else f"{duration(left)} to go",
        )
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
        if len(self._ticks) >= self._compiles.kernels:
            return Group(*lines, self._bar)
        self._compiling.update(self._stage, description=self._compiles.text())
        return Group(*lines, self._compiling, *([self._bar] if self._ticks else []))


COMPILING = "compiling kernels, once on this machine"
"""The stage before the first point of kernels that are not in the cache."""


def seconds_left(times: Sequence[float], total: int, starts: int) -> float | None:
    """The remaining time of a run; None while it cannot be known.

    The longest intervals between points are those in which processes started and kernels were compiled.

    Parameters
    ----------
    times: of the start, and of each point that is done, in seconds.
    total: points.
    starts: intervals that do not count, the longest ones.

    >>> seconds_left([0, 50], 40, 1), seconds_left([0, 50, 90, 91], 5, 2), seconds_left([0, 1, 2], 2, 1)
    (None, 2.0, None)
    """
    intervals = sorted(after - before for before, after in pairwise(times))
    usual, done = intervals[: max(0, len(intervals) - starts)], len(intervals)
    return sum(usual) / len(usual) * (total - done) if usual and done < total else None


def tick_rate(times: Sequence[float], ticks: Sequence[int], starts: int) -> float | None:
    """The ticks that a run simulates per second, without the longest intervals; None while it cannot be known.

    Parameters
    ----------
    times, starts: as of :func:`seconds_left`.
    ticks: of each point that is done.

    >>> tick_rate([0, 50], [9], 1), tick_rate([0, 50, 51, 53], [9, 10, 20], 1), tick_rate([0, 5, 6], [0, 0], 1)
    (None, 10.0, None)
    """
    intervals = [after - before for before, after in pairwise(times)]
    usual = sorted(zip(intervals, ticks, strict=True))[: max(0, len(ticks) - starts)]
    seconds, simulated = sum(second for second, _ in usual), sum(count for _, count in usual)
    return simulated / seconds if seconds > 0 and simulated else None


def duration(seconds: float) -> str:
    """Minutes and seconds, or hours and minutes.

    >>> duration(8), duration(95), duration(7260)
    ('8 s', '1 min 35 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def stage(text: str) -> Iterator[None]:
    """Show what the block does, and for how long, on a terminal; elsewhere nothing.

    Parameters
    ----------
    text: the stage, such as ``drawing figures``.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as RichProgress
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with RichProgress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        bar.add_task(escape(shown_label(text)), total=None)
        yield


MINUTE = 60.0
"""Seconds between two lines of a run without a terminal."""


class Heartbeat:
    """A line per minute, also while no point is done.

    total: points. every: seconds between lines. compiling: kernels to compile.
    """

    def __init__(self, total: int, every: float = MINUTE, compiling: Compiling = NOTHING):
        self._compiles = compiling
        self._total = total
        self._times = [time.monotonic()]  # of the start, and of the points that are done
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, args=(every,), daemon=True)

    def advance(self, ticks: int = 0, scenario: str = "", row: Row | None = None) -> None:
        """Count one more point."""
        self._times.append(time.monotonic())

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _beat(self, every: float) -> None:
        while not self._ended.wait(every):
            times = list(self._times)
            left = seconds_left(times, self._total, 1 + self._compiles.kernels)
            text = heartbeat(len(times) - 1, self._total, time.monotonic() - times[0], left)
            say(f"{text}: {self._compiles.text()}" if len(times) <= self._compiles.kernels else text)


def heartbeat(done: int, total: int, seconds: float, left: float | None) -> str:
    """The progress of a run as text.

    Parameters
    ----------
    done, total: points.
    seconds: since the start.
    left: seconds to go; None if unknown.

    >>> heartbeat(0, 40, 60), heartbeat(11, 40, 660, 1740), heartbeat(43, 40, 7260)
    ('0 of 40 points after 1 min', '11 of 40 points after 11 min, about 29 min to go', '43 points after 2 h 1 min')
    """
    text = f"{done} of {total} points" if done <= total else f"{done} points"
    text += f" after {_minutes(seconds)}"
    return text if left is None else f"{text}, about {_minutes(left)} to go"


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
def progress(total: int, compiling: Compiling = NOTHING) -> Iterator[Progress]:
    """Report on points.

    Parameters
    ----------
    total: points; nothing is shown of 0.
    compiling: kernels to compile.
    """
    notebook = _can_show_in_notebook()
    if total == 0:
        yield Quiet()
    elif not (notebook or sys.stderr.isatty()):
        with Heartbeat(total, compiling=compiling) as beats:
            yield beats
    else:
        from rich.console import Console
        from rich.live import Live

        bar = Bar(total, compiling)
        with Live(bar, console=Console(stderr=not notebook), refresh_per_second=4):
            yield bar


def _can_show_in_notebook() -> bool:
    """Whether this is a notebook with ipywidgets, which can show updates."""
    if "ipykernel" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter
