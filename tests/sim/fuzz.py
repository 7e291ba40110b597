# SPDX-License-Identifier: Apache-2.0
"""Random changes of small inputs (``fuzz.yaml``): configurations, claims, the files that they name, and API calls.

Whatever the input is, a command ends with exit code 0, 1, 2 or 3 and without an exception, and ``quick`` runs what
``check`` accepts. ``python -m tests.sim.fuzz --count 3000 --seed 20240101`` tries as many mutations and lists those
that break this; ``--only 17`` writes the seventeenth of them to the current directory.

Mutations run one after another in one process, which costs a tenth of a second each. A process that does not end in
time, or dies, is replaced by one that goes on with the next mutation.
"""

import argparse
import contextlib
import copy
import io
import json
import os
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT
from tests.known_prices import known_price

BASES: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())

SECONDS = 60
"""Wall time that a mutation may take."""
MEMORY = 1 << 30
"""Bytes that a mutation may add to the peak of the process."""
ENGINE = "FLITLAB_FUZZ_ENGINE"
"""The environment variable by which processes know the engine."""
WEIGHTS = {"config": 10, "claim": 3, "file": 5, "api": 2}
"""How often each kind of input is mutated."""

SCALARS: list[Any] = [
    0, -1, 1, 2, 3, 7, 1.5, 0.1, -0.0, 1e-320, 1e-19, 1e308, 1e18, 2**31 - 1, 2**63, 10**30, float("nan"), float("inf"),
    "1e999999999", "nan", "", " ", "~", None, True, False, [], {}, [[]], "auto", "all", "0", "0x10", "1_000", "1 KiB",
    "-1 us", "100Gbps", "5%", "é\u202e", "a/b", "../x", "\x1b[31m", "$x", "<b>", "x" * 300, "random", "minimal", "ring",
]  # fmt: skip
"""What takes the place of a value."""

BYTES = ["\n", "\t", "\0", ",", ",,", '"', "{", "]", ": ", "- ", "&a ", "*a", "!!python/name:os.system ", "#", "\ufeff",
         "1e400", "nan", "-", "9" * 40, "<!ENTITY", "é", "\r"]  # fmt: skip
"""What is put into texts."""

ARGUMENTS: dict[str, list[Any]] = {
    "topology": ["torus", {"kind": "mesh", "dims": [2, 2]}, {"kind": "rrg", "n": 8, "degree": 3}],
    "routing": ["minimal", {"kind": "ksp", "k": 2}], "traffic": ["uniform", {"kind": "shift", "by": 1}],
    "load": [0.1, [0.1, 0.2], "20%"], "seeds": [1, [1, 2]], "jobs": [1], "threads": [1], "kind": ["mcf", "bounds"],
}  # fmt: skip
"""Arguments of ``simulate`` and ``ceiling``; one or two are replaced."""


@dataclass
class Mutation:
    """An input. command: ``check``, ``judge`` or the name of an API function. files: by name, the first is read."""

    command: str
    base: str
    files: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)


def mutation(seed: int, number: int) -> Mutation:
    """The mutation of that number under a seed; equal ones are equal on every machine."""
    draw = random.Random(f"{seed} {number}")
    kind = draw.choices(list(WEIGHTS), WEIGHTS.values())[0]
    if kind == "api":
        return _call(draw)
    group = "claims" if kind == "claim" or (kind == "file" and draw.random() < 0.3) else "configs"
    named = {base: _named(text) for base, text in BASES[group].items()}
    base = draw.choice([name for name in named if kind != "file" or named[name]])
    text = BASES[group][base]
    files = {name: BASES["files"][name] for name in named[base]}
    if kind == "file":
        name = draw.choice(sorted(files))
        files[name] = _text(draw, files[name], draw.randint(1, 3))
    elif draw.random() < 0.1:
        text = _text(draw, text, 1)
    else:
        text = _tree(draw, text, draw.randint(1, 3))
    command = "judge" if group == "claims" else "check"
    return Mutation(command, base, {"input.yaml": text, **files})


def _named(text: str) -> list[str]:
    return [name for name in BASES["files"] if name in text]


def _call(draw: random.Random) -> Mutation:
    command = draw.choice(["simulate", "ceiling"])
    names = [name for name in ARGUMENTS if (name == "kind") <= (command == "ceiling")]
    names = names if command == "simulate" else ["topology", "routing", "traffic", "kind"]
    arguments = {name: draw.choice(ARGUMENTS[name]) for name in names if name == "topology" or draw.random() < 0.8}
    for name in draw.sample(names, draw.randint(1, 2)):
        arguments[name] = draw.choice([*SCALARS, [draw.choice(SCALARS)], {"kind": draw.choice(SCALARS)}])
    return Mutation(command, command, arguments=copy.deepcopy(arguments))


def _text(draw: random.Random, text: str, times: int) -> str:
    """A text with some characters removed, replaced or put in, or a number of it changed."""
    for _ in range(times):
        begin = draw.randrange(len(text) + 1)
        numbers = list(re.finditer(r"[0-9.]+", text))
        action = draw.choice(["insert", "delete", "replace", "cut", "number", "number", "repeat"])
        if action == "number" and numbers:
            match = draw.choice(numbers)
            text = text[: match.start()] + str(draw.choice(SCALARS)) + text[match.end() :]
        elif action == "cut":
            text = text[:begin]
        elif action == "repeat":
            text = text[:begin] + text[max(begin - 20, 0) : begin] * draw.choice([1, 3, 100]) + text[begin:]
        else:
            end = begin + (0 if action == "insert" else draw.randint(1, 8))
            text = text[:begin] + ("" if action == "delete" else draw.choice(BYTES)) + text[end:]
    return text


def _tree(draw: random.Random, text: str, times: int) -> str:
    """A configuration with values replaced, keys removed or renamed, or parts of others put in."""
    tree = yaml.safe_load(text)
    for _ in range(times):
        places = list(_places(tree))
        if not places:
            break
        holder, key = draw.choice(places)
        value = holder[key]
        action = draw.choice(["scalar", "scalar", "scalar", "number", "remove", "rename", "list", "sweep", "other"])
        if action == "number" and isinstance(value, int | float) and not isinstance(value, bool):
            holder[key] = draw.choice([-value, value + 1, value * 10, value / 3, value * 1000, str(value)])
        elif action == "remove":
            del holder[key]
        elif action == "rename" and isinstance(holder, dict):
            other = draw.choice([k for h, k in places if isinstance(h, dict)] + ["kind", "x"])
            holder[other] = holder.pop(key)
        elif action == "list":
            holder[key] = draw.choice([[value], [value, value], {"kind": value}, {"sweep": []}])
        elif action == "sweep":
            holder[key] = {"sweep": [value, draw.choice(SCALARS)]}
        elif action == "other":
            holder[key] = _part(draw, key)
        else:
            holder[key] = draw.choice(SCALARS)
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=draw.random() < 0.5)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value in nested mappings and lists: what holds it, and under which key."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def _part(draw: random.Random, key: Any) -> Any:
    """What another base has under a key, else any part of any."""
    trees = [yaml.safe_load(text) for group in ("configs", "claims") for text in BASES[group].values()]
    parts = [(k, holder[k]) for tree in trees for holder, k in _places(tree)]
    return draw.choice([value for k, value in parts if k == key] or [value for _, value in parts])


def run(tried: Mutation) -> str:
    """How a mutation ends, in the current directory; '' as it should."""
    try:
        return _ended(tried)
    except (Exception, SystemExit):
        return traceback.format_exc(limit=-6)


def _ended(tried: Mutation) -> str:
    import flitlab
    from flitlab.models.registry import SpecError
    from flitlab.sim.cli import main
    from flitlab.sim.exit import ExitCode

    if tried.command not in ("check", "judge"):
        with contextlib.suppress(flitlab.ConfigError, flitlab.RunError, SpecError):
            getattr(flitlab, tried.command)(**tried.arguments)
        return ""
    first = _code(main, [tried.command, "input.yaml", *([] if tried.command == "judge" else ["--jobs", "1"])])
    if isinstance(first, str):
        return first
    if tried.command == "judge" or first != ExitCode.OK:
        return f"check ends with {first}" if first == ExitCode.FAILED and tried.command == "check" else ""
    engine = ["--engine", os.environ[ENGINE]] if ENGINE in os.environ else []
    second = _code(main, ["quick", "input.yaml", "--jobs", "1", *engine])
    return (
        second
        if isinstance(second, str)
        else ("" if second == ExitCode.OK else f"check ends with 0, quick with {second}")
    )


def _code(main: Any, arguments: list[str]) -> int | str:
    """The exit code of a command; where it is none of those promised, or a traceback is printed, what was printed."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            code = main(arguments)
        except SystemExit as ended:  # of argparse
            code = ended.code
    said = errors.getvalue()
    if code not in range(4) or "Traceback (most recent call last)" in said:
        return f"{arguments[0]} ends with {code}: {said}"
    return int(code)


def _peak() -> int:
    """The most memory of this process since :func:`_forget_peak`, in bytes; 0 where Linux does not tell."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return 0


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def work(seed: int, first: int, count: int) -> None:
    """Runs mutations, and prints how each ends as a line of JSON: before it starts, and after."""
    from flitlab.sim.experiment import prices

    # what a run costs on this machine is measured by other tests
    prices.Prices._price = lambda self, name, measure: (  # type: ignore[method-assign]
        1.0 if name.startswith("ceiling") else known_price(name)
    )
    out = os.fdopen(os.dup(1), "w")
    for base, text in BASES["configs"].items():  # compiles what mutations need, whose time counts
        _in_folder(Mutation("check", base, {"input.yaml": text, **BASES["files"]}))
    for number in range(first, first + count):
        print(json.dumps({"number": number}), file=out, flush=True)
        tried = mutation(seed, number)
        _forget_peak()
        before, started = _peak(), time.monotonic()
        said = _in_folder(tried)
        spent, memory = time.monotonic() - started, _peak() - before
        if not said and memory > MEMORY:
            said = f"takes {memory >> 20} MB"
        print(json.dumps({"number": number, "said": said, "seconds": spent, "memory": memory}), file=out, flush=True)


def _in_folder(tried: Mutation) -> str:
    """How a mutation ends, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write(tried, Path())
        return run(tried)


def write(tried: Mutation, folder: Path) -> None:
    """Writes the files of a mutation."""
    for name, text in tried.files.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def worker(seed: int, first: int, count: int) -> list[str]:
    """The command of a process that runs mutations."""
    options = ["--work", str(first), "--seed", str(seed), "--count", str(count)]
    return [sys.executable, "-m", "tests.sim.fuzz", *options]


def fuzz(seed: int, count: int, first: int = 0) -> Iterator[tuple[int, str]]:
    """The number of every mutation and how it ends, '' as it should."""
    number, last = first, first + count
    while number < last:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(worker(seed, number, last - number), cwd=ROOT, **pipes) as process:
            for tried, end in _watch(process, number):
                yield tried, end
        number = tried + 1


def _watch(process: subprocess.Popen[str], number: int) -> Iterator[tuple[int, str]]:
    """How mutations of a process end, the first of them ``number``, until it is done or has to be replaced."""
    lines: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=lambda: [*map(lines.put, process.stdout or ()), lines.put("")], daemon=True)
    reader.start()
    running, limit = True, 10 * SECONDS  # a process that starts compiles kernels
    while True:
        try:
            line = lines.get(timeout=limit)
        except queue.Empty:
            process.kill()
            yield number, f"does not end in {SECONDS} s"
            return
        if not line:
            code = process.wait()
            if running or code:
                yield number, f"the process ends with {code}"
            return
        end = json.loads(line)
        number, running, limit = end["number"], "said" not in end, SECONDS
        if not running:
            yield number, end["said"]


def kind_of(end: str) -> str:
    """The last line of how a mutation ended, without numbers: what sorts the ends."""
    lines = [line for line in end.strip().splitlines() if line.strip()] or [""]
    return re.sub(r"[0-9]+", "#", lines[-1])[:120]


def main() -> None:
    """Runs mutations, prints those that do not end as they should, counts them by kind, and exits with 1 for any."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.fuzz")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=today())
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--engine", help="that runs what check accepts, in place of the input's")
    parser.add_argument("--only", type=int, help="write this mutation to the current directory")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine is not None:
        os.environ[ENGINE] = options.engine
    if options.work is not None:
        return work(options.seed, options.work, options.count)
    if options.only is not None:
        tried = mutation(options.seed, options.only)
        write(tried, Path())
        return print(tried.command, *(tried.files or [tried.arguments]))
    ends: dict[int, str] = {}
    for number, end in fuzz(options.seed, options.count, options.first):
        if end:
            ends[number] = end
            print(f"{number}: {end}\n", flush=True)
    kinds = Counter(map(kind_of, ends.values()))
    for kind, times in kinds.most_common():
        print(f"{times} x {kind}: {[number for number, end in ends.items() if kind_of(end) == kind][:10]}")
    print(f"seed {options.seed}: {options.count} mutations, {len(ends)} do not end as they should")
    sys.exit(bool(ends))


def today() -> int:
    """The seed of a day, such as 20240131."""
    return int(time.strftime("%Y%m%d"))


if __name__ == "__main__":
    main()
