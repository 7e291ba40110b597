# SPDX-License-Identifier: Apache-2.0
"""Reads the file of a design, and reports everything that is wrong with it."""

from pathlib import Path
from typing import cast

from flitlab.fluid.design.demands import COLLECTIVE, DesignDemand, collective_spec
from flitlab.fluid.design.options import Sku
from flitlab.fluid.design.search import Limits, Tolerance
from flitlab.models.closest_match import closest_match
from flitlab.models.files import name_of
from flitlab.models.layout.design_prices import DEFAULT_PROFILE, KEYS, DesignPrices, design_prices, profiles
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, make, names, recorded_warnings, spec_class
from flitlab.models.topology.candidates import innermost
from flitlab.models.topology.equipment import least_switches
from flitlab.models.topology.spec import TopologySpec
from flitlab.sim.config.diagnostics import ConfigError, Diagnostics
from flitlab.sim.config.overrides import apply_set
from flitlab.sim.config.plugins import load_plugins
from flitlab.sim.config.text import ConfigDocument, Node, base_of, load_file, read_text, wrap
from flitlab.sim.config.units import without_units
from flitlab.sim.config.validation import reject_build_error, spec_of, validated
from flitlab.sim.design.measures import limit_names
from flitlab.sim.design.request import SHORT, DesignConfig, DesignRequest

LIMITS = {
    "cost_per_host": "cost",
    "watts_per_host": "watts",
    "cables": "cables",
    "switches": "switches",
    "diameter": "diameter",
}
"""Key of a limit -> its name in the search; other keys are names of demands."""

OF_DEMAND = ("name", "floor", "weight")
"""Keys of a demand that are not of its traffic."""

MOST_CHECKED = 20_000
"""Hosts up to which demands are built to check them."""

RELAYING = ("bcube", "dcell", "hammingmesh", "rail")
"""Families whose hosts relay, or have several ports of their own: another equipment."""


def is_design(file: str | Path) -> bool:
    """Whether a file is that of a design; False if it cannot be read."""
    try:
        kind = load_file(file, Diagnostics()).get("experiment")
    except ConfigError:
        return False
    return kind is not None and kind.value == "design"


def read_design(file: str | Path, sets: tuple[str, ...] | list[str] = ()) -> DesignRequest:
    """Read and check the file of a design.

    Parameters
    ----------
    file : str or Path
        YAML file.
    sets : sequence of str
        Changes ``key.path=value``.

    Raises
    ------
    ConfigError
        All errors, one line each.
    """
    diagnostics = Diagnostics()
    root = load_file(file, diagnostics)
    for change in sets:
        root = apply_set(root, change, diagnostics)
    return _request(root, diagnostics, base_of(file), name_of(file), read_text(file))


def design_of(values: Keys) -> DesignRequest:
    """The design of plain values, as a file in the current folder has them. Raises ``ConfigError``."""
    diagnostics = Diagnostics()
    return _request(wrap(dict(values), "design"), diagnostics, Path.cwd(), "design", "")


def _request(root: Node, diagnostics: Diagnostics, base: Path, stem: str, text: str) -> DesignRequest:
    root = without_units(root, diagnostics)
    diagnostics.raise_errors()
    page = ConfigDocument(root, diagnostics)
    config = validated(DesignConfig, page, page.at())
    load_plugins(page, base)
    if config is None:
        raise ConfigError(diagnostics.errors)
    reader = _Reader(page, config, base)
    prices = reader.prices()
    families, demands = reader.families(), reader.demands()
    diagnostics.raise_errors()
    assert prices is not None
    skus, splits = reader.switches(prices)
    limits, measured = reader.limits(demands)
    routings = reader.routings()
    diagnostics.raise_errors()
    tolerance = Tolerance(config.tolerance.throughput, config.tolerance.cost, config.gap)
    request = DesignRequest(
        config.name or stem, text, config, skus, splits, families, demands, limits, measured, routings, tolerance,
        prices, page,
    )  # fmt: skip
    if config.growth is not None and config.growth.hosts <= config.hosts:
        page.reject(("growth",), f"must be more than the {config.hosts} hosts of today")
    if config.improve is not None:
        able = [demand.name for demand in demands if demand.closed != "worst" and not demand.is_collective]
        if (config.improve.demand or demands[0].name) not in able:
            page.reject(("improve", "demand"), "is no demand that stays as links change", able)
    for key in measured:
        if key not in (choices := limit_names(request)):
            choices = [*LIMITS, *(demand.name for demand in demands), *choices]
            page.reject(("limits", key), "unknown limit", choices, closest_match(key, choices))
    diagnostics.raise_errors()
    _check_possible(page, request)
    reader.check_family_keys(request)
    reader.check_demands(demands)
    diagnostics.raise_errors()
    return request


class _Reader:
    """Converts the parts of a file, and reports their errors."""

    def __init__(self, page: ConfigDocument, config: DesignConfig, base: Path):
        self.page, self.config, self.base = page, config, base
        self.places: dict[str, tuple[str | int, ...]] = {}

    def prices(self) -> DesignPrices | None:
        """The price profile with the file's own values; None after an error."""
        changes = dict(self.config.prices)
        rate = self.config.link_gbps
        chosen = changes.pop("profile", f"{rate:g}g" if rate else DEFAULT_PROFILE)
        if chosen not in profiles():
            if "profile" in self.config.prices:
                self.page.reject("prices.profile", "unknown profile", tuple(profiles()))
            else:
                problem = f"has no prices: choose prices.profile, one of {', '.join(profiles())}"
                self.page.reject("link_gbps", problem)
            return None
        for key, value in changes.items():
            if key not in KEYS:
                self.page.reject(("prices", key), "unknown key", ("profile", *KEYS), closest_match(key, KEYS))
            elif not isinstance(value, int | float) or not -1e15 < value < 1e15:
                self.page.reject(("prices", key), "must be a number")
            elif value < 0 and key != "switch_fixed":
                self.page.reject(("prices", key), "must be 0 or more")
        known = {key: value for key, value in changes.items() if key in KEYS and isinstance(value, int | float)}
        return design_prices(str(chosen), known)

    def switches(self, prices: DesignPrices) -> tuple[list[Sku], dict[str, list[int]]]:
        """The switches that can be bought, and their splits."""
        skus, splits = [], {}
        for i, one in enumerate(self.config.switches):
            name = one.name or f"{one.ports}-port"
            if name in splits:
                self.page.reject(("switches", i, "name"), f"{name} is listed twice")
            price = prices.of_switch(one.ports) if one.price is None else one.price
            watts = prices.switch_port_watts * one.ports if one.watts is None else one.watts
            skus.append(Sku(name, one.ports, price, watts))
            splits[name] = sorted(set(one.split))
            if not any(total % b == 0 for b in self.config.planes for total in one.split):
                numbers = " or ".join(map(str, self.config.planes))
                problem = f"no multiple of {numbers} planes: a host's port is split as often"
                self.page.reject(("switches", i, "split"), problem)
        return skus, splits

    def families(self) -> dict[str, Keys]:
        """Kind -> keys of its own, of the families to search."""
        value = self.config.families
        if value == "all":
            return {kind: {} for kind in names("topology") if _has_candidates(kind)}
        listed: dict[str, Keys] = {}
        choices = [one for one in names("topology") if _has_candidates(one)]
        entries = value if isinstance(value, list) else [value]
        if not entries:
            self.page.reject("families", "must have at least 1 item", ["all", *choices])
        for i, entry in enumerate(entries):
            place: tuple[str | int, ...] = ("families", i) if isinstance(value, list) else ("families",)
            members = {entry: {}} if isinstance(entry, str) else entry
            if not isinstance(members, dict) or not all(isinstance(keys, dict) for keys in members.values()):
                self.page.reject(place, "must be the name of a family, or {NAME: {its keys}}", choices)
                continue
            for kind, keys in members.items():
                if kind not in names("topology"):
                    self.page.reject(place, f"unknown family {kind}", choices, closest_match(kind, choices))
                elif not _has_candidates(kind):
                    why = (
                        "its hosts relay, or have ports of their own: another equipment" if kind in RELAYING
                        else "it does not say which of its parameters fit (candidates)"
                    )  # fmt: skip
                    self.page.reject(place, f"{kind} cannot be searched: {why}", choices)
                else:
                    listed[kind] = keys
                    self.places[kind] = place if isinstance(entry, str) else (*place, kind)
        return listed

    def check_family_keys(self, request: DesignRequest) -> None:
        """Reject keys of families that do not exist, that the search chooses itself, or whose values are invalid."""
        for kind, keys in request.families.items():
            spec = cast(type[TopologySpec], spec_class("topology", kind))
            members = (member for _, equipment in request.all_equipment() for member in spec.candidates(equipment))
            first = next(members, None) if keys else None
            own = {} if first is None else innermost(first.parameters)
            free = sorted(set(spec.model_fields) - set(TopologySpec.model_fields) - set(own) - {"kind"})
            for key in keys:
                path = (*self.places[kind], key)
                if key not in spec.model_fields:
                    self.page.reject(path, f"{kind} has no such key", free, closest_match(key, free))
                elif key not in free:
                    self.page.reject(path, "is chosen by the search", free)
            if first is not None and not self.page.diagnostics.errors:
                spec_of("topology", self.page.part(*self.places[kind]), own | keys)

    def check_demands(self, demands: list[DesignDemand]) -> None:
        """Reject demands that hosts cannot have, by building each on a network of two switches."""
        hosts = self.config.hosts
        if hosts > MOST_CHECKED or self.page.diagnostics.errors:
            return
        pair = make("topology", kind="hypercube", dim=1, hosts=[hosts - hosts // 2, hosts // 2]).build()
        for i, demand in enumerate(demands):
            part = self.page.part("demands", i)
            if demand.is_collective:
                continue
            if demand.traffic.get("level") == "switch":
                part.reject("level", "networks differ in their switches: give a matrix of hosts", ["host"])
                continue
            try:
                with recorded_warnings():
                    traffic = make("traffic", **demand.traffic).build(pair)
            except (SpecError, OSError, ValueError) as error:
                reject_build_error(error, part)
                continue
            if traffic.background is not None:
                part.reject("", "has a background, with which no throughput is defined")

    def demands(self) -> list[DesignDemand]:
        """The demands, each with the floor that its own key or a limit gives."""
        demands: list[DesignDemand] = []
        for i, entry in enumerate(self.config.demands):
            keys = {"kind": entry} if isinstance(entry, str) else dict(entry)
            numbers = {key: keys.pop(key, default) for key, default in (("floor", 0.0), ("weight", 1.0))}
            kind, name = keys.get("kind"), keys.pop("name", None)
            place: tuple[str | int, ...] = ("demands", i) if isinstance(entry, str) else ("demands", i, "kind")
            for key, most in (("floor", 1.0), ("weight", 1e6)):
                value = numbers[key]
                if isinstance(value, bool) or not isinstance(value, int | float):
                    self.page.reject(("demands", i, key), "must be a number")
                elif not 0 <= value <= most:
                    self.page.reject(("demands", i, key), f"must be from 0 to {most:g}")
            if kind not in (*SHORT, COLLECTIVE, *names("traffic")):
                choices = [*SHORT, COLLECTIVE, *names("traffic")]
                self.page.reject(place, f"unknown demand {kind}", choices, closest_match(str(kind), choices))
                continue
            traffic: Keys = dict(SHORT[kind]) if kind in SHORT and len(keys) == 1 else keys
            if isinstance(path := traffic.get("path"), str):
                traffic["path"] = str(self.base / path)
            category = "ceiling" if kind == COLLECTIVE else "traffic"
            part = self.page.part("demands", i)
            if spec_of(category, part, traffic, OF_DEMAND) is None:
                continue
            if kind == COLLECTIVE:
                try:
                    kind = collective_spec(traffic).of[0]
                except SpecError as error:
                    reject_build_error(error, part)
            label = str(name or kind)
            if label in [one.name for one in demands]:
                self.page.reject(("demands", i), f"{label} is listed twice: give it a name")
            if not self.page.diagnostics.errors:
                demands.append(DesignDemand(label, traffic, float(numbers["floor"]), float(numbers["weight"])))
        return demands

    def routings(self) -> dict[str, Keys]:
        """Label -> keys of the routings."""
        routings: dict[str, Keys] = {}
        for i, entry in enumerate(self.config.routings):
            keys = {"kind": entry} if isinstance(entry, str) else dict(entry)
            label = str(keys.pop("name", keys.get("kind")))
            spec_of("routing", self.page.part("routings", i), keys, ("name",))
            if label in routings:
                self.page.reject(("routings", i), f"{label} is listed twice: give it a name")
            routings[label] = keys
        return routings

    def limits(self, demands: list[DesignDemand]) -> tuple[Limits, dict[str, float]]:
        """The limits, and those of measured columns, unchecked; limits of demands become their floors."""
        by_name = {demand.name: k for k, demand in enumerate(demands)}
        values: Keys = {}
        measured: dict[str, float] = {}
        for key, value in self.config.limits.items():
            if key in LIMITS:
                if value is not None and value < 0:
                    self.page.reject(("limits", key), "must be 0 or more")
                values[LIMITS[key]] = value
            elif key in by_name:
                if value is not None and not 0 <= value <= 1:
                    self.page.reject(("limits", key), "must be from 0 to 1: a share of the rate of hosts")
                k = by_name[key]
                floor = max(demands[k].floor, value or 0.0)
                demands[k] = DesignDemand(key, demands[k].traffic, floor, demands[k].weight)
            elif value is not None:
                measured[key] = value
        return Limits(**values), measured


def _has_candidates(kind: str) -> bool:
    spec = spec_class("topology", kind)
    return getattr(spec.candidates, "__func__", None) is not TopologySpec.candidates.__func__  # type: ignore[attr-defined]


def least_of_all(request: DesignRequest, throughput: float) -> tuple[int, Sku] | None:
    """The least number of switches with which any network has a throughput, and their kind; None: no number.

    Parameters
    ----------
    request : DesignRequest
        The design.
    throughput : float
        Theta of uniform traffic or of the worst matching.
    """
    least: list[tuple[int, Sku]] = []
    for sku, b, split in request.equipments():
        try:
            least.append((b * least_switches(request.hosts, sku.ports * b, throughput, split), sku))
        except ValueError:
            continue
    return min(least, key=lambda one: one[0], default=None)


def _check_possible(page: ConfigDocument, request: DesignRequest) -> None:
    """Reject what no network can meet, with the proof."""
    floors = [demand for demand in request.demands if demand.closed == "uniform" and demand.floor > 0]
    floor = max((demand.floor for demand in floors), default=0.0)
    least = least_of_all(request, floor)
    if least is None:
        page.reject("hosts", "cannot be connected by switches of so few ports")
        return
    number, _ = least
    what = f"reaches uniform {floor:g}" if floor else f"connects {request.hosts} hosts"
    proof = f"no network {what} with fewer than {number} switches, however it is wired (docs/bounds.md)"
    if request.limits.switches is not None and request.limits.switches < number:
        page.reject("limits.switches", f"{proof}: at least {number}")
    if request.limits.cost is not None:
        prices = [
            (b * least_switches(request.hosts, sku.ports * b, floor, split) * sku.price)
            for sku, b, split in request.equipments() if sku.ports * b * split >= 3 or request.hosts <= sku.ports * b
        ]  # fmt: skip
        cheapest = min(prices) / request.hosts + request.prices.copper
        if request.limits.cost < cheapest:
            page.reject("limits.cost_per_host", f"{proof}, and these cost {cheapest:.0f} a host without links")
