# SPDX-License-Identifier: Apache-2.0
"""A folder of certificates: proofs of the ceilings of a study, and an index of what they claim.

Only the SHA-256 of the index, which is printed when it is saved, needs to be trusted. The index has the hashes of the
configuration, of its graphs, demands and routes, and of every certificate with its claim.
"""

import hashlib
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.saved import BadCertificate, Saved
from flitlab.fluid.verify import Verified, provable, read_saved, saved_of, verify
from flitlab.models.arrays import Floats, Ints
from flitlab.models.delimited import quoted
from flitlab.models.files import replace_file
from flitlab.models.instance import Instance
from flitlab.models.topology.names import Names, switch_names
from flitlab.sim.config.case import Case, Study
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.text import MAX_FILE_BYTES

CONFIGURATION = "config.resolved.yaml"
INDEX = "certificates.json"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ScenarioEntry(_Entry):
    """A scenario of the configuration: its number, label, and the hashes of its components."""

    scenario: int = Field(ge=0)
    label: str
    topology: str
    traffic: str
    routes: str

    @classmethod
    def of(cls, index: int, label: str, instance: Instance) -> "ScenarioEntry":
        """The entry of a scenario.

        Parameters
        ----------
        index: its number.
        label: its label.
        instance: the hashed components; '' stands for missing routes.
        """
        routes = "" if instance.routes is None else instance.routes.content_hash
        return cls(
            scenario=index, label=label, topology=instance.topology.content_hash,
            traffic=instance.traffic.content_hash, routes=routes,
        )  # fmt: skip


class CertificateEntry(_Entry):
    """A certificate, the numbers of its scenarios, and its claim; None: no load, or an end that is not claimed."""

    file: str
    sha256: str
    scenarios: list[int]
    ceiling: str
    load: float | None
    lower: float | None
    upper: float | None

    @classmethod
    def of(cls, folder: Path, file: Path, scenarios: list[int]) -> "CertificateEntry":
        """The entry of a file: its claim and its hash.

        Parameters
        ----------
        folder: of all certificates.
        file: of this one.
        scenarios: numbers of those it is for.
        """
        saved = read_saved(file)
        claims = {name: None if math.isnan(getattr(saved, name)) else getattr(saved, name) for name in CLAIMS}
        name = file.relative_to(folder).as_posix()
        return cls(file=name, sha256=sha256(file), scenarios=scenarios, ceiling=saved.ceiling, **claims)


CLAIMS = ("load", "lower", "upper")


class Index(_Entry):
    """The index of a folder. configuration: SHA-256 of :data:`CONFIGURATION`."""

    configuration: str
    scenarios: list[ScenarioEntry]
    certificates: list[CertificateEntry]


@dataclass(frozen=True)
class Verdict:
    """The verification of one certificate for one scenario.

    Parameters
    ----------
    file: of the certificate.
    of: the scenario, None if unknown.
    claimed: None if the file is no certificate.
    proven: what the certificate proves.
    problem: why it does not prove its claim, or ''.
    """

    file: str
    of: ScenarioEntry | None = None
    claimed: Saved | None = None
    proven: Verified | None = None
    problem: str = ""

    @property
    def confirmed(self) -> bool:
        """Whether the whole claim is proven."""
        return not self.problem


def sha256(file: Path) -> str:
    """The SHA-256 hash of a file, as hex digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def save(folder: Path, instance: Instance, rows: Sequence[Ceiling]) -> None:
    """Write a certificate for each ceiling with a provable end, numbered as the rows are; older ones are removed.

    A demand that proves a ceiling is written as CSV, for ``traffic: {kind: matrix, level: switch}``.

    Parameters
    ----------
    folder: for the files.
    instance: what the ceilings are of.
    rows: the ceilings, with certificates and flows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.npz"), *folder.glob("*.csv")):
        old.unlink()
    for number, row in enumerate(rows, 1):
        if provable(row.ceiling) and (row.certificate is not None or row.flow is not None):
            at_load = "" if row.load is None else f"@{row.load:g}"
            name = f"{number:03d}-{row.ceiling.replace(':', '-')}{at_load}.npz"
            if (saved := saved_of(instance, row)).claims:
                saved.write(folder / name)
            if (demand := saved.demand()) is not None and len(demand[0]):
                _write_demand((folder / name).with_suffix(".csv"), switch_names(instance.topology), *demand)


def _write_demand(file: Path, names: Names, source: Ints, target: Ints, amount: Floats) -> None:
    pairs = zip(source.tolist(), target.tolist(), amount.tolist(), strict=True)
    lines = [f"{quoted(names.label(s))},{quoted(names.label(t))},{amount!r}" for s, t, amount in pairs]
    replace_file(file, "\n".join(["src,dst,demand", *lines]) + "\n")


def write_index(study: Study, folder: Path, users: dict[str, list[int]]) -> tuple[int, str]:
    """Write the configuration and the index of all certificates below a folder.

    Parameters
    ----------
    study: the configuration.
    folder: has the folders of certificates.
    users: folder of certificates -> numbers of its scenarios.

    Returns
    -------
    The number of certificates, and the SHA-256 of the index.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(study.resolved(), sort_keys=False, allow_unicode=True)
    replace_file(folder / CONFIGURATION, text)
    scenarios = [
        ScenarioEntry.of(index, case.label, case.instance)
        for index, case in enumerate(study.cases) if case.instance is not None
    ]  # fmt: skip
    files = [
        CertificateEntry.of(folder, file, indices)
        for name, indices in users.items() for file in sorted((folder / name).glob("*.npz"))
    ]  # fmt: skip
    index = Index(configuration=sha256(folder / CONFIGURATION), scenarios=scenarios, certificates=files)
    replace_file(folder / INDEX, index.model_dump_json(indent=1) + "\n")
    return len(files), sha256(folder / INDEX)


def verify_all(folder: Path, trust_plugins: bool = False) -> Iterator[Verdict]:
    """Verify all certificates of an index, without a solver; errors are verdicts with a problem.

    Each certificate is compared with the configuration: ceiling, load, collective, topology, traffic and routes.
    trust_plugins: whether the plugins of the configuration are imported.

    Raises ``OSError`` if no index can be read.
    """
    if (folder / INDEX).stat().st_size > MAX_FILE_BYTES:
        yield Verdict(INDEX, problem=f"the index is longer than {MAX_FILE_BYTES:,} bytes")
        return
    text = (folder / INDEX).read_text("utf-8", errors="replace")
    try:
        index = Index.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(map(str, first["loc"]))
        yield Verdict(INDEX, problem=f"the index is damaged{f', at {path}' if path else ''}: {first['msg']}")
        return
    try:
        cases = _cases(folder, index, trust_plugins)
    except _WrongError as error:
        yield Verdict(error.file, problem=str(error))
        return
    for entry in index.certificates:
        yield from _verdicts(folder, entry, index, cases)


def unlisted(folder: Path, verdicts: Sequence[Verdict]) -> list[str]:
    """Certificates below a folder without a verdict."""
    named = {verdict.file for verdict in verdicts}
    return sorted({file.relative_to(folder).as_posix() for file in folder.rglob("*.npz")} - named)


class _WrongError(Exception):
    """A claim of the index about a file that is wrong."""

    def __init__(self, file: str, why: str):
        super().__init__(why)
        self.file = file


def _cases(folder: Path, index: Index, trust_plugins: bool) -> list[Case]:
    """The scenarios of the configuration. Raises unless they match the index."""
    if not index.certificates:
        raise _WrongError(INDEX, "the index names no certificates")
    _check_hash(folder, CONFIGURATION, index.configuration)
    try:
        cases = read(folder / CONFIGURATION, trust_plugins=trust_plugins).cases
    except ConfigError as error:
        raise _WrongError(CONFIGURATION, f"is invalid: {'; '.join(map(str, error.errors))}") from None
    numbers = [listed.scenario for listed in index.scenarios]
    if numbers != list(range(len(cases))) or any(case.instance is None for case in cases):
        raise _WrongError(INDEX, f"the index names the scenarios {numbers} of a configuration with {len(cases)}")
    for listed, case in zip(index.scenarios, cases, strict=True):
        assert case.instance is not None
        configured = ScenarioEntry.of(listed.scenario, case.label, case.instance)
        differing = [name for name in type(listed).model_fields if getattr(listed, name) != getattr(configured, name)]
        if differing:
            raise _WrongError(INDEX, f"scenario {listed.label}: the configuration has another {differing[0]}")
    for entry in index.certificates:
        if not entry.scenarios or not set(entry.scenarios) <= set(numbers):
            raise _WrongError(
                INDEX, f"{entry.file} is listed for the scenarios {entry.scenarios}, which are not all there"
            )
    return cases


def _check_hash(folder: Path, name: str, expected: str) -> None:
    """Raise unless the folder has the file with this hash."""
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise _WrongError(name, "lies outside of the folder")
    try:
        digest = sha256(file)
    except OSError as error:
        raise _WrongError(name, f"cannot be read: {error.strerror or error}") from None
    if digest != expected:
        raise _WrongError(name, "is not the file of the index: its SHA-256 differs")


def _verdicts(folder: Path, entry: CertificateEntry, index: Index, cases: Sequence[Case]) -> Iterator[Verdict]:
    """The verdicts on a certificate, one per scenario."""
    saved: Saved | None = None
    problem = ""
    try:
        _check_hash(folder, entry.file, entry.sha256)
        saved = read_saved(folder / entry.file)
        _check_claims(entry, saved)
    except (_WrongError, BadCertificate) as error:
        problem = str(error)
    known: dict[tuple[Hashable, ...], Verdict] = {}
    for number in entry.scenarios:
        if saved is None or problem:
            yield Verdict(entry.file, index.scenarios[number], saved, problem=problem)
            continue
        entry_of_scenario, instance = _instance(number, cases[number], saved)
        subjects = _configured(cases[number], instance, saved)
        if subjects is None:
            yield Verdict(
                entry.file, entry_of_scenario, saved, problem=f"the configuration has no such row: {_row(saved)}"
            )
            continue
        identity = (entry_of_scenario.topology, entry_of_scenario.traffic, entry_of_scenario.routes, *subjects)
        if identity not in known:
            known[identity] = _verdict(entry.file, instance, saved, subjects)
        yield replace(known[identity], of=entry_of_scenario)


def _verdict(file: str, instance: Instance, saved: Saved, subjects: Sequence[object]) -> Verdict:
    try:
        proven = verify(instance, saved, subjects)
    except BadCertificate as error:
        return Verdict(file, None, saved, problem=str(error))
    return Verdict(file, None, saved, proven, proven.unproven(saved))


def _instance(number: int, case: Case, saved: Saved) -> tuple[ScenarioEntry, Instance]:
    """The scenario of a certificate, or its epoch with the same network and routes."""
    assert case.instance is not None
    run_entry = ScenarioEntry.of(number, case.label, case.instance)
    for epoch in case.epochs:
        if epoch.instance is None:
            continue
        epoch_entry = ScenarioEntry.of(number, f"{case.label}, epoch {epoch.number}", epoch.instance)
        if run_entry.topology != saved.topology == epoch_entry.topology and saved.routes in ("", epoch_entry.routes):
            return epoch_entry, epoch.instance
    return run_entry, case.instance


def _configured(case: Case, instance: Instance, saved: Saved) -> list[object] | None:
    """What a proof of the row must be about; None if the configuration has no such row."""
    if saved.load == saved.load and saved.load not in case.grid:
        return None
    rows = [spec.provable_rows() for spec in case.ceilings if not spec.absent(instance)]
    subjects = [row[saved.ceiling] for row in rows if saved.ceiling in row]
    return [subject for subject in subjects if subject is not None] if subjects else None


def _row(saved: Saved) -> str:
    return saved.ceiling + (f" at load {saved.load:g}" if saved.load == saved.load else "")


def _check_claims(entry: CertificateEntry, saved: Saved) -> None:
    """Raise unless index and certificate claim the same."""
    for name in ("ceiling", *CLAIMS):
        listed, own = getattr(entry, name), getattr(saved, name)
        own = None if isinstance(own, float) and math.isnan(own) else own
        if listed != own:
            raise _WrongError(entry.file, f"the index claims {name} {listed}, the certificate {own}")
