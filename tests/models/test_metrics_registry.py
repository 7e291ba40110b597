# SPDX-License-Identifier: Apache-2.0
"""What every metric owes: an example that runs, a source, JSON-able columns under its own name."""

import json
import re

import numpy as np
import pytest
import yaml

from flitlab.models.metrics.spec import MetricSpec, measure_all
from flitlab.models.registry import make, names, spec_class


@pytest.mark.parametrize("kind", names("metric"))
@pytest.mark.parametrize("topology", [{"kind": "rrg", "n": 12, "degree": 4}, {"kind": "imase", "n": 12, "degree": 3}])
def test_the_example_of_every_metric_runs(kind, topology):
    documented = spec_class("metric", kind).__doc__ or ""
    assert "Source:" in documented
    (example,) = re.findall(r"Example: ``metrics: (.*)``", documented)
    metrics = [make("metric", **parameters) for parameters in yaml.safe_load(example)]
    assert {metric.kind for metric in metrics} == {kind}
    built = make("topology", **topology).build()
    found, problems = measure_all(built, metrics)
    assert not problems
    assert json.loads(json.dumps(found)) == found
    own = metrics[0].columns(built)
    assert own and own.items() <= found.items()
    if metrics[0].unprefixed:
        own = metrics[0].model_copy(update={"label": kind}).columns(built)
    assert all(name == kind or name.startswith(f"{kind}_") for name in own)


def test_a_label_takes_the_place_of_the_kind():
    built = make("topology", kind="hypercube", dim=3).build()
    asked = [make("metric", kind="k_shortest", k=k, label=f"of_{k}") for k in (1, 2)]
    found, _ = measure_all(built, asked)
    assert found["of_1"] == pytest.approx(12 / 7)
    assert found["of_1"] < found["of_2"]
    assert not any(name.startswith("k_shortest") for name in found)


class Own(MetricSpec):
    """Gives what a test has put there."""

    kind: str = "own"
    answers: list = []  # noqa: RUF012 (pydantic copies it)

    def measure(self, topology):
        (answer,) = self.answers
        return answer(topology) if callable(answer) else answer


def spoil(topology):
    topology.capacity[0] = 7
    return {"": 1}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"": np.int64(1)}, "values of the metric own must be plain numbers"),
        ([1, 2], "values of the metric own must be a mapping"),
        (spoil, "measure() changes the topology"),
    ],
)
def test_what_a_metric_of_ones_own_must_not_give_is_named(answer, said):
    built = make("topology", kind="hypercube", dim=3).build()
    _, (problem,) = measure_all(built, [Own(answers=[answer])])
    assert said in problem


def test_a_metric_of_ones_own_has_its_columns():
    built = make("topology", kind="hypercube", dim=3).build()
    assert Own(answers=[{"": 1, "more": 2.5}]).columns(built) == {"own": 1, "own_more": 2.5}
