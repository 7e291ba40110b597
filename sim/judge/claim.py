# SPDX-License-Identifier: Apache-2.0
"""A reported result as a file states it: a network, its traffic, and numbers with units."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.fluid.problem import FluidError
from flitlab.models.files import name_of
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys
from flitlab.models.registry import Spec, make, whole
from flitlab.models.switching.timed import TimedSpec
from flitlab.models.topology.flit_times import capacity_unit
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import TrafficSpec
from flitlab.sim.config.build import build
from flitlab.sim.config.components import ComponentBuilder
from flitlab.sim.config.diagnostics import ConfigError, Diagnostics, KeyPath, show
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.overrides import apply_set, put
from flitlab.sim.config.plugins import load_plugins
from flitlab.sim.config.sections import Name, Section
from flitlab.sim.config.text import ConfigDocument, Node, base_of, load_file, read_text
from flitlab.sim.config.units import without_units
from flitlab.sim.config.validation import validated
from flitlab.sim.judge.outputs import NATIVE, QUANTITIES, UNITS, OutputError, read_csv_rows
from flitlab.sim.judge.quantity import Quantity, Scale, Unit, UnitError, is_time, needs_capacity, quantity

DEFAULT_ERROR = 0.02
"""Default relative error of a mean over a finite run."""

RATE, TIME = "flits/cycle/node", "cycles"
"""Default units."""

SHORT_FORMS = {"topology": ("path", "file"), "traffic": ("kind", None), "routing": ("kind", None)}
"""Section -> the key that a plain text stands for, and the kind that is implied."""

SIMULATORS = {"booksim2": "BookSim2", "htsim": "htsim"}
"""Key of an output -> its simulator."""

Positive = Annotated[float, Field(ge=1e-15, le=1e15)]
Delay = Annotated[float, Field(ge=0, le=1e15)]


class ReportedConfig(Section):
    """An entry of ``reported:``: numbers, or a file with them.

    load: flits that hosts create and the network carries; beside a throughput only what hosts create. throughput: what
    hosts receive. latency: mean, from the creation of a packet to its tail at its host. In ``csv`` they name columns.
    unit: of each, or a text for those that it suits. error: what a mean may be off by, relatively; by default 0.02 for
    what is measured, 0 for a load alone. csv: a table with columns of these names; booksim2, htsim: an output as it is.
    """

    load: Any = None
    throughput: Any = None
    latency: Any = None
    unit: str | dict[str, str] | None = None
    error: Annotated[float, Field(ge=0, lt=1)] | None = None
    csv: str | None = None
    booksim2: str | None = None
    htsim: str | None = None

    @property
    def native(self) -> str | None:
        """The key of a simulator's output file, None if there is none."""
        return next((key for key in NATIVE if getattr(self, key) is not None), None)

    @property
    def is_file(self) -> bool:
        """Whether the numbers are in a file."""
        return self.csv is not None or self.native is not None

    @model_validator(mode="after")
    def _check_contents(self) -> "ReportedConfig":
        quantities = [what for what in QUANTITIES if getattr(self, what) is not None]
        files = [key for key in ("csv", *NATIVE) if getattr(self, key) is not None]
        if len(files) > 1:
            raise PydanticCustomError("two_files", f"gives two files: {' or '.join(files)}")
        if self.native is not None and (quantities or self.unit is not None):
            problem = f"an output of {SIMULATORS[self.native]} has names and units of its own"
            raise PydanticCustomError("known_names", problem)
        if self.native is None and not quantities:
            raise PydanticCustomError("nothing_reported", "needs load, throughput or latency")
        return self


class DelaysConfig(Section):
    """``delays:`` of the network that was measured: of a channel with the switch behind it, and of all else.

    hop: from a switch to the next. ends: from the creation of a packet's head to its host, over one switch. unit: of
    both.
    """

    hop: Delay
    ends: Delay = 0.0
    unit: str = TIME


class ClaimConfig(Section):
    """A whole claim; ``topology``, ``traffic``, ``routing``, ``switching`` and ``plugins`` as in a configuration."""

    name: Name | None = None
    topology: Any = None
    traffic: Any = None
    routing: Any = None
    switching: Any = None
    plugins: Any = None
    vcs: Annotated[int, BeforeValidator(whole), Field(ge=1, le=64)] | None = None
    delays: DelaysConfig | None = None
    link_gbps: Positive | None = None
    cycle_ns: Positive | None = None
    reported: Annotated[list[ReportedConfig], Field(min_length=1)]


@dataclass(frozen=True)
class Delays:
    """The least delays of a packet's head, in cycles: of each hop between switches, and of all else.

    header: the part of a hop that may delay the head alone, so that the flits behind it catch up. source: of the
    numbers. tick: cycles of a tick, the unit of delays of the topology.
    """

    hop: float
    ends: float
    header: float
    source: str
    tick: float = 1.0


@dataclass(frozen=True)
class ClaimPoint:
    """Numbers that are reported together; None where not reported.

    entry: index of its entry of ``reported``. where: its position, ``file:line``.
    """

    entry: int
    where: str
    load: Quantity | None
    throughput: Quantity | None
    latency: Quantity | None


@dataclass(frozen=True, eq=False)
class Claim:
    """A reported result to be judged.

    text: of the file. senders: hosts that send, over which rates are means. delays: None where no latency is reported
    and none are known. flits: mean length of a packet. assumed: sentences on what the file leaves open. capacity: the
    ceiling of uniform traffic, if a unit refers to it.
    """

    file: str
    name: str
    text: str
    instance: Instance
    senders: int
    flits: float
    vcs: int | None
    delays: Delays | None
    points: list[ClaimPoint]
    assumed: list[str]
    capacity: Ceiling | None


def read_claim(file: str | Path, sets: tuple[str, ...] | list[str] = (), trust_plugins: bool = False) -> Claim:
    """Read, check and build a claim.

    Parameters
    ----------
    file : str or Path
        YAML file.
    sets : sequence of str
        Changes ``key.path=value``.
    trust_plugins : bool
        Whether plugins that it names are imported.

    Raises
    ------
    ConfigError
        All errors, one line each.
    """
    diagnostics = Diagnostics()
    root = load_file(file, diagnostics)
    for change in sets:
        root = apply_set(root, change, diagnostics)
    root = _plain(root, diagnostics)
    diagnostics.raise_errors()  # do not report consequences of these errors
    page, base = ConfigDocument(root, diagnostics), base_of(file)
    config = validated(ClaimConfig, page, page.at())
    load_plugins(page, base, trust_plugins)
    draft = Draft(_configuration(root, page, config), "ceilings", base, diagnostics)
    for key in ("topology", "traffic"):
        if not draft.has_value(key):
            page.reject(key, "is missing")
    case = None if diagnostics.errors else build(draft, ComponentBuilder())
    if case is None or config is None or case.instance is None:
        raise ConfigError(diagnostics.errors)
    instance, source = case.instance, draft.source
    assert source is not None
    if instance.traffic.background is not None:
        page.reject("traffic.background", "is not judged: a claim has one load, and this part does not grow with it")
    if instance.traffic.classes:
        page.reject("traffic.classes", "are not judged: a claim is about packets of one kind")
    if getattr(draft.switching, "subnets", 1) > 1:
        page.reject("switching.subnets", "are not judged: state the network of one subnet, and what it carries")
    diagnostics.raise_errors()
    flits = _mean_flits(source.packet_flits)
    reader = _Reader(page, config, base, instance, flits, draft)
    points = list(reader.points())
    delays = reader.delays(any(point.latency is not None for point in points))
    diagnostics.raise_errors()
    assumed = [
        *_random_assumptions(draft, instance.topology),
        *_delay_assumptions(delays, points),
        *_tick_assumptions(draft, instance.topology),
        *_mean_assumptions(points),
        *_routing_assumptions(instance),
        *dict.fromkeys(map(str, diagnostics.warnings)),
        *reader.skipped,
    ]
    return Claim(
        str(file), config.name or name_of(file), read_text(file), instance, reader.scale.hosts, flits,
        config.vcs or _vcs(draft), delays, points, assumed, reader.capacity,
    )  # fmt: skip


def _plain(root: Node, diagnostics: Diagnostics) -> Node:
    """The claim with plain numbers, except ``reported``, which has units of its own."""
    plain = without_units(root.without("reported"), diagnostics)
    return root.with_value({key: plain.value.get(key, node) for key, node in root.value.items()})


def _configuration(root: Node, page: ConfigDocument, config: ClaimConfig | None) -> Node:
    """The part of a claim that is a configuration, in its long form."""
    keys = ("name", "topology", "traffic", "routing", "switching", "plugins")
    parts = root.with_value({key: node for key, node in root.value.items() if key in keys})
    for section, (key, kind) in SHORT_FORMS.items():
        node = parts.get(section)
        if node is not None and isinstance(node.value, str):
            plain = {key: node} | ({} if kind is None else {"kind": node.with_value(kind)})
            parts = put(parts, (section,), node.with_value(plain))
    vcs, switching = root.get("vcs"), parts.get("switching")
    if vcs is None or config is None or (switching is not None and not switching.is_map):
        return parts
    if parts.get("switching", "vcs") is not None:
        page.reject("vcs", "is given in switching, too")
        return parts
    return put(parts, ("switching", "vcs"), vcs)


def _mean_flits(packet_flits: Any) -> float:
    if isinstance(packet_flits, int):
        return float(packet_flits)
    whole = sum(part.share for part in packet_flits)
    return float(sum(part.flits * part.share for part in packet_flits) / whole)


def _vcs(draft: Draft) -> int | None:
    """The VCs of ``switching``; None if it has none."""
    return getattr(draft.switching, "vcs", None) if draft.has("switching", "vcs") else None


class _Reader:
    """Converts entries of a claim to quantities, and reports their errors."""

    def __init__(
        self, page: ConfigDocument, config: ClaimConfig, base: Path, instance: Instance, flits: float, draft: Draft
    ) -> None:
        self.page, self.config, self.base, self.instance, self.draft = page, config, base, instance, draft
        self.capacity: Ceiling | None = None
        topology, spec = instance.topology, draft.switching
        cycle_ns = config.cycle_ns or (None if spec is None else spec.tick_ns)
        self.scale = Scale(
            int((instance.traffic.rate > 0).sum()),
            topology.switches,
            flits,
            topology.host_capacity,
            None,
            config.link_gbps,
            cycle_ns,
            float(instance.traffic.rate[instance.traffic.rate > 0].mean()),
        )
        self.skipped: list[str] = []

    def points(self) -> Iterator[ClaimPoint]:
        """The points of all entries, in order."""
        for i, entry in enumerate(self.config.reported):
            key: KeyPath = ("reported", i)
            for where, texts in self._rows(entry, key):
                if (point := self._point(entry, key, where, texts)) is not None:
                    yield point

    def _rows(self, entry: ReportedConfig, place: KeyPath) -> list[tuple[str, dict[str, str]]]:
        """Position of each row, and the texts of its quantities."""
        named = {what: getattr(entry, what) for what in QUANTITIES if getattr(entry, what) is not None}
        if not entry.is_file:
            texts = {what: self._text(place, what, value) for what, value in named.items()}
            known = {what: text for what, text in texts.items() if text is not None}
            return [(self.page.where(*place), known)] if len(known) == len(texts) else []
        kind = entry.native or "csv"
        name = getattr(entry, kind)
        key, path = (*place, kind), self.base / name
        if os.path.exists(path) and not (path.is_file() or path.is_dir()):  # pathlib raises for too long names
            self.page.reject(key, "is no regular file: it may never end")
            return []
        try:
            rows, skipped = (
                (NATIVE[kind](path), 0) if entry.native else read_csv_rows(path, self._columns(place, named))
            )
        except OutputError as error:
            self.page.reject(key, str(error))
            return []
        except ConfigError as error:
            self.page.reject(key, error.errors[0].problem)
            return []
        if skipped:
            verb = "row reports" if skipped == 1 else "rows report"
            self.skipped.append(f"{skipped} {verb} nothing in these columns of {name}: {', '.join(named.values())}.")
        return [(f"{name}:{line}", texts) for line, texts in rows]

    def _columns(self, place: KeyPath, named: Keys) -> dict[str, str]:
        """Quantity -> name of its column."""
        for what, value in named.items():
            if not isinstance(value, str):
                self.page.reject((*place, what), "must be the name of a column of the CSV file")
        return {what: str(value) for what, value in named.items()}

    def _text(self, place: KeyPath, what: str, value: object) -> str | None:
        """A number as it is written; None after an error."""
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            self.page.reject((*place, what), "must be a number")
            return None
        return str(value) if isinstance(value, str) else repr(value)

    def _point(self, entry: ReportedConfig, place: KeyPath, where: str, texts: dict[str, str]) -> ClaimPoint | None:
        errors = self.page.new_errors()
        units = self._units(entry, place, texts)
        quantities: dict[str, Quantity] = {}
        for what, text in texts.items():
            if units is None:
                continue
            load_only = what == "load" and "throughput" not in texts
            error = (0.0 if load_only else DEFAULT_ERROR) if entry.error is None else entry.error
            key = (*place, entry.native or what)
            try:
                quantities[what] = quantity(text, self._unit(units[what], what), error)
            except UnitError as problem:
                self._reject_unit(place, problem)
            except ValueError as problem:
                source = f"{where}: {text!r} " if entry.is_file else ""
                self.page.reject(key, f"{source}{problem}")
        if "throughput" in quantities and "load" not in quantities and math.isinf(self.instance.topology.host_capacity):
            why = "needs a load where host channels are infinite: report the load, too"
            self.page.reject((*place, "throughput"), why)
        if errors:
            return None
        return ClaimPoint(
            int(place[1]), where, quantities.get("load"), quantities.get("throughput"), quantities.get("latency")
        )

    def _reject_unit(self, place: KeyPath, error: UnitError) -> None:
        """Report an invalid unit at its own key."""
        self.page.reject((*place, "unit"), str(error), error.choices)

    def _units(self, entry: ReportedConfig, place: KeyPath, texts: Mapping[str, str]) -> dict[str, str] | None:
        """The unit of each quantity; None after an error."""
        usual = {what: TIME if what == "latency" else RATE for what in texts} | UNITS.get(entry.native or "", {})
        if entry.unit is None:
            return usual
        if isinstance(entry.unit, dict):
            for what, unit in entry.unit.items():
                if what not in texts:
                    self.page.reject((*place, "unit", what), "is not reported here", tuple(texts))
                    return None
                if is_time(unit) != (what == "latency"):
                    self.page.reject((*place, "unit", what), f"is no unit of a {what}")
                    return None
            return usual | entry.unit
        is_of_time = is_time(entry.unit)
        fitting = [what for what in texts if (what == "latency") == is_of_time]
        if not fitting:
            kind = "a time" if is_of_time else "a rate"
            self.page.reject((*place, "unit"), f"is a unit of {kind}, and {', '.join(texts)} is none")
            return None
        return usual | dict.fromkeys(fitting, entry.unit)

    def _unit(self, name: str, what: str) -> Unit:
        """The unit of a quantity on the network of the claim. Raises ``UnitError``."""
        if what != "latency" and needs_capacity(name) and self.capacity is None:
            self.capacity = _capacity(self.instance)
            self.scale = replace(self.scale, capacity=self.capacity.lower)
        return self.scale.unit(name, of_load=what == "load")

    def delays(self, needed: bool) -> Delays | None:
        """The least delays of the network; an error where a latency needs them and they are unknown."""
        section, spec = self.config.delays, self.draft.switching
        if section is not None:
            try:
                tick = self.scale.time(section.unit)
            except UnitError as error:
                self.page.reject("delays.unit", str(error), error.choices)
                return None
            return Delays(section.hop * tick, section.ends * tick, section.hop * tick, "delays of the claim")
        if isinstance(spec, TimedSpec):
            stated = any(key.endswith(("_ticks", "_ns")) for key in self.draft.at("switching") or {})
            unit = capacity_unit(self.instance.topology) if stated and spec.sends_flits else Fraction(1)
            cycles = {name: float(ticks / unit) for name, ticks in spec.ticks(unit).items()}
            each = cycles["header"] + cycles["switch"]
            ends = cycles["injection"] + each + cycles["ejection"]
            source = "switching of the claim" if stated else ""
            return Delays(each + cycles["link"], ends, cycles["header"], source, float(1 / unit))
        if needed:
            self.page.reject("switching.mode", "has no delays in cycles: say delays: {hop: ..., ends: ...}")
        return None


def _capacity(instance: Instance) -> Ceiling:
    """The ceiling of uniform traffic on the same network, by any routing. Raises ``UnitError``."""
    uniform = make("traffic", kind="uniform").build(instance.topology)
    try:
        return ceilings(Instance(instance.topology, uniform), [ceiling_spec("mcf")])[0]
    except FluidError as error:
        raise UnitError(f"needs what the network carries of uniform traffic: {error}") from None


def _random_assumptions(draft: Draft, topology: Topology) -> Iterator[str]:
    """Sentences on the parts that are drawn at random: another seed is another claim. topology: the network."""
    for section, word in (("topology", "graph"), ("traffic", "traffic")):
        spec = draft.spec(section)
        if isinstance(spec, Spec) and "seed" in type(spec).model_fields:
            if isinstance(spec, TrafficSpec) and not _is_drawn(spec, topology):
                continue
            seed = show(spec.model_dump()["seed"])
            yield (
                f"The {word} of kind {spec.kind} is drawn at random, here with seed {seed}: another draw has another "
                "ceiling, and a claim is best judged with the very one, as a file."
            )


def _is_drawn(spec: TrafficSpec, topology: Topology) -> bool:
    """Whether another seed gives another traffic; a shift has a seed, but only ``by: random`` draws."""
    seeds = (spec.model_dump()["seed"] + offset for offset in range(3))
    return len({spec.model_copy(update={"seed": seed}).build(topology).content_hash for seed in seeds}) > 1


def _tick_assumptions(draft: Draft, topology: Topology) -> Iterator[str]:
    unit = capacity_unit(topology)
    if draft.has_value("switching") and isinstance(draft.switching, TimedSpec) and unit != 1:
        yield (
            f"A cycle is the time of a flit at capacity 1. A tick of flitlab's own simulation of this network is "
            f"{float(1 / unit):.6g} cycles: state its latencies and rates in ns and Gbit/s."
        )


def _delay_assumptions(delays: Delays | None, points: list[ClaimPoint]) -> Iterator[str]:
    if delays is not None and not delays.source and any(point.latency is not None for point in points):
        yield (
            f"No delays are given: latencies are compared with flitlab's default network, {delays.hop:g} cycles a hop "
            f"between switches and {delays.ends:g} for the rest. Say delays or switching if the network has others."
        )


def _routing_assumptions(instance: Instance) -> Iterator[str]:
    """What the limits use of a routing, if there is one."""
    routes = instance.routes
    if routes is None:
        return
    if not routes.oblivious:
        yield (
            f"Nothing of the routing {routes.kind} is used: limits are those of any routing (mcf, total), and of "
            "shortest paths."
        )
        return
    yield (
        f"Of the routing {routes.kind} only its paths are used, in any proportions, for loads (mcf, mcf_paths) and "
        "latencies: its own split over them (split) may carry less. Throughputs are compared with those of any routing "
        "(total)."
    )


def _mean_assumptions(points: list[ClaimPoint]) -> Iterator[str]:
    errors = {each.error for point in points for each in (point.throughput, point.latency) if each is not None}
    if errors:
        percentages = ", ".join(f"{100 * error:g} %" for error in sorted(errors))
        yield f"Throughputs and latencies are means of runs that end, and may be off by {percentages} (error)."
    if any(point.throughput is not None and point.load is None for point in points):
        yield "Where no load is given, hosts create as much as fills the channel of the busiest sender, and no more."
