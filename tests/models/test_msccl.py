# SPDX-License-Identifier: Apache-2.0
"""Schedules of MSCCL and TE-CCL: sends and steps as published for each algorithm, and faults that are found."""

import json

import pytest

from flitlab.models.collective.msccl import parse_msccl
from flitlab.models.collective.schedule import ScheduleError, check
from flitlab.models.collective.schedule_file import read_schedule
from flitlab.models.collective.synthesizers import parse_teccl
from flitlab.sim.cli import main


def algo(coll, ranks, per_loop, blocks, in_place=0):
    """The text of an algorithm. blocks: rank -> list of (send, receive, channel, steps as mappings)."""
    lines = [f'<algo name="x" coll="{coll}" ngpus="{ranks}" nchunksperloop="{per_loop}" inplace="{in_place}">']
    for rank, of_rank in blocks.items():
        lines.append(f' <gpu id="{rank}">')
        for number, (send, receive, channel, steps) in enumerate(of_rank):
            lines.append(f'  <tb id="{number}" send="{send}" recv="{receive}" chan="{channel}">')
            for s, step in enumerate(steps):
                given = {"s": s, "cnt": 1, "depid": -1, "deps": -1, "hasdep": 0} | step
                lines.append("   <step " + " ".join(f'{key}="{value}"' for key, value in given.items()) + "/>")
            lines.append("  </tb>")
        lines.append(" </gpu>")
    return "\n".join([*lines, "</algo>"]).encode()


def step(kind, source=("o", 0), target=None, **more):
    target = source if target is None else target
    return {"type": kind, "srcbuf": source[0], "srcoff": source[1], "dstbuf": target[0], "dstoff": target[1], **more}


def ring(ranks):
    """All-gather around a ring, in place: every chunk is passed on as soon as it is there."""
    blocks = {}
    for rank in range(ranks):
        steps = [step("s", ("o", rank))]
        steps += [step("rcs", ("o", (rank - hop) % ranks)) for hop in range(1, ranks - 1)]
        steps += [step("r", ("o", (rank + 1) % ranks))]
        blocks[rank] = [((rank + 1) % ranks, (rank - 1) % ranks, 0, steps)]
    return blocks


def test_a_ring_gathers_in_one_step_less_than_ranks():
    schedule = parse_msccl(algo("allgather", 5, 5, ring(5), in_place=1))
    check(schedule)
    assert (schedule.kind, schedule.sends, schedule.step.max() + 1) == ("all_gather", 20, 4)
    assert ((schedule.target - schedule.source) % 5 == 1).all()


def halves(ranks):
    """All-reduce: reduce-scatter and all-gather around a ring, in place, a chunk for each rank."""
    blocks = {}
    for rank in range(ranks):
        steps = [step("s", ("i", rank))]
        steps += [step("rrcs", ("i", (rank - hop) % ranks)) for hop in range(1, ranks)]
        steps += [step("rcs", ("i", (rank - hop) % ranks)) for hop in range(ranks - 1)]
        steps = [*steps[:-1], {**steps[-1], "type": "r"}]
        steps[ranks] = step("rcs", ("i", rank))
        blocks[rank] = [((rank + 1) % ranks, (rank - 1) % ranks, 0, steps)]
    return blocks


def test_a_ring_reduces_in_twice_as_many():
    schedule = parse_msccl(algo("allreduce", 4, 4, halves(4), in_place=1))
    check(schedule)
    assert (schedule.sends, schedule.step.max() + 1) == (2 * 4 * 3, 6)


def test_outputs_hold_what_is_needed_at_the_end():
    """Chunks that reached a rank may be overwritten, stay in scratch, or be added twice."""
    blocks = ring(4)
    blocks[0][0][3][-1]["dstoff"] = 2  # instead of 1
    with pytest.raises(ScheduleError, match=r"gpu 0 ends with nothing in o\[1\], where chunk 1 belongs"):
        parse_msccl(algo("allgather", 4, 4, blocks, in_place=1))
    blocks[0][0][3].append(step("cpy", ("o", 2), ("o", 1)))
    with pytest.raises(
        ScheduleError, match=r"gpu 0 ends with chunk 1 in o\[2\], where chunk 2 belongs|chunk 2 in o\[1\]"
    ):
        parse_msccl(algo("allgather", 4, 4, blocks, in_place=1))
    blocks = halves(4)
    blocks[1][0][3][-1] |= {"dstbuf": "s"}
    with pytest.raises(ScheduleError, match=r"gpu 1 ends without the part of gpu \d in o\[\d\]"):
        parse_msccl(algo("allreduce", 4, 4, blocks, in_place=1))
    swap = [step("s", ("i", 0)), step("rrc", ("i", 0)), step("s", ("i", 0)), step("rrc", ("i", 0))]
    twice = {rank: [(1 - rank, 1 - rank, 0, swap)] for rank in range(2)}
    with pytest.raises(ScheduleError, match=r"adds the part of gpu \d twice"):
        parse_msccl(algo("allreduce", 2, 1, twice, in_place=1))


def pairs(ranks):
    """All-to-all: everyone sends to everyone at once, each over a block of its own."""
    return {
        rank: [
            (other, other, 0, [step("s", ("i", other), ("o", rank)), step("r", ("i", rank), ("o", other))])
            for other in range(ranks)
            if other != rank
        ]
        for rank in range(ranks)
    }


def test_pairs_exchange_in_one_step():
    schedule = parse_msccl(algo("alltoall", 4, 4, pairs(4)))
    check(schedule)
    assert (schedule.chunks, schedule.sends, schedule.step.max()) == (12, 12, 0)


def test_scratch_copies_and_dependencies_are_followed():
    """Rank 1 receives into scratch, copies, and another block, which waits for the copy, sends it on."""
    blocks = {
        0: [(1, 1, 0, [step("s", ("i", 0), ("s", 0)), step("r", ("o", 1))]), (-1, 2, 0, [step("r", ("o", 2))])],
        1: [
            (0, 0, 0, [step("r", ("s", 0)), step("cpy", ("s", 0), ("o", 0), hasdep=1), step("s", ("i", 0), ("o", 1))]),
            (2, 2, 0, [step("nop", depid=0, deps=1), step("s", ("o", 0)), step("s", ("i", 0), ("o", 1)),
                       step("r", ("o", 2))]),
        ],
        2: [(1, 1, 0, [step("r", ("o", 0)), step("r", ("o", 1)), step("s", ("i", 0), ("o", 2))]),
            (0, -1, 0, [step("s", ("i", 0), ("o", 2))])],
    }  # fmt: skip
    schedule = parse_msccl(algo("allgather", 3, 3, blocks))
    check(schedule)
    when = {tuple(row[:3]): row[3] for row in zip(*(x.tolist() for x in (
        schedule.chunk, schedule.source, schedule.target, schedule.step)), strict=True)}  # fmt: skip
    assert when[0, 0, 1] == 0 and when[0, 1, 2] == 1 and len(when) == 6


def test_sends_of_a_chunk_over_two_channels_in_one_step_are_two():
    """Each of two ranks sends its chunk over both channels, which takes two sends, and is no all-gather."""
    blocks = {
        rank: [
            (1 - rank, 1 - rank, channel, [step("s", ("i", 0)), step("r", [("o", 1 - rank), ("s", 0)][channel])])
            for channel in (0, 1)
        ]
        for rank in (0, 1)
    }
    schedule = parse_msccl(algo("allgather", 2, 2, blocks))
    assert (schedule.sends, schedule.step.max() + 1) == (2 * 2, 1)
    with pytest.raises(ScheduleError, match=r"chunk \d is sent to rank \d, which has a part of it already"):
        check(schedule)


def test_parts_that_a_rank_passes_on_unreduced_do_not_travel_for_free():
    """Rank 0 receives the part of rank 2 and sends it and its own to rank 1 in one step: two sends, not their sum."""
    wait = {"depid": 2, "deps": 0}
    blocks = {
        0: [
            (1, -1, 0, [step("nop", ("i", 0), **wait), step("s", ("i", 0))]),
            (1, -1, 1, [step("s", ("s", 0), **wait)]),
            (-1, 2, 0, [step("r", ("s", 0))]),
            (-1, 1, 0, [step("r", ("i", 0))]),
        ],
        1: [
            (-1, 0, 0, [step("rrc", ("i", 0))]),
            (-1, 0, 1, [step("rrc", ("i", 0), depid=0, deps=0)]),
            (0, -1, 0, [step("s", ("i", 0), depid=1, deps=0)]),
            (2, -1, 0, [step("s", ("i", 0), depid=1, deps=0)]),
        ],
        2: [(0, -1, 0, [step("s", ("i", 0))]), (-1, 1, 0, [step("r", ("i", 0))])],
    }
    schedule = parse_msccl(algo("allreduce", 3, 1, blocks, in_place=1))
    sends = sorted(zip(schedule.step.tolist(), schedule.source.tolist(), schedule.target.tolist(), strict=True))
    assert sends == [(0, 2, 0), (1, 0, 1), (1, 0, 1), (2, 1, 0), (2, 1, 2)]
    with pytest.raises(ScheduleError, match="chunk 0 is sent to rank 1, which has a part of it already"):
        check(schedule)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"<algo", "line 1: not XML"),
        (b"<x/>", "<x> where <algo> is expected"),
        (algo("scan", 2, 2, {}), "coll 'scan': choices are allgather"),
        (b'<algo ngpus="2" nchunksperloop="2"/>', "needs coll, the name of its collective: choices are allgather"),
        (algo("allgather", 2, 3, {}), "nchunksperloop 3 is no multiple of ngpus 2"),
        (algo("allgather", 10**6, 10**9, {}), "chunks of all ranks; at most"),
        (b'<algo coll="allgather" ngpus="two" nchunksperloop="2"/>', "needs a whole number ngpus, not 'two'"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("x")])]}), "gpu 0, tb 0, step 0: type 'x'; choices are s, r"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("s", 3))])]}), r"nothing is in s\[3\] then"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("r")])]}), "gpu 0, tb 0, step 0 never ends"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("i", 0), cnt="1e3")])]}), "cnt '1e3' must be a whole"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("i", 0), cnt=10**11)])]}), "must be a whole number from 1"),
        (algo("allgather", 2, 2, {7: []}), "gpu 7 where ngpus is 2"),
        (algo("allgather", 2, 2, {0: [(5, 1, 0, [step("s", ("i", 0))])]}), "sends to gpu 5"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("i", 0), depid=4, deps=0)])]}), "depends on tb 4, step 0"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("i", 0), depid=0, deps=-1)])]}), "on tb 0, step -1"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("i", "--1"))])]}), "srcoff '--1' must be a whole number"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("x", 0))])]}), "srcbuf 'x'; choices are i, o, s"),
        (algo("allgather", 2, 2, {0: [(1, 1, 0, [step("s", ("i", 0), s=1)])]}), "s '1', but steps are in the order"),
        (algo("allgather", 2, 2, ring(2)).replace(b' cnt="1"', b"", 1), "gpu 0, tb 0, step 0: cnt '' must be a whole"),
        (algo("allgather", 2, 2, ring(2)).replace(b' srcoff="0"', b"", 1), "step 0: srcoff '' must be a whole number"),
        (algo("allgather", 2, 2, ring(2)).replace(b'gpu id="1"', b'gpu id="0"'), "gpu 0, tb 0 is there twice"),
    ],
)  # fmt: skip
def test_faults_are_named(text, said):
    with pytest.raises(ScheduleError, match=said):
        parse_msccl(text)


def test_a_schedule_that_leaves_a_chunk_out_is_no_collective(tmp_path, capsys):
    blocks = ring(4)
    del blocks[2][0][3][2:]  # rank 2 passes no third chunk on
    blocks[3][0][3].pop()
    blocks[3][0][3].pop()
    blocks[0][0][3].pop()
    (tmp_path / "x.xml").write_bytes(algo("allgather", 4, 4, blocks, in_place=1))
    with pytest.raises(ScheduleError, match=r"does not reach rank|never ends|ends with nothing in o"):
        read_schedule(tmp_path / "x.xml")
    assert main(["schedule", str(tmp_path / "x.xml")]) == 2
    (tmp_path / "y.xml").write_bytes(algo("allgather", 4, 4, ring(4), in_place=1))
    out = tmp_path / "y.schedule.json"
    assert main(["schedule", str(tmp_path / "y.xml"), "--out", str(out)]) == 0
    assert read_schedule(out).sends == 12


def teccl(flows, gpus=(1, 2, 4)):
    """The text of an all-gather of a chunk for each GPU."""
    demands = {f"GPU {v}": {f"GPU {u}": {"Chunk 0": 1e-6} for u in gpus if u != v} for v in gpus}
    return json.dumps({"1-Epoch_Duration": 1e-9, "6-Demand_Met": demands, "7-Flows": flows}).encode()


LINE = [f"Chunk 0 from {s} traveled over {u}->{v} in epoch {e}{via}" for s, u, v, e, via in (
    (1, 1, 2, 0, " via switches 3"), (1, 2, 4, 7, ""), (4, 4, 2, 0, ""), (4, 2, 1, 7, ""),
    (2, 2, 1, 3, ""), (2, 2, 4, 3, ""),
)]  # fmt: skip


def test_flows_of_te_ccl_are_sends_of_steps():
    schedule = parse_teccl(teccl(LINE))
    check(schedule)
    assert (schedule.ranks, schedule.sends, schedule.step.tolist()) == (3, 6, [0, 0, 1, 1, 2, 2])
    assert sorted(zip(schedule.source.tolist(), schedule.target.tolist(), strict=True)) == [
        (0, 1), (1, 0), (1, 0), (1, 2), (1, 2), (2, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"7-Flows"', "not JSON"),
        (b'{"7-Flows": 3}', "7-Flows must be a list"),
        (teccl(["Chunk 0 from 1 traveled over 1->2 with volume 0.5 in epoch 0"]), "7-Flows.0: .* of a linear program"),
        (b'{"7-Flows": ["Chunk 0 from 1 traveled over 1->2 with volume 1.0 in epoch 0"]}', "of a linear program"),
        (b'{"6-Flows": ["Chunk 0 from 1 traveled over 1->2 with volume 1.0 in epoch 0"]}', "6-Flows.0: .* linear"),
        (b'{"7-Flows": [],\n"7-Flows": []}', "line 2: duplicate key '7-Flows'"),
        (teccl(["Chunk 0 from 1 went home"]), "7-Flows.0: .* is no send of a chunk"),
        (teccl(["Chunk 0 from 1 traveled over 1->3 in epoch 0"]), "of a GPU or chunk without demand"),
        (teccl(LINE).replace(b'"GPU 2": {"Chunk 0": 1e-06}, ', b"", 1), "GPU 1 does not need chunk 0 of GPU 2"),
        (teccl(LINE).replace(b"GPU 4", b"TPU 4"), "'TPU 4' where GPU and a number are expected"),
        (b"[]", "a mapping with 7-Flows and 6-Demand_Met is expected"),
        (b'{"7-Flows": []}', "6-Demand_Met must be a mapping"),
        (b'{"7-Flows": [], "6-Demand_Met": {"GPU 0": ["GPU 1"]}}', "6-Demand_Met.GPU 0: must map GPUs to chunks"),
        (b'{"7-Flows": [], "6-Demand_Met": {"GPU 0": {"GPU 1": 3}}}', "6-Demand_Met.GPU 0: must map GPUs to chunks"),
        (b'{"7-Flows": [], "6-Demand_Met": {"GPU 0": {"GPU 1": [1]}}}', "'1' where Chunk and a number are expected"),
    ],
)  # fmt: skip
def test_faults_of_te_ccl_are_named(text, said):
    with pytest.raises(ScheduleError, match=said):
        parse_teccl(text)


def test_chunks_of_te_ccl_that_one_other_needs_are_an_all_to_all():
    """Chunk d of GPU s is for GPU d; 1 -> 4 goes over 2."""
    demands = {f"GPU {d}": {f"GPU {s}": {f"Chunk {d}": 1e-6} for s in (1, 2, 4) if s != d} for d in (1, 2, 4)}
    flows = [f"Chunk {d} from {s} traveled over {u}->{v} in epoch {e}" for d, s, u, v, e in (
        (4, 1, 1, 2, 0), (4, 1, 2, 4, 1), (2, 1, 1, 2, 0), (1, 2, 2, 1, 0), (4, 2, 2, 4, 0), (1, 4, 4, 1, 0),
        (2, 4, 4, 2, 0),
    )]  # fmt: skip
    schedule = parse_teccl(json.dumps({"6-Demand_Met": demands, "7-Flows": flows}).encode())
    check(schedule)
    assert (schedule.kind, schedule.ranks, schedule.chunks, schedule.sends) == ("all_to_all", 3, 6, 7)
    assert sorted(zip(schedule.start.tolist(), schedule.goal.tolist(), strict=True)) == [
        (s, d) for s in range(3) for d in range(3) if s != d
    ]


def test_a_schedule_of_te_ccl_that_leaves_a_send_out_is_no_all_gather(tmp_path):
    (tmp_path / "x.json").write_bytes(teccl(LINE[:-1]))
    with pytest.raises(ScheduleError, match="does not reach rank 2 complete"):
        read_schedule(tmp_path / "x.json")


def taccl(chunks, steps, nodes=3, prefix=""):
    """The text of an algorithm of TACCL. chunks: (ranks that have it, ranks that need it), with addresses in order."""
    listed = [
        {"sccl_type": "chunk", "pre": pre, "post": post, "addr": 10 + address}
        for address, (pre, post) in enumerate(chunks)
    ]
    collective = {"sccl_type": "collective", "name": "A", "nodes": nodes, "chunks": listed, "ranks": [], "triggers": {}}
    listed_steps = [{"sccl_type": "step", "rounds": 1, "sends": sends} for sends in steps]
    document = {"sccl_type": "algorithm", "name": "A", "collective": collective, "steps": listed_steps}
    return json.dumps(document).replace("sccl_type", f"{prefix}sccl_type").encode()


GATHER = [([r], [0, 1, 2]) for r in range(3)]
RING_SENDS = [
    [[10 + r, r, (r + 1) % 3, 0, 0] for r in range(3)],
    [[10 + r, (r + 1) % 3, (r + 2) % 3, 7, 0] for r in range(3)],
]
PAIRS = [([s], [d]) for s in range(3) for d in range(3)]


@pytest.mark.parametrize(
    ("chunks", "steps", "kind", "root", "sends"),
    [
        (GATHER, RING_SENDS, "all_gather", 0, 6),
        (PAIRS, [[[10 + i, s, d] for i, ((s,), (d,)) in enumerate(PAIRS) if s != d]], "all_to_all", 0, 6),
        ([([2], [2, 0, 1])] * 2, [[[10, 2, 0], [11, 2, 1]], [[10, 0, 1], [11, 1, 0]]], "broadcast", 2, 4),
        ([([1], [0]), ([1], [2]), ([1], [1])], [[[10, 1, 0], [11, 1, 2]]], "scatter", 1, 2),
        ([([0], [1]), ([2], [1])], [[[10, 0, 2]], [[10, 2, 1], [11, 2, 1]]], "gather", 1, 3),
    ],
)
@pytest.mark.parametrize("prefix", ["", "m"])
def test_the_collective_of_taccl_follows_from_its_chunks(tmp_path, chunks, steps, kind, root, sends, prefix):
    (tmp_path / "x.json").write_bytes(taccl(chunks, steps, prefix=prefix))
    schedule = read_schedule(tmp_path / "x.json")
    assert (schedule.kind, schedule.root, schedule.ranks, schedule.sends) == (kind, root, 3, sends)
    assert schedule.step.max() + 1 == len(steps)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"sccl_type": ', "line 1: not JSON"),
        (taccl(GATHER, RING_SENDS).replace(b'"steps"', b'"steps": [],\n"steps"'), "line 2: duplicate key 'steps'"),
        (b'{"format": "flitlab schedule", "version": 1,\n"version": 1}', "line 2: duplicate key 'version'"),
        (b'{"sccl_type": "topology"}', "collective: Field required"),
        (taccl([([0, 1], [0, 1, 2])], []), r"collective.chunks.0.pre: \[0, 1\] is not one rank"),
        (taccl([([0], [1, 2])], []), r"collective.chunks.0.post: \[1, 2\] is not one rank or all 3"),
        (taccl(GATHER, [[[13, 0, 1]]]), r"steps.0.sends.0: \[13, 0, 1\] is not \[address of a chunk, from, to\]"),
        (taccl(GATHER, [[], [[10, 0, 3]]]), "steps.1.sends.0: .*: ranks are 0 to 2"),
        (taccl(GATHER, [[[10, 0.0, 1]]]), "steps.0.sends.0: "),
        (taccl(PAIRS, [[[10, 0, 1]]]), "what a rank has for itself is not sent"),
        (taccl(GATHER[:2], []), "what rank 0 has for all ranks, among 2 pieces, is of no collective"),
        (taccl([*GATHER, ([0], [1])], []), "what rank 0 has for rank 1, among 4 pieces"),
        (taccl(GATHER, RING_SENDS[:1]), "does not reach rank 2"),
        (taccl(GATHER, [[]]).replace(b'"addr": 11', b'"addr": 10'), "share an address, as in .* XML of taccl ncclize"),
        (b'{"nnodes": 2, "intranode_sketch": {}}', "is no schedule: this is a communication sketch of TACCL"),
        (b'{"collective": "broadcast"}', "is no schedule: format: Field required; JSON of flitlab, TE-CCL and TACCL"),
    ],
)
def test_faults_of_taccl_are_named(tmp_path, text, said):
    (tmp_path / "x.json").write_bytes(text)
    with pytest.raises(ScheduleError, match=said):
        read_schedule(tmp_path / "x.json")
