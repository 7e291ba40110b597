# SPDX-License-Identifier: Apache-2.0
"""Every command and code block of README and docs is run, or stands below with the reason why it is not.

A block is a fenced one, of a known language, or an indented one: commands if it begins with the name of a program, else
a formula or a picture in characters. Blocks of a page run in their order in one folder. A ``title`` makes a block a
file there. Text that follows commands is what they print; ``...`` stands for anything.
"""

import ast
import contextlib
import doctest
import io
import json
import re
import runpy
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import matplotlib.pyplot as plt
import pytest
import yaml
from markdown_it import MarkdownIt

import flitlab.models.registry as registry
from flitlab.sim.cli import main
from flitlab.sim.cli.parser import commands
from flitlab.sim.config.pipeline import read
from flitlab.sim.design.reader import read_design
from flitlab.sim.experiment.scoreboard.rows import PAPERS
from flitlab.sim.judge.claim import read_claim
from flitlab.sim.measure.columns import registry as columns
from flitlab.sim.report.figures import registry as figures
from tests import ROOT

DOCS = ROOT / "docs"

ELSEWHERE = {
    "docs/topologies.md": "its blocks are the examples of the families, which tests/models/test_topologies.py builds",
    **{
        f"docs/reproduction/{paper}.md": "its commands are the files of configs/paper, which .ci/run checks; hours"
        for paper in PAPERS
    },
}
"""Pages whose blocks are not run here, and why."""

NOT_RUN = {
    "pip install": ".ci/run installs the project before the tests",
    "pytest": "these are the tests",
    "simrun configs/uniform_mddp.yaml": "minutes; .ci/run checks every file of configs/",
    "simrun configs/paper/": "minutes to hours; the same",
    "simrun configs/new_results.yaml": "half an hour; the same",
    "python docs/new_results.py": "the same",
    "python benchmarks/run_all.py": "measures for minutes, and writes into docs; tests/test_benchmarks.py runs it",
    "simrun reproduce uni-f05 --full": "minutes to hours",
    "simrun reproduce --pages runs/paper": "takes what that has left",
    "simrun configs/jellyfish_mptcp_quick.yaml": "its transports compile for a minute; the same",
    "simrun configs/flow_completion_quick.yaml": "the same",
    "simrun FILE --cluster": "there is no cluster; tests/sim/test_cluster.py starts one",
    "simrun worker --shard $SLURM_ARRAY_TASK_ID/20": "a job of SLURM; the line without it is run",
    "dask ": "starts a cluster",
    "ssh ": "there is no other machine",
    "simrun simgrid": "needs SimGrid; tests/sim/test_simgrid.py runs it where it is installed",
    "apt-get": "the same",
}
"""How a command begins that is not run, and why. The configurations among its arguments must be there all the same."""

PROGRAMS = ("simrun", "pip", "python", "python3", "pytest", "mkdocs", "apt-get", "cp", "for", "cd", "export")
"""An indented block that begins with one of these is commands."""

LANGUAGES = ("yaml", "sh", "python", "text")

BASE = {
    "topology": {"kind": "rrg", "n": 16, "degree": 4, "seed": 1},
    "routing": {"kind": "minimal"},
    "switching": {"vcs": 8},
    "traffic": {"kind": "uniform"},
    "loads": [0.1],
    "seeds": [1],
    "measure": {"warmup": 100, "ticks": 200, "ci": None},
    "ceilings": ["bounds"],
    "outputs": {"figures": []},
}
"""What a configuration in a page leaves out that shows but some keys; also what FILE stands for."""

EVERY_PAGE = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PAGES = [path for path in EVERY_PAGE if str(path.relative_to(ROOT)) not in ELSEWHERE]

LONG = {"README.md"} | {
    f"docs/{name}.md"
    for name in (
        "budget", "close_the_gap", "cluster", "collectives", "compare", "design", "experiments", "gallery", "judge",
        "report", "routing", "tutorial",
    )
}  # fmt: skip
LONG |= {
    f"docs/howto/{name}.md"
    for name in (
        "add_to_paper",
        "all_reduce",
        "booksim",
        "buffers",
        "choose",
        "energy",
        "figure",
        "plausible",
        "python",
        "reproduce",
        "routing",
        "slow_link",
        "spine_down",
        "teach",
        "topology",
        "traffic",
        "traffic_from_file",
    )
}
"""Pages whose commands take seconds, which ``pytest -m long`` runs; those that users read first are not among them."""


@dataclass(frozen=True)
class Block:
    """One block: its language ('' if indented), the file it is ('' if none), its text and line."""

    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    found = []
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type in ("fence", "code_block"):
            language, _, rest = token.info.partition(" ")
            title = re.search(r'title="(.+?)"', rest)
            found.append(Block(language, title[1] if title else "", token.content, token.map[0] + 1))
    return found


def is_commands(block: Block) -> bool:
    """Whether a block is to be typed into a shell."""
    words = block.text.split()
    return block.language == "sh" or (not block.language and bool(words) and words[0] in PROGRAMS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The run folders of all pages: what several of them run is simulated once."""
    return tmp_path_factory.mktemp("docs") / "runs"


@pytest.fixture
def here(tmp_path, monkeypatch, runs):
    """A folder like the project's; what pages register is forgotten again."""
    for name in ("configs", "docs", "models"):
        (tmp_path / name).symlink_to(ROOT / name)
    runs.mkdir(exist_ok=True)
    (tmp_path / "runs").symlink_to(runs)
    for example in (DOCS / "examples").iterdir():
        (tmp_path / example.name).symlink_to(example)
    (tmp_path / "FILE.yaml").write_text(yaml.safe_dump(BASE))
    monkeypatch.chdir(tmp_path)
    known = {
        category: {kind: registry.spec_class(category, kind) for kind in registry.names(category)}
        for category in registry.CATEGORIES
    }
    monkeypatch.setattr(registry, "_registered", known)
    columns.columns("packets")
    monkeypatch.setattr(columns, "_registered", {table: dict(found) for table, found in columns._registered.items()})
    figures.figures()
    monkeypatch.setattr(figures, "_registered", dict(figures._registered))
    modules = set(sys.modules)
    plt.switch_backend("Agg")
    yield tmp_path
    plt.close("all")
    for name in set(sys.modules) - modules:
        if name.startswith("flitlab_plugin_"):  # or it would not register again
            del sys.modules[name]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.long if str(page.relative_to(ROOT)) in LONG else ()) for page in PAGES],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_blocks_of(page, here):
    namespace, printed = {}, None
    for block in blocks(page):
        place = f"{page.relative_to(ROOT)}:{block.line}"
        assert block.language in ("", *LANGUAGES), f"{place}: a block is one of {', '.join(LANGUAGES)}"
        if block.title:
            (here / block.title).write_text(block.text)
        if is_commands(block):
            printed = shell(block.text, place)
            continue
        if block.language == "python":
            namespace = python(block, here, namespace)
        elif block.language == "yaml":
            configuration(block.text, block.title or place)
        elif block.language == "text" and not block.title and printed is not None:
            same = doctest.OutputChecker().check_output(
                block.text, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            assert same, f"{place}: the commands above print\n{printed}"
        else:
            lost = [line for line in block.text.splitlines() if line.split()[:1] == ["simrun"]]
            assert not lost, f"{place}: commands in a block that is not run: {lost}"
        printed = None


def python(block: Block, here: Path, namespace: dict) -> dict:
    """Runs a block with what the blocks before it defined; a file, since kernels are compiled from one."""
    path = here / (block.title or f"block_{block.line}.py")
    path.write_text(block.text.replace("/full/path/of/", f"{DOCS}/examples/"))
    with contextlib.redirect_stdout(io.StringIO()):
        return runpy.run_path(str(path), init_globals=namespace, run_name="page")


def configuration(text: str, place: str) -> None:
    """Reads a claim, a configuration, or a part of one on top of BASE."""
    given = yaml.safe_load(text)
    if "reported" in given:
        read_claim(place)
        return
    if given.get("experiment") == "design":
        read_design(place)
        return
    simulates = given.get("experiment", "load_sweep") == "load_sweep"
    datagram = isinstance(given.get("switching"), dict) and given["switching"].get("mode") == "datagram"
    base = {key: value for key, value in BASE.items() if simulates or key in ("topology", "traffic")}
    if datagram:
        base = {key: base[key] for key in ("topology", "traffic")}
    elif given.get("experiment") in ("application", "collective"):
        base = {key: BASE[key] for key in ("topology", "routing")}
    elif simulates and "loads" in given:
        base.pop("ceilings")
    if given.get("traffic", {}).get("kind") == "batch":
        base.pop("loads")
    read(place if (Path.cwd() / place).exists() else "FILE.yaml", text=yaml.safe_dump({**base, **given}))


def shell(text: str, place: str) -> str:
    """Runs commands; what they print."""
    printed = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        for command in filter(None, line.split(" && ")):
            if command.strip().partition(" ")[0].startswith("#"):
                continue
            reason = next((begin for begin in NOT_RUN if command.strip().startswith(begin)), None)
            if reason is None:
                printed.append(run(command, place))
            else:
                named = [word for word in shlex.split(command, comments=True) if word.startswith("configs/")]
                assert all(Path(word).exists() for word in named), f"{place}: {command}: there is no such file"
    return "".join(printed)


def run(command: str, place: str) -> str:
    """Runs a command of simrun here; a comment may say with which exit code it ends."""
    expected = re.search(r"# exit code (\d+)", command)
    words = [{"FILE": "FILE.yaml"}.get(word, word) for word in shlex.split(command, comments=True)]
    assert words[0] == "simrun", f"{place}: {command}: not a command that is run here"
    takes_jobs = {name for name, parser in commands().items() if "--jobs" in parser.format_help()}
    if (words[1] if words[1] in commands() else "run") in takes_jobs and "--jobs" not in words:
        words += ["--jobs", "1"]
    if "DIR" in words and not Path("DIR").exists() and not {"--out", "--save", "--verify"} & set(words):
        main(["FILE.yaml", "--out", "DIR", "--jobs", "1"])
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = main(words[1:])
        except SystemExit as end:  # argparse
            code = end.code
    assert code == (int(expected[1]) if expected else 0), f"{place}: {command}: exit code {code}\n{errors.getvalue()}"
    return output.getvalue()


def test_reasons_are_of_commands_that_exist():
    text = "\n".join(block.text for page in PAGES for block in blocks(page))
    assert not [begin for begin in NOT_RUN if not re.search(rf"(^|&& ){re.escape(begin)}", text, re.M)]
    assert all((ROOT / page).exists() for page in ELSEWHERE)


def test_tables_of_keys_are_those_of_the_code():
    """``python docs/tables.py`` writes them."""
    tables = runpy.run_path(str(DOCS / "tables.py"))
    assert tables["PAGE"].read_text("utf-8") == tables["written"]()


def test_the_site_has_a_table_of_the_columns_of_every_table():
    tables = runpy.run_path(str(DOCS / "tables.py"))
    pages = [(DOCS / name).read_text("utf-8") for name in ("results.md", "datagram.md", "applications.md")]
    text = "\n".join(map(tables["with_columns"], pages))
    for table in set(get_args(columns.Table)) - {"metrics"}:
        assert tables["table"](table) in text and all(f"| `{name}` |" in text for name in columns.columns(table))


def test_links_of_the_reference_lead_to_pages():
    """Docstrings and meanings of columns name pages as from their own place; mkdocs reports anchors."""
    pytest.importorskip("mkdocs")
    from docs.reference import LISTED, components

    missing = [
        f"{category}: {link}"
        for category in LISTED
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", components(category))
        if not (DOCS / "reference" / link).is_file() and link.removesuffix(".md") not in LISTED
    ]
    assert not missing


def test_tables_of_speed_are_what_was_measured():
    """``python docs/performance.py`` writes them; every benchmark has one."""
    page = runpy.run_path(str(DOCS / "performance.py"))
    assert page["PAGE"].read_text("utf-8") == page["written"]()
    shown = {place[2] for place in page["PLACE"].finditer(page["PAGE"].read_text("utf-8"))}
    assert shown == {path.stem.removeprefix("bench_") for path in (ROOT / "benchmarks").glob("bench_*.py")}


WIDER = {
    ("Slim Fly 1058", "random_matching"): 0.006, ("Fat tree 980", "longest_matching"): 0.006,
    ("Fat tree 980", "random_matching"): 0.012, ("Dragonfly 4020", "all_to_all"): 0.02,
    ("MDDP 4096", "all_to_all"): 0.02,
}  # fmt: skip
"""Intervals of new results that are wider than those that were asked for, as their page says."""


def test_new_results_are_those_of_their_table():
    """``python docs/new_results.py`` writes them; they are of networks and demands of the configuration."""
    page = runpy.run_path(str(DOCS / "new_results.py"))
    assert page["PAGE"].read_text("utf-8") == page["written"]()
    found = {(row["network"], row["traffic"]): row for row in page["rows_of"](page["TABLE"])}
    assert found.keys() == {(page["network_of"](case), traffic["kind"]) for case, traffic in page["scenarios"]()}
    for (_, traffic), row in found.items():
        least, most, tub = (float(row[name]) for name in ("lower", "upper", "tub"))
        wider = WIDER.get((row["network"], traffic), 0.003 if int(row["switches"]) < 2000 else 0.01)
        assert least <= most <= (1 + wider) * least + 2e-4  # both ends are rounded outwards
        assert traffic != "longest_matching" or least <= tub


def test_every_command_is_in_the_readme():
    page = (ROOT / "README.md").read_text()
    assert not [name for name in commands() if name != "run" and f"`simrun {name}" not in page]


@pytest.mark.long
@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_gives_what_it_shows(path, here):
    """Runs the cells one after another; numbers in recorded tables are compared, pictures only drawn."""
    namespace = {"__name__": "page"}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        shown = run_cell("".join(cell["source"]), namespace)
        recorded = "".join("".join(out.get("data", {}).get("text/plain", [])) for out in cell["outputs"])
        if recorded and "Figure" not in recorded:
            assert numbers(str(shown)) == numbers(recorded), cell["source"]


def run_cell(source: str, namespace: dict):
    """Executes a cell; the value of its last line, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


def numbers(text: str) -> list[str]:
    """The numbers in a text."""
    return re.findall(r"-?\d+\.?\d*", text)
