# SPDX-License-Identifier: Apache-2.0
"""The pages in a headless Chromium: their scripts run without a complaint, and do what a reader asks of them."""

import html as markup
import json
import os
import re
import shutil
import subprocess

import pytest

from flitlab.sim.cli import main
from flitlab.sim.report import html
from tests.sim.test_report import TINY, write_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found (chromium, google-chrome)"),
]

DARK = "--blink-settings=preferredColorScheme=0"

PRELUDE = """
const all = (what) => [...document.querySelectorAll(what)], one = (what) => document.querySelector(what);
const rgb = (element, name) => getComputedStyle(element)[name];
const press = (element, key) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
"""


def probe(page, script, folder, *flags, width=1200):
    """Opens a page; the value of the body of a function in it, and what the console said."""
    copy = folder / "probed.html"
    tell = f"const found = (() => {{ {PRELUDE} {script} }})();"
    tell += 'const out = document.createElement("pre"); out.id = "probe"; out.textContent = JSON.stringify(found);'
    tell = f"setTimeout(() => {{ {tell} document.body.appendChild(out); }}, 500)"
    copy.write_text(page.read_text("utf-8").replace("</body>", f"<script>{tell}</script></body>"), "utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr", f"--window-size={width},900", "--virtual-time-budget=3000", *flags, "--dump-dom",
        copy.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": str(folder)})
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-2000:]
    return json.loads(markup.unescape(found[1])), complaints


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a real run of few ticks."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.yaml").write_text(TINY)
    assert main(["run", str(folder / "tiny.yaml"), "--out", str(folder / "tiny"), "--jobs", "1"]) == 0
    return folder / "tiny" / "report.html"


def test_report_shows_everything_and_answers_the_reader(page, tmp_path):
    found, complaints = probe(page, """
      const chart = one('[data-chart="latency_load"]'), svg = chart.querySelector("svg.plot"), result = {};
      result.sections = all("main h2").map((h) => h.textContent);
      result.charts = all("figure.chart.ready").length;
      result.curves = chart.querySelectorAll(".curve").length;
      result.hidden = rgb(chart.querySelector(".static"), "display");
      svg.focus(); press(svg, "ArrowRight"); press(svg, "ArrowRight");
      result.tip = chart.querySelector(".tip").hidden ? "" : chart.querySelector(".tip").textContent;
      result.aloud = chart.querySelector("[aria-live]").textContent;
      chart.querySelector(".legend button").click();
      result.left = chart.querySelectorAll(".curve").length;
      result.pressed = chart.querySelector(".legend button").getAttribute("aria-pressed");
      result.links = all("#inside svg .link").length;
      const range = one("#inside input[type=range]"), before = one("#inside figcaption").textContent;
      range.value = "1"; range.dispatchEvent(new Event("input"));
      result.moved = before !== one("#inside figcaption").textContent;
      const cells = () => all("#scenarios tbody tr").map((row) => row.cells[0].textContent);
      const button = one("#scenarios th button");
      button.click(); result.up = cells();
      button.click(); result.down = cells();
      result.sorted = button.parentElement.getAttribute("aria-sort");
      result.loaded = performance.getEntriesByType("resource").length;
      return result;
    """, tmp_path)  # fmt: skip
    assert complaints == []
    assert found["sections"] == [
        "Figures", "Scenarios", "Inside the network", "Ceilings", "Results", "Configuration", "How to reproduce",
        "Provenance",
    ]  # fmt: skip
    assert found["charts"] == 7  # five of the sweep, two of the inside
    assert (found["curves"], found["left"], found["pressed"]) == (2, 1, "false")
    assert found["hidden"] == "none"
    assert found["tip"].startswith("minimal") and "load 0.7, past saturation" in found["tip"]
    assert found["aloud"].startswith("minimal; load 0.7")
    assert found["links"] == 14 and found["moved"]
    assert found["up"] == ["routing=deflection", "routing=minimal"] == found["down"][::-1]
    assert found["sorted"] == "descending"
    assert found["loaded"] == 0


def test_report_fits_a_narrow_window_and_the_dark(page, tmp_path):
    script = """
      return { wide: document.documentElement.scrollWidth, window: innerWidth,
        paper: rgb(document.body, "backgroundColor"),
        charts: all("figure.chart svg.plot").map((s) => s.getBoundingClientRect().width) };
    """
    narrow, complaints = probe(page, script, tmp_path, width=400)
    assert complaints == []
    assert narrow["window"] <= 500 and narrow["wide"] <= narrow["window"]
    assert all(200 < width <= narrow["window"] for width in narrow["charts"])
    assert narrow["paper"] == "rgb(255, 255, 255)"
    dark, complaints = probe(page, script, tmp_path, DARK)
    assert complaints == []
    assert sum(map(int, re.findall(r"\d+", dark["paper"]))) < 120


def test_theme_button_overrules_the_system(page, tmp_path):
    script = """
      const button = all("#tools button").pop(), seen = [];
      for (let i = 0; i < 3; i++) {
        button.click();
        seen.push([button.textContent, rgb(document.body, "backgroundColor")]);
      }
      return seen;
    """
    seen, complaints = probe(page, script, tmp_path, DARK)
    assert complaints == []
    assert [text for text, _ in seen] == ["Theme: light", "Theme: dark", "Theme: auto"]
    assert seen[0][1] == "rgb(255, 255, 255)" and seen[1][1] == seen[2][1] != seen[0][1]


def test_labels_of_a_configuration_do_nothing(tmp_path):
    folder = write_run(tmp_path / "run")
    evil = '"><img src=x onerror=document.title=1>'
    for file in (folder / "results.csv", folder / "ceilings.csv"):
        file.write_text(file.read_text().replace("routing=minimal", evil.replace('"', '""')))
    found, complaints = probe(html.write(folder), "return [document.title, all('img[src=x]').length];", tmp_path)
    assert complaints == []
    assert found == ["uniform_mddp", 0]


def test_static_figures_stand_in_for_the_script(page):
    text = page.read_text("utf-8")
    assert '<div class="static"><img alt="Latency over accepted traffic" src="data:image/svg+xml' in text
    assert "<noscript>" in text and "Channels used most" in text


def test_animation_plays_and_steps(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    page = tmp_path / "view.html"
    assert main(["view", str(tmp_path / "tiny.yaml"), "--ticks", "80", "--load", "0.7", "--out", str(page)]) == 0
    found, complaints = probe(page, """
      const [play, back, forth] = all("#controls button"), range = one("#controls input");
      const told = one("#controls output"), result = { start: told.textContent };
      range.value = "40"; range.dispatchEvent(new Event("input"));
      result.dots = all("svg .flit").length;
      result.waiting = all("#stage svg text[style*='font-weight']").reduce((sum, t) => sum + Number(t.textContent), 0);
      forth.click(); result.forth = told.textContent; back.click(); back.click(); result.back = told.textContent;
      const choose = one("#side select"); choose.value = "3"; choose.dispatchEvent(new Event("change"));
      const rows = all("#side tr"); result.life = rows.map((row) => row.textContent);
      rows.pop().querySelector("button").click(); result.end = told.textContent;
      press(document.body, " "); result.playing = play.textContent;
      press(document.body, " "); result.paused = play.textContent;
      result.fits = document.documentElement.scrollWidth <= innerWidth;
      return result;
    """, tmp_path, width=400)  # fmt: skip
    assert complaints == []
    assert (found["start"], found["forth"], found["back"]) == ("tick 0", "tick 41", "tick 39")
    assert found["dots"] > 0 and found["waiting"] > 0 and found["fits"]
    assert "created at host" in found["life"][0]
    assert found["end"] == "tick " + re.match(r"\d+", found["life"][-1])[0]
    assert (found["playing"], found["paused"]) == ("Pause", "Play")
