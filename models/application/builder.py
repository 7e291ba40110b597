# SPDX-License-Identifier: Apache-2.0
"""Programs from rounds: what ranks do at the same stage of an algorithm, as arrays."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from flitlab.models.application.assembly import Moment, RoundPlan, assemble
from flitlab.models.application.program import Op, Program, Step
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError

LIMIT = 20_000_000
"""The most operations of a built program."""

LONGEST = 10**15
"""The most nanoseconds of a calculation: eleven days."""


@dataclass(frozen=True)
class MessageSet:
    """Declared messages, to be sent and received in rounds of their own.

    source, target: int64 [messages], ranks. number: int64 [messages], among all messages of a builder.
    """

    source: Ints
    target: Ints
    number: Ints

    @classmethod
    def joined(cls, sets: Sequence["MessageSet"]) -> "MessageSet":
        """All messages of some sets, in order."""
        none = np.zeros(0, np.int64)
        source, target, number = (
            np.concatenate([none, *(getattr(message_set, name) for message_set in sets)])
            for name in ("source", "target", "number")
        )
        return cls(source, target, number)

    def __getitem__(self, index: np.ndarray) -> "MessageSet":
        """The messages selected by an index or a mask."""
        return MessageSet(self.source[index], self.target[index], self.number[index])


@dataclass(frozen=True)
class Round:
    """A joint action of ranks; all its messages are sent at once.

    source, target, size: int64 [messages], ranks and bytes. ns: nanoseconds of the longest calculation.
    """

    source: Ints
    target: Ints
    size: Ints
    ns: int


class Builder:
    """Collects rounds, and makes a :class:`~flitlab.models.application.program.Program` of them.

    In a round ranks calculate, or send and receive. A rank begins a round when its work in earlier rounds of the thread
    is done. A thread runs on a processor of its own on every rank; :meth:`wait` lets one wait for another. In a round,
    a rank's sends have lower numbers than its receives, and both are in the order of the arrays. The number of a thread
    is the tag of its messages. Messages of a rank to itself, and calculations of no time, are left out.

    ranks: their number. thread: of the following rounds. iteration: of the following steps. ticks: estimates the time
    of a builder's rounds on the network; None where the network is not known.
    """

    def __init__(self, ranks: int, ticks: "Ticks | None" = None) -> None:
        self.ranks = ranks
        self.ticks = ticks
        self.chosen: dict[tuple[Hashable, ...], str] = {}
        self.thread = 0
        self.iteration = -1
        self._plan = RoundPlan(ranks)
        self._step = -1
        self._declared = 0
        self._operations = 0

    def begin(self, name: str, algorithm: str = "", size: int = 0, ranks: int = 0, synchronising: bool = False) -> None:
        """Begin a step: the following rounds belong to it.

        Parameters
        ----------
        name, algorithm, size, ranks, synchronising: as in :class:`~flitlab.models.application.program.Step`.
        """
        self._step = len(self._plan.steps)
        self._plan.steps.append(Step(name, algorithm, int(size), ranks or self.ranks, synchronising, self.iteration))

    @contextmanager
    def on(self, thread: int) -> Iterator[None]:
        """Add the rounds within to another thread; afterwards restore thread and step."""
        before = self.thread, self._step
        self.thread = thread
        yield
        self.thread, self._step = before

    def calculate(self, ns: npt.ArrayLike, ranks: Ints | None = None) -> None:
        """A round in which ranks calculate.

        Parameters
        ----------
        ns: nanoseconds, one number or one per rank.
        ranks: int64; None: all.
        """
        calculating_ranks = np.arange(self.ranks) if ranks is None else np.asarray(ranks)
        if np.max(ns, initial=0) > LONGEST:
            raise SpecError(f"a calculation would take more than {LONGEST:,} ns", key="gflops")
        time = np.broadcast_to(np.rint(ns).astype(np.int64), calculating_ranks.shape)
        busy = time > 0
        self._round([(Op.CALC, calculating_ranks[busy], time[busy])])

    def declare(self, source: npt.ArrayLike, target: npt.ArrayLike, size: npt.ArrayLike) -> MessageSet:
        """Declare messages; each must be sent and received once.

        Parameters
        ----------
        source, target: int64 [messages], ranks.
        size: bytes, one number or one per message.

        Returns
        -------
        The messages.
        """
        arrays = np.broadcast_arrays(source, target, np.asarray(size, np.int64))
        real = (arrays[0] != arrays[1]).ravel()
        sources, targets, sizes = (array.ravel()[real] for array in arrays)
        number = np.arange(self._declared, self._declared + len(sources))
        self._declared += len(sources)
        self._plan.messages.append((sources, targets, sizes, self.thread))
        return MessageSet(sources, targets, number)

    def send(self, messages: MessageSet) -> None:
        """A round in which messages are sent."""
        self._round([(Op.SEND, messages.source, messages.number)])

    def receive(self, messages: MessageSet) -> None:
        """A round in which messages are received."""
        self._round([(Op.RECV, messages.target, messages.number)])

    def exchange(self, source: npt.ArrayLike, target: npt.ArrayLike, size: npt.ArrayLike) -> None:
        """A round in which messages are sent and received.

        Parameters
        ----------
        source, target: int64 [messages], ranks.
        size: bytes, one number or one per message.
        """
        messages = self.declare(source, target, size)
        self._round([(Op.SEND, messages.source, messages.number), (Op.RECV, messages.target, messages.number)])

    def moment(self) -> Moment:
        """The present moment of this thread, for :meth:`wait` in another."""
        return Moment(self.thread, len(self._plan.rounds))

    def wait(self, moment: Moment, ranks: Ints | None = None) -> None:
        """Let ranks wait in this thread for all that they do in another thread before a moment.

        Parameters
        ----------
        moment: the moment.
        ranks: int64; None: all.
        """
        waiting_ranks = np.arange(self.ranks) if ranks is None else np.asarray(ranks)
        self._plan.waits.append((len(self._plan.rounds), moment))
        self._round([(Op.CALC, waiting_ranks, np.zeros(len(waiting_ranks), np.int64))])

    def build(self, simulated: int = 1, iterations: int = 1, notes: Notes | None = None) -> Program:
        """The program of all rounds so far.

        Parameters
        ----------
        simulated, iterations, notes: as in :class:`~flitlab.models.application.program.Program`.
        """
        return assemble(self._plan, simulated, iterations, dict(notes or {}))

    def rounds(self) -> Iterator[Round]:
        """All rounds so far with calculations or messages."""
        sets = self._plan.messages or [(np.zeros(0, np.int64),) * 3 + (0,)]
        source, target, size = (np.concatenate([some[column] for some in sets]) for column in range(3))
        for _, pieces in groupby(self._plan.pieces, key=itemgetter(0)):
            by_kind = [(kind, value) for _, kind, _, value in pieces]
            sent = np.concatenate([np.zeros(0, np.int64), *(value for kind, value in by_kind if kind == Op.SEND)])
            ns = max((int(value.max(initial=0)) for kind, value in by_kind if kind == Op.CALC), default=0)
            if len(sent) or ns:
                yield Round(source[sent], target[sent], size[sent], ns)

    def expect(self, operations: int) -> None:
        """Raise ``SpecError`` if this many more operations exceed the limit; called before large arrays are made."""
        if self._operations + operations > LIMIT:
            raise SpecError(f"the program would have more than {LIMIT:,} operations; take fewer ranks or iterations")

    def _round(self, pieces: list[tuple[int, np.ndarray, np.ndarray]]) -> None:
        number, count = len(self._plan.rounds), sum(len(ranks) for _, ranks, _ in pieces)
        if not count:
            return
        if self._step < 0:
            raise ValueError("a round belongs to a step: begin one")
        self.expect(count)
        self._operations += count
        self._plan.rounds.append((self.thread, self._step))
        self._plan.pieces += [(number, kind, ranks, value) for kind, ranks, value in pieces]


Ticks = Callable[[Builder], float]
"""Type of a function that estimates the ticks of a builder's rounds."""
