# SPDX-License-Identifier: Apache-2.0
"""Certificates on disk: the proof of a ceiling in a form that can be read without a solver."""

import math
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from flitlab.fluid.ceiling import Ceiling
from flitlab.models.arrays import Bools, Floats
from flitlab.models.files import replacing
from flitlab.models.instance import Instance
from flitlab.models.topology.graph import Topology

if TYPE_CHECKING:  # reading a certificate needs no solver
    from flitlab.fluid.collective.evidence import Evidence
    from flitlab.fluid.mcf.paths import Paths
    from flitlab.fluid.worst import WorstDemand


class BadCertificate(ValueError):
    """A certificate that does not belong to the scenario, or proves nothing; the message says why."""


@dataclass(frozen=True, eq=False)
class Saved:
    """The proof of one ceiling of one scenario.

    topology, traffic, routes: content hashes, the last '' unless the ceiling is one over the routes. ceiling, load,
    lower, upper: as claimed; nan where there is no load, and for an end that is not claimed. network, injection,
    ejection: float64, channel prices, all empty if they prove nothing. Path flows: source, target: int [commodities],
    switches; first, start, channel, flow as in :class:`~flitlab.fluid.mcf.paths.Paths`, without empty paths. Flow by
    destination: node, int [destinations], switches; start: int [destinations + 1]; channel, flow: toward each
    destination. Worst demand: source, target: int [pairs], switches; amount: float64 [pairs]; channel: int [k],
    channels with prices; price: float64 [k * switches], of their sources. Collective: collective, ranks: its kind and
    who takes part; able: abilities of the switches, of ``multicast`` and ``reduce``; units: int [ranks], root: int [1];
    bound: the time as a fraction; part: int [switches], of_rank: int [ranks], the sets that prove it, see
    :class:`~flitlab.fluid.collective.evidence.Evidence`; of an all-to-all prices and a flow in their place. Its trees,
    if any: reached, their time as a fraction; tree: int [3 * trees], of each 0 (to its root) or 1 (from it), the root,
    and its number of parts; first: int [trees + 1], their paths; start: int [paths + 1], the vertices of each path, in
    ``vertex``. Other arrays are empty.

    Raises :class:`BadCertificate` for arrays of wrong types or sizes.
    """

    topology: str
    traffic: str
    routes: str
    ceiling: str
    load: float
    lower: float
    upper: float
    network: Floats
    injection: Floats
    ejection: Floats
    node: np.ndarray
    source: np.ndarray
    target: np.ndarray
    first: np.ndarray
    start: np.ndarray
    channel: np.ndarray
    flow: np.ndarray
    amount: np.ndarray = field(default_factory=lambda: np.zeros(0))
    price: np.ndarray = field(default_factory=lambda: np.zeros(0))
    collective: str = ""
    ranks: str = ""
    able: str = ""
    bound: str = ""
    units: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    root: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    part: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    of_rank: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    reached: str = ""
    tree: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    vertex: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        for part in fields(self):
            _check_type(self, part.name)
        if not of_collective(self.ceiling) and any(len(getattr(self, name)) for name in OF_COLLECTIVES):
            self._reject("has arrays of a collective, but is not a ceiling of one")
        if self.ceiling == WORST:
            self._check_demand()
        elif len(self.amount) or len(self.price):
            self._reject("has a worst demand, but is not worst_case")
        elif len(self.tree) or len(self.vertex):
            self._check_trees()
        elif len(self.flow) or len(self.start):
            self._check_flow()
        elif any(len(getattr(self, name)) for name in ("node", "source", "target", "first", "channel")):
            self._reject("has paths or destinations without a flow")

    @classmethod
    def of(cls, instance: Instance, row: Ceiling) -> "Saved":
        """The certificate of a row of ``ceilings(..., keep_flow=True)``; an end without proof is not claimed."""
        if row.ceiling == WORST:
            return cls._of_demand(instance, row, cast("WorstDemand", row.flow))
        if of_collective(row.ceiling):
            return cls._of_collective(instance, row, cast("Evidence", row.flow))
        z, real = row.certificate, np.zeros(0)
        source, _, _ = instance.traffic.switch_pairs()
        flow = _flow_parts(instance, cast("Floats | Paths | None", row.flow))
        routes = instance.routes if row.ceiling == "mcf_paths" else None
        reached = row.flow is not None or len(source) == 0
        return cls(
            topology=instance.topology.content_hash, traffic=instance.traffic.content_hash,
            routes="" if routes is None else routes.content_hash, ceiling=row.ceiling,
            load=np.nan if row.load is None else float(row.load), lower=float(row.lower) if reached else np.nan,
            upper=np.nan if z is None else float(row.upper), network=real if z is None else z.network,
            injection=real if z is None else z.injection, ejection=real if z is None else z.ejection, **flow,
        )  # fmt: skip

    @classmethod
    def _of_demand(cls, instance: Instance, row: Ceiling, worst: "WorstDemand") -> "Saved":
        """The worst demand of the routes, which proves the upper end, and the prices that prove the lower one."""
        assert instance.routes is not None
        none, real = np.zeros(0, np.int64), np.zeros(0)
        return cls(
            topology=instance.topology.content_hash, traffic=instance.traffic.content_hash,
            routes=instance.routes.content_hash, ceiling=row.ceiling, load=np.nan,
            lower=np.nan if worst.price is None else float(row.lower), upper=float(row.upper), network=real,
            injection=real, ejection=real, node=none, source=worst.source, target=worst.target, first=none, start=none,
            channel=worst.priced, flow=real, amount=worst.amount,
            price=real if worst.price is None else worst.price.ravel(),
        )  # fmt: skip

    @classmethod
    def _of_collective(cls, instance: Instance, row: Ceiling, proof: "Evidence") -> "Saved":
        """The proofs that no algorithm is faster than the lower end, and of an all-to-all that a flow reaches the upper
        one.
        """
        collective, z, real = proof.collective, proof.prices, np.zeros(0)
        proven = bool(proof.bound) or z is not None
        flow = _flow_parts(instance if proof.instance is None else proof.instance, proof.flow)
        flow |= _tree_parts(proof)
        possible = proof.flow is not None or proof.reached is not None
        return cls(
            topology=instance.topology.content_hash, traffic="", routes="", ceiling=row.ceiling, load=np.nan,
            lower=float(row.lower) if proven else np.nan, upper=float(row.upper) if possible else np.nan,
            network=real if z is None else z.network, injection=real if z is None else z.injection,
            ejection=real if z is None else z.ejection, **flow, collective=collective.kind, ranks=collective.ranks,
            able=collective.able, bound="" if proof.bound is None else str(proof.bound), units=proof.amount,
            root=np.array([collective.root]), part=proof.part, of_rank=proof.of_rank,
            reached="" if proof.reached is None else str(proof.reached),
        )  # fmt: skip

    @property
    def claims(self) -> bool:
        """Whether at least one end is claimed."""
        return not (np.isnan(self.lower) and np.isnan(self.upper))

    def write(self, path: Path) -> None:
        """Write all arrays to an .npz file, compressed unless :meth:`read` would reject it. Raises ``OSError``."""
        with replacing(path) as file:
            np.savez_compressed(file, **vars(self))
            if sum(np.asarray(part).nbytes for part in vars(self).values()) > _max_bytes(file.tell()):
                file.seek(0)
                file.truncate()
                np.savez(file, **vars(self))

    @classmethod
    def read(cls, path: Path) -> "Saved":
        """Read a certificate. Raises :class:`BadCertificate` for other files, and for a file that unpacks to far more
        bytes.
        """
        try:
            _check_sizes(path, set(cls.__dataclass_fields__))
            with np.load(path, allow_pickle=False) as file:
                parts = {name: file[name] for name in cls.__dataclass_fields__ if name in file or name not in LATER}
            scalars = {name: part.item() for name, part in parts.items() if part.ndim == 0}
        except Exception as error:  # damaged archives raise many kinds of errors
            raise BadCertificate(f"{path.name} is not a valid certificate: {error}") from None
        return cls(**{**parts, **scalars})

    def _check_flow(self) -> None:
        """Raise :class:`BadCertificate` unless the arrays of a flow fit each other."""
        by_path = len(self.node) == 0
        if by_path:
            whole = len(self.target) == len(self.source) and _counts(self.first, len(self.source), len(self.flow))
            whole &= _counts(self.start, len(self.flow), len(self.channel)) and bool((np.diff(self.start) > 0).all())
        else:
            whole = not (len(self.source) or len(self.target) or len(self.first))
            whole &= _counts(self.start, len(self.node), len(self.channel)) and len(self.channel) == len(self.flow)
        if not whole:
            self._reject(f"the parts of a flow {'over paths' if by_path else 'by destination'} do not fit each other")

    def _check_demand(self) -> None:
        """Raise :class:`BadCertificate` unless the arrays of a worst demand fit each other."""
        others = ("network", "injection", "ejection", "node", "first", "start", "flow")
        whole = len(self.source) == len(self.target) == len(self.amount) and not any(
            len(getattr(self, name)) for name in others
        )
        if not whole or (len(self.price) % len(self.channel) if len(self.channel) else len(self.price)):
            self._reject("the parts of a worst demand do not fit each other")

    def _check_trees(self) -> None:
        """Raise :class:`BadCertificate` unless the arrays of trees fit each other."""
        whole = not len(self.flow) and len(self.tree) % 3 == 0
        whole = whole and _counts(self.first, len(self.tree) // 3, len(self.start) - 1)
        if not whole or not _counts(self.start, len(self.start) - 1, len(self.vertex)):
            self._reject("the parts of trees do not fit each other")

    def _reject(self, why: str) -> None:
        raise BadCertificate(f"{self.ceiling}: {why}")


def _max_bytes(size: int) -> int:
    """Limit of the bytes to which a file of ``size`` bytes may unpack."""
    return max(SMALL, RATIO * size)


def _check_sizes(path: Path, names: set[str]) -> None:
    """Raise ``ValueError`` for unknown members, or more bytes than a file may unpack to.

    The sizes in the archive and in the array headers are compared before anything is unpacked.
    """
    with zipfile.ZipFile(path) as archive:
        members, most = archive.infolist(), _max_bytes(path.stat().st_size)
        files = {f"{name}.npy" for name in names}
        if len(members) > len(files) or not {member.filename for member in members} <= files:
            raise ValueError("it has unknown arrays")
        if sum(member.file_size for member in members) > most:
            raise ValueError(f"it unpacks to more than {most} bytes")
        for member in members:
            with archive.open(member) as file:
                read_header = HEADERS[np.lib.format.read_magic(file)]
                shape, _, dtype = read_header(file)
                if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
                    raise ValueError(f"the size of {member.filename} is not that of its array")


def _flow_parts(instance: Instance, flow: "Floats | Paths | None") -> dict[str, Any]:
    """The arrays of a flow by name, as in a certificate."""
    none: np.ndarray = np.zeros(0, np.int64)
    parts: dict[str, Any] = {
        **dict.fromkeys(("node", "source", "target", "first", "start", "channel"), none),
        "flow": np.zeros(0),
    }
    source, target, _ = instance.traffic.switch_pairs()
    if isinstance(flow, np.ndarray):
        rows, channel = np.nonzero(flow)
        node = np.unique(target)
        start = np.searchsorted(rows, np.arange(len(node) + 1))
        parts |= {"node": node, "start": start, "channel": channel, "flow": flow[rows, channel]}
    elif flow is not None:
        parts |= {"source": source, "target": target, **flow._asdict()}
    return parts


def _tree_parts(proof: "Evidence") -> dict[str, Any]:
    """The arrays of trees by name, as in a certificate; empty if there are no trees."""
    trees = [*((0, tree) for tree in proof.into), *((1, tree) for tree in proof.out)]
    if not trees:
        return {}
    paths = [path for _, tree in trees for path in tree.paths]
    return {
        "tree": np.array([[away, tree.root, tree.count] for away, tree in trees]).ravel(),
        "first": np.cumsum([0, *(len(tree.paths) for _, tree in trees)]),
        "start": np.cumsum([0, *map(len, paths)]),
        "vertex": np.array([vertex for path in paths for vertex in path], np.int64),
    }


def of_collective(ceiling: str) -> bool:
    """Whether a row of ceilings.csv is a ceiling of a collective."""
    return ceiling.partition(":")[0] == "collective"


SMALL, RATIO = 1 << 26, 16
"""Bytes to which any file may unpack, and the factor of its size for larger ones."""

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Reader of the header of an array, by format version."""

TEXTS = ("topology", "traffic", "routes", "ceiling", "collective", "ranks", "able", "bound", "reached")
NUMBERS = ("load", "lower", "upper")
REALS = ("network", "injection", "ejection", "flow", "amount", "price")

WORST = "worst_case"
"""The ceiling that a worst demand and prices prove."""

OF_COLLECTIVES = (
    "collective", "ranks", "able", "bound", "units", "root", "part", "of_rank", "reached", "tree", "vertex"
)  # fmt: skip
"""Arrays of collectives only."""

LATER = ("amount", "price", *OF_COLLECTIVES)
"""Arrays that files of other ceilings may lack."""


def _check_type(saved: Saved, name: str) -> None:
    value = getattr(saved, name)
    if name in TEXTS:
        fits, what = isinstance(value, str) and value.isprintable(), "a text on one line"
    elif name in NUMBERS:
        fits, what = isinstance(value, float), "a number"
    else:
        kinds, what = ((np.float64,), "numbers") if name in REALS else ((np.int32, np.int64), "whole numbers")
        fits = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype in kinds
    if not fits:
        raise BadCertificate(f"{name} must be {what}")


def _counts(start: np.ndarray, groups: int, entries: int) -> bool:
    """Whether ``start`` divides ``entries`` entries into ``groups`` groups."""
    if len(start) != groups + 1 or start[0] != 0 or start[-1] != entries:
        return False
    return bool((np.diff(start) >= 0).all())


def between(topology: Topology) -> Bools:
    """bool [switches, switches]: pairs of different switches."""
    return ~np.eye(topology.switches, dtype=bool)
