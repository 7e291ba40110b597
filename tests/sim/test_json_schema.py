# SPDX-License-Identifier: Apache-2.0
"""The JSON schema takes what ``simrun check`` takes, and refuses what it refuses, as far as a schema can tell."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from flitlab.models.registry import names
from flitlab.sim.cli import main
from flitlab.sim.cli.completion import SHELLS
from flitlab.sim.cli.new import SCHEMA, STARTERS, starter
from flitlab.sim.config.diagnostics import ConfigError, Diagnostics, parse_path
from flitlab.sim.config.json_schema import json_schema
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.schema import sections
from flitlab.sim.config.text import load_text
from tests import ROOT

CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
BASE = {
    "schema": 1,
    "name": "base",
    "topology": {"kind": "torus", "dims": [3, 3], "hosts_per_switch": 1},
    "routing": {"kind": "minimal"},
    "switching": {"vcs": 4, "header_ticks": 2},
    "traffic": {"kind": "uniform", "packet_flits": 4},
    "loads": [0.1, 0.2],
    "seeds": [1],
    "measure": {"ticks": 500, "ci": 0.1},
    "ceilings": ["mcf"],
    "outputs": {"figures": ["latency_load"], "formats": ["png"]},
}
COLLECTIVE = {
    "experiment": "collective", "topology": {"kind": "torus", "dims": [3, 3]}, "routing": {"kind": "ecmp"},
    "switching": {"mode": "flow"}, "collective": {"kind": "all_reduce", "size_bytes": 1024},
}  # fmt: skip
GONE = object()


@pytest.fixture(scope="module")
def validator():
    return jsonschema.Draft202012Validator(json_schema())


@pytest.mark.long
def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


def plain(text):
    return load_text(text, "text", Diagnostics()).plain()


def changed(key, value, base=None):
    """The configuration with one key changed, or left out."""
    found = copy.deepcopy(BASE if base is None else base)
    *path, last = parse_path(key)
    inner = found
    for part in path:
        inner = inner[part] if isinstance(part, int) else inner.setdefault(part, {})
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return found


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configurations_are_valid_and_name_the_schema(path, validator):
    text = path.read_text("utf-8")
    found = jsonschema.exceptions.best_match(validator.iter_errors(plain(text)))
    assert found is None, f"{list(found.absolute_path)}: {found.message}"
    comment, _, schema = text.splitlines()[0].partition("$schema=")
    assert comment == "# yaml-language-server: ", f"{path}: the first line names no schema"
    assert (path.parent / schema).resolve() == ROOT / "sim" / "config" / "schema.json"


@pytest.mark.parametrize("kind", STARTERS)
def test_starters_are_valid_and_name_the_schema(kind, validator):
    text = starter(kind, "mine", "mine_edges.txt")
    assert validator.is_valid(plain(text))
    schema = Path(text.splitlines()[0].partition("$schema=")[2])
    assert schema.is_absolute() and schema == SCHEMA


@pytest.mark.long
def test_new_writes_the_schema_that_is_printed(tmp_path):
    """In a process of its own: in this one, other tests may have registered kinds."""
    both = "from flitlab.sim.cli import main; main(['new', 'main', 'a.yaml']); print('PRINTED'); main(['schema'])"
    environment = os.environ | {"FLITLAB_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    said = subprocess.check_output(
        [sys.executable, "-c", both], cwd=tmp_path, env=environment, text=True, encoding="utf-8"
    )
    printed = said.partition("PRINTED\n")[2]
    assert json.loads(printed)["title"] and printed == (tmp_path / "cache" / "schema.json").read_text("utf-8")


def test_keys_are_described():
    """Every key of every section; components and their keys are checked with the documentation."""
    described = {path: field.description for path, model in sections() for path, field in model.model_fields.items()}
    assert len(described) > 100 and all(described.values())
    definitions = json_schema()["$defs"]
    assert all(definitions[f"topology.{kind}"]["description"] for kind in names("topology"))
    assert definitions["MeasureConfig"]["properties"]["ticks"]["anyOf"][0]["description"] == "Window."


RIGHT = [
    ("loads", {"from": 0.1, "to": 0.3, "step": 0.1}), ("loads", 0.2), ("loads", "20%"), ("loads", ["10%", 0.2]),
    ("loads", {"saturation": None}), ("loads", {"adaptive": {"points": 5}, "at": [0.1]}),
    ("measure.ci", "5%"), ("measure.ci", None), ("measure.warmup", "auto"), ("measure.ticks", 1e3),
    ("routing.vc_policy", "hop"), ("routing.vc_policy", {"kind": "layered"}),
    ("topology.dims", {"sweep": [[3, 3], [4, 4]]}),
    ("switching.vcs", {"sweep": [4, 8]}), ("switching.vcs", {"sweep": {"from": 4, "to": 6, "step": 1}}),
    ("routing", {"sweep": [{"kind": "minimal"}, {"kind": "deflection"}]}),
    ("traffic.packet_flits", [{"flits": 4, "share": "50%"}, {"flits": 2, "share": 0.5}]),
    ("cases", [{"label": "a", "topology": {"hosts_per_switch": 2}}, {"label": "b", "routing": {"kind": "dor"}}]),
    ("ceilings", [{"kind": "mcf", "gap": "1%"}]), ("ceilings", ["mcf", "split"]), ("engine", "both"),
    ("topology.failures", {"links": 0.01, "seed": 1}),
    ("traffic", {"classes": [{"name": "a", "kind": "uniform", "vcs": [0, 3]}, {"name": "b", "kind": "uniform"}]}),
    ("traffic", {"kind": "classes", "classes": [{"name": "a", "kind": "uniform", "packet_flits": 3}]}),
    ("switching.priority", "age"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), RIGHT)
def test_what_check_takes_is_valid(key, value, validator, tmp_path):
    config = changed(key, value)
    found = jsonschema.exceptions.best_match(validator.iter_errors(config))
    assert found is None, f"{list(found.absolute_path)}: {found.message}"
    read(tmp_path / "a.yaml", text=yaml.safe_dump(config))


WRONG = [
    ("topology", GONE), ("routing", GONE), ("traffic", GONE), ("topology.kind", "toruss"), ("topology.kind", 3),
    ("topology.kind", GONE), ("topology.dims", GONE), ("topology.dim", [3, 3]), ("topology.dims", "3x3"),
    ("topology.hosts_per_switch", "two"), ("topology.degree", 3), ("topology", "toruss"), ("topology", [1]),
    ("routing.kind", "minimum"), ("routing.select", "best"), ("routing.vc_policy", "hopp"), ("routing.paths", 4),
    ("switching.mode", "vc"), ("switching.vcs", 0), ("switching.vc", 4), ("switching.vcs", 2.5),
    ("switching.link_us", 1),
    ("traffic.kind", "unifrom"), ("traffic.packet_flits", 0), ("traffic.packet_flits", [{"flits": 4}]),
    ("traffic", {"classes": []}), ("traffic", {"classes": [{"kind": "uniform"}]}), ("switching.priority", "old"),
    ("traffic", {"classes": [{"name": "a", "kind": "uniform", "share": 0}]}), ("traffic", {"kind": "classes"}),
    ("traffic.arrivals", "never"), ("traffic.burst", 0.5), ("loads", []), ("loads", [1.5]), ("loads", "many"),
    ("loads", {"from": 0.1, "to": 0.5}), ("loads", {"saturation": {"tolerance": 2}}), ("seeds", []), ("seeds", [-1]),
    ("seeds", [1.5]), ("measure.tick", 100), ("measure.ticks", 0), ("measure.ci", 2),
    ("measure.warmup", "none"),
    ("ceilings", ["mfc"]), ("ceilings", [{"kind": "mcf", "gaps": 1}]), ("engine", "fast"), ("experiment", "sweep"),
    ("outputs.formats", ["gif"]), ("outputs.size", "wide"), ("schema", 2), ("name", 3), ("load", 0.1),
    ("plugins", "a.py"),
    ("switching.link_ns", "5 parsec"), ("measure.ci", "5 percent"), ("cases", []), ("cases", [{"name": "x"}]),
    ("cases", [{"seeds": [1]}]),
    ("transport", {"kind": "tpc"}), ("topology.dims", {"sweep": []}), ("routing", {"sweep": [{"kind": "none"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_what_check_refuses_is_not_valid(key, value, validator, tmp_path):
    config = changed(key, value)
    with pytest.raises(ConfigError):
        read(tmp_path / "a.yaml", text=yaml.safe_dump(config))
    assert not validator.is_valid(config)


@pytest.mark.parametrize(
    ("key", "value", "right"),
    [
        ("collective.size_bytes", "64MB", True), ("collective.size_bytes", "64 MiB", True),
        ("collective.size_bytes", {"from": "1KiB", "to": "1MiB", "per_decade": 1}, True),
        ("switching", {"mode": "datagram", "nic_mbps": "100Gbps"}, True), ("collective.algorithm", "all", True),
        ("collective.size_bytes", "64MW", False), ("switching", {"mode": "datagram", "nic_mbps": "100GHz"}, False),
        ("collective.kind", "all_reduced", False), ("collective.algorithm", "magic", False),
        ("collective", GONE, False),
    ],
)  # fmt: skip
def test_units_have_patterns(key, value, right, validator):
    assert validator.is_valid(changed(key, value, COLLECTIVE)) == right


def test_kinds_of_plugins_are_let_through(validator):
    assert validator.is_valid(changed("plugins", ["mine.py"], changed("topology.kind", "mine")))


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_the_commands(shell, capsys):
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert "simrun" in printed and "export-routing" in printed and "threads" in printed
