# SPDX-License-Identifier: Apache-2.0
"""``simrun reproduce``: which rows run, what becomes of one that fails, the record, and the pages made of it."""

import json
import math
import re
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from flitlab.sim.cli import main
from flitlab.sim.config.reporting import PublishedConfig
from flitlab.sim.experiment.pool import Shard
from flitlab.sim.experiment.published import Claim, Verdict
from flitlab.sim.experiment.scoreboard import run as row_run
from flitlab.sim.experiment.scoreboard.file import NoRowsError, RowFile, row_files, selected
from flitlab.sim.experiment.scoreboard.record import RECORD, DamagedRecord, Ran, decides, load_record, save_record
from flitlab.sim.experiment.scoreboard.rows import Row, Score, Value, rows_of
from flitlab.sim.experiment.scoreboard.run import shard_of
from flitlab.sim.report import reproduction
from tests import ROOT, long_after

ROW = """\
# ABC Fig. {n}: the order of a Kautz graph. More of it: <b>.
#
# What differs:
# * the _order_, which
#   counts `switches | hosts`
schema: 1
experiment: metrics
topology: {{kind: kautz, degree: {degree}, diameter: 2}}
published:
  - {{where: "Fig. {n} | left", quantity: switches, value: {value}, why: "counted <wrong>"{more}}}
{end}outputs: {{html: false, formats: [png]}}
quick: {{topology.degree: 2}}
"""

CHOSEN = """\
chosen:
  - {setting: degree, ours: "2", why: the paper says few, others: [{what: "3", gives: "12 switches"}]}
"""


def row(n, degree, value, more="", end=""):
    return ROW.format(n=n, degree=degree, value=value, more=more, end=end)


@pytest.fixture
def rows(tmp_path):
    """A folder with two rows of one paper and one of another: one agrees, one differs, one cannot be read."""
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "abc-f1.yaml").write_text(row(1, 3, 6))
    (folder / "abc-f2.yaml").write_text(row(2, 3, 7))
    (folder / "xyz-t1.yaml").write_text("topology: {kind: kauz}\n")
    return folder


def reproduce(rows, *words, out="out"):
    return main(["reproduce", *words, "--configs", str(rows), "--out", out, "--jobs", "1"])


def record(out="out"):
    return load_record(Path(out))


def change_manifest(folder, **row):
    """Let the manifest of a run say something else of its row, and of how it ended."""
    manifest = Path(folder) / "manifest.json"
    kept = json.loads(manifest.read_text())
    status = row.pop("status", kept["status"])
    manifest.write_text(json.dumps(kept | {"status": status, "row": kept["row"] | row}))


def value(name):
    (found,) = record()[name].measured
    return found.value


def page(name="reproduction/abc", out="out"):
    return Path(out, f"{name}.md").read_text().replace("&nbsp;", " ")


def test_all_rows_run_and_a_failing_one_does_not_keep_the_others(rows, capsys):
    assert reproduce(rows) == 1
    out, err = capsys.readouterr()
    assert "1 of 2 numbers agree" in out and "3 rows to run: 3 of unknown cost" in err and "[3/3] xyz-t1" in err
    found = record()
    assert (value("abc-f1"), value("abc-f2")) == (6, 6)
    assert "unknown topology" in found["xyz-t1"].problem and found["xyz-t1"].code == 1
    assert found["abc-f1"].cpu_s > 0 and found["abc-f1"].machine
    assert "| **all** | 3 | 1 of 2 | - | 0 | 0 | 1 | 0 | 1 |" in page("reproduction")
    assert (
        "[abc-f2](reproduction/abc.md#abc-f2) | Fig. 2 \\| left | 7 | 6 | **unexplained**: Counted &lt;wrong>"
        in page("reproduction")
    )
    assert "## abc-f2" in page() and "**differs: unexplained** | 1 |" in page() and "1. Counted &lt;wrong>" in page()
    assert re.search(r"!\[.+\]\(../figures/reproduction/abc-f1.png\)", page())
    assert Path("out/figures/reproduction/abc-f1.png").exists() and "unknown topology" in page("reproduction/xyz")


@pytest.mark.long
def test_a_quick_version_prints_no_verdict_that_the_full_size_contradicts(tmp_path, capsys):
    """Kautz graphs of degree 2 (quick) have 6 switches and of degree 3 have 12: published are 6, 12 and 7."""
    rows = tmp_path / "configs/paper"
    rows.mkdir(parents=True)
    for n, published in enumerate((6, 12, 7), 1):
        (rows / f"abc-f{n}.yaml").write_text(row(n, 3, published))
    assert reproduce(rows, "--full", out=str(tmp_path / "docs")) == 0
    assert [value.verdict for row in rows_of(row_files(rows), record(tmp_path / "docs")) for value in row.values] == [
        Verdict.UNEXPLAINED, Verdict.AGREES, Verdict.UNEXPLAINED
    ]  # fmt: skip
    assert reproduce(rows) == 0
    expected = [Verdict.NOT_COMPARABLE, Verdict.NOT_COMPARABLE, Verdict.UNEXPLAINED]
    assert [value.verdict for row in rows_of(row_files(rows), record()) for value in row.values] == expected
    for n, one in enumerate(expected, 1):
        capsys.readouterr()
        assert main([str(rows / f"abc-f{n}.yaml"), "--quick", "--out", f"run{n}", "--jobs", "1"]) == 0
        assert one in capsys.readouterr().out
        assert json.loads(Path(f"run{n}/manifest.json").read_text())["published"][0]["verdict"] == one


def test_all_that_a_file_says_is_on_the_page(rows):
    more = ", tried: [{what: other links, gives: '8'}], cause: slip"
    (rows / "abc-f2.yaml").write_text(row(2, 3, 7, more, CHOSEN))
    reproduce(rows, "abc")
    tree = ElementTree.fromstring(f"<page>{MarkdownIt().enable('table').render(page())}</page>")
    texts = ["".join(part.itertext()).strip() for part in tree.iter() if part.tag in ("p", "li", "td", "h2")]
    assert "ABC Fig. 2: the order of a Kautz graph. More of it: <b>." in texts
    assert "the _order_, which counts switches | hosts" in texts and "What differs:" in texts
    assert "Tried: other links: 8" in texts and "differs: the paper slips" in texts
    assert texts[-4:] == ["degree", "2", "The paper says few", "3: 12 switches"]
    assert "| [abc-f2](reproduction/abc.md#abc-f2) | degree | 2 |" in page("reproduction")


@pytest.mark.long
def test_a_row_that_has_no_file_leaves_the_record(rows):
    reproduce(rows, "abc")
    (rows / "abc-f2.yaml").unlink()
    assert reproduce(rows, "--pages") == 0
    assert set(record()) == {"abc-f1"} and "abc-f2" not in page()
    assert [file.name for file in Path("out/figures/reproduction").iterdir()] == ["abc-f1.png"]


@pytest.mark.long
def test_a_quick_version_does_not_replace_the_size_of_the_paper(rows):
    reproduce(rows, "abc-f1", "--full")
    reproduce(rows, "abc-f1", out="quick")
    assert reproduce(rows, "--pages", "quick") == 0
    assert value("abc-f1") == 12


def test_pages_follow_the_files_without_a_run(rows):
    reproduce(rows, "abc")
    before = record()
    (rows / "abc-f2.yaml").write_text(row(2, 3, 6, ", tolerance: 0.1"))
    assert reproduce(rows, "--pages") == 0
    assert record() == before and "| 6 ± 0.1 | 6 | agrees |" in page()


@pytest.mark.parametrize(
    "change", long_after(1, [("degree: 3", "degree: 4"), ("degree: 2}", "degree: 1}"), ("switches", "channels")])
)
def test_what_ran_otherwise_is_not_shown(rows, change):
    reproduce(rows, "abc")
    file = rows / "abc-f2.yaml"
    file.write_text(file.read_text().replace(*change))
    full = change[0] == "degree: 3"  # which the quick version does not have
    assert reproduce(rows, "--pages") == 0
    assert ("Not run since its file changed: [abc-f2]" in page("reproduction")) is not full
    assert page("reproduction").count("[abc-f2](reproduction/abc.md#abc-f2) | Fig. 2") == full


@pytest.mark.long
def test_one_paper_one_row_and_a_row_that_differs_is_no_failure(rows):
    assert reproduce(rows, "abc-f2") == 0
    assert set(record()) == {"abc-f2"}
    assert "Not run: [abc-f1](reproduction/abc.md#abc-f1), [xyz-t1](reproduction/xyz.md#xyz-t1)." in page(
        "reproduction"
    )
    assert reproduce(rows, "abc") == 0
    assert set(record()) == {"abc-f1", "abc-f2"}


def test_what_is_there_is_not_run_again(rows, capsys):
    def ran():
        return Path("out/abc-f1/manifest.json").stat().st_mtime_ns

    assert reproduce(rows, "abc-f1") == 0
    change_manifest("out/abc-f1", cpu_s=100.0)
    first = ran()
    (rows / "abc-f1.yaml").write_text(row(1, 3, 7, ", tolerance: 2"))
    assert reproduce(rows, "abc-f1") == 0
    assert "1 of 1 rows are already in out" in capsys.readouterr().err and ran() == first
    (rows / "abc-f1.yaml").write_text(row(1, 3, 7, "}\n  - {where: Fig. 1, quantity: diameter, value: 2"))
    assert reproduce(rows, "abc-f1") == 0
    assert ran() > first and len(record()["abc-f1"].measured) == 2 and record()["abc-f1"].cpu_s >= 100
    (rows / "abc-f1.yaml").write_text(row(1, 3, 6))
    assert reproduce(rows, "abc-f1", "--full") == 0
    assert record()["abc-f1"].full and value("abc-f1") == 12
    (rows / "abc-f1.yaml").write_text(row(1, 4, 6))
    assert reproduce(rows, "abc-f1", "--full") == 0
    assert value("abc-f1") == 20


@pytest.mark.long
def test_a_record_that_is_lost_is_made_again_of_the_runs(rows):
    reproduce(rows, "abc")
    before = record()
    Path("out/reproduction.json").write_text("[]")
    assert reproduce(rows, "abc") == 0
    assert record() == before


@pytest.mark.long
def test_shards_run_all_rows_and_are_put_together(rows, capsys):
    assert reproduce(rows, "abc", "--shard", "1/2", out="a") == reproduce(rows, "abc", "--shard", "2/2", out="b") == 0
    assert len(record("a")) == len(record("b")) == 1
    assert reproduce(rows, "--pages", "a", "b") == 0
    assert record() == record("a") | record("b") and Path("out/figures/reproduction/abc-f1.png").exists()
    capsys.readouterr()
    assert reproduce(rows, "--pages", "rows") == 2
    assert capsys.readouterr().err == "simrun reproduce: rows: has no row that this version has run\n"
    assert reproduce(rows, "--pages", "rows", out="c") == 2 and not Path("c").exists()


def test_shards_cost_about_the_same():
    files = [Path(f"abc-{name}.yaml") for name in "pqrstu"]
    costs = {"abc-p": 60.0, "abc-q": 30.0, "abc-r": 20.0, "abc-s": 10.0, "abc-t": 25.0}  # abc-u: 25, the median
    parts = [shard_of(files, Shard(i, 3), costs) for i in (1, 2, 3)]
    assert sorted(chain(*parts)) == files
    assert [sum(costs.get(file.stem, 25.0) for file in part) for part in parts] == [60, 60, 50]


def test_a_run_that_has_not_ended_is_no_result(rows):
    reproduce(rows, "abc", out="a")
    change_manifest("a/abc-f1", status="interrupted", cpu_s=100.0)
    assert reproduce(rows, "--pages", "a") == 0
    assert set(record()) == {"abc-f2"}
    assert reproduce(rows, "abc", out="a") == 0
    assert record("a")["abc-f1"].cpu_s >= 100, "the seconds of both runs"


def test_an_interrupted_row_ends_it_and_keeps_the_page(rows, monkeypatch, capsys):
    original = row_run.run_row

    def run_row(file, *rest):
        if file.stem == "abc-f2":
            raise KeyboardInterrupt
        return original(file, *rest)

    monkeypatch.setattr(row_run, "run_row", run_row)
    assert reproduce(rows) == 130
    assert set(record()) == {"abc-f1"} and "resumes" in capsys.readouterr().err
    assert "## abc-f1" in page()


def test_the_page_is_self_contained(rows):
    reproduce(rows)
    text = Path("out/reproduction.html").read_text()
    loaded, places = [], []

    class Links(HTMLParser):
        def handle_starttag(self, tag, attributes):
            loaded.extend(value for name, value in attributes if name in ("src", "href"))
            places.extend(f"#{value}" for name, value in attributes if name == "id")

    Links().feed(text)
    assert loaded and all(link.startswith("data:") or link in places for link in loaded)
    assert "Counted &lt;wrong&gt;" in text and "<wrong>" not in text and "<code>switches | hosts</code>" in text


def entry(value=1.0, **more):
    return PublishedConfig(where="x", value=value, **more)


def test_the_score_counts_numbers_and_orders_apart():
    values = [
        Value(entry(2, quantity="aspl"), "", 2.0),
        Value(entry(2, quantity="aspl"), "", 3.0),
        Value(entry(2, quantity="aspl", cause="setting", why="tested"), "", None),
        Value(entry(1, quantity="aspl", compare="less_than"), "", 0.5),
        Value(entry(2, quantity="aspl", comparable=False, why="other"), "", 3.0),
    ]
    row = Row(RowFile("a-1"), None)
    row.__dict__["values"] = values
    score = Score.of([row, row])
    assert (score.ratio_text(Claim.NUMBER), score.ratio_text(Claim.ORDER)) == ("2 of 6", "2 of 2")
    assert [score.having(one) for one in (Verdict.UNEXPLAINED, Verdict.NOT_MEASURED, Verdict.NOT_COMPARABLE)] == [2] * 3


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
    (found,) = printed["rows"][1]["published"]
    assert (found["measured"], found["claim"], found["verdict"]) == (6, "number", "differs: unexplained")


def test_the_rows_of_the_project_are_found_from_anywhere():
    names = {file.stem for file in row_files(None)}
    assert {"uni-f05", "dbg-t1", "sin-f407"} <= names
    with pytest.raises(NoRowsError):
        selected(row_files(None), ["nothing"])
    several = {file.stem for file in selected(row_files(None), ["gbu", "uni-f05"])}
    assert several > {"uni-f05", "gbu-jm"} and "uni-f06" not in several


@pytest.mark.long
def test_the_pages_of_the_documentation_are_those_of_its_record_and_of_the_files():
    kept, files = load_record(ROOT / "docs"), row_files(ROOT / "configs" / "paper")
    rows = rows_of(files, kept)
    assert not [row.name for row in rows if row.state], "rows that have not run as their files are"
    assert set(kept) == {row.name for row in rows} and all(ran.full for ran in kept.values())
    for name, text in reproduction.texts(rows).items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, f"simrun reproduce --pages --out docs writes {name}"
    pictures = {file for ran in kept.values() for file in ran.figures}
    assert {file.name for file in (ROOT / "docs" / reproduction.FIGURES).iterdir()} == pictures


def test_titles_and_order(tmp_path):
    for name in ("zzz-1", "mut-f01", "uni-f08"):
        (tmp_path / f"{name}.yaml").write_text(f"# {name}: a graph, cf. Fig. 1 vs. RRG. The rest.\nseeds: [1]\n")
    rows = rows_of(sorted(tmp_path.glob("*.yaml")), {})
    assert [row.title for row in rows] == [
        f"{name}: a graph, cf. Fig. 1 vs. RRG" for name in ("uni-f08", "mut-f01", "zzz-1")
    ]


def test_what_an_entry_says_does_not_decide_what_is_measured():
    def key(value=1.0, quantity="aspl", **more):
        return decides(entry(value, quantity=quantity, **more))

    said = {
        "tolerance": "5%",
        "why": "read",
        "compare": "at_most",
        "claim": "order",
        "cause": "slip",
        "comparable": False,
    }
    assert {key(2), key(**said), key(tried=[{"what": "a", "gives": "b"}])} == {key()}
    others = [{"quantity": "diameter"}, {"over": "max"}, {"over": "min"}, {"scenario": "a"}, {"relative_to": "a"}]
    assert len({key(), *(key(**other) for other in others)}) == 6 and key(quantity=None) != key()


def test_the_record_is_read_as_it_was_written(tmp_path):
    rows = {
        "b": Ran("b", True, "2026", "x"),
        "a": Ran("a", False, "2026", "x", figures={"a.png": "A"}, problem="p", code=1),
    }
    save_record(tmp_path, rows)
    assert load_record(tmp_path) == rows


@pytest.mark.parametrize(
    ("key", "value"),
    [("cpu_s", -1.0), ("cpu_s", math.nan), ("name", "../a"), ("figures", {"../../a.png": "A"}), ("more", 1)],
)
def test_a_record_that_does_not_say_what_rows_gave_is_refused(key, value, tmp_path):
    save_record(tmp_path, {"a": Ran("a", True, "2026", "x")})
    file = tmp_path / RECORD
    (row,) = json.loads(file.read_text())
    file.write_text(json.dumps([{**row, key: value}]))
    with pytest.raises(DamagedRecord, match="is damaged"):
        load_record(tmp_path)


def test_a_record_has_a_row_once(tmp_path):
    save_record(tmp_path, {"a": Ran("a", True, "2026", "x")})
    file = tmp_path / RECORD
    file.write_text(json.dumps(json.loads(file.read_text()) * 2))
    with pytest.raises(DamagedRecord, match="is damaged"):
        load_record(tmp_path)
