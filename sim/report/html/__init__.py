# SPDX-License-Identifier: Apache-2.0
"""``write(folder)``: one self-contained page with the answer, charts, tables, configuration and provenance."""

import base64
import shlex
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from flitlab.models.files import read_file, read_text
from flitlab.sim.config.draft import BUDGET
from flitlab.sim.exit import RunStatus
from flitlab.sim.experiment.provenance import install_commands
from flitlab.sim.report.figures.draw import captions, draw
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html import answer, budget, charts, network, tables
from flitlab.sim.report.html.shell import write_page
from flitlab.sim.report.network import bottleneck

LONGEST_TEXT = 400_000
"""The largest resolved configuration that is shown, in bytes."""

FEW_POINTS = 100
"""The most points whose table is open at first."""

LARGEST_FIGURE = 300_000
"""The largest static figure that is embedded as SVG, in bytes; a larger one is PNG."""


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
    name = str(run.manifest.get("name") or folder.resolve().name)
    summaries, networks = answer.scenario_summaries(run), network.network_use(run, folder)
    drawn = charts.charts(run, folder)
    units = run.units()
    document: dict[str, Any] = {
        "scenarios": run.scenarios, "charts": drawn, "inside": network.data(run, networks), "time": units.time,
        "unit": units.time_name,
    }  # fmt: skip
    sections = [
        ("budget", "Where the throughput goes", budget.section(run, _waterfall(folder))),
        ("figures", "Figures", _figures(folder, drawn, _captions(run))),
        ("published", "Published values", tables.published(run.published)),
        ("collectives", "Collectives", tables.collectives(run)),
        ("programs", "Programs", tables.programs(run)),
        ("jobs", "Jobs", tables.jobs(run)),
        ("steps", "Collectives and other steps", tables.folded("every kind of step", _steps(run))),
        ("transports", "Transports", tables.transports(run)),
        ("scenarios", "Scenarios", tables.scenarios(run, summaries)),
        ("network", "Inside the network", _network(document["inside"], networks)),
        ("metrics", "Metrics", tables.metrics(run.metrics)),
        ("ceilings", "Ceilings", tables.ceilings(run.ceilings)),
        ("results", "Results", _results(run)),
        ("failed", "Failed points", tables.failures(run)),
        ("configuration", "Configuration", _configuration(folder)),
        ("reproduce", "How to reproduce", _reproduce(run)),
        ("provenance", "Provenance", _provenance(run)),
    ]
    sections = [section for section in sections if section[2]]
    parts = {
        "answer": escape(answer.sentence(run, summaries)), "facts": _facts(run),
        "contents": "".join(f'<li><a href="#{id}">{escape(title)}</a></li>' for id, title, _ in sections),
        "sections": "".join(_section(*section) for section in sections),
    }  # fmt: skip
    scripts = ("common.js", "theme.js", "charts.js", "network.js", "page.js")
    return write_page(folder / "report.html", name, "page.html", parts, document, scripts)


def _steps(run: Run) -> str:
    """The table of steps; '' for a collective, which is its only step."""
    return "" if run.of_collectives else tables.steps(run)


def _section(id: str, title: str, body: str) -> str:
    return f'<section id="{id}" aria-label="{escape(title)}">\n<h2>{escape(title)}</h2>\n{body}</section>\n'


def _facts(run: Run) -> str:
    """Facts of the run in a line."""
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
    status = str(manifest.get("status") or "")
    items = "".join(f"<li>{escape(fact)}</li>" for fact in facts if fact)
    warnings = [] if status in ("", RunStatus.DONE) else [_status_text(status)]
    warnings += [f"{', '.join(run.altered)}: not as the run wrote it"] if run.altered else []
    state = "".join(f'<li class="warn">{escape(text)}</li>' for text in warnings)
    return f'<ul class="facts">{state}{items}</ul>' if items or state else ""


def _cpu_time(manifest: dict[str, Any]) -> str:
    """CPU time of the points, and of their kernels; '' where unknown."""
    if not manifest.get("cpu_s"):
        return ""
    compiled = float(manifest.get("compile_s", 0.0))
    return f"{manifest['cpu_s']:,.1f} s of CPU time" + f" and {compiled:,.0f} s for kernels" * (compiled >= 1)


def _status_text(status: str) -> str:
    return "not finished: what there is so far" if status == RunStatus.RUNNING else status


def _figures(folder: Path, drawn: Sequence[charts.Chart], captions: dict[str, str]) -> str:
    """Interactive charts with the static figures that stand for them, then the other static ones."""
    static = _pictures(folder)
    static.pop(BUDGET, None)  # it has a section of its own
    parts = []
    for chart in drawn:
        first = "." not in chart["name"]
        parts.append(_chart(chart, static.pop(chart["name"], None), first))
    order = {name: i for i, name in enumerate(captions)}
    rest = sorted(static, key=lambda name: (order.get(name, len(order)), name))
    parts += [_figure(static[name], captions.get(name, name)) for name in rest]
    return f'<div class="figures">\n{"".join(parts)}</div>\n' if parts else ""


def _waterfall(folder: Path) -> str:
    """The figure of the loss budgets, if there is one."""
    file = _pictures(folder).get(BUDGET)
    return _image(file, "Where the throughput goes") if file else ""


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


def _chart(chart: charts.Chart, file: Path | None, first: bool) -> str:
    """The element into which the script draws a chart; without the script it shows the static figure."""
    title, note = ": ".join(filter(None, (chart["title"], chart.get("panel")))), escape(chart.get("note") or "")
    image = _image(file, chart["title"]) if file else '<p class="soft">The script of the page draws this.</p>'
    return (
        f'<figure class="chart{"" if first else " further"}" data-chart="{escape(chart["name"])}">\n'
        f'<h3>{escape(title)}</h3>\n<div class="static">{image if first else ""}</div>\n'
        f"<figcaption>{note}</figcaption></figure>\n"
    )


def _figure(file: Path, caption: str) -> str:
    return f"<figure>{_image(file, file.stem)}<figcaption>{escape(caption)}</figcaption></figure>\n"


def _image(file: Path, text: str) -> str:
    """The picture as an image element, so that ids of two SVG pictures do not clash."""
    kind = "png" if file.suffix == ".png" else "svg+xml"
    if file.stat().st_size > LARGEST_FIGURE and file.with_suffix(".png").exists():
        file, kind = file.with_suffix(".png"), "png"
    coded = base64.b64encode(read_file(file)).decode("ascii")
    return f'<img alt="{escape(text)}" src="data:image/{kind};base64,{coded}">'


def _network(data: dict[str, Any], networks: Sequence[network.NetworkUse]) -> str:
    if not data:
        return ""
    more = f'<p class="soft">{escape(data["left_out"])}</p>\n' if data["left_out"] else ""
    return f'{more}<div id="inside"></div>\n<noscript>{network.busiest(networks)}</noscript>\n'


def _results(run: Run) -> str:
    if run.of_programs:
        return tables.folded(f"{len(run.rows):,} runs, with all columns", tables.raw(run.rows))
    rows = tables.results(run) if run.rows else ""
    return tables.folded(f"{len(run.rows):,} points, as means over seeds", rows, opened=len(run.rows) <= FEW_POINTS)


def _configuration(folder: Path) -> str:
    source, resolved = folder / "config.yaml", folder / "config.resolved.yaml"
    parts = [f'<pre tabindex="0">{escape(read_text(source))}</pre>\n'] if source.exists() else []
    if resolved.exists() and resolved.stat().st_size <= LONGEST_TEXT:
        text = escape(read_text(resolved))
        parts.append(tables.folded("as resolved, with every default", f'<pre tabindex="0">{text}</pre>'))
    return "".join(parts)


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
    text = (
        "config.yaml in the folder of the run is the file that was given. Results are the same bytes on any number of "
        "processes: results.csv and ceilings.csv, but for the columns cpu_s and seconds."
    )
    return f'<pre tabindex="0">{escape(chr(10).join(lines))}</pre>\n<p class="soft">{escape(text)}</p>\n'


def _provenance(run: Run) -> str:
    """The manifest, without entries that other tables show; scenarios are folded."""
    hidden = ("scenarios", "published", "problems", "plots", "drawn")
    general = {key: value for key, value in run.manifest.items() if key not in hidden}
    parts = [tables.table(("key", "value"), list(tables.flat(general)), text=(0, 1))]
    entries = list(tables.flat({s["label"]: s for s in run.manifest.get("scenarios", ()) if "label" in s}))
    scenarios = tables.table(("key", "value"), entries, text=(0, 1)) if not run.metrics else ""
    return "".join(parts) + tables.folded("of each scenario: hashes, seeds, delays, certificates", scenarios)
