# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all, and files of folders that may come from elsewhere.

Every output goes through :func:`replacing` or :func:`replace_file`; ``tests/test_files.py`` enforces it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from io import TextIOWrapper
from pathlib import Path
from typing import IO

PART = ".part"
"""Suffix of files that are being written; their names begin with a dot."""

MAX_BYTES = 2**30
"""Bytes of the largest file of a folder that is read."""

_unfinished: set[Path] = set()


@contextmanager
def replacing(path: str | Path, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of another when the block ends, and is removed when the block raises.

    Until then the file at ``path`` is as it was, also if the process is killed.

    Parameters
    ----------
    path: the file to write; its folder exists.
    durable: whether the content is on the disk before the other file goes (``fsync``).

    Returns
    -------
    A binary file, open for writing, that can be sought and read.

    Raises
    ------
    OSError: the file cannot be written, or ``path`` is a link, a folder, a pipe or a device; it names ``path``.
    """
    try:
        with _part_of(Path(path)) as part:
            with open(part, "rb+") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(part, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def replace_file(path: str | Path, content: str | bytes, durable: bool = True) -> None:
    """Write a file as :func:`replacing` does. Text is UTF-8.

    Parameters
    ----------
    path, durable: as of :func:`replacing`.
    content: all that the file will hold.

    Raises
    ------
    OSError: as of :func:`replacing`.
    """
    with replacing(path, durable) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def remove_unfinished() -> None:
    """Remove the files that :func:`replacing` has begun, of a process that is about to exit without unwinding."""
    for part in list(_unfinished):
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def _part_of(path: Path) -> Iterator[Path]:
    """An empty file beside another one, with its permissions, that is removed when the block ends. Raises ``OSError``.

    A name of its own keeps two processes apart that write the same file.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            raise OSError(EINVAL, f"is {_kind(mode)}, not a file")
    part = path.with_name(f".{os.urandom(8).hex()}{PART}")
    _unfinished.add(part)
    try:
        part.touch(exist_ok=False)
        if mode is not None:
            part.chmod(stat.S_IMODE(mode))
        yield part
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        _unfinished.discard(part)


def open_file(path: str | Path, max_bytes: int = MAX_BYTES) -> IO[bytes]:
    """Open a file of a folder that may come from elsewhere for reading.

    A link would lead out of the folder, and a pipe or a device might never end.

    Parameters
    ----------
    path: the file; its folder may be a link.
    max_bytes: size of the largest file that is opened.

    Raises
    ------
    OSError: ``path`` is no regular file, is larger, or cannot be read; it names ``path``.
    """
    path = Path(path)
    if path.is_symlink():
        raise OSError(EINVAL, "is a link, not a file", str(path))
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(EINVAL, f"is {_kind(status.st_mode)}, not a file", str(path))
        if status.st_size > max_bytes:
            raise OSError(EINVAL, f"is larger than {max_bytes:,} bytes", str(path))
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_file(path: str | Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Content of a file that :func:`open_file` opens."""
    with open_file(path, max_bytes) as file:
        return file.read()


def read_text(path: str | Path, max_bytes: int = MAX_BYTES) -> str:
    """Text, in UTF-8, of a file that :func:`open_file` opens. Raises ``UnicodeDecodeError`` for other encodings."""
    return read_file(path, max_bytes).decode()


def open_text(path: str | Path, max_bytes: int = MAX_BYTES) -> IO[str]:
    """Open a text file, in UTF-8 and with its own line ends, as :func:`open_file` does."""
    return TextIOWrapper(open_file(path, max_bytes), "utf-8", newline="")


def special_files(folder: str | Path) -> Iterator[tuple[Path, str]]:
    """List what is neither a file nor a folder, below a folder, and what it is in words.

    Raises
    ------
    OSError: a folder cannot be read.
    """
    for entry in entries(folder):
        if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            yield Path(entry.path), _kind(entry.stat(follow_symlinks=False).st_mode)


def entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """List what is in a folder, and in the folders in it before these; nothing if it is absent.

    Links are listed and not followed, and hidden folders are listed without their content.
    """
    try:
        with os.scandir(folder) as scan:
            listed = list(scan)
    except FileNotFoundError:  # another process has removed it
        return
    for entry in listed:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from entries(entry.path)
        yield entry


def _kind(mode: int) -> str:
    """A kind of file in words."""
    for is_kind, words in (
        (stat.S_ISLNK, "a link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
    ):  # fmt: skip
        if is_kind(mode):
            return words
    return "a device"
