# SPDX-License-Identifier: Apache-2.0
"""Prices and power of networks in closed form: ``design_prices.yaml``, or a user's own values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

import yaml

from flitlab.models.mappings import Keys

DEFAULT_PROFILE = "800g"
"""The profile of a design that names none."""


@dataclass(frozen=True)
class DesignPrices:
    """Prices in dollars and power in watts, of a port at full rate.

    profile: name of the set. gbps: rate of a port. switch_fixed, switch_port: price of a switch, and of each of its
    ports. optic: of one end of a link. fibre: of a link. copper: cables of a host. switch_port_watts, optic_watts,
    nic_watts: power of a port of a switch, of one end of a link, and of the NIC of a host, at full load.
    switch_bit_pj, optic_bit_pj, nic_bit_pj: the part of it that a bit takes that they send, in pJ. sources: key ->
    where the value is from.
    """

    profile: str
    gbps: float
    switch_fixed: float
    switch_port: float
    optic: float
    fibre: float
    copper: float
    switch_port_watts: float
    optic_watts: float
    switch_bit_pj: float
    optic_bit_pj: float
    nic_watts: float
    nic_bit_pj: float
    sources: Mapping[str, str]

    def of_switch(self, ports: int) -> float:
        """Price of a switch in dollars."""
        return max(0.0, self.switch_fixed + self.switch_port * ports)

    def scaled_optics(self, factor: float) -> "DesignPrices":
        """The same prices with dearer or cheaper optics."""
        return replace(self, optic=self.optic * factor)

    def assumptions(self, keys: Sequence[str] | None = None) -> list[tuple[str, float, str]]:
        """Values: the key, the value and its source. keys: of these values; None: :data:`KEYS`."""
        return [(key, getattr(self, key), self.sources[key]) for key in keys or KEYS]


ENERGY_KEYS = (
    "gbps", "switch_port_watts", "switch_bit_pj", "optic_watts", "optic_bit_pj", "nic_watts", "nic_bit_pj",
)  # fmt: skip
"""Values of a profile that the energy of a run depends on."""

ALL_KEYS = tuple(field.name for field in fields(DesignPrices) if field.name not in ("profile", "sources"))
"""Values of a profile."""

KEYS = tuple(key for key in ALL_KEYS if key not in ENERGY_KEYS or key in ("gbps", "switch_port_watts", "optic_watts"))
"""Values of a profile that the front of a design depends on."""


@cache
def _shipped() -> Keys:
    file = Path(__file__).with_name("design_prices.yaml")
    profiles: Keys = yaml.safe_load(file.read_text(encoding="utf-8"))
    return profiles


def profiles() -> dict[str, str]:
    """Names of the shipped profiles, and what they are about."""
    return {name: profile["about"] for name, profile in _shipped().items()}


def cable_prices_by_length(profile: str) -> Keys | None:
    """Return prices of cables of the profile's ``gbps`` by length; None if it has one price for all lengths.

    Returns
    -------
    Keys ``electric`` and ``optical`` (``fixed`` and ``per_metre``, in dollars), ``reach`` of electric ones in metres,
    and ``installation`` (``within`` a cabinet and ``between`` cabinets, in dollars).
    """
    cables: Keys | None = _shipped()[profile].get("cables")
    return None if cables is None else {key: value for key, value in cables.items() if key != "source"}


def design_prices(profile: str = DEFAULT_PROFILE, changes: Mapping[str, float] | None = None) -> DesignPrices:
    """Return a profile with some of its values replaced.

    Parameters
    ----------
    profile: name of a shipped one.
    changes: key -> value.

    Raises
    ------
    KeyError: the profile or a key is unknown.
    """
    shipped, changed = _shipped()[profile], dict(changes or {})
    if unknown := sorted(set(changed) - set(ALL_KEYS)):
        raise KeyError(unknown[0])
    values = {key: float(changed.get(key, shipped[key]["value"])) for key in ALL_KEYS}
    sources = {key: "given" if key in changed else str(shipped[key]["source"]) for key in ALL_KEYS}
    return DesignPrices(profile, **values, sources=sources)
