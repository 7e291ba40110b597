# SPDX-License-Identifier: Apache-2.0
"""A folder of saved certificates: what proves the ceilings of a study, and the index of what they claim of what.

Whoever trusts the SHA-256 of the index, which saving prints, trusts no file: the index names the configuration, the
graphs, demands and routes that it gives, and every certificate with what it claims, each by its hash.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.collective.collective import Collective
from flitlab.fluid.saved import BadCertificate, Saved
from flitlab.fluid.verify import Verified, provable, verify
from flitlab.models.delimited import quoted
from flitlab.models.files import replace_file
from flitlab.models.instance import Instance
from flitlab.models.topology.names import Names, switch_names
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.load import MAX_FILE_BYTES
from flitlab.sim.config.study import Case, Study, read

CONFIGURATION = "config.resolved.yaml"
INDEX = "certificates.json"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ScenarioEntry(_Entry):
    """A scenario of the configuration by its number, and the content hashes of what it is made of."""

    scenario: int = Field(ge=0)
    label: str
    topology: str
    traffic: str
    routes: str

    @classmethod
    def of(cls, index: int, label: str, instance: Instance) -> "ScenarioEntry":
        """routes: '' if the scenario has none."""
        routes = "" if instance.routes is None else instance.routes.content_hash
        return cls(
            scenario=index, label=label, topology=instance.topology.content_hash,
            traffic=instance.traffic.content_hash, routes=routes,
        )  # fmt: skip


class CertificateEntry(_Entry):
    """A certificate, the numbers of the scenarios it is for, and what it claims; None: no load, an end not claimed."""

    file: str
    sha256: str
    scenarios: list[int]
    ceiling: str
    load: float | None
    lower: float | None
    upper: float | None

    @classmethod
    def of(cls, folder: Path, file: Path, scenarios: list[int]) -> "CertificateEntry":
        """What a file in the folder of certificates claims, with its hash."""
        saved = Saved.read(file)
        claims = {name: None if math.isnan(getattr(saved, name)) else getattr(saved, name) for name in CLAIMS}
        name = file.relative_to(folder).as_posix()
        return cls(file=name, sha256=sha256(file), scenarios=scenarios, ceiling=saved.ceiling, **claims)


CLAIMS = ("load", "lower", "upper")


class Index(_Entry):
    """What a folder of certificates holds. configuration: SHA-256 of :data:`CONFIGURATION`."""

    configuration: str
    scenarios: list[ScenarioEntry]
    certificates: list[CertificateEntry]


@dataclass(frozen=True)
class Verdict:
    """What came of verifying one certificate for one scenario. problem: why it does not prove what is claimed, or ''.

    of: the scenario, None where not even that is known. claimed: None if the file is no certificate.
    """

    file: str
    of: ScenarioEntry | None = None
    claimed: Saved | None = None
    proven: Verified | None = None
    problem: str = ""

    @property
    def confirmed(self) -> bool:
        """Whether all that is claimed is proven."""
        return not self.problem


def sha256(file: Path) -> str:
    """The SHA-256 hash of what a file holds, as hex digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def save(folder: Path, instance: Instance, rows: Sequence[Ceiling]) -> None:
    """Writes a file for each ceiling of which an end can be proven, numbered as the rows are, in place of any there.

    The demand that proves one stands beside it, as ``traffic: {kind: matrix, level: switch}`` reads it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.npz"), *folder.glob("*.csv")):
        old.unlink()
    for number, row in enumerate(rows, 1):
        if provable(row.ceiling) and (row.certificate is not None or row.flow is not None):
            at = "" if row.load is None else f"@{row.load:g}"
            name = f"{number:03d}-{row.ceiling.replace(':', '-')}{at}.npz"
            if (saved := Saved.of(instance, row)).claims:
                saved.write(folder / name)
            if len(saved.amount):
                _write_demand((folder / name).with_suffix(".csv"), switch_names(instance.topology), saved)


def _write_demand(file: Path, names: Names, saved: Saved) -> None:
    pairs = zip(saved.source.tolist(), saved.target.tolist(), saved.amount.tolist(), strict=True)
    lines = [f"{quoted(names.label(s))},{quoted(names.label(t))},{amount!r}" for s, t, amount in pairs]
    replace_file(file, "\n".join(["src,dst,demand", *lines]) + "\n")


def write_index(study: Study, folder: Path, users: dict[str, list[int]]) -> tuple[int, str]:
    """Writes the configuration and the index of all certificates below a folder.

    users: folder of certificates -> the scenarios they are for. Returns how many there are, and the SHA-256 of the
    index.
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
    """Verifies all that the index of a folder names, without any solver; what is wrong is a verdict with a problem.

    What a certificate says is compared with what the configuration asks for: the ceiling, the load, the collective,
    the topology, the traffic and the routes. trust_plugins: whether the plugins of the configuration are imported.

    Raises ``OSError`` if there is no index that can be read.
    """
    if (folder / INDEX).stat().st_size > MAX_FILE_BYTES:
        yield Verdict(INDEX, problem=f"the index is longer than {MAX_FILE_BYTES:,} bytes")
        return
    text = (folder / INDEX).read_text("utf-8", errors="replace")
    try:
        index = Index.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        yield Verdict(INDEX, problem=f"the index is damaged{f', at {place}' if place else ''}: {first['msg']}")
        return
    try:
        cases = _cases(folder, index, trust_plugins)
    except _WrongError as error:
        yield Verdict(error.file, problem=str(error))
        return
    for entry in index.certificates:
        yield from _verdicts(folder, entry, index, cases)


def unlisted(folder: Path, verdicts: Sequence[Verdict]) -> list[str]:
    """Certificates below a folder that none of its verdicts is about."""
    named = {verdict.file for verdict in verdicts}
    return sorted({file.relative_to(folder).as_posix() for file in folder.rglob("*.npz")} - named)


class _WrongError(Exception):
    """What the index says of a file is not so."""

    def __init__(self, file: str, why: str):
        super().__init__(why)
        self.file = file


def _cases(folder: Path, index: Index, trust_plugins: bool) -> list[Case]:
    """The scenarios of the configuration. Raises unless they are those that the index names."""
    if not index.certificates:
        raise _WrongError(INDEX, "the index names no certificates")
    _check_hash(folder, CONFIGURATION, index.configuration)
    try:
        cases = read(folder / CONFIGURATION, trust_plugins=trust_plugins).cases
    except ConfigError as error:
        raise _WrongError(CONFIGURATION, f"cannot be understood: {'; '.join(map(str, error.errors))}") from None
    numbers = [one.scenario for one in index.scenarios]
    if numbers != list(range(len(cases))) or any(case.instance is None for case in cases):
        raise _WrongError(INDEX, f"the index names the scenarios {numbers} of a configuration with {len(cases)}")
    for one, case in zip(index.scenarios, cases, strict=True):
        assert case.instance is not None
        configured = ScenarioEntry.of(one.scenario, case.label, case.instance)
        wrong = [name for name in type(one).model_fields if getattr(one, name) != getattr(configured, name)]
        if wrong:
            raise _WrongError(INDEX, f"scenario {one.label}: the configuration gives another {wrong[0]}")
    for entry in index.certificates:
        if not entry.scenarios or not set(entry.scenarios) <= set(numbers):
            raise _WrongError(INDEX, f"{entry.file} is said to be for the scenarios {entry.scenarios}")
    return cases


def _check_hash(folder: Path, name: str, expected: str) -> None:
    """Raises unless there is such a file in the folder, with this content."""
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise _WrongError(name, "lies outside of the folder")
    try:
        digest = sha256(file)
    except OSError as error:
        raise _WrongError(name, f"cannot be read: {error.strerror or error}") from None
    if digest != expected:
        raise _WrongError(name, "is not the file that the index names: its SHA-256 is another")


def _verdicts(folder: Path, entry: CertificateEntry, index: Index, cases: Sequence[Case]) -> Iterator[Verdict]:
    """What came of verifying a certificate for each scenario that the index says it is for."""
    saved: Saved | None = None
    problem = ""
    try:
        _check_hash(folder, entry.file, entry.sha256)
        saved = Saved.read(folder / entry.file)
        _check_claims(entry, saved)
    except (_WrongError, BadCertificate) as error:
        problem = str(error)
    known: dict[tuple[Any, ...], Verdict] = {}
    for number in entry.scenarios:
        if saved is None or problem:
            yield Verdict(entry.file, index.scenarios[number], saved, problem=problem)
            continue
        of, instance = _instance(number, cases[number], saved)
        collectives = _configured(cases[number], instance, saved)
        if collectives is None:
            yield Verdict(entry.file, of, saved, problem=f"the configuration asks for no such row, {_row(saved)}")
            continue
        same = (of.topology, of.traffic, of.routes, *collectives)
        if same not in known:
            known[same] = _verdict(entry.file, instance, saved, collectives)
        yield replace(known[same], of=of)


def _verdict(file: str, instance: Instance, saved: Saved, collectives: Sequence[Collective]) -> Verdict:
    try:
        proven = verify(instance, saved, collectives)
    except BadCertificate as error:
        return Verdict(file, None, saved, problem=str(error))
    return Verdict(file, None, saved, proven, proven.unproven(saved))


def _instance(number: int, case: Case, saved: Saved) -> tuple[ScenarioEntry, Instance]:
    """What a certificate is of: the scenario as it was built, or the epoch of it with the same network and routes."""
    assert case.instance is not None
    whole_run = ScenarioEntry.of(number, case.label, case.instance)
    for epoch in case.epochs:
        if epoch.instance is None:
            continue
        of = ScenarioEntry.of(number, f"{case.label}, epoch {epoch.number}", epoch.instance)
        if whole_run.topology != saved.topology == of.topology and saved.routes in ("", of.routes):
            return of, epoch.instance
    return whole_run, case.instance


def _configured(case: Case, instance: Instance, saved: Saved) -> list[Collective] | None:
    """The collectives that a row can be about, as the configuration bounds them; None if it asks for no such row."""
    if saved.load == saved.load and saved.load not in case.grid:
        return None
    rows = [spec.provable_rows() for spec in case.ceilings if not spec.absent(instance)]
    about = [row[saved.ceiling] for row in rows if saved.ceiling in row]
    return [collective for collective in about if collective is not None] if about else None


def _row(saved: Saved) -> str:
    return saved.ceiling + (f" at load {saved.load:g}" if saved.load == saved.load else "")


def _check_claims(entry: CertificateEntry, saved: Saved) -> None:
    """Raises unless the index claims what the certificate does."""
    for name in ("ceiling", *CLAIMS):
        listed, own = getattr(entry, name), getattr(saved, name)
        own = None if isinstance(own, float) and math.isnan(own) else own
        if listed != own:
            raise _WrongError(entry.file, f"the index claims {name} {listed}, the certificate {own}")
