# SPDX-License-Identifier: Apache-2.0
"""Certificates on disk: the proof of a ceiling in a form that can be read without a solver."""

import math
import zipfile
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, NoReturn, Self

import numpy as np

from flitlab.fluid.ceiling import Ceiling
from flitlab.models.arrays import Floats, Ints
from flitlab.models.files import replacing
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields


class BadCertificate(ValueError):
    """A certificate that does not belong to the scenario, or proves nothing; the message says why."""


@dataclass(frozen=True, eq=False)
class Saved:
    """The proof of one ceiling of one scenario; a subclass declares its arrays as fields and checks them.

    A field of type ``str`` or ``float`` is stored as a scalar, one of type ``Floats`` or ``Ints`` as an array with one
    dimension. A subclass defines :meth:`parts` and :meth:`prove`, and sets the class variables below.

    topology, traffic, routes: content hashes, '' where the ceiling does not depend on it. ceiling, load, lower, upper:
    as claimed; nan where there is no load, and for an end that is not claimed.

    of_traffic, of_routes: whether the ceiling depends on the traffic, and on the routes. with_background: whether the
    proof holds beside a part of the demand that does not grow. subject, unit, scope: as of :meth:`sentence`.

    Raises :class:`BadCertificate` for fields of wrong types or sizes.
    """

    topology: str
    traffic: str
    routes: str
    ceiling: str
    load: float
    lower: float
    upper: float

    of_traffic: ClassVar[bool] = True
    of_routes: ClassVar[bool] = False
    with_background: ClassVar[bool] = False
    subject: ClassVar[str] = "theta"
    unit: ClassVar[str] = ""
    scope: ClassVar[str] = "by any routing"

    def __post_init__(self) -> None:
        for part in fields(self):
            what, types = TYPES[part.type]
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                fits = value.ndim == 1 and value.dtype in types
            else:
                fits = type(value) in types and (not isinstance(value, str) or value.isprintable())
            if not fits:
                raise BadCertificate(f"{part.name} must be {what}")
        self.check_form()

    @classmethod
    def of(cls, instance: Instance, row: Ceiling) -> Self:
        """The proof of a row of ``ceilings(..., keep_flow=True)``; no end is claimed without proof, or if infinite."""
        load = math.nan if row.load is None else float(row.load)
        ends = {"lower": float(row.lower), "upper": float(row.upper)}
        parts: Fields = {**cls.hashes(instance), **ends, **cls.parts(instance, row)}
        parts |= {end: math.nan for end in ends if math.isinf(parts[end])}  # which bounds nothing
        return cls(ceiling=row.ceiling, load=load, **parts)

    @classmethod
    def hashes(cls, instance: Instance) -> dict[str, str]:
        """The content hashes of an instance that a proof names."""
        routes = instance.routes if cls.of_routes else None
        return {
            "topology": instance.topology.content_hash,
            "traffic": instance.traffic.content_hash if cls.of_traffic else "",
            "routes": "" if routes is None else routes.content_hash,
        }

    @classmethod
    def parts(cls, instance: Instance, row: Ceiling) -> Fields:
        """The fields of the subclass for a row, and ``lower`` or ``upper`` as nan where nothing proves that end."""
        raise NotImplementedError

    def check_form(self) -> None:
        """Raise :class:`BadCertificate` unless the sizes of the arrays fit each other."""

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """The lower and the upper bound that the arrays prove, nan where they prove none; without a solver.

        Parameters
        ----------
        instance : Instance
            The scenario; its hashes are those of the certificate, which is otherwise unchecked.
        subjects : collection
            Of the kind's :meth:`~flitlab.fluid.kinds.spec.CeilingSpec.provable_rows`, those that are not None.

        Raises
        ------
        BadCertificate
            The arrays are invalid.
        """
        raise NotImplementedError

    def demand(self) -> tuple[Ints, Ints, Floats] | None:
        """Source switches, destination switches and amounts of a demand that is part of the proof."""
        return None

    def statement(self) -> str:
        """The claim as a sentence about topology and traffic."""
        return self.sentence(self.subject, self.unit, self.scope)

    def sentence(self, subject: str, unit: str, scope: str) -> str:
        """The claimed interval in words.

        Parameters
        ----------
        subject : str
            What the ends bound.
        unit : str
            Their unit, with a space before it.
        scope : str
            Where the bounds apply.
        """
        lower = f"{self.lower:.9g}{unit} <= " if self.lower == self.lower else ""
        upper = f" <= {self.upper:.9g}{unit}" if self.upper == self.upper else ""
        load = f", at load {self.load:.9g}" if self.load == self.load else ""
        return f"{lower}{subject}{upper}, {scope}{load}"

    @property
    def claims(self) -> bool:
        """Whether at least one end is claimed."""
        return not (np.isnan(self.lower) and np.isnan(self.upper))

    def write(self, path: Path) -> None:
        """Write all fields to an .npz file, compressed unless reading would reject it. Raises ``OSError``."""
        with replacing(path) as file:
            np.savez_compressed(file, **vars(self))
            if sum(np.asarray(part).nbytes for part in vars(self).values()) > _max_bytes(file.tell()):
                file.seek(0)
                file.truncate()
                np.savez(file, **vars(self))

    def check_range(self, name: str, count: int) -> None:
        """Raise :class:`BadCertificate` unless all entries of an array are from 0 to ``count`` - 1."""
        part = getattr(self, name)
        if len(part) and not (part.min() >= 0 and part.max() < count):
            self.reject(f"{name} has numbers that the network lacks")

    def reject(self, why: str) -> NoReturn:
        """Raise :class:`BadCertificate` with the name of the ceiling."""
        raise BadCertificate(f"{self.ceiling}: {why}")


TYPES: dict[object, tuple[str, tuple[type, ...]]] = {
    str: ("a text on one line", (str,)), float: ("a number", (float,)), Floats: ("numbers", (np.float64,)),
    Ints: ("whole numbers", (np.int32, np.int64)),
}  # fmt: skip
"""Type of a field -> what it must be, in words, and the types of such a scalar or of the elements of such an array."""


def is_partition(start: np.ndarray, groups: int, entries: int) -> bool:
    """Whether ``start`` divides ``entries`` entries into ``groups`` groups."""
    if len(start) != groups + 1 or start[0] != 0 or start[-1] != entries:
        return False
    return bool((np.diff(start) >= 0).all())


SMALL, RATIO = 1 << 26, 16
"""Bytes to which any file may unpack, and the factor of its size for larger ones."""

MAX_ARRAYS = 64
"""Arrays that a file may have."""

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Reader of the header of an array, by format version."""


def read_arrays(path: Path) -> Fields:
    """The arrays and scalars of a certificate by name.

    Raises :class:`BadCertificate` for other files, and for a file that unpacks to far more bytes.
    """
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as file:
            parts = dict(file)
        return {name: part.item() if part.ndim == 0 else part for name, part in parts.items()}
    except Exception as error:  # damaged archives raise many kinds of errors
        raise BadCertificate(f"{path.name} is not a valid certificate: {error}") from None


def _max_bytes(size: int) -> int:
    """Limit of the bytes to which a file of ``size`` bytes may unpack."""
    return max(SMALL, RATIO * size)


def _check_sizes(path: Path) -> None:
    """Raise ``ValueError`` for too many members, or more bytes than a file may unpack to.

    The sizes in the archive and in the array headers are compared before anything is unpacked.
    """
    with zipfile.ZipFile(path) as archive:
        members, most = archive.infolist(), _max_bytes(path.stat().st_size)
        if len(members) > MAX_ARRAYS:
            raise ValueError(f"it has more than {MAX_ARRAYS} arrays")
        if sum(member.file_size for member in members) > most:
            raise ValueError(f"it unpacks to more than {most} bytes")
        for member in members:
            with archive.open(member) as file:
                read_header = HEADERS[np.lib.format.read_magic(file)]
                shape, _, dtype = read_header(file)
                if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
                    raise ValueError(f"the size of {member.filename} is not that of its array")
