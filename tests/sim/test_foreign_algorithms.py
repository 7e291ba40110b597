# SPDX-License-Identifier: Apache-2.0
"""Whatever a user's own algorithm of a collective gives, a run says what is wrong with it and does not crash."""

import textwrap

import pytest

from flitlab.sim.cli import main

PLUGIN = '''
import numpy as np

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Plan
from flitlab.models.application.builder import Builder
from flitlab.models.registry import register


@register("algorithm", "{name}")
class {name}(AlgorithmSpec):
    """It is given by a user who made a mistake."""

    collectives = ("all_gather",)

    def plan(self, question, once):
        builder = Builder(question.count)
        builder.begin("step")
        messages = builder.declare([0, 1], [1, 0], 8)
        {body}
'''

PASSED = "builder.send(messages); builder.receive(messages); "

FAULTS = {
    "foreign_raises": ("raise RuntimeError('no way')", "could not be built: RuntimeError: no way"),
    "foreign_leaves": ("raise SystemExit(0)", "could not be built: SystemExit"),
    "foreign_nothing": ("return None", "plan() must return a Plan, not NoneType"),
    "foreign_places": (PASSED + "return Plan(builder.build(), np.full(question.count, 99))", "rank 0 is on host 99"),
    "foreign_ranks": ("return Plan(Builder(2).build(), np.arange(2))", "the program has 2 ranks, and the collective 9"),
    "foreign_numbers": (
        PASSED + "return Plan(builder.build(), np.arange(question.count), trees='two')", "trees must be a whole number",
    ),
    "foreign_writes": (
        PASSED + "question.topology.capacity[:] = 5; return Plan(builder.build(), np.arange(question.count))",
        "plan() changes the topology",
    ),
    "foreign_waits": (
        "builder.receive(messages); builder.send(messages); return Plan(builder.build(), np.arange(question.count))",
        "the program waits for itself",
    ),
}  # fmt: skip


def run(folder, name, body):
    (folder / f"{name}.py").write_text(PLUGIN.format(name=name, body=body))
    text = f"""
        experiment: collective
        plugins: [{name}.py]
        topology: {{kind: torus, dims: [3, 3]}}
        collective: {{kind: all_gather, size_bytes: 64KiB, algorithm: {name}}}
        routing: {{kind: minimal}}
        switching: {{mode: flow, flit_ns: 6.4, switch_ns: 100}}
    """
    file = folder / "own.yaml"
    file.write_text(textwrap.dedent(text))
    return main([str(file), "--out", str(folder / "out"), "--jobs", "1"])


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_algorithm_is_refused(tmp_path, capsys, name):
    body, told = FAULTS[name]
    assert run(tmp_path, name, body) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out" / "results.csv").exists()


def test_an_algorithm_that_does_less_than_all_is_found_by_the_bound(tmp_path, capsys):
    body = PASSED + "return Plan(builder.build(), np.arange(question.count))"
    assert run(tmp_path, "foreign_lazy", body) == 3
    assert "is done before the bound by" in (said := capsys.readouterr().err) and "the algorithm is a plugin's" in said
