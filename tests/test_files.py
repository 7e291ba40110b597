# SPDX-License-Identifier: Apache-2.0
"""Files are written whole or not at all, and files of folders are read only if they are files."""

import ast
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flitlab.models import files
from flitlab.models.files import open_file, open_text, read_file, remove_unfinished, replace_file, replacing
from tests import ROOT
from tests.syntax_trees import syntax_tree
from tests.test_layers import modules

WRITERS = {
    "models/files.py",  # the one
    "sim/simgrid/replay.py",  # runs in a Python that has SimGrid and no flitlab, into a temporary folder
}
LOCKS = {
    ("models/jit/cache.py", "open(.., 'a')"), ("models/jit/cache.py", "open(.., 'ab')"),
    ("sim/experiment/store.py", "open(.., 'a+')"),
}  # fmt: skip
"""Files that are locked and hold nothing, or grow by a byte that any process appends."""

METHODS = {"write_text", "write_bytes", "to_csv", "to_parquet", "savefig", "save", "savez", "savez_compressed"}
"""Methods and functions that write a file of the name that they get."""

HANDLES = {"file", "content", "text"}
"""Names of open files among our variables: what is written into one of them goes through the writer."""


def writes(tree):
    """(line, what) of every call in a module that writes a file by its name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name == "open":
            first = node.args[isinstance(function, ast.Name) :][:1]
            modes = [*first, *(word.value for word in node.keywords if word.arg == "mode")]
            texts = [mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)]
            if any(set(text) & set("wxa+") and set(text) <= set("rwxabt+") for text in texts):
                yield node.lineno, f"open(.., {texts[0]!r})"
        elif name in METHODS and isinstance(function, ast.Attribute):
            target = node.args[0] if node.args else None
            if not (isinstance(target, ast.Name) and target.id in HANDLES):
                yield node.lineno, name


@pytest.mark.parametrize("package", ["models", "fluid", "sim"])
def test_every_file_is_written_by_the_one_writer(package):
    found = [
        f"{name}:{line}: {what}"
        for path in modules(package) if (name := path.relative_to(ROOT).as_posix()) not in WRITERS
        for line, what in writes(syntax_tree(path)) if (name, what) not in LOCKS
    ]  # fmt: skip
    assert not found


@pytest.mark.parametrize(
    "line",
    ["open(p, 'w')", "p.open('wb')", "p.open(mode='x')", "p.write_text('a')", "f.savefig(p)", "np.savez(p, a)"],
)
def test_other_ways_to_write_are_noticed(line):
    assert list(writes(ast.parse(line)))


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    return path


def listed(path):
    return [entry.name for entry in path.parent.iterdir()]


def test_a_file_is_replaced_whole(old):
    replace_file(old, "new µ")
    assert old.read_bytes() == "new µ".encode() and listed(old) == ["file"]


def test_until_the_end_of_the_block_the_old_file_is_there(old):
    with replacing(old) as file:
        file.write(b"new")
        file.flush()
        assert old.read_text() == "old"
    assert old.read_text() == "new"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_what_ends_a_write_leaves_the_old_file(old, error):
    with pytest.raises(error), replacing(old) as file:
        file.write(b"half")
        raise error
    assert old.read_text() == "old" and listed(old) == ["file"]


def test_permissions_stay_and_follow_the_mask_of_the_user(old):
    old.chmod(0o640)
    replace_file(old, "new")
    before = os.umask(0o077)
    try:
        replace_file(old.with_name("other"), "new")
    finally:
        os.umask(before)
    assert old.stat().st_mode & 0o777 == 0o640 and old.with_name("other").stat().st_mode & 0o777 == 0o600


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        replace_file(tmp_path / "nowhere" / "file", "")
    assert caught.value.filename == str(tmp_path / "nowhere" / "file")


LIMITED = """\
import resource, sys
from flitlab.models.files import replace_file
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    replace_file(sys.argv[1], "x" * 10_000)
except OSError as error:
    print(error.filename, error.strerror)
"""


def test_a_limit_of_the_size_of_files_leaves_the_old_file(old):
    done = subprocess.run([sys.executable, "-c", LIMITED, old], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{old} File too large\n"
    assert old.read_text() == "old" and listed(old) == ["file"]


KILLED = """\
import sys
from flitlab.models.files import replacing
while True:
    with replacing(sys.argv[1]) as file:
        for part in range(20):
            file.write(b"%d" % (part % 10) * 10_000)
            file.flush()
"""


def test_a_killed_process_leaves_a_whole_file(old):
    whole = b"".join(b"%d" % (part % 10) * 10_000 for part in range(20))
    for moment in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, old], cwd=ROOT)
        time.sleep(0.15 + 0.013 * moment)
        process.kill()
        process.wait()
        assert old.read_bytes() in (b"old", whole)


def test_what_an_exit_without_unwinding_leaves_is_removed(old):
    with replacing(old) as file:
        file.write(b"half")
        remove_unfinished()
        assert listed(old) == ["file"]
        old.parent.joinpath(Path(file.name).name).touch()  # so that the block can end
    assert not files._unfinished


def special(path, kind):
    if kind == "link":
        path.symlink_to("file")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "socket"])
def test_what_is_no_file_is_neither_read_nor_replaced(old, kind, monkeypatch):
    monkeypatch.chdir(old.parent)  # the path of a socket is short
    special(Path("special"), kind)
    for act in (open_file, open_text, read_file, lambda path: replace_file(path, "new")):
        with pytest.raises(OSError, match=r"special"):
            act("special")
    assert old.read_text() == "old" and len(listed(old)) == 2


def test_a_device_is_neither_read_nor_replaced():
    for act in (read_file, lambda path: replace_file(path, "new")):
        with pytest.raises(OSError, match="is a device, not a file"):
            act("/dev/zero")
    assert Path("/dev/zero").is_char_device()


def test_a_file_that_is_too_large_is_not_read(old):
    assert read_file(old, 3) == b"old"
    with pytest.raises(OSError, match="is larger than 2 bytes"):
        read_file(old, 2)


def test_line_ends_are_those_of_the_file(old):
    old.write_bytes(b"a\r\nb\n")
    with open_text(old) as text:
        assert text.read() == "a\r\nb\n"
