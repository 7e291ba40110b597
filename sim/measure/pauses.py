# SPDX-License-Identifier: Apache-2.0
"""Pauses of lossless queues: columns of results.csv, what caused them, and deadlocks.

The cause of a pause is the queue of the next switch in which most of the bytes waited that came by the paused channel.
So pauses form trees. A root is a queue that was hardly paused itself, but paused others: the congested channel. Flows
that were held by these pauses and do not use it are victims of head-of-line blocking.

With several classes every channel of a tree is one of a class, as are the queues: a port, ``link * classes + class``.
A class has trees of its own.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Row
from flitlab.models.routing.certificate import describe_cycle
from flitlab.models.topology.names import host_names, switch_names
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.flow_links import links_of_flows
from flitlab.sim.engines.transport.spray import NO_QUEUE, Counters, PauseCount, SprayRun
from flitlab.sim.measure.result import StallError

HARDLY = 10
"""A queue is a root if it was paused for less than this part of the longest total of those that it paused."""


class Pause(NamedTuple):
    """A port in a tree of pauses: a channel, of a class.

    root: the channel at the root, depth: channels below it. queue: the main cause, NO_QUEUE: the host at its end.
    paused: ticks of all of its pauses; first, last: ticks of the start of the first and the end of the last one.
    """

    link: int
    root: int
    depth: int
    queue: int
    paused: int
    first: int
    last: int


class Waited(NamedTuple):
    """What held a victim longest: the root, and the ticks of pauses of its tree, added up over channels."""

    root: int
    ticks: int


class Trees(NamedTuple):
    """All trees of pauses, channels before those that they paused.

    blocking: root -> the channels that block: itself, or all of a cycle. victims: flow -> what held it though it does
    not use that root; None where its links are not known.
    """

    pauses: list[Pause]
    blocking: dict[int, frozenset[int]]
    victims: dict[int, "Waited"] | None


def pause_trees(session: SpraySession, counters: Counters) -> Trees:
    """Return the trees of the pauses since tick 0, those that lasted longest in all first.

    Parameters
    ----------
    session : SpraySession
        With lossless queues.
    counters : Counters
        At the end of the run.
    """
    assert counters.causes is not None
    nodes = _main_causes(counters.causes)
    below: dict[int, list[int]] = defaultdict(list)
    for link, node in nodes.items():
        if node.queue != NO_QUEUE:
            below[node.queue].append(link)
    for links in below.values():
        links.sort(key=lambda link: (-nodes[link].paused, link))
    blocking = {root: frozenset([root]) for root in _roots(nodes, below)}
    trees = [list(_tree(root, nodes, below, set(blocking))) for root in blocking]
    seen = {pause.link for tree in trees for pause in tree}
    for link in sorted(nodes):
        if link not in seen:  # it waits for a cycle
            cycle = _cycle(link, nodes)
            blocking[min(cycle)] = frozenset(cycle)
            trees.append(list(_tree(min(cycle), nodes, below, {min(cycle), *seen})))
            seen |= {pause.link for pause in trees[-1]}
    trees.sort(key=lambda tree: (-sum(pause.paused for pause in tree), tree[0].link))
    pauses = [pause for tree in trees for pause in tree]
    return Trees(pauses, blocking, _victims(session, counters, pauses, blocking))


def _main_causes(causes: Ints) -> dict[int, Pause]:
    """Each paused channel with its main cause; root and depth are not known yet."""
    nodes: dict[int, Pause] = {}
    longest: dict[int, int] = {}
    for link, queue, _, paused, first, last in causes.tolist():
        if link not in nodes:
            nodes[link], longest[link] = Pause(link, link, 0, queue, paused, first, last), paused
            continue
        before = nodes[link]
        if paused > longest[link]:
            queue, longest[link] = queue, paused
        else:
            queue = before.queue
        nodes[link] = before._replace(
            queue=queue, paused=before.paused + paused, first=min(before.first, first), last=max(before.last, last)
        )
    return nodes


def _roots(nodes: dict[int, Pause], below: dict[int, list[int]]) -> list[int]:
    """Channels that were not paused, or hardly, or by a host."""
    stormed = [link for link, node in nodes.items() if node.queue == NO_QUEUE]
    return sorted({*stormed, *(
        queue for queue, links in below.items()
        if queue not in nodes or HARDLY * nodes[queue].paused < max(nodes[link].paused for link in links)
    )})  # fmt: skip


def _tree(root: int, nodes: dict[int, Pause], below: dict[int, list[int]], stop: set[int]) -> Iterator[Pause]:
    """The channels of a tree in depth-first order. stop: roots, which belong to no other tree."""
    stack = [(root, 0)]
    while stack:
        link, depth = stack.pop()
        node = nodes.get(link, Pause(link, root, depth, NO_QUEUE, 0, 0, 0))
        yield node._replace(root=root, depth=depth)
        stack += [(other, depth + 1) for other in reversed(below.get(link, [])) if other not in stop]


def _cycle(link: int, nodes: dict[int, Pause]) -> list[int]:
    """The cycle of main causes that a channel waits for."""
    seen: dict[int, int] = {}
    while link not in seen:
        seen[link] = len(seen)
        link = nodes[link].queue
    return list(seen)[seen[link] :]


def _victims(
    session: SpraySession, counters: Counters, pauses: Sequence[Pause], blocking: dict[int, frozenset[int]]
) -> dict[int, Waited] | None:
    """Flow -> root for which pauses held it longest, of those that it does not use."""
    if counters.held is None:
        return None
    links = links_of_flows(session)
    assert links is not None and session.ports is not None
    count, of_flow = session.ports.class_count, session.ports.of_flow
    if of_flow is not None:
        links = np.where(links < 0, links, links * count + of_flow[:, None])
    root_of = {pause.link: pause.root for pause in pauses if pause.paused}
    victims = {}
    for flow in np.flatnonzero(counters.held.any(axis=1)).tolist():
        own = set(links[flow].tolist())
        waited: dict[int, int] = defaultdict(int)
        for link, ticks in sorted(dict(zip(links[flow].tolist(), counters.held[flow].tolist(), strict=True)).items()):
            if ticks and link in root_of and not own & blocking[root_of[link]]:
                waited[root_of[link]] += ticks
        if waited:
            root = max(waited, key=lambda root: waited[root])
            victims[flow] = Waited(root, waited[root])
    return victims


class LinkNames:
    """The two ends of links, as tables name them; with several classes numbers are those of ports."""

    def __init__(self, session: SpraySession):
        self._topology = topology = session.topology
        self._switches, self._hosts = switch_names(topology), host_names(topology)
        classes = None if session.ports is None else session.ports.classes
        self.classes = () if classes is None else classes.names

    def _split(self, port: int) -> tuple[int, str]:
        """The link and the class of a port; "" where there is one class."""
        if not self.classes:
            return port, ""
        link, number = divmod(port, len(self.classes))
        return link, self.classes[number]

    def ends(self, port: int) -> tuple[str, str]:
        """Return the names of the start and the end of a link."""
        topology, (link, _) = self._topology, self._split(port)
        if link < topology.channels:
            return self._switches.label(topology.src[link]), self._switches.label(topology.dst[link])
        host = (link - topology.channels) % topology.hosts
        ends = f"host {self._hosts.label(host)}", self._switches.label(topology.host_switch[host])
        return ends if link < topology.channels + topology.hosts else ends[::-1]

    def class_of(self, port: int) -> dict[str, str]:
        """Return the column of the class of a port, where there are several."""
        return {"class": self._split(port)[1]} if self.classes else {}

    def name(self, port: int) -> str:
        """Return the name of a link, and of its class where there are several."""
        return "->".join(self.ends(port)) + (f" ({self._split(port)[1]})" if self.classes else "")

    def cycle(self, ports: Sequence[int]) -> str:
        """Return a cycle of ports as text; each waits for the next."""
        links, names = zip(*map(self._split, ports), strict=True)
        text = describe_cycle(self._topology, list(links))
        return text.replace("VC *", f"class {names[0]}") if self.classes else text


def pause_columns(
    run: SprayRun, before: Counters, after: Counters, ticks: int, may_deadlock: bool, trees: Trees | None
) -> Row:  # fmt: skip
    """Return the columns of results.csv of lossless queues; {} for other queues.

    Parameters
    ----------
    run : SprayRun
        At the end of the window.
    before, after : Counters
        At both ends of the window, of ``ticks`` ticks.
    may_deadlock : bool
        Whether no certificate excludes a deadlock.
    trees : Trees
        Of pauses.

    Raises
    ------
    StallError
        For a deadlock that a certificate excludes.
    """
    if before.pause is None or after.pause is None or trees is None:
        return {}
    session = run.session
    assert session.ports is not None
    tick_us, names = session.tick_s * 10**6, LinkNames(session)
    servers = session.ports.class_count * (session.topology.channels + session.topology.hosts)
    moved = after.pause - before.pause
    ports = run.deadlock()
    cycle = names.cycle(ports) if ports else ""
    if cycle and not may_deadlock:
        raise StallError(f"packets wait for each other in a cycle, in spite of the certificate: {cycle}")
    return {
        "pause_frames": int(moved[:, PauseCount.FRAMES].sum()),
        "paused_share": float(moved[:servers, PauseCount.PAUSED].sum() / (max(ticks, 1) * servers)),
        "longest_pause_us": float(int(after.pause[:, PauseCount.LONGEST].max()) * tick_us),
        "most_paused": after.most_paused,
        "pause_root": names.name(trees.pauses[0].link) if trees.pauses else "",
        "victims": None if trees.victims is None else len(trees.victims),
        "watchdogs": int(moved[:, PauseCount.FIRED].sum()),
        "peak_ingress_bytes": int(after.pause[:, PauseCount.PEAK].max()),
        "deadlocked": bool(cycle),
        "deadlock_cycle": cycle,
    }


def pause_rows(session: SpraySession, trees: Trees, pause: Ints) -> list[Row]:
    """Return rows of pauses.csv: the trees, each from its root on.

    pause: int64 [ports, PauseCount].
    """
    names, tick_us = LinkNames(session), session.tick_s * 10**6
    victims = [waited.root for waited in (trees.victims or {}).values()]
    rows = []
    for one in trees.pauses:
        start, end = names.ends(one.link)
        frames, paused, longest, peak, fired = pause[one.link].tolist()
        by = "" if not frames else end if one.queue == NO_QUEUE else names.name(one.queue)
        rows.append({
            "root": names.name(one.root), "depth": one.depth, **names.class_of(one.link), "from": start, "to": end,
            "paused_by": by,
            "pause_frames": frames, "paused_us": float(paused * tick_us), "longest_pause_us": float(longest * tick_us),
            "peak_ingress_bytes": peak, "watchdogs": fired,
            "victims": victims.count(one.link) if trees.victims is not None and one.depth == 0 else None,
        })  # fmt: skip
    return rows


MOST_SHOWN, MOST_PARTS = 24, 100
"""Channels and intervals of pauses_time.csv."""


def pause_time_rows(session: SpraySession, trees: Trees, samples: Sequence[tuple[int, Ints]]) -> list[Row]:
    """Return rows of pauses_time.csv: of each interval, and of each of the first channels of the trees paused in it.

    samples: tick -> ticks for which each port has been paused, int64 [ports], in order.
    """
    names, tick_us = LinkNames(session), session.tick_s * 10**6
    every = -(-(len(samples) - 1) // MOST_PARTS) or 1
    chosen = [*samples[:-1:every], samples[-1]]
    shown = [pause.link for pause in trees.pauses if pause.paused][:MOST_SHOWN]
    rows: list[Row] = []
    for (start, before), (end, after) in pairwise(chosen):
        span = {"from_us": _us(start, tick_us), "to_us": _us(end, tick_us)}
        for link in shown:
            if ticks := int(after[link] - before[link]):
                rows.append({**span, "channel": names.name(link), "paused_us": _us(ticks, tick_us)})
    return rows


class ProgramPauses:
    """Pauses of lossless queues while a program runs, sampled as it advances.

    Parameters
    ----------
    run : SprayRun
        With lossless queues, at tick 0.
    """

    def __init__(self, run: SprayRun):
        self._run = run
        self._before = run.counters(causes=False)
        self._paused = {0: self._now()}

    def _now(self) -> Ints:
        table = self._run.pauses()
        assert table is not None
        return table[:, PauseCount.PAUSED].copy()

    def sample(self, edges: Sequence[int]) -> None:
        """Keep the samples at these ticks, int64 [edges]; the run has been advanced to the last of them."""
        self._paused = {tick: self._paused[tick] for tick in edges[:-1]} | {edges[-1]: self._now()}

    def results(self, end: int) -> tuple[Row, dict[str, list[Row]]]:
        """Return columns of results.csv, and rows of pauses.csv and pauses_time.csv by name.

        end : int
            The tick after which nothing arrived, not after the last sample.
        """
        session, after = self._run.session, self._run.counters()
        assert after.pause is not None
        trees = pause_trees(session, after)
        *earlier, (_, last) = self._paused.items()
        samples = [*((tick, paused) for tick, paused in earlier if tick < end), (end, last)]
        row = pause_columns(self._run, self._before, after, end, True, trees)
        if after.cnps is not None:
            row["cnps"] = int(after.cnps.sum())
        return row, {
            "pauses": pause_rows(session, trees, after.pause),
            "pauses_time": pause_time_rows(session, trees, samples),
        }


def program_pauses(run: Any) -> ProgramPauses | None:
    """Return the sampler of a program's run at tick 0; None without lossless queues."""
    session = getattr(run, "session", None)
    return ProgramPauses(run) if isinstance(session, SpraySession) and session.ports is not None else None


def _us(ticks: int, tick_us: Fraction) -> float:
    return float(ticks * tick_us)
