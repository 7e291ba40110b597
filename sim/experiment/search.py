# SPDX-License-Identifier: Apache-2.0
"""The experiment ``search``: the largest value of an integer key at which throughput reaches a given theta.

By bisection, taking for granted that theta falls as the value grows. Each value is tried on a few seeds, the value
found on more; if those refute it, the search goes on below. Source: SIN, section 4.1 (servers at full throughput).
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import partial

from flitlab.models.hashing import content_hash
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.sim.config.case import Case, Study
from flitlab.sim.config.overrides import put
from flitlab.sim.config.sections import SearchConfig
from flitlab.sim.config.text import wrap
from flitlab.sim.experiment.network import Network, StoredReach, build, is_drawn, network_of, reaches_theta, redrawn
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress
from flitlab.sim.experiment.store import Store, require_cells
from flitlab.sim.experiment.task import ID_DIGITS, Outcome

COLUMNS = ("scenario", "value", "draw", "reached", "lower", "upper", "method", "seconds", "note")
"""Columns of probes.csv."""

MAX_GROWTH = 16
"""Without ``to``, the search ends at this many times the value in the configuration."""

Question = tuple[int, int]
"""(value, draws): whether enough of the first so many draws reach theta at a value."""


def largest(
    first: int, last: int, start: int, trial_draws: int, final_draws: int
) -> Generator[Question, bool, int | None]:
    """Asks for the largest value in first..last that holds; returns it, or None if none does.

    A coroutine: it yields questions and is sent the answers. start: the value to begin with; from there the search
    doubles, or halves, until the answer changes. few, many: draws that try a value, and that confirm the last.
    """
    passed, above = [first - 1], last + 1
    doubling = True
    while True:
        while above - passed[-1] > 1:
            low = passed[-1]
            if low < first:
                value = max(first, min(start, above // 2))
            elif doubling:
                value = min(max(2 * low, low + 1), last)
            else:
                value = (low + above) // 2
            if (yield value, trial_draws):
                passed.append(value)
            else:
                above, doubling = value, False
        best = passed[-1]
        if best < first:
            return None
        if (yield best, final_draws):
            return best
        above, passed, doubling = best, passed[:-1], False


@dataclass
class Search:
    """The search of one scenario. records: (value, draw) -> what was found. question: to be answered next."""

    case: Case
    store: Store
    records: dict[tuple[int, int], JsonObject] = field(default_factory=dict)
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    question: Question | None = None
    result: int | None = None
    problem: str = ""

    def __post_init__(self) -> None:
        self.network, self.submitted = network_of(self.case), set[tuple[int, int]]()
        config = self.config
        few = config.draws if is_drawn(self.network) else 1
        many = few + config.verify if is_drawn(self.network) else 1
        configured = self._value
        first = 1 if config.first is None else config.first
        last = max(MAX_GROWTH * configured, first) if config.last is None else config.last
        start = min(max(configured, first), last) if config.last is None else (first + last) // 2
        self.last = last
        self._steps = largest(first, last, start, few, many)
        self.question = next(self._steps, None)

    @property
    def config(self) -> SearchConfig:
        """What is asked."""
        assert self.case.search is not None
        return self.case.search

    @property
    def _value(self) -> int:
        """The value in the configuration."""
        node = wrap(self.network, "").get(*self.case.vary)
        assert node is not None
        value: int = node.value
        return value

    def ready(self) -> tuple[int, int] | None:
        """A (value, draw) that needs a solution and is not in flight; None if there is none."""
        self._go_on()
        if self.question is None:
            return None
        value, draws = self.question
        probes = ((value, draw) for draw in range(draws))
        return next((probe for probe in probes if probe not in self.records and probe not in self.submitted), None)

    def _go_on(self) -> None:
        """Answers questions as long as what is known suffices."""
        while self.question is not None and (answer := self._answer(self.question)) is not None:
            try:
                self.question = self._steps.send(answer)
            except StopIteration as end:
                self.question, self.result = None, end.value

    def _answer(self, question: Question) -> bool | None:
        """Whether enough draws reach theta; None while that is open. Draws count in their order only."""
        value, draws = question
        may_fail = int((1 - self.config.share) * draws + 1e-9)
        for draw in range(draws):
            probe = (value, draw)
            if probe not in self.records:
                self._recall(probe)
            if probe not in self.records:
                return None
            self.rows[probe] = self.records[probe]
            may_fail -= not self.records[probe]["reached"]
            if may_fail < 0:
                return False
        return True

    def _recall(self, probe: tuple[int, int]) -> None:
        stored = self.store.record(f"probes/{self.id(probe)}.json", partial(require_cells, model=StoredReach))
        if stored is not None:
            self.records[probe] = stored

    def network_at(self, probe: tuple[int, int]) -> Network:
        """The network of a value and a draw."""
        value, draw = probe
        root = wrap(self.network, "")
        changed = put(root, self.case.vary, wrap(value, "")).plain()
        return redrawn(changed, draw)

    def id(self, probe: tuple[int, int]) -> str:
        """Name of the file of a probe."""
        instance = self.case.instance
        assert instance is not None
        files = (instance.topology.content_hash, instance.traffic.content_hash)  # what the network may be read from
        parameters = (self.network_at(probe), self.config.until, self.config.tolerance)
        return content_hash("search", SEMANTICS_VERSION, *files, *parameters)[:ID_DIGITS]

    def learn(self, probe: tuple[int, int], outcome: Outcome) -> None:
        """Takes what a worker found; the search ends where it found nothing."""
        if outcome.problem:
            self.problem, self.question = f"{self.case.vary[-1]} {probe[0]}: {outcome.problem}", None
            return
        self.records[probe] = outcome.result
        self.store.write_record(f"probes/{self.id(probe)}.json", outcome.result)
        self._go_on()


class SearchRuns:
    """The searches of all scenarios, side by side."""

    def __init__(self, study: Study, store: Store):
        self.study = study
        self.searches = [Search(case, store) for case in study.cases]

    @property
    def task_indices(self) -> list[int]:
        """Places of the searches."""
        return list(range(len(self.searches)))

    def tasks(self, bar: Progress) -> Iterator[Task | None]:
        """Calls as they become necessary."""
        open_ = list(self.searches)
        while open_:
            ready = None
            for search in list(open_):
                ready = search.ready()
                if search.question is None:
                    open_.remove(search)
                    bar.advance()
                elif ready is not None:
                    yield self._task(search, ready)
                    break
            if open_ and ready is None:
                yield None

    def _task(self, search: Search, probe: tuple[int, int]) -> Task:
        search.submitted.add(probe)
        arguments = (search.network_at(probe), search.config.until, search.config.tolerance)
        name = f"{search.case.label}: {search.case.vary[-1]} {probe[0]}"
        index = self.searches.index(search)
        return Task(reaches_theta, arguments, lambda outcome: search.learn(probe, outcome), name=name, task_index=index)

    def columns_of(self, index: int) -> tuple[Row, str]:
        """The network and the value found, how many were solved for it, and what more is to be said of it."""
        search = self.searches[index]
        if search.problem or search.question is not None:
            return {}, search.problem
        answer = {"found": search.result, "probes": len(search.rows), "search_note": _note(search)}
        return {**_size(search), **answer}, ""

    def tables(self) -> dict[str, list[Row]]:
        """probes.csv: every network that counted, by value and draw."""
        rows = []
        for search in self.searches:
            for (value, draw), record in sorted(search.rows.items()):
                rest = {name: record[name] for name in COLUMNS[3:]}
                rows.append({"scenario": search.case.label, "value": value, "draw": draw, **rest})
        return {"probes.csv": rows}


def _size(search: Search) -> Row:
    """Columns that other experiments have too, of the first network of the value found."""
    if search.result is None:
        return {}
    topology, _ = build(search.network_at((search.result, 0)))
    names = ("kind", "switches", "channels", "hosts")
    return {name: getattr(topology, name) for name in names}


def _note(search: Search) -> str:
    """What limits the value found other than throughput."""
    if search.result is None:
        return "no value reaches it"
    if search.result == search.last:
        return "the last value that was allowed"
    above = search.records.get((search.result + 1, 0), {"note": ""})
    return f"{search.result + 1} cannot be built: {above['note']}" if above["note"] else ""
