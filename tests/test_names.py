# SPDX-License-Identifier: Apache-2.0
"""flitlab has one name, so a user's own ``models``, ``fluid`` and ``sim`` stay the user's."""

import os
import subprocess
import sys

import pytest

from tests import ROOT

SCRIPT = """\
{first}
from flitlab import Experiment
{last}
scenario = {{
    "topology": {{"kind": "torus", "dims": [3, 3]}}, "routing": {{"kind": "dor"}}, "traffic": {{"kind": "uniform"}},
    "loads": [0.1], "seeds": [1, 2], "measure": {{"warmup": 10, "ticks": 20, "ci": None}}, "engine": "reference",
}}
if __name__ == "__main__":
    done = Experiment.load(scenario, ceilings=[]).run("out", jobs=2)
    import models, sim
    print(models.MINE, sim.MINE, len(done.results))
"""


@pytest.fixture
def own(tmp_path):
    """A folder that holds a package ``models`` and a module ``sim`` which are not ours."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("MINE = 'my models'\n")
    (tmp_path / "sim.py").write_text("MINE = 'my sim'\n")
    return tmp_path


def run(folder, *arguments, **more):
    """What Python prints in a folder, with flitlab found as an installed package is: behind the folder's own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_line_in_a_folder_with_models_of_its_own(own):
    assert "Experiment" in run(own, "-c", "from flitlab import Experiment; print(Experiment)")


@pytest.mark.long
@pytest.mark.parametrize("mine", ["first", "last"])
def test_a_script_that_uses_both(own, mine):
    (own / "script.py").write_text(SCRIPT.format(**({"first": "", "last": ""} | {mine: "import models, sim"})))
    assert run(own, "script.py").split("\n")[-2] == "my models my sim 2"


@pytest.mark.long
def test_statements_one_after_the_other(own):
    """As a notebook does: no file, and the folder first on the path."""
    text = SCRIPT.format(first="import models, sim", last="").replace("jobs=2", "jobs=1")
    assert run(own, "-", input=text).split("\n")[-2] == "my models my sim 2"
