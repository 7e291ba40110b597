"""``simrun reproduce``: which rows run, what becomes of one that fails, and the pages."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from flitlab.sim.cli import main
from flitlab.sim.experiment import scoreboard
from flitlab.sim.experiment.scoreboard import NoRowsError, Row
from flitlab.sim.report import reproduction
from tests import ROOT

ROW = """\
# ABC Fig. {n}: the order of a Kautz graph. More of it: <b>.
schema: 1
experiment: metrics
topology: {{kind: kautz, degree: {degree}, diameter: 2}}
published:
  - {{where: "Fig. {n} | left", quantity: switches, value: {value}, why: "counted <wrong>"}}
quick: {{topology.degree: 2}}
"""


@pytest.fixture
def rows(tmp_path):
    """A folder with two rows of one paper and one of another: one agrees, one differs, one cannot be read."""
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "abc-f1.yaml").write_text(ROW.format(n=1, degree=3, value=6))
    (folder / "abc-f2.yaml").write_text(ROW.format(n=2, degree=3, value=7))
    (folder / "xyz-t1.yaml").write_text("topology: {kind: kauz}\n")
    return folder


def reproduce(rows, *words):
    return main(["reproduce", *words, "--configs", str(rows), "--out", "out", "--jobs", "1"])


def record():
    return {row["name"]: row for row in json.loads(Path("out/reproduction.json").read_text())}


def test_all_rows_run_and_a_failing_one_does_not_keep_the_others(rows, capsys):
    assert reproduce(rows) == 1
    out, err = capsys.readouterr()
    assert "1 of 2 published values agree" in out and "[3/3] xyz-t1" in err
    found = record()
    assert [found[name]["published"][0]["verdict"] for name in ("abc-f1", "abc-f2")] == [
        "agrees", "differs: unexplained",
    ]  # fmt: skip
    assert "unknown topology" in found["xyz-t1"]["problem"] and found["xyz-t1"]["code"] == 1
    markdown = Path("out/reproduction.md").read_text()
    assert "### abc-f2" in markdown and "**differs: unexplained**" in markdown and "counted <wrong>" in markdown
    assert "| all | 3 | 2 | 1 | 1 |" in markdown and "\\|" in markdown
    assert "![abc-f1](figures/reproduction/abc-f1.png)" in markdown


def test_one_paper_one_row_and_a_row_that_differs_is_no_failure(rows):
    assert reproduce(rows, "abc-f2") == 0
    assert set(record()) == {"abc-f2"} and "Not run: abc-f1, xyz-t1." in Path("out/reproduction.md").read_text()
    assert reproduce(rows, "abc") == 0
    assert set(record()) == {"abc-f1", "abc-f2"}


def test_what_is_there_is_not_run_again(rows, capsys):
    assert reproduce(rows, "abc-f1") == 0
    ran = Path("out/abc-f1/manifest.json").stat().st_mtime_ns
    assert reproduce(rows, "abc-f1") == 0
    assert "is in out/abc-f1 already" in capsys.readouterr().err
    assert Path("out/abc-f1/manifest.json").stat().st_mtime_ns == ran
    assert reproduce(rows, "abc-f1", "--full") == 0
    assert record()["abc-f1"]["full"] and record()["abc-f1"]["published"][0]["measured"] == "12.0"
    (rows / "abc-f1.yaml").write_text(ROW.format(n=1, degree=4, value=6))
    assert reproduce(rows, "abc-f1", "--full") == 0
    assert record()["abc-f1"]["published"][0]["measured"] == "20.0"


def test_an_interrupted_row_ends_it_and_keeps_the_page(rows, monkeypatch, capsys):
    original = scoreboard.run_row

    def run_row(file, *rest):
        if file.stem == "abc-f2":
            raise KeyboardInterrupt
        return original(file, *rest)

    monkeypatch.setattr(scoreboard, "run_row", run_row)
    assert reproduce(rows) == 130
    assert set(record()) == {"abc-f1"} and "goes on" in capsys.readouterr().err


def test_the_page_is_self_contained(rows):
    reproduce(rows)
    page = Path("out/reproduction.html").read_text()
    loaded = []

    class Links(HTMLParser):
        def handle_starttag(self, tag, attributes):
            loaded.extend(value for name, value in attributes if name in ("src", "href"))

    Links().feed(page)
    assert loaded and all(link.startswith(("data:", "#")) for link in loaded)
    assert page.count("<section") == page.count("</section>") == 3
    assert "counted &lt;wrong&gt;" in page and "<wrong>" not in page


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["abd"], "abd: no paper or row; papers: abc, xyz; rows: abc-f1, abc-f2, xyz-t1; did you mean 'abc'?"),
        (["--configs", "nowhere"], "no rows (*.yaml) in nowhere; --configs DIR says where they are"),
    ],
)
def test_bad_usage(rows, words, text, capsys):
    assert main(["reproduce", "--configs", str(rows), "--out", "out", *words]) == 2
    assert capsys.readouterr().err == f"simrun reproduce: {text}\n"
    assert not Path("out").exists()


def test_a_folder_that_cannot_be_written(rows, capsys):
    Path("out").write_text("a file")
    assert reproduce(rows) == 2
    assert "output folder = out: cannot be written" in capsys.readouterr().err


def test_json_is_one_document(rows, capsys):
    assert reproduce(rows, "abc", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["folder"] == "out" and [row["name"] for row in printed["rows"]] == ["abc-f1", "abc-f2"]


def test_the_rows_of_the_project_are_found_from_anywhere():
    names = {file.stem for file in scoreboard.row_files(None)}
    assert {"uni-f05", "dbg-t1", "sin-f407"} <= names
    with pytest.raises(NoRowsError):
        scoreboard.chosen(scoreboard.row_files(None), ["nothing"])
    several = {file.stem for file in scoreboard.chosen(scoreboard.row_files(None), ["gbu", "uni-f05"])}
    assert several > {"uni-f05", "gbu-jm"} and "uni-f06" not in several


def test_the_page_of_the_documentation_is_that_of_its_record(tmp_path):
    (tmp_path / "figures").symlink_to(ROOT / "docs" / "figures")
    rows = scoreboard.load_rows(ROOT / "docs")
    note = re.search(r"^Not run: (.+)\.$", (ROOT / "docs" / "reproduction.md").read_text(), re.M)
    missing = note[1].split(", ") if note else []
    assert not set(missing) & set(rows)
    ordered = scoreboard.save_rows(tmp_path, rows)
    reproduction.write(tmp_path, ordered, missing)
    for name in ("reproduction.md", "reproduction.json"):
        assert (tmp_path / name).read_text() == (ROOT / "docs" / name).read_text()


def test_titles_and_order():
    abouts = {"zzz-1": "Z", "mut-f01": "MUT Fig. 1 and Theorem 1: a graph. The rest.", "uni-f08": "U. B"}
    rows = {name: Row(name, about, "", True, "", "", 0.0) for name, about in abouts.items()}
    assert rows["mut-f01"].title == "MUT Fig. 1 and Theorem 1: a graph" and rows["zzz-1"].verdict == "failed"
    ordered = scoreboard.save_rows(Path("."), rows)
    assert [row.name for row in ordered] == ["uni-f08", "mut-f01", "zzz-1"]
    assert scoreboard.load_rows(Path(".")) == rows
