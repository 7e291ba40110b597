# SPDX-License-Identifier: Apache-2.0
"""Kernels that are not compiled come first, since points wait for them; else the first place is that of a ceiling."""

from types import SimpleNamespace

import pytest

from flitlab.sim.experiment import compile_order
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Quiet


def tasks(*names):
    return iter([Task(None, (None, "compiled"), print, name=name) for name in names])


@pytest.mark.parametrize(
    ("engine", "compiled", "order"),
    [
        ("compiled", set(), "p1 p2 c1 c2 p3"),
        ("compiled", {"vct"}, "p1 p2 c1 c2 p3"),
        ("compiled", {"vct", "deflection"}, "c1 p1 p2 c2 p3"),
        ("reference", set(), "c1 p1 p2 c2 p3"),
    ],
)
def test_calls_that_compile_are_the_first(monkeypatch, engine, compiled, order):
    for name in ("kernel_key", "_kernel_name"):
        monkeypatch.setattr(compile_order, name, lambda of: of)
    monkeypatch.setattr(compile_order, "is_compiled", compiled.__contains__)
    modes = ("vct", "deflection", "vct")
    points = SimpleNamespace(
        study=SimpleNamespace(engine=engine),
        missing=[SimpleNamespace(scenario=mode, case=mode) for mode in modes],
        tasks=lambda bar: tasks("p1", "p2", "p3"),
    )
    bounds = SimpleNamespace(tasks=lambda bar: tasks("c1", "c2"))
    ordered = compile_order.ordered_tasks(bounds, points, Quiet(), prepare=False)
    assert " ".join(task.name for task in ordered) == order
