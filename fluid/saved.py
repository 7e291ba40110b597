"""Certificates on disk: what proves a ceiling, in a form that needs no solver to be read."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fluid.ceiling import Ceiling
from models.scenario import Scenario
from models.topology.graph import Topology


class BadCertificate(ValueError):
    """A certificate that does not belong to the scenario or proves nothing; the message says why."""


@dataclass(frozen=True, eq=False)
class Saved:
    """What proves one ceiling of one scenario.

    topology, traffic: content hashes. ceiling, load, lower, upper: as claimed, nan where nothing is.
    network, injection, ejection: lengths of the channels, empty if nothing was claimed from them. source, target:
    int64 [commodities], switches. Of path flows, as in :class:`~fluid.mcf.paths.Paths`: first, start, channel, flow.
    Of a flow by destination: node, int64 [destinations]; start: int64 [destinations + 1]; channel, flow: of each
    destination. Without a flow these are empty.
    """

    topology: str
    traffic: str
    ceiling: str
    load: float
    lower: float
    upper: float
    network: np.ndarray
    injection: np.ndarray
    ejection: np.ndarray
    node: np.ndarray
    source: np.ndarray
    target: np.ndarray
    first: np.ndarray
    start: np.ndarray
    channel: np.ndarray
    flow: np.ndarray

    @classmethod
    def of(cls, scenario: Scenario, row: Ceiling) -> "Saved":
        """The certificate of a row that ``ceilings(..., keep_flow=True)`` gave."""
        none, real = np.zeros(0, np.int64), np.zeros(0)
        z, flow = row.certificate, dict.fromkeys(("node", "source", "target", "first", "start", "channel"), none)
        if isinstance(row.flow, np.ndarray):
            rows, channel = np.nonzero(row.flow)
            node = np.unique(_commodities(scenario)[1])
            start = np.searchsorted(rows, np.arange(len(node) + 1))
            flow |= {"node": node, "start": start, "channel": channel, "flow": row.flow[rows, channel]}
        elif row.flow is not None:
            source, target = _commodities(scenario)
            flow |= {"source": source, "target": target, **row.flow._asdict()}
        return cls(
            topology=scenario.topology.content_hash, traffic=scenario.traffic.content_hash, ceiling=row.ceiling,
            load=np.nan if row.load is None else row.load, lower=row.lower, upper=row.upper,
            network=real if z is None else z.network, injection=real if z is None else z.injection,
            ejection=real if z is None else z.ejection, **{"flow": real, **flow},
        )  # fmt: skip

    def write(self, path: Path) -> None:
        """As a compressed .npz file."""
        np.savez_compressed(path, **vars(self))

    @classmethod
    def read(cls, path: Path) -> "Saved":
        """Raises :class:`BadCertificate` if the file is no certificate."""
        try:
            with np.load(path, allow_pickle=False) as file:
                parts = {name: file[name] for name in cls.__dataclass_fields__}
        except (OSError, ValueError, KeyError) as error:
            raise BadCertificate(f"{path} is no certificate: {error}") from None
        scalars = {name: part.item() for name, part in parts.items() if part.ndim == 0}
        return cls(**{**parts, **scalars})


def between(topology: Topology) -> np.ndarray:
    """bool [switches, switches]: pairs of different switches."""
    return ~np.eye(topology.switches, dtype=bool)


def _commodities(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """int64 [commodities] each: sources and targets of the demand between switches, by target, then by source."""
    target, source = np.nonzero((scenario.traffic.switch_demand * between(scenario.topology)).T > 0)
    return source, target
