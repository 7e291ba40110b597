# SPDX-License-Identifier: Apache-2.0
"""Every form of the kernels compiles, and does what the reference engine does, in a run as a user's.

Numba compiles a kernel anew for each set of features in use, and finds a mistake in one of them only then. ``.ci/run``
tries a sixteenth of these runs with each commit.
"""

import json

import pytest

from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.runner import run

MEASURE = {"warmup": 100, "ticks": 400, "ci": None}
NOTHING = {"ceilings": [], "seeds": [1], "outputs": {"figures": [], "html": False}, "engine": "both"}
TORUS = {"kind": "torus", "dims": [4, 3], "hosts_per_switch": 2}
RING = {"kind": "dor", "vc_policy": {"kind": "dateline", "choose": "on_entry"}}
UNIFORM = {"kind": "uniform", "packet_flits": 3}
PACKETS = {"topology": TORUS, "routing": RING, "traffic": UNIFORM, "loads": [0.4], "measure": MEASURE}
CLASSES = {
    "classes": [
        {"name": "high", "kind": "uniform", "load": 0.1, "priority": 1, "packet_flits": 1},
        {"name": "low", "kind": "uniform", "packet_flits": 5},
    ],
}
REPLIES = {
    "classes": [
        {"name": "read", "kind": "uniform", "packet_flits": 1, "vcs": [0, 1],
         "reply": {"class": "data", "packet_flits": 5, "queue": 4}},
        {"name": "data", "vcs": [2, 3]},
    ],
}  # fmt: skip
PROGRAM = {
    "experiment": "application", "topology": {"kind": "mesh", "dims": [4]}, "routing": {"kind": "minimal"},
    "application": {"kind": "all_to_all", "size_bytes": 2048},
}  # fmt: skip
FAILURE = [{"at_tick": 150, "fail": {"links": [[0, 1]]}, "reroute_after": 50},
           {"at_tick": 300, "restore": {"links": [[0, 1]]}}]  # fmt: skip
SLOW = [{"at_tick": 150, "slow": {"links": [[0, 1], [4, 5]]}, "factor": 0.25},
        {"at_tick": 200, "fail": {"links": [[0, 1]]}, "reroute_after": 50},
        {"at_tick": 300, "restore": {"links": [[0, 1], [4, 5]]}}]  # fmt: skip
TRACE = "tick,source,destination,flits,class,after\n0,0,5,4,,\n0,0,5,4,,\n9,5,1,4,,1\n"

ROUTERS = {
    "vct": {"mode": "vct", "vcs": 4, "buffer_flits": 16, "input_speedup": "vcs"},
    "wormhole": {"mode": "wormhole", "vcs": 4, "buffer_flits": 4},
    "ideal": {"mode": "ideal"},
}
DRAGONFLY = {"kind": "dragonfly", "a": 4, "p": 2, "h": 2}

FEATURES = {
    "alone": {},
    "classes": {"traffic": CLASSES, "switching": {"priority": "class"}},
    "age": {"switching": {"priority": "age"}},
    "replies": {"traffic": REPLIES},
    "channels": {"outputs": {**NOTHING["outputs"], "channels": True}},
    "speeds": {"topology": {**TORUS, "capacity_of": {"links": [[0, 1], [4, 5]], "factor": 0.5}}},
    "buffers": {"switching": {"buffer_flits": {"network": 6, "injection": 12}}},
    "subnets": {"switching": {"subnets": 2}},
    "timeline": {"timeline": FAILURE, "routing": {"kind": "updown"}},
    "timeline, classes": {"timeline": FAILURE, "routing": {"kind": "updown"}, "traffic": CLASSES,
                          "switching": {"priority": "class"}},
    "timeline, replies": {"timeline": FAILURE, "routing": {"kind": "updown"}, "traffic": REPLIES},
    "slow links": {"timeline": SLOW, "routing": {"kind": "updown"}},
    "slow links, classes": {"timeline": SLOW, "routing": {"kind": "updown"}, "traffic": CLASSES,
                            "switching": {"priority": "class"}},
    "trace": {"traffic": {"kind": "trace", "path": "t.csv"}, "loads": None},
    "program": PROGRAM,
    "ugal": {"topology": DRAGONFLY, "routing": {"kind": "ugal", "legs": "dragonfly"}, "switching": {"vcs": 8}},
    "escape": {"topology": {"kind": "mesh", "dims": [4, 3]},
               "routing": {"kind": "minimal", "select": "adaptive", "vc_policy": "escape"}},
}  # fmt: skip
OF_VCT = {
    "shared input": {"switching": {"input_speedup": 1}},
    "par": {"topology": DRAGONFLY, "routing": {"kind": "par"}, "switching": {"vcs": 8}},
    "polarized": {"topology": DRAGONFLY, "routing": {"kind": "polarized"}, "switching": {"vcs": 16}},
    "oldest first": {"switching": {"allocator": "oldest"}},
}
OF_WORMHOLE = {
    **{
        f"{allocator}, {priority}": {"traffic": CLASSES, "switching": {"allocator": allocator, "priority": priority}}
        for allocator in ("separable_input_first", "separable_output_first", "wavefront")
        for priority in ("none", "class")
    },
    "speedup": {"switching": {"speedup": "3/2", "output_flits": 4}},
    **{
        f"two of four inputs, {allocator}": {
            "traffic": CLASSES,
            "switching": {"input_speedup": 2, "allocator": allocator, "priority": "class"},
        }
        for allocator in ("islip", "separable_input_first", "wavefront")
    },
    "three of four inputs": {"switching": {"input_speedup": 3, "iterations": 2}},
    "iterations": {"switching": {"iterations": 3, "priority": "age"}},
}
PROGRAM_TIMES = {
    "vct": {"flit_ns": 6.4, "buffer_flits": 64}, "wormhole": {"flit_ns": 6.4}, "ideal": {"flit_ns": 6.4},
}  # fmt: skip
IDEAL = {
    "alone", "classes", "replies", "speeds", "timeline", "timeline, classes", "timeline, replies", "slow links",
    "slow links, classes", "trace", "program", "channels",
}  # fmt: skip

DEFLECTION = {
    "pool": {}, "pool, timeline": {"timeline": FAILURE},
    "pool, program": {**PROGRAM, "routing": {"kind": "deflection"}},
    "packets": {"switching": {"rule": "vc", "share": "packet"}},
    "flits": {"switching": {"rule": "vc", "share": "flit"}},
    "frames": {"switching": {"rule": "frame"}},
}  # fmt: skip

FABRIC = {"kind": "leaf_spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 4}
BULK = {"kind": "shift", "by": 5, "arrivals": "together", "sizes": {"kind": "fixed", "bytes": 100_000}}
FLOWS = {"topology": FABRIC, "routing": {"kind": "ecmp"}, "traffic": BULK, "measure": {"seconds": 0.0002}}
CORE = [{"at_us": 20, "fail": {"switches": [3]}, "reroute_after": 50}]
DATAGRAM = {"mode": "datagram", "nic_mbps": "10Gbps", "link_us": 1}
SPRAY = {"mode": "spray", "nic_mbps": "100Gbps", "link_us": 1}
PFC = {**SPRAY, "mtu_bytes": 4064, "queue": "lossless"}
SENT = {"topology": FABRIC, "routing": {"kind": "ecmp"}}

FLOW_MODES = {
    "datagram": {"switching": DATAGRAM, "transport": {"kind": "mptcp", "subflows": 2}},
    "datagram, timeline": {"switching": DATAGRAM, "transport": {"kind": "dctcp"}, "timeline": CORE},
    "datagram, several": {"switching": DATAGRAM,
                          "transport": {"kind": "several", "of": [{"kind": "tcp"}, {"kind": "dctcp"}]}},
    "datagram, program": {**PROGRAM, **SENT, "switching": DATAGRAM, "transport": {"kind": "tcp"}},
    "flow, program": {**PROGRAM, "switching": {"mode": "flow", "flit_ns": 6.4}},
    "flow, timeline": {**PROGRAM, **SENT, "switching": {"mode": "flow", "flit_ns": 6.4}, "timeline": CORE},
    "spray, timeline": {"switching": SPRAY, "transport": {"kind": "nscc"}, "timeline": CORE},
    "spray, program": {**PROGRAM, **SENT, "switching": SPRAY, "transport": {"kind": "nscc"}},
    "spray, several": {"switching": SPRAY,
                       "transport": {"kind": "several", "of": [{"kind": "nscc"}, {"kind": "rccc"}]}},
    **{f"spray, {kind}": {"switching": SPRAY, "transport": {"kind": kind}}
       for kind in ("constant", "ndp", "nscc", "nscc_rccc", "rccc")},
    **{f"lossless, {kind}": {"switching": PFC, "transport": {"kind": kind}}
       for kind in ("roce", "dcqcn", "swift", "hpcc", "timely")},
    "lossless, shared": {"switching": {**PFC, "pfc": {"buffer_bytes": 4_000_000}},
                         "transport": {"kind": "dcqcn"}},
    "lossless, storm": {"switching": {**PFC, "pfc": {"watchdog_us": 40, "restore_us": 40,
                                                       "pfc_storm": {"host": 0, "at_us": 10}}},
                        "transport": {"kind": "roce"}},
    "lossless, classes": {"switching": {**PFC, "pfc": {"watchdog_us": 400, "classes": [
                              {"name": "storage", "weight": 3}, {"name": "bulk"},
                              {"name": "voice", "pause": False, "strict": True, "queue_packets": 20}]}},
                          "transport": {"kind": "several", "of": [
                              {"kind": kind, "priority_class": name} for kind, name in
                              (("roce", "storage"), ("dcqcn", "bulk"), ("hpcc", "voice"))]}},
    "lossless, timeline": {"switching": PFC, "transport": {"kind": "roce", "timeout_us": 100}, "timeline": CORE},
    "lossless, program": {**PROGRAM, **SENT, "switching": PFC, "transport": {"kind": "hpcc"}},
}  # fmt: skip


def variants():
    """(name, configuration) of every variant."""
    for mode, router in ROUTERS.items():
        own = {"vct": OF_VCT, "wormhole": OF_WORMHOLE}.get(mode, {})
        for name, keys in {**FEATURES, **own}.items():
            if mode != "ideal" or name in IDEAL:
                more = {} if mode == "ideal" else keys.get("switching", {})
                time = PROGRAM_TIMES[mode] if name == "program" else {}
                yield f"{mode}, {name}", {**PACKETS, **keys, "switching": {**router, **more, **time}}
    for name, keys in DEFLECTION.items():
        router = {"mode": "deflection", "vcs": 2, "flit_ns": 6.4} | keys.get("switching", {})
        yield f"deflection, {name}", {**PACKETS, "routing": {"kind": "deflection"}, **keys, "switching": router}
    for name, keys in FLOW_MODES.items():
        yield name, {**FLOWS, **keys}


def given(keys):
    """The configuration of a variant as text."""
    unused = {"traffic", "loads", "measure"} if "experiment" in keys else set()
    text = {"name": "variant", **NOTHING, **keys}
    return json.dumps({key: value for key, value in text.items() if key not in unused and value is not None})


@pytest.mark.long
@pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in variants()])
def test_engines_agree(tmp_path, monkeypatch, keys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TRACE)
    report = run(read(tmp_path / "v.yaml", text=given(keys)), tmp_path / "run")
    assert (report.exit_code, report.problems) == (0, [])
    assert [row["status"] for row in report.results] == ["ok"]
