# SPDX-License-Identifier: Apache-2.0
"""Certificates of ceilings: made from rows, read, and verified without a solver.

The kind of a ceiling names the class of its proof, which has the arrays and checks them.
"""

from collections.abc import Collection
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import numpy as np

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.kinds.spec import kind_of
from flitlab.fluid.saved import BadCertificate, Saved, read_arrays
from flitlab.models.instance import Instance

TOLERANCE = 1e-9
"""Relative tolerance of a claim: rounding of sums in another order."""


@dataclass(frozen=True)
class Verified:
    """Bounds that a certificate proves; nan where it proves none."""

    lower: float
    upper: float

    def unproven(self, saved: Saved) -> str:
        """The claims of a certificate that are not proven, '' if all are."""
        missed = []
        # comparisons with nan are False, so nan proves nothing
        if not (np.isnan(saved.lower) or self.lower >= saved.lower * (1 - TOLERANCE)):
            missed.append(f"lower end {saved.lower:.9g} ({_proven_text(self.lower)})")
        if not (np.isnan(saved.upper) or self.upper <= saved.upper * (1 + TOLERANCE)):
            missed.append(f"upper end {saved.upper:.9g} ({_proven_text(self.upper)})")
        return f"not proven: {', '.join(missed)}" if missed else ""

    def confirms(self, saved: Saved) -> bool:
        """Whether every claimed end is proven."""
        return not self.unproven(saved)


def _proven_text(value: float) -> str:
    return "nothing proves one" if np.isnan(value) else f"proven is {value:.9g}"


def provable(ceiling: str) -> bool:
    """Whether a saved certificate can prove a ceiling of this name."""
    return kind_of(ceiling).proof(ceiling) is not None


def saved_of(instance: Instance, row: Ceiling) -> Saved:
    """The certificate of a row of ``ceilings(..., keep_flow=True)``; an end without proof is not claimed."""
    return _proof_of(row.ceiling).of(instance, row)


def read_saved(path: Path) -> Saved:
    """Read a certificate. Raises :class:`BadCertificate` for other files, and for arrays of wrong types or sizes."""
    arrays = read_arrays(path)
    proof = _proof_of(str(arrays.get("ceiling", "")))
    own = {part.name: part for part in fields(proof)}
    # earlier versions wrote the arrays of all proofs, empty where another one has them
    unknown = [name for name, part in arrays.items() if name not in own and np.size(part) and np.any(part != "")]
    missing = [name for name, part in own.items() if name not in arrays and part.default_factory is MISSING]
    if unknown or missing:
        why = "it has unknown arrays" if unknown else f"it has no {missing[0]}"
        raise BadCertificate(f"{path.name} is not a valid certificate: {why}")
    return proof(**{name: part for name, part in arrays.items() if name in own})


def _proof_of(ceiling: str) -> type[Saved]:
    """The class of the proof of a ceiling. Raises :class:`BadCertificate` if there is none."""
    proof = kind_of(ceiling).proof(ceiling)
    if proof is None:
        raise BadCertificate(f"no certificate proves a ceiling {ceiling!r}")
    return proof


def verify(instance: Instance, saved: Saved, subjects: Collection[object] = ()) -> Verified:
    """The bounds that a certificate proves of a scenario.

    Parameters
    ----------
    instance : Instance
        Topology, traffic and routes; the routes matter for some ceilings only.
    saved : Saved
        The certificate.
    subjects : collection
        What the configuration bounds in rows of this name, where the instance does not say it: collectives. A
        certificate must be of one of them: everything that it states about its subject is compared, so nothing is taken
        from the file.

    Raises
    ------
    BadCertificate
        It belongs to another instance or subject, claims nothing or what no certificate can prove, or its arrays are
        invalid.
    """
    if type(saved) is not (proof := _proof_of(saved.ceiling)):
        raise BadCertificate(f"{saved.ceiling}: a {type(saved).__name__} proves no such ceiling")
    _check_claim(saved)
    if proof.of_routes and instance.routes is None:
        saved.reject("the scenario has no routes")
    if instance.traffic.background is not None and not proof.with_background:
        saved.reject("no certificate proves a ceiling of traffic with a background")
    for name, value in saved.hashes(instance).items():
        if getattr(saved, name) != value:
            saved.reject(f"the certificate is of {'other routes' if name == 'routes' else f'another {name}'}")
    return Verified(*saved.prove(instance, subjects))


def _check_claim(saved: Saved) -> None:
    """Raise :class:`BadCertificate` unless an interval is claimed, at a load if the kind has one."""
    if not saved.claims:
        saved.reject("nothing is claimed, neither a lower nor an upper end")
    for end in ("lower", "upper"):
        if not (np.isnan(getattr(saved, end)) or 0 <= getattr(saved, end) < np.inf):
            saved.reject(f"the {end} end is claimed to be {getattr(saved, end)}")
    if saved.lower > saved.upper:
        saved.reject(f"the lower end {saved.lower} is above the upper one, {saved.upper}")
    by_load = kind_of(saved.ceiling).by_load
    if by_load and not 0 < saved.load < np.inf:
        saved.reject(f"the load must be positive and finite, not {saved.load}")
    if not by_load and not np.isnan(saved.load):
        saved.reject(f"does not depend on a load, but has {saved.load}")
