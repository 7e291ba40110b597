# SPDX-License-Identifier: Apache-2.0
"""Programs as arrays: who belongs together, what waits for what, how long it takes at least; and on disk."""

import json
import pickle
import re
import shutil
import tempfile
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models import arrays
from flitlab.models.application import matching
from flitlab.models.application.matching import DTYPES, ProgramError, check, match
from flitlab.models.application.order import busiest, check_order, earliest
from flitlab.models.application.program import Op, Program, Step
from flitlab.models.application.stored import read_program, write_program
from flitlab.models.registry import SpecError, make
from flitlab.sim.cli import main
from tests.programs import program, programs

EAGER = 1 << 40


def brute_force_match(made: Program) -> np.ndarray:
    partner = np.full(made.operations, -1)
    ends = defaultdict(lambda: {Op.SEND: [], Op.RECV: []})
    for o in range(made.operations):
        here, there = int(made.rank[o]), int(made.peer[o])
        if made.kind[o] != Op.CALC:
            pair = (here, there) if made.kind[o] == Op.SEND else (there, here)
            ends[(*pair, int(made.tag[o]))][int(made.kind[o])].append(o)
    for both in ends.values():
        partner[both[Op.SEND]], partner[both[Op.RECV]] = both[Op.RECV], both[Op.SEND]
    return partner


@settings(deadline=None)
@given(programs(most_operations=25), st.sampled_from([1, 3, 1 << 20]))
def test_matching_is_that_of_lists(made, block):
    original, matching.BLOCK = matching.BLOCK, block
    try:
        assert np.array_equal(match(made.start, made.kind, made.peer, made.tag), brute_force_match(made))
    finally:
        matching.BLOCK = original


@settings(deadline=None)
@given(programs(), st.data())
def test_what_is_left_over_is_named(made, data):
    messages = np.flatnonzero(made.kind != Op.CALC)
    if not len(messages):
        return
    gone = data.draw(st.sampled_from(messages.tolist()))
    pair = (made.rank[gone], made.peer[gone]) if made.kind[gone] == Op.SEND else (made.peer[gone], made.rank[gone])
    kind = made.kind.copy()
    kind[gone] = Op.CALC
    with pytest.raises(ProgramError) as caught:
        match(made.start, kind, made.peer, made.tag)
    sent, tag = f"rank {pair[0]} sends (\\d+) to rank {pair[1]}", made.tag[gone]
    counts = re.search(f"{sent} with tag {tag}, which receives (\\d+)", str(caught.value))
    assert int(counts[1]) - int(counts[2]) == (-1 if made.kind[gone] == Op.SEND else 1)
    (left,) = caught.value.operations
    assert (made.kind[left], made.tag[left]) == (Op.RECV if made.kind[gone] == Op.SEND else Op.SEND, tag)


def test_rank_that_does_not_exist():
    with pytest.raises(ProgramError, match=r"operation 1 of rank 0 sends to rank 2; ranks are 0\.\.1"):
        program([[(Op.CALC, 5, -1, 0, 0, []), (Op.SEND, 5, 2, 0, 0, [])], []])


def tampered(**arrays) -> Program:
    made = program([[(Op.CALC, 5, -1, 0, 0, []), (Op.SEND, 9, 1, 0, 0, [(0, 0)])], [(Op.RECV, 9, 0, 0, 0, [])]])
    check(made)
    return replace(made, **{name: np.array(value, DTYPES[name]) for name, value in arrays.items()})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"start": [0, 3, 2]}, "lead from 0"),
        ({"start": [0, 3, 1, 3]}, "begin after those of the next"),
        ({"start": [3]}, "start is int64 [1], expected int64 [2]"),
        ({"kind": [0, 1, 3]}, "operation 0 of rank 1: it is neither"),
        ({"amount": [-1, 9, 9]}, "negative"),
        ({"amount": [5, 9, 8]}, "operation 0 of rank 1 receives 8 bytes, but operation 1 of rank 0"),
        ({"tag": [0, -3, -3]}, "negative"),
        ({"step": [0, 0, 1]}, "a step that does not exist"),
        ({"peer": [1, 1, 0]}, "a calculation that has a peer"),
        ({"partner": [-1, 2, 0]}, "partner is not what follows"),
        ({"after": [0, 5, 1, 1]}, "do not follow"),
        ({"successor": [4]}, "an operation of another rank"),
        ({"successor": [1 << 40]}, "an operation of another rank"),
        ({"need": [0, 0, 0]}, "number of dependencies differs"),
        ({"cpu": [0, 0]}, "cpu is int16 [2], expected int16 [3]"),
    ],
)
def test_arrays_that_are_no_program(changed, says):
    with pytest.raises(ProgramError, match=re.escape(says)):
        check(tampered(**changed))


def graph_of(made: Program, rendezvous: int, hold, latency, request, consent, leaving) -> nx.DiGraph:
    """The same as :mod:`flitlab.models.application.order` says, with events (operation, "ready" or "done")."""
    graph = nx.DiGraph()

    def edge(source, target, weight):
        known = graph.get_edge_data(source, target, {"weight": 0.0})["weight"]
        graph.add_edge(source, target, weight=max(weight, known))

    for o in range(made.operations):
        other, late = int(made.partner[o]), made.amount[o] > rendezvous
        edge((o, "ready"), (o, "done"), hold[o])
        if made.kind[o] == Op.SEND and late:
            edge((o, "ready"), (o, "done"), hold[o] + request[o] + consent[o] + latency[o])
            edge((other, "ready"), (o, "done"), consent[o] + latency[o])
            edge((o, "done"), (other, "done"), hold[other])
        elif made.kind[o] == Op.SEND:
            edge((o, "ready"), (o, "done"), hold[o] + leaving[o])
            edge((o, "done"), (other, "done"), latency[o] - leaving[o] + hold[other])
        for waiting in made.successor[made.after[o] : made.after[o + 1]].tolist():
            edge((o, "ready" if waiting & 1 else "done"), (waiting >> 1, "ready"), 0.0)
    return graph


@settings(deadline=None, max_examples=150)
@given(programs(any_order=True), st.integers(0, 5000), st.integers(0, 99))
def test_times_and_cycles_are_those_of_networkx(made, rendezvous, seed):
    costs = np.random.default_rng(seed).integers(0, 100, (5, made.operations)).astype(float)
    costs[4] = np.minimum(costs[4], costs[1])
    graph = graph_of(made, rendezvous, *costs)
    if not nx.is_directed_acyclic_graph(graph):
        with pytest.raises(ProgramError, match="the program waits for itself: ") as caught:
            check_order(made, rendezvous)
        circle = [*caught.value.operations, caught.value.operations[0]]
        for waits, awaited in pairwise(circle):
            assert any(
                graph.has_edge((awaited, one), (waits, other))
                for one in ("ready", "done")
                for other in ("ready", "done")
            )
        return
    times = earliest(made, rendezvous, *costs)
    assert times.makespan == nx.dag_longest_path_length(graph)
    reverse = graph.reverse()
    longest = {}
    for event in nx.topological_sort(graph):
        longest[event] = max((longest[p] + d["weight"] for p, _, d in graph.in_edges(event, data=True)), default=0.0)
    tail = {}
    for event in nx.topological_sort(reverse):
        tail[event] = max((tail[p] + d["weight"] for p, _, d in reverse.in_edges(event, data=True)), default=0.0)
    for o in range(made.operations):
        assert times.finish[o] == longest[o, "done"] and times.tail[o] == tail[o, "done"]
        begin = longest[o, "done"] - costs[0][o] if made.kind[o] == Op.RECV else longest[o, "ready"]
        assert times.start[o] == begin
    if made.operations:
        assert times.finish[times.path[-1]] == times.makespan
        assert all(times.finish[o] + times.tail[o] <= times.makespan for o in times.path)


def test_waiting_cycle_is_told():
    one = [(Op.SEND, 900, 1, 7, 0, []), (Op.RECV, 900, 1, 7, 0, [(0, 0)])]
    other = [(Op.SEND, 900, 0, 7, 0, []), (Op.RECV, 900, 0, 7, 0, [(0, 0)])]
    made = program([one, other])
    check_order(made, 900)
    with pytest.raises(ProgramError) as caught:
        check_order(made, 899)
    for part in (
        "operation 0 of rank 0 (send of 900 bytes to rank 1, tag 7) waits for operation 1 of rank 1 (receive of 900",
        "which waits for operation 0 of rank 1 (send of 900 bytes to rank 0, tag 7)",
    ):
        assert part in str(caught.value)


def test_processor_that_does_all_bounds_the_makespan():
    made = program([[(Op.CALC, 10, -1, 0, 0, []), (Op.CALC, 20, -1, 0, 0, []), (Op.CALC, 5, -1, 0, 1, [(1, 0)])]])
    hold = made.amount.astype(float)
    times = earliest(made, EAGER, hold, hold, hold, hold)
    assert times.makespan == 25
    assert busiest(made, hold, times) == 30  # 10 and 20 on processor 0; the least tail there is 0
    assert times.path.tolist() == [1, 2]


@settings(deadline=None, max_examples=30)
@given(programs())
def test_stored_programs_come_back(tmp_path_factory, made):
    steps = (Step("exchange", "ring", 5, 3, True, 2),)
    made = replace(made, steps=steps, notes={"levels": 7}, simulated=3, iterations=9)
    folder = tmp_path_factory.getbasetemp() / "made.program"
    write_program(made, folder)  # again and again: what is there is replaced
    back = read_program(folder)
    for name in DTYPES:
        assert np.array_equal(getattr(made, name), getattr(back, name)) and getattr(back, name).flags.writeable
    assert (back.steps, back.notes, back.simulated, back.iterations) == (steps, {"levels": 7}, 3, 9)
    assert back.content_hash == made.content_hash
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".made")]


def with_text(name: str, old: str, new: str):
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: shutil.rmtree(folder), "no such folder"),
        (lambda folder: (folder / "program.json").unlink(), "no program: it has no program.json"),
        (with_text("program.json", "{", ""), "damaged: "),
        (with_text("program.json", "flitlab program", "another"), "not written as a program"),
        (
            with_text("program.json", '"version": 1', '"version": 2'),
            "of version 2; this is version 1: convert it again",
        ),
        (with_text("program.json", '"notes"', '"note"'), "damaged: KeyError 'notes'"),
        (with_text("program.json", '"operations": 3', '"operations": 4'), "2 ranks and 3 operations, not 2 and 4"),
        (lambda folder: (folder / "kind.npy").unlink(), "kind.npy: damaged: No such file"),
        (
            lambda folder: (folder / "kind.npy").write_bytes((folder / "kind.npy").read_bytes()[:-1]),
            "kind.npy: damaged",
        ),
        (lambda folder: (folder / "kind.npy").write_bytes(b"what"), "kind.npy: damaged"),
        (lambda folder: np.save(folder / "kind.npy", np.zeros(3)), "kind is float64 [3], expected int8 [3]"),
        (lambda folder: np.save(folder / "kind.npy", np.zeros(3, np.int8)), "a calculation that has a peer"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, damage, says):
    folder = tmp_path / "made.program"
    write_program(tampered(), folder)
    damage(folder)
    with pytest.raises(SpecError, match=re.escape(says)):
        read_program(folder)


def test_other_folders_are_left_alone(tmp_path):
    with pytest.raises(SpecError, match="exists, and is no program"):
        (tmp_path / "full.program").mkdir()
        write_program(tampered(), tmp_path / "full.program")
    with pytest.raises(SpecError, match=r"ends in \.program"):
        write_program(tampered(), tmp_path / "made")


def test_mapped_arrays_do_not_change_their_files(tmp_path):
    folder = tmp_path / "made.program"
    write_program(tampered(), folder)
    read_program(folder).amount[0] = 99
    assert read_program(folder).amount[0] == 5


def test_other_processes_open_the_folder_themselves(tmp_path):
    folder = tmp_path / "made.program"
    write_program(tampered(), folder)
    stored = read_program(folder)
    sent, other = pickle.dumps(stored), replace(stored, notes={"of": "another"})
    assert folder.name.encode() in sent and b"successor" not in sent
    assert pickle.loads(sent).content_hash == stored.content_hash
    assert pickle.loads(pickle.dumps(other)).notes == {"of": "another"}
    write_program(program([[(Op.CALC, 1, -1, 0, 0, [])]]), folder)
    with pytest.raises(SpecError, match="has changed since the run began"):
        pickle.loads(sent)


def test_arrays_that_do_not_fit_lie_in_files(monkeypatch, tmp_path):
    monkeypatch.setattr(arrays, "IN_MEMORY", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    array = arrays.scratch((5, 7), np.int64, fill=-1)
    mapping = array
    while not isinstance(mapping, np.memmap):
        mapping = mapping.base
    assert type(array) is np.ndarray and array.sum() == -35 and not list(tmp_path.iterdir())


def test_stored_program_as_application(tmp_path):
    folder = tmp_path / "made.program"
    write_program(tampered(), folder)
    spec = {"kind": "program", "path": str(folder)}
    assert make("application", **spec).build(4).operations == 3
    with pytest.raises(SpecError, match="the file has 2 ranks"):
        make("application", **spec, ranks=3).build(4)
    with pytest.raises(SpecError, match="calculations last as long as the file says"):
        make("application", **spec, gflops=1).build(4)


def test_command_converts(tmp_path, capsys):
    text, folder, again = (tmp_path / name for name in ("a.goal", "a.program", "b.goal"))
    text.write_text("num_ranks 2\n\nrank 0 {\nl0: send 10b to 1 tag 3\n}\n\nrank 1 {\nl0: recv 10b from 0 tag 3\n}\n")
    assert main(["goal", str(text), "--out", str(folder), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["ranks"], summary["messages"], summary["bytes"]) == (2, 1, 10)
    assert main(["goal", str(folder), "--out", str(again)]) == 0
    assert again.read_text() == text.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.goal"], "missing.goal: no such file"),
        (["missing.program"], "missing.program: no such folder"),
        (["bad.goal"], "bad.goal:1: 'hello': expected"),
        (["good.goal", "--out", "good.txt"], "must end in .program (a folder) or .goal (text)"),
        (["good.goal", "--out", "no/good.program"], "No such file or directory"),
    ],
)
def test_command_says_what_is_wrong(arguments, says, capsys):
    Path("bad.goal").write_text("hello")
    Path("good.goal").write_text("num_ranks 1\nrank 0 {\n}\n")
    assert main(["goal", *arguments]) == 2
    assert says in capsys.readouterr().err
