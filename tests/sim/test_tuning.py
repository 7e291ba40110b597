# SPDX-License-Identifier: Apache-2.0
"""``algorithm: best`` takes what is fastest on a network, by an estimate that is exact where rounds do not overlap."""

import textwrap

import numpy as np
import pytest

from flitlab.fluid.tuning import Rounds
from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import COLLECTIVES, collective
from flitlab.models.registry import SpecError, make
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.start import start

NETWORKS = (
    "{kind: torus, dims: [4, 4]}",
    "{kind: rrg, n: 16, degree: 4, seed: 1}",
    "{kind: kautz, degree: 2, diameter: 3}",
    "{kind: hypercube, dim: 4}",
)


def scenarios(folder, application, network, more=""):
    text = f"""
        experiment: application
        topology: {network}
        application: {application}
        routing: {{kind: minimal}}
        switching: {{mode: flow, flit_ns: 6.4, switch_ns: 100}}
        {more}
    """
    file = folder / "tuned.yaml"
    file.write_text(textwrap.dedent(text))
    return [case.program for case in read(file).cases]


def ticks(scenario):
    run = start("compiled", scenario)
    run.advance(1 << 40)
    execution = run.execution()
    return float(execution.finish.max() / execution.resolution)


def steps(scenario):
    return {step.name: step.algorithm for step in scenario.work.program.steps if step.algorithm}


@pytest.mark.parametrize("kind", ("all_reduce", "all_gather", "reduce_scatter"))
def test_the_best_is_about_as_fast_as_the_fastest_of_all(tmp_path, kind):
    options = ", ".join(f"{{kind: {kind}, gflops: 1e9, algorithm: {name}}}" for name in COLLECTIVES[kind].algorithms)
    for network in NETWORKS:
        for size in (64, 65536):
            sized = options.replace("gflops", f"size_bytes: {size}, gflops")
            every = scenarios(tmp_path, f"{{sweep: [{sized}]}}", network)
            (best,) = scenarios(
                tmp_path, f"{{kind: {kind}, gflops: 1e9, size_bytes: {size}, algorithm: best}}", network
            )
            times = [ticks(scenario) for scenario in every]
            assert ticks(best) <= 1.1 * min(times), (network, size)
            assert ticks(best) < max(times)


def test_the_estimate_is_exact_where_nothing_is_shared(tmp_path):
    (scenario,) = scenarios(tmp_path, "{kind: barrier}", "{kind: hyperx, dims: [8]}")
    groups = np.arange(8)[None]
    for name in ("all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "reduce_scatter"):
        known = COLLECTIVES[name]
        for algorithm in set(known.algorithms) - {"scattered", "linear"}:
            alone = Builder(8)
            collective(alone, name, groups, 0 if name == "barrier" else 4096, algorithm)
            (same,) = scenarios(
                tmp_path,
                f"{{kind: {name}, gflops: 1e9, algorithm: {algorithm}"
                + ("}" if name == "barrier" else ", size_bytes: 4096}"),
                "{kind: hyperx, dims: [8]}",
                "messages: {rendezvous_bytes: null}",
            )
            estimate = Rounds(scenario).ticks(alone)
            assert estimate == pytest.approx(ticks(same), rel=1e-9), (name, algorithm)


def test_a_training_step_takes_the_best_of_every_collective(tmp_path):
    training = "{kind: training, tensor: 4, pipeline: 1, experts: 4, gflops: 1e6, hidden: 512%s}"
    network = "{kind: rrg, n: 16, degree: 4, seed: 1}"
    usual, best = scenarios(tmp_path, f"{{sweep: [{training % ''}, {training % ', algorithm: best'}]}}", network)
    assert steps(usual)["gradients"] == "ring"
    assert {"tensor", "dispatch", "combine", "gradients"} <= set(steps(best))
    assert ticks(best) < ticks(usual)


def test_nobody_asks_for_two_things_or_for_what_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="says nothing beside algorithm: best"):
        scenarios(tmp_path, "{kind: training, algorithm: best, reduction: rabenseifner}", NETWORKS[0])
    with pytest.raises(SpecError) as caught:
        make("application", kind="all_reduce", algorithm="bruck").build(16)
    assert "best" in caught.value.choices
    named = make("application", kind="all_gather", algorithm="best", size_bytes=64).build(16)
    assert named.steps[0].algorithm == "recursive_doubling", "without a network, the choice of a library"
