# SPDX-License-Identifier: Apache-2.0
"""``write(folder)``: one self-contained page with the answer, charts, tables, configuration and provenance."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flitlab.models.files import read_text
from flitlab.models.mappings import JsonObject
from flitlab.sim.config.draft import BUDGET
from flitlab.sim.exit import RunStatus
from flitlab.sim.experiment.provenance import install_commands
from flitlab.sim.report.figures.draw import captions, draw
from flitlab.sim.report.figures.kinds import bottleneck
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html import answer, charts, network, tables
from flitlab.sim.report.html.shell import data_uri, write_page

LONGEST_TEXT = 400_000
"""The largest resolved configuration that is shown, in bytes."""

FEW_POINTS = 100
"""The most points whose table is open at first."""


def write(folder: Path) -> Path:
    """Write ``folder/report.html`` from the files of a run folder; draw the figures if there are none.

    The page loads nothing from elsewhere, and shows its figures and tables without its script, too. Means are over
    replicates, with 95 % confidence half-widths. For a run that is not finished it shows the finished points. Raises
    ``OSError``, and ``ValueError`` for files that no run has written.
    """
    folder = Path(folder)
    run = Run.read(folder)
    if not _pictures(folder):
        with suppress(ValueError):  # a page without a figure is better than no page
            draw(folder)
    summaries, networks = answer.scenario_summaries(run), network.network_use(run, folder)
    drawn, units = charts.charts(run, folder), run.units()
    inside = network.data(run, networks)
    pictures = _pictures(folder)
    waterfall = pictures.pop(BUDGET, None)
    count = f"{len(run.rows):,}"
    sections: list[tuple[str, str, object]] = [
        ("budget", "Where the throughput goes", tables.loss_budgets(run)),
        ("figures", "Figures", _figures(pictures, drawn, _captions(run))),
        ("published", "Published values", tables.published(run.published)),
        ("collectives", "Collectives", tables.collectives(run)),
        ("programs", "Programs", tables.programs(run)),
        ("jobs", "Jobs", tables.jobs(run)),
        ("steps", "Collectives and other steps", tables.steps(run)),
        ("transports", "Transports", tables.transports(run)),
        ("classes", "Classes of traffic", tables.classes(run)),
        ("scenarios", "Scenarios", tables.scenarios(run, summaries)),
        ("network", "Inside the network", inside),
        ("metrics", "Metrics", tables.metrics(run.metrics)),
        ("ceilings", "Ceilings", tables.ceilings(run.ceilings)),
        ("energy", "Assumptions on power", tables.energy(run)),
        ("results", "Results", tables.raw(run.rows) if run.of_programs else tables.results(run)),
        ("failed", "Failed points", tables.failures(run)),
        ("configuration", "Configuration", _configuration(folder)),
        ("reproduce", "How to reproduce", _reproduce(run)),
        ("provenance", "Provenance", _provenance(run)),
    ]
    return write_page(
        folder / "report.html", "page.html",
        title=str(run.manifest.get("name") or folder.resolve().name),
        answer=answer.sentence(run, summaries), facts=_facts(run), warnings=_warnings(run), sections=sections,
        waterfall=waterfall and data_uri(waterfall), busiest=network.busiest(networks),
        points=f"{count} runs, with all columns" if run.of_programs else f"{count} points, as means over seeds",
        opened=not run.of_programs and len(run.rows) <= FEW_POINTS,
        data={
            "scenarios": run.scenarios, "charts": drawn, "inside": inside, "time": units.time, "unit": units.time_name,
        },
    )  # fmt: skip


def _facts(run: Run) -> list[str]:
    manifest = run.manifest
    counts = [
        (len(run.scenarios), "scenario"), (len(run.rows), "point"), (len(run.ceilings), "ceiling"),
        (len(run.failures), "failed point"),
    ]  # fmt: skip
    facts = [str(manifest[key]).replace("_", " ") for key in ("experiment",) if key in manifest]
    facts += [f"{count:,} {what}{'s' * (count > 1)}" for count, what in counts if count]
    facts += [f"engine {manifest['engine']}"] if run.rows and "engine" in manifest else []
    facts += [_cpu_time(manifest)]
    facts += [str(manifest.get("finished") or manifest.get("created") or "")[:10]]
    return [fact for fact in facts if fact]


def _warnings(run: Run) -> list[str]:
    status = str(run.manifest.get("status") or "")
    if status == RunStatus.RUNNING:
        status = "not finished: what there is so far"
    warnings = [] if status in ("", RunStatus.DONE) else [status]
    return warnings + ([f"{', '.join(run.altered)}: not as the run wrote it"] if run.altered else [])


def _cpu_time(manifest: JsonObject) -> str:
    """CPU time of the points, and of their kernels; '' where unknown."""
    if not manifest.get("cpu_s"):
        return ""
    compiled = float(manifest.get("compile_s", 0.0))
    return f"{manifest['cpu_s']:,.1f} s of CPU time" + f" and {compiled:,.0f} s for kernels" * (compiled >= 1)


@dataclass(frozen=True)
class Figure:
    """A static figure, or an interactive chart with the static figure that stands for it without the script.

    picture: its address, '' without one. chart: the name of its data, '' of a static figure. further: whether an
    earlier chart shows the static figure.
    """

    caption: str
    picture: str
    alt: str
    title: str = ""
    chart: str = ""
    further: bool = False


def _figures(pictures: dict[str, Path], drawn: Sequence[charts.Chart], captions: dict[str, str]) -> list[Figure]:
    """Interactive charts, then the static figures that stand for none."""
    figures = []
    static = {name: data_uri(file) for name, file in pictures.items()}
    for chart in drawn:
        name = chart["name"]
        title = ": ".join(filter(None, (chart["title"], chart.get("panel"))))
        picture = static.pop(name, "")
        figures.append(Figure(chart.get("note") or "", picture, chart["title"], title, name, further="." in name))
    order = {name: i for i, name in enumerate(captions)}
    rest = sorted(static, key=lambda name: (order.get(name, len(order)), name))
    return figures + [Figure(captions.get(name, name), static[name], alt=name) for name in rest]


def _captions(run: Run) -> dict[str, str]:
    """Captions of static figures, by name."""
    labels = [str(scenario.get("label")) for scenario in run.manifest.get("scenarios", ())]
    names = [bottleneck.numbered(bottleneck.NAME, i, label) for i, label in enumerate(labels, 1)]
    if len(labels) == 1:
        names = [bottleneck.NAME]
    binding = (f"Where the maximum concurrent flow binds: {label}" for label in labels)
    return captions(run) | dict(zip(names, binding, strict=True))


def _pictures(folder: Path) -> dict[str, Path]:
    """Static figures by name; SVG where possible."""
    return {file.stem: file for suffix in ("png", "svg") for file in sorted(folder.glob(f"figures/*.{suffix}"))}


def _configuration(folder: Path) -> dict[str, str] | None:
    source, resolved = folder / "config.yaml", folder / "config.resolved.yaml"
    shown = resolved.exists() and resolved.stat().st_size <= LONGEST_TEXT
    texts = {
        "source": read_text(source) if source.exists() else "", "resolved": read_text(resolved) if shown else ""
    }  # fmt: skip
    return texts if any(texts.values()) else None


def _reproduce(run: Run) -> str:
    """The commands that reproduce the run, byte for byte."""
    command = run.manifest.get("command")
    if not command:
        return ""
    by_hand = Path(str(command[0])).name in ("simrun", "__main__.py")
    arguments = [str(word) for word in command[1:]] if by_hand else ["config.resolved.yaml"]  # a script's are its own
    versions = run.manifest.get("versions", {})
    needs = [f"{name}=={versions[name]}" for name in versions if versions[name] and name not in ("flitlab", "python")]
    lines = [
        f"# Python {versions.get('python', '')}, semantics version {run.manifest.get('semantics_version')}",
        *install_commands(run.manifest.get("source", {}), versions.get("flitlab")),
        f"pip install {shlex.join(needs)}",
        f"simrun {shlex.join(arguments)}",
    ]
    return "\n".join(lines)


def _provenance(run: Run) -> dict[str, tables.Table | None]:
    """The manifest, without entries that other tables show; scenarios are apart."""
    hidden = ("scenarios", "published", "problems", "plots", "drawn")
    general = {key: value for key, value in run.manifest.items() if key not in hidden}
    scenarios = {one["label"]: one for one in run.manifest.get("scenarios", ()) if "label" in one}
    return {
        "run": _keys(general),
        "scenarios": None if run.metrics else _keys(scenarios),
    }


def _keys(document: JsonObject) -> tables.Table:
    return tables.Table(("key", "value"), list(tables.flat(document)), text=(0, 1))
