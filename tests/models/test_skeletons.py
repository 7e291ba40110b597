# SPDX-License-Identifier: Apache-2.0
"""The programs that come with the project: who sends how much to whom, on how many ranks, and for how long."""

from math import log

import numpy as np
import pytest
from pydantic import ValidationError

from flitlab.models.application.matching import check
from flitlab.models.application.program import Op
from flitlab.models.application.skeletons import dt, nas_kernels
from flitlab.models.application.skeletons.nas_kernels import transposed
from flitlab.models.registry import SpecError, make, names, spec_class
from tests.program_time import finished

FILES = {"goal", "program"}


def build(kind, hosts, **parameters):
    return make("application", kind=kind, **parameters).build(hosts)


def sizes(program, step, iteration=0):
    """Bytes -> how many messages of an iteration of a step have them."""
    wanted = [k for k, s in enumerate(program.steps) if s.name == step and s.iteration == iteration]
    sends = (program.kind == Op.SEND) & np.isin(program.step, wanted)
    found, count = np.unique(program.amount[sends], return_counts=True)
    return dict(zip(found.tolist(), count.tolist(), strict=True))


def targets(program, rank, step, iteration=0):
    """Whom a rank sends to in an iteration of a step, in order."""
    wanted = [k for k, s in enumerate(program.steps) if s.name == step and s.iteration == iteration]
    sends = (program.kind == Op.SEND) & (program.rank == rank) & np.isin(program.step, wanted)
    return program.peer[sends].tolist()


def sent(program):
    return int(program.amount[program.kind == Op.SEND].sum())


def calculated(program, iteration):
    """Nanoseconds of all ranks together."""
    wanted = [k for k, step in enumerate(program.steps) if step.iteration == iteration]
    return int(program.amount[(program.kind == Op.CALC) & np.isin(program.step, wanted)].sum())


SMALL = [
    *[(kind, 16, {"class": "S"}) for kind in ("bt", "sp", "cg", "ft", "is", "mg")],
    *[(kind, 1, {"class": "S"}) for kind in ("bt", "sp", "cg", "ft", "is", "mg", "lu")],
    ("lu", 4, {"class": "S"}),
    ("lu", 8, {"class": "W"}),
    ("cg", 8, {"class": "S"}),
    ("mg", 256, {"class": "S", "iterations": 1}),
    ("ft", 8, {"class": "S", "grid": [4, 2]}),
    *[("dt", 12, {"class": "S", "graph": graph}) for graph in ("BH", "WH", "SH")],
    *[(kind, 9, {}) for kind in ("summa", "cannon", "all_reduce", "all_gather", "all_to_all", "broadcast")],
    *[(kind, 7, {"repeats": 2}) for kind in ("reduce_scatter", "barrier", "ping_pong", "halo")],
    ("halo", 12, {"dims": [3, 2, 2], "periodic": False, "calculate_ns": 5}),
    ("graph500", 8, {"scale": 12, "iterations": 2}),
    ("training", 16, {}),
    ("training", 12, {"schedule": "gpipe", "sequence_parallel": True, "pipeline": 3, "layers": 6, "iterations": 2}),
    ("training", 32, {"experts": 4, "pipeline": 4, "microbatches": 7, "bucket": 3, "layers": 16}),
    ("training", 1, {"tensor": 1, "pipeline": 1}),
    ("graph500", 1, {"scale": 40}),
    ("background", 5, {"for_us": 20}),
]


@pytest.mark.parametrize(("kind", "ranks", "parameters"), SMALL)
def test_programs_are_in_order_and_come_to_an_end(kind, ranks, parameters):
    program = build(kind, 1000, ranks=ranks, **parameters)
    check(program)
    assert program.ranks == ranks
    for rendezvous in (False, True):
        assert min(finished(program, 100, 1, rendezvous), default=0) >= 0
    iterations = {step.iteration for step in program.steps} - {-1}
    assert iterations <= set(range(program.simulated)) and program.simulated <= program.iterations
    again = build(kind, 1000, ranks=ranks, **parameters)
    assert again.content_hash == program.content_hash


def test_every_program_is_among_them():
    assert {kind for kind, _, _ in SMALL} | FILES == set(names("application"))


def test_every_program_says_what_it_is_and_how_to_ask_for_it():
    for kind in set(names("application")) - FILES:
        text = spec_class("application", kind).__doc__
        assert f"``application: {{kind: {kind}" in text and "Source: " in text


@pytest.mark.parametrize(
    ("kind", "step", "bytes64", "bytes256"),
    [
        ("bt", "copy_faces", {91_035: 384}, {48_769: 1536}),
        ("bt", "x_solve", {40_560: 448, 6_760: 448}, {11_760: 3840, 1_960: 3840}),
        ("sp", "copy_faces", {91_035: 384}, {48_769: 1536}),
        ("sp", "z_solve", {28_611: 448, 13_005: 448}, {7_153: 3840, 3_251: 3840}),
        ("cg", "matrix_product", {75_000: 26 * 3 * 64}, {37_500: 26 * 4 * 256}),
        ("cg", "transpose", {75_000: 26 * 56}, {37_500: 26 * 240}),
        ("cg", "scalar_product", {8: 52 * 3 * 64, 16: 3 * 64}, {8: 52 * 4 * 256, 16: 4 * 256}),
        ("dt", "traffic", {7_077_888: 42}, {7_077_888: 42}),
        ("ft", "transpose", {32_768: 64 * 63}, {32_768: 2 * 256 * 15}),
        ("is", "keys", {8_192: 64 * 63}, {512: 256 * 255}),
        ("lu", "lower", {510: 100 * 2 * 56}, {255: 100 * 2 * 240}),
        ("lu", "upper", {510: 100 * 2 * 56}, {255: 100 * 2 * 240}),
        ("lu", "rhs", {104_040: 4 * 56}, {52_020: 4 * 240}),
        ("summa", "rows", {131_072: 56}, {32_768: 240}),
        ("summa", "columns", {131_072: 56}, {32_768: 240}),
        ("cannon", "shift", {131_072: 128}, {32_768: 512}),
    ],
)
def test_sizes_of_messages(kind, step, bytes64, bytes256):
    """Class A of FT and IS, B of the others, as in UNI, section III-C; matrices of 1024 rows."""
    parameters = {"algorithm": "binomial"} if kind == "summa" else {}
    for ranks, expected in ((64, bytes64), (256, bytes256)):
        assert sizes(build(kind, ranks, iterations=1, **parameters), step) == expected


def test_graph500_sends_all_edges():
    """16 bytes * 2^s * 32 / p^2 from each rank to each other over a search."""
    for ranks in (64, 256):
        found = sizes(build("graph500", ranks), "pairs")
        per_pair = sum(size * count for size, count in found.items()) / (ranks * (ranks - 1))
        assert per_pair == pytest.approx(16 * 2**20 * 32 / ranks**2, rel=0.001)


def test_mg_sends_faces():
    """Class B: the finest face has 8 (256 / px) (256 / py) bytes; level 1 has 2 x 2 x 2 ranks with points."""
    finest = sizes(build("mg", 64, iterations=1), "residual")
    assert finest[32_768] == 6 * 64 * 2
    found = sizes(build("mg", 256, iterations=1), "residual")
    assert (found[8_192], found[16_384]) == (2 * 256 * 2, 4 * 256 * 2)
    level = nas_kernels.MultigridLevel((4, 8, 8), 1)
    assert level.active.tolist() == sorted(x + 4 * (y + 8 * z) for x in (1, 3) for y in (3, 7) for z in (3, 7))
    assert level.stride == [2, 4, 4] and level.local == [1, 1, 1]
    assert level.neighbour(level.active, 1, 1).tolist() == level.neighbour(level.active, 1, -1).tolist()
    for number in range(1, 9):
        level = nas_kernels.MultigridLevel((4, 8, 8), number)
        for axis in range(3):
            there = level.neighbour(level.active, axis, 1)
            assert level.neighbour(there, axis, -1).tolist() == level.active.tolist()
            assert set(there) == set(level.active)


def test_ranks_without_points_get_them_on_the_way_up():
    """Every rank with points at a level gets a layer from one that had some at the coarser level."""
    for number in (2, 3):
        before, level = nas_kernels.MultigridLevel((4, 8, 8), number - 1), nas_kernels.MultigridLevel((4, 8, 8), number)
        builder = nas_kernels.Builder(256)
        builder.begin("spread")
        level.spread(builder)
        program = builder.build()
        reached = set(before.active)
        for source, target in zip(
            program.rank[program.kind == Op.SEND], program.peer[program.kind == Op.SEND], strict=True
        ):
            assert source in level.active and target in level.active
            reached.add(target)
        assert reached >= set(level.active)


def test_bt_neighbours():
    """(i +- 1, j), (i, j +- 1), (i + 1, j - 1), (i - 1, j + 1) of a torus, rank i + q j."""
    program, q = build("bt", 64, iterations=1), 8
    i, j = 2, 0
    around = {(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1), (i + 1, j - 1), (i - 1, j + 1)}
    assert set(targets(program, i + q * j, "copy_faces")) == {a % q + q * (b % q) for a, b in around}
    forth, back = i + 1 + q * j, i - 1 + q * j
    assert targets(program, i + q * j, "x_solve") == [forth] * 7 + [back] * 7
    assert targets(program, i + q * j, "z_solve") == [1 + q] * 7 + [3 + q * 7] * 7


@pytest.mark.parametrize("shape", [(8, 8), (8, 16), (1, 2), (1, 1)])
def test_cg_transposes(shape):
    rows, cols = shape
    partner = transposed(rows, cols)
    assert np.array_equal(partner[partner], np.arange(rows * cols))
    if rows == cols:
        assert np.array_equal(partner, np.arange(rows * cols).reshape(rows, cols).T.ravel())


@pytest.mark.parametrize(("shape", "ranks"), [("BH", 43), ("WH", 43), ("SH", 192)])
def test_dt_graphs(shape, ranks):
    layers, arcs = dt.task_graph(shape, 32)
    assert sum(map(len, layers)) == ranks == dt.nodes(shape, 32)
    layer = np.empty(ranks, np.int64)
    for k, nodes in enumerate(layers):
        layer[nodes] = k
    assert np.all(layer[arcs[:, 1]] == layer[arcs[:, 0]] + 1)
    comes, goes = np.bincount(arcs[:, 1], minlength=ranks), np.bincount(arcs[:, 0], minlength=ranks)
    widest = {"BH": (4, 1), "WH": (1, 4), "SH": (2, 2)}[shape]
    assert (comes.max(), goes.max()) == widest
    assert np.all((comes == 0) == (layer == 0)) and np.all((goes == 0) == (layer == len(layers) - 1))
    assert [len(nodes) for nodes in layers] == {
        "BH": [32, 8, 2, 1],
        "WH": [1, 2, 8, 32],
        "SH": [32] * 6,
    }[shape]


def test_dt_leaves_other_ranks_idle():
    program = build("dt", 64)
    assert np.count_nonzero(np.diff(program.start)) == 43 == program.notes["active ranks"]


def test_ft_on_the_program_s_own_grid():
    """[nz, p / nz]: 256 KiB to one rank, 4 KiB to each of 127."""
    program = build("ft", 256, grid=[128, 2], iterations=1)
    assert sizes(program, "transpose") == {16 * 2**23 // 256 // 2: 256, 16 * 2**23 // 256 // 128: 256 * 127}
    assert sizes(program, "transpose", -1) == sizes(program, "transpose")


def test_lu_wavefront_runs_through_all_planes():
    """Plane k reaches the last of x by y ranks after x + y - 2 more steps of a calculation and a message."""
    program = build("lu", 8, **{"class": "W"}, iterations=1, gflops=0.1)
    alpha, planes = 700, 31
    step = next(k for k, step in enumerate(program.steps) if step.name == "lower")
    plane = int(program.amount[(program.step == step) & (program.kind == Op.CALC)][0])
    end = max(at for at, k in zip(finished(program, alpha), program.step, strict=True) if k == step)
    assert end == planes * plane + (4 + 2 - 2) * (plane + alpha)


@pytest.mark.parametrize(
    ("kind", "letter", "operations"),
    [
        ("bt", "B", 3478.8 * 102**3 - 17655.7 * 102**2 + 28023.7 * 102),
        ("sp", "B", 881.174 * 102**3 - 4683.91 * 102**2 + 11484.5 * 102 - 19272.4),
        ("lu", "B", 1984.77 * 102**3 - 10923.3 * 102**2 + 27770.9 * 102 - 144010),
        ("mg", "B", 58 * 256**3),
        ("cg", "B", 2 * 75000 * (3 + 182 + 25 * (5 + 182) + 3)),
        ("ft", "A", 2**23 * (5.23518 + 7.21113 * log(2**23))),
    ],
)
def test_operations_of_an_iteration(kind, letter, operations):
    program = build(kind, 64, **{"class": letter}, gflops=0.01, iterations=1)
    assert calculated(program, 0) == pytest.approx(operations / 0.01, rel=0.002)


def test_matrix_products_multiply():
    for kind in ("summa", "cannon"):
        program = build(kind, 16, order=512, gflops=1.0, iterations=10)
        assert (program.simulated, program.iterations) == (4, 4)
        assert sum(calculated(program, k) for k in range(4)) == 2 * 512**3


def test_iterations_repeat():
    one, three = (build("bt", 16, **{"class": "A"}, iterations=n) for n in (1, 3))
    assert 3 * sent(one) == sent(three) and (three.simulated, three.iterations) == (3, 200)
    assert build("mg", 8, **{"class": "A"}, iterations=9).simulated == 4


@pytest.mark.parametrize(
    ("kind", "ranks", "rule", "choices"),
    [
        ("bt", 60, "square", ["49", "64"]),
        ("sp", 2, "square", ["1", "4"]),
        ("cg", 100, "power of two", ["64", "128"]),
        ("ft", 3, "power of two", ["2", "4"]),
        ("is", 48, "power of two", ["32", "64"]),
        ("lu", 5, "power of two", ["4", "8"]),
        ("mg", 12, "power of two", ["8", "16"]),
        ("dt", 42, "nodes", ["43"]),
        ("summa", 65, "square", ["64", "81"]),
        ("cannon", 200, "square", ["196"]),
        ("training", 18, "multiple", ["16", "20"]),
    ],
)
def test_wrong_rank_counts(kind, ranks, rule, choices):
    with pytest.raises(SpecError, match=rule) as caught:
        build(kind, 200, ranks=ranks)
    assert (caught.value.key, caught.value.choices) == ("ranks", choices)


def test_more_ranks_than_hosts():
    with pytest.raises(SpecError, match="100 hosts") as caught:
        build("bt", 100, ranks=144)
    assert (caught.value.key, caught.value.choices) == ("ranks", ["100"])


def test_cells_and_blocks_must_not_be_too_small():
    for kind, ranks, choice in (("bt", 25, "16"), ("lu", 16, "4")):
        with pytest.raises(SpecError) as caught:
            build(kind, 25, ranks=ranks, **{"class": "S"})
        assert caught.value.choices == [choice]


@pytest.mark.parametrize(("kind", "ranks"), [("bt", 289), ("cg", 256), ("dt", 300), ("all_reduce", 300)])
def test_as_many_ranks_as_fit(kind, ranks):
    program = build(kind, 300, iterations=1) if kind != "all_reduce" else build(kind, 300)
    assert program.ranks == ranks
    assert ("ranks" in program.notes) == (ranks < 300)


def test_no_rank_count_fits():
    with pytest.raises(SpecError, match="no such number") as caught:
        build("dt", 20)
    assert caught.value.key == "ranks"


def test_other_mistakes():
    for kind, parameters, key in (
        ("ft", {"grid": [3, 2]}, "grid"),
        ("ft", {"grid": [4, 2], "ranks": 16}, "grid"),
        ("ft", {"ranks": 8, "algorithm": "ring"}, "algorithm"),
        ("is", {"ranks": 8, "algorithm": "bruck"}, "algorithm"),
        ("all_reduce", {"algorithm": "bruck"}, "algorithm"),
        ("ping_pong", {"from": 1}, "to"),
        ("ping_pong", {"ranks": 4, "to": 4}, "to"),
        ("training", {"pipeline": 3}, "pipeline"),
        ("training", {"data": 3, "experts": 2}, "experts"),
        ("training", {"data": 3, "ranks": 8}, "ranks"),
        ("training", {"reduction": "tree"}, "reduction"),
        ("halo", {"dims": [4, 4], "ranks": 8}, "ranks"),
        ("bt", {"gflops": 1e-12}, "gflops"),
    ):
        with pytest.raises(SpecError) as caught:
            build(kind, 64, **parameters)
        assert caught.value.key == key
    with pytest.raises(ValidationError, match="class"):
        build("bt", 64, **{"class": "Z"})
    for kind, parameters in (("all_to_all", {"size_bytes": 1024}), ("graph500", {"ranks": 2, "scale": 48})):
        with pytest.raises(SpecError, match="more than 20,000,000 operations"):
            build(kind, 1_000_000, **parameters)


def test_plain_values_keep_their_names():
    """What a configuration says is what is recorded: ``class`` and ``from``, not the names that Python needs."""
    assert make("application", **{"kind": "bt", "class": "A"}).model_dump()["class"] == "A"
    assert make("application", **{"kind": "ping_pong", "from": 3}).model_dump()["from"] == 3


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_ping_pong_takes_two_latencies(ranks):
    program = build("ping_pong", ranks, size_bytes=100, **{"from": ranks - 1, "to": 0}, repeats=7)
    assert max(finished(program, 1000, 3)) == 7 * 2 * (1000 + 300)


def test_halo_of_a_torus_and_of_a_mesh():
    torus = build("halo", 12, dims=[4, 3], size_bytes=10)
    assert sorted(targets(torus, 0, "exchange")) == [1, 2, 3, 9]
    mesh = build("halo", 12, dims=[4, 3], size_bytes=10, periodic=False)
    assert sorted(targets(mesh, 0, "exchange")) == [1, 3]
    assert sent(mesh) == 10 * 2 * (3 * 3 + 4 * 2)
    two = build("halo", 2, size_bytes=10)
    assert targets(two, 0, "exchange") == [1]


def test_graph500_buffers():
    """Each pair of ranks gets full buffers and, in every level, one that is not full."""
    program = build("graph500", 4, scale=16, levels=[0, 0.01, 0.99], edge_factor=16)
    pairs = [16 * round(share * 2 * 16 * 2**16 / 16) for share in (0, 0.01, 0.99)]
    found = sizes(program, "pairs")
    assert found[4096] == 12 * sum(size // 4096 for size in pairs)
    assert sum(found.values()) == 12 * sum(size // 4096 + 1 for size in pairs)
    assert sum(size * count for size, count in found.items()) == 12 * sum(pairs)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize(("stages", "microbatches"), [(1, 3), (2, 4), (4, 4), (4, 9), (4, 2)])
def test_pipelines_have_the_known_bubble(schedule, stages, microbatches):
    """(m + p - 1) times a microbatch forward and backward, if messages take no time."""
    program = build("training", stages, tensor=1, pipeline=stages, layers=stages, schedule=schedule, gflops=1000.0,
                    microbatches=microbatches)  # fmt: skip
    tokens, h, s = 1024, 2048, 1024
    layer = (24 * tokens * h**2 + 4 * tokens * s * h) / 1000
    update = 10 * 12 * h**2 / 1000
    expected = (microbatches + stages - 1) * 3 * layer + update
    assert max(finished(program)) == pytest.approx(expected, rel=1e-6)


def test_training_reduces_gradients_while_it_goes_on_calculating():
    """Gradients of all layers but the first travel beside the backward pass."""
    common = {"tensor": 1, "pipeline": 1, "layers": 8, "microbatches": 1, "gflops": 50_000.0}
    alone = max(finished(build("training", 1, **common)))
    program = build("training", 4, **common)
    reduced = sizes(program, "gradients")
    gradients = 2 * 12 * 2048**2
    assert sum(size * count for size, count in reduced.items()) == 8 * 4 * 2 * 3 * gradients // 4
    arithmetic = 3 * gradients // 4 / 2 / 50_000
    last = 2 * 3 * (100 + gradients // 4 // 3 // 2) + arithmetic
    assert max(finished(program, 100)) < alone + last


def test_training_moves_what_each_kind_of_parallelism_needs():
    common = {"tensor": 2, "pipeline": 2, "layers": 4, "microbatches": 3, "hidden": 64, "sequence": 32}
    values = 2 * 64 * 32
    program = build("training", 16, **common, experts=2, top=1)
    ranks, layers = 16, 2
    assert sizes(program, "activations") == sizes(program, "errors") == {values: 3 * 8}
    assert sizes(program, "tensor") == {values // 2: ranks * 3 * layers * 2 * 2 * 2}
    routed = {values // 2 // 2: ranks * 3 * layers * 2}
    assert sizes(program, "dispatch") == sizes(program, "combine") == routed
    attention, experts = 2 * 4 * 64**2 // 2, 2 * 8 * 64**2 // 2
    assert sizes(program, "gradients") == {
        attention // 4: ranks * layers * 2 * 3,
        experts // 2: ranks * layers * 2,
    }
    whole = sizes(build("training", 16, **common, sequence_parallel=True), "tensor")
    assert whole == sizes(build("training", 16, **common), "tensor")
