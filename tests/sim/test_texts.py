# SPDX-License-Identifier: Apache-2.0
"""Labels, names and titles are texts of users: figures and pages show them as they are, whatever they look like."""

import re
import xml.dom.minidom

import pytest
import yaml
from matplotlib.figure import Figure
from matplotlib.text import Text

from flitlab.sim.cli import main
from flitlab.sim.judge.claim import read_claim
from flitlab.sim.judge.verdict import judge
from flitlab.sim.report.figures.claim import figure_of as figure_of_claim
from flitlab.sim.report.figures.draw import figure_of
from flitlab.sim.report.figures.metrics import figure as of_metrics
from flitlab.sim.report.figures.metrics.specification import plots_of
from flitlab.sim.report.figures.style import in_style, log_axis, save
from flitlab.sim.report.folder.run import Run

TEX = [r"$\frac{1}{0}$ $x^{", "$a$ costs $b$", "100 $", r"\$ and $\undefined$", "_hidden", "<b>&amp; $x$"]
"""Two of them are no TeX, and two are other TeX than they say; what begins with _ matplotlib leaves out of legends."""

SWEEP = {
    "topology": {"kind": "mesh", "dims": [2, 2]}, "traffic": {"kind": "uniform"}, "loads": [0.2, 0.4],
    "engine": "reference",
    "switching": {"vcs": 2}, "measure": {"warmup": 20, "ticks": 60, "ci": None}, "ceilings": ["bounds"],
    "cases": [{"label": label, "routing": {"kind": "minimal"}} for label in TEX],
    "outputs": {"figures": ["latency_load", "percentiles"], "html": True},
}  # fmt: skip


def texts(figure):
    """All that is drawn of a figure; those that are TeX are refused."""
    figure.draw_without_rendering()
    drawn = [text for text in figure.findobj(Text) if text.get_text()]
    assert not any(text.get_parse_math() and "$" in text.get_text() for text in drawn)
    return {text.get_text().strip("\u2009") for text in drawn}


def written(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(text, allow_unicode=True, sort_keys=False))
    assert main(["c.yaml", "--out", "o", "--jobs", "1"]) == 0
    return tmp_path / "o"


@pytest.mark.long
def test_labels_of_curves_are_drawn_as_they_are(tmp_path, monkeypatch, capsys):
    folder = written(tmp_path, monkeypatch, SWEEP)
    assert "figures:" not in capsys.readouterr().err
    names = {path.name for path in (folder / "figures").iterdir()}
    assert names == {f"{kind}.{suffix}" for kind in ("latency_load", "percentiles") for suffix in ("png", "svg")}
    for kind in ("latency_load", "percentiles"):
        xml.dom.minidom.parse(str(folder / "figures" / f"{kind}.svg"))
        assert set(TEX) <= texts(figure_of(Run.read(folder), kind))
    page = (folder / "report.html").read_text("utf-8")
    assert "<b>&amp; $x$" not in page and "&lt;b&gt;&amp;amp; $x$" in page


def test_labels_of_axes_and_bars_are_drawn_as_they_are(tmp_path, monkeypatch, capsys):
    labels = {"x_label": TEX[0], "y_label": TEX[1]}
    metrics = {
        "experiment": "metrics",
        "cases": [{"label": label, "topology": {"kind": "torus", "dims": [2 + i]}} for i, label in enumerate(TEX)],
        "outputs": {"html": False, "plots": [
            {"name": "bars", "y": "aspl", "x": "case", **labels},
            {"name": "curve", "y": "aspl", "x": "switches", "log": "xy", **labels},
        ]},
    }  # fmt: skip
    folder = written(tmp_path, monkeypatch, metrics)
    assert "figures:" not in capsys.readouterr().err
    run = Run.read(folder)
    drawn = [texts(in_style(of_metrics.figure_of)(run, plot)) for plot in plots_of(run)[0]]
    assert all({TEX[0], TEX[1]} <= one for one in drawn) and any(set(TEX) <= one for one in drawn)


def test_names_of_claims_are_drawn_as_they_are(tmp_path):
    claim = {
        "name": TEX[1],
        "topology": {"kind": "torus", "dims": [4]},
        "traffic": "uniform",
        "reported": [{"load": 0.1}],
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(claim))
    shown = texts(figure_of_claim(judge(read_claim(tmp_path / "c.yaml"))))
    assert any(text.startswith(TEX[1]) for text in shown)


@pytest.mark.parametrize("base", [10.0, 2.0])
def test_logarithmic_axes_have_plain_powers(tmp_path, base):
    @in_style
    def drawn():
        figure = Figure()
        ax = figure.add_subplot()
        ax.plot([1e-3, 2e5], [30, 70])
        log_axis(ax, "x", base)
        log_axis(ax, "y")
        save(figure, tmp_path / "f")
        return texts(figure)

    found = drawn()
    assert not [text for text in found if re.search(r"[$\\{}^]", text)]
    assert ("10⁻²" if base == 10 else "2¹³") in found
