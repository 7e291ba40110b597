# SPDX-License-Identifier: Apache-2.0
"""Plugins that do what no plugin should: every exception of theirs, and every exit, is one line and exit code 2."""

from pathlib import Path

import pytest

from flitlab.models.registry import _registered
from flitlab.sim.cli import main

CONFIG = """\
topology: {kind: odd_one}
routing: {kind: minimal}
traffic: {kind: uniform}
loads: [0.1]
ceilings: []
measure: {warmup: 10, ticks: 20, ci: null}
engine: reference
outputs: {figures: [], html: false}
plugins: [odd.py]
"""

HEAD = """\
import sys
from typing import Annotated
from pydantic import AfterValidator
from flitlab.models.registry import make, register
from flitlab.models.topology.spec import TopologySpec

class Strange(BaseException):
    pass

def stop(*_, **__):
    HOW

"""

KIND = """\
@register("topology", "odd_one")
class OddOne(TopologySpec):
    '''Odd.'''
    size: Annotated[int, AfterValidator(VALIDATOR)] = 3
    def graph(self):
        GRAPH
        return make("topology", kind="torus", dims=[3, 3]).graph()
    MORE
"""

PLACES = {
    "import": ("stop()\n" + KIND, "plugins[0] = odd.py: cannot be loaded: "),
    "build": (KIND.replace("GRAPH", "stop()"), "topology: could not be built: "),
    "check": (KIND.replace("VALIDATOR", "lambda value: stop()"), "topology: could not be checked: "),
    "repr": (KIND.replace("MORE", "__repr__ = stop"), "plugins = [odd.py]: what they register could not be built: "),
    "dump": (KIND.replace("MORE", "model_dump = stop"), "plugins = [odd.py]: what they register could not be built: "),
}
HOWS = {
    "sys.exit(7)": "SystemExit: 7 (",
    "raise SystemExit": "SystemExit (",
    "raise Strange('x')": "Strange: x (",
    "raise RuntimeError('a\\nb')": "RuntimeError: a b (",
}


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """Writes the plugin and the configuration."""
    monkeypatch.chdir(tmp_path)

    def write(text, how="pass"):
        text = text.replace("VALIDATOR", "int").replace("GRAPH", "pass").replace("MORE", "pass")
        Path("odd.py").write_text(HEAD.replace("HOW", how) + text)
        Path("c.yaml").write_text(CONFIG.replace("odd_one}", "odd_one, size: 4}"))

    yield write
    _registered["topology"].pop("odd_one", None)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("place", PLACES)
def test_a_plugin_that_ends_the_process(odd, place, how, capsys):
    text, problem = PLACES[place]
    odd(text, how)
    assert main(["c.yaml", "--out", "run", "--jobs", "1"]) == 2
    out, err = capsys.readouterr()
    assert problem + HOWS[how] in err and "odd.py:" in err and not out and "Traceback" not in err
    assert not Path("run").exists()


def test_a_missing_file_of_a_plugin_is_not_a_missing_plugin(odd, capsys):
    odd("open('data.csv')\n")
    assert main(["list", "--plugin", "odd.py"]) == 2
    assert "cannot be loaded: FileNotFoundError" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_plugin_that_exits_in_a_point_fails_the_point(odd, jobs, capsys):
    odd(KIND + "\nimport flitlab.sim.measure.measure as door\ndoor.measure = stop\n", "sys.exit(0)")
    with pytest.MonkeyPatch.context() as patch:
        import flitlab.sim.measure.measure as door

        patch.setattr(door, "measure", door.measure)  # to be put back
        assert main(["c.yaml", "--out", "run", "--jobs", jobs]) == 1
    assert "failed: SystemExit: 0 (" in capsys.readouterr().err


def test_an_interruption_is_none(odd, capsys):
    odd("raise KeyboardInterrupt\n")
    assert main(["c.yaml"]) == 130
