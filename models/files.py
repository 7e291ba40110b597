# SPDX-License-Identifier: Apache-2.0
"""Atomic writes of files, and safe reads from folders of unknown origin.

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

TEMPORARY_SUFFIX = ".part"
"""Suffix of files that are being written; their names begin with a dot."""

MAX_BYTES = 2**30
"""Size limit of a file that is read from a folder."""

_unfinished: set[Path] = set()


@contextmanager
def replacing(path: str | Path, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` when the block ends; if the block raises, it is removed.

    Until then the file at ``path`` is unchanged, even if the process is killed.

    Parameters
    ----------
    path: the file to write; its folder exists.
    durable: whether the content is on the disk (``fsync``) before it replaces the old file.

    Returns
    -------
    A binary file, open for writing and reading, with random access.

    Raises
    ------
    OSError: the file cannot be written, or ``path`` is a link, a folder, a pipe or a device; the error names ``path``.
    """
    try:
        with _temporary_beside(Path(path)) as temporary:
            with open(temporary, "rb+") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def replace_file(path: str | Path, content: str | bytes, durable: bool = True) -> None:
    """Write a file as :func:`replacing` does. Text is UTF-8.

    Names of files may be no valid Unicode; their surrogates become escapes, which in JSON read back equal.

    Parameters
    ----------
    path, durable: as of :func:`replacing`.
    content: all that the file will hold.

    Raises
    ------
    OSError: as of :func:`replacing`.
    """
    with replacing(path, durable) as file:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def remove_unfinished() -> None:
    """Remove the temporary files of :func:`replacing`, in a process that is about to exit without unwinding."""
    for temporary in list(_unfinished):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _temporary_beside(path: Path) -> Iterator[Path]:
    """Create an empty file beside ``path``, with its permissions; it is removed when the block ends. Raises
    ``OSError``.

    Its random name separates processes that write the same file.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            raise OSError(EINVAL, f"is {_kind(mode)}, not a file")
    temporary = path.with_name(f".{os.urandom(8).hex()}{TEMPORARY_SUFFIX}")
    _unfinished.add(temporary)
    try:
        temporary.touch(exist_ok=False)
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def open_file(path: str | Path, max_bytes: int = MAX_BYTES) -> IO[bytes]:
    """Open a file for reading, in a folder of unknown origin.

    Links are rejected because they could lead out of the folder; pipes and devices because they might never end.

    Parameters
    ----------
    path: the file; its folder may be a link.
    max_bytes: size limit.

    Raises
    ------
    OSError: ``path`` is no regular file, is larger, or cannot be read; the error names ``path``.
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
    """Read a file that :func:`open_file` accepts."""
    with open_file(path, max_bytes) as file:
        return file.read()


def read_text(path: str | Path, max_bytes: int = MAX_BYTES) -> str:
    """Read the UTF-8 text of a file that :func:`open_file` accepts. Raises ``UnicodeDecodeError`` for other
    encodings.
    """
    return read_file(path, max_bytes).decode()


def open_text(path: str | Path, max_bytes: int = MAX_BYTES) -> IO[str]:
    """Open a UTF-8 text file, without newline translation, as :func:`open_file` does."""
    return TextIOWrapper(open_file(path, max_bytes), "utf-8", newline="")


def name_of(path: str | Path) -> str:
    """Return the name of a file as text, without its suffix; bytes that are no UTF-8 become U+FFFD.

    >>> name_of("runs/torus.yaml"), name_of(os.fsdecode(b"a\\xff.yaml")) == "a\\ufffd"
    ('torus', True)
    """
    return os.fsencode(Path(path).stem).decode("utf-8", "replace")


def special_files(folder: str | Path) -> Iterator[tuple[Path, str]]:
    """Yield (path, kind in words) of everything below a folder that is neither a file nor a folder.

    Raises
    ------
    OSError: a folder cannot be read.
    """
    for entry in entries(folder):
        if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            yield Path(entry.path), _kind(entry.stat(follow_symlinks=False).st_mode)


def entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """Yield the entries below a folder, those of a subfolder before the subfolder itself; nothing if the folder is
    absent.

    Links are listed and not followed. Hidden folders are listed without their content.
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
    """Return the kind of a file in words."""
    for is_kind, words in (
        (stat.S_ISLNK, "a link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
    ):  # fmt: skip
        if is_kind(mode):
            return words
    return "a device"
