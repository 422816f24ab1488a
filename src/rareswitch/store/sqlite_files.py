"""The SQLite files that this process has open, and those that its parent had open when it was forked.

SQLite keeps processes apart by POSIX locks, which belong to a process and a file: whoever closes the file drops all
locks that the process has on it, whichever handle took them (https://www.sqlite.org/howtocorrupt.html, 2.2). Another
process then believes itself alone, and deletes the write-ahead log under this one. So nothing here opens a file that
SQLite may have open. A forked process has no locks of its own, and SQLite's memory of its parent's: it may not use
these files at all (same page, 2.6).
"""

import os
import threading
from collections import Counter
from pathlib import Path
from urllib.parse import quote

from rareswitch.errors import StoreError

#: The file behind a path, by device and inode: another one if it was deleted or replaced.
Identity = tuple[int, int]
#: Stores of this process that have a file open, by its path; 0 where one had.
_OPEN = Counter[str]()
#: Files that were open in the parent when this process was forked.
_INHERITED = set[str]()
#: Files that were deleted or replaced while stores of this process had them open, as long as one has.
_LOST = set[str]()
#: Held while a file is created, and while it is first opened.
_LOCK = threading.Lock()
REMEDY = (
    "Start processes by the 'spawn' method (multiprocessing.get_context('spawn')), or open experiments only after "
    "forking."
)


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.Lock()  # which another thread of the parent may hold
    _INHERITED.update(path for path, stores in _OPEN.items() if stores)
    _OPEN.clear()
    _LOST.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def refuse_inherited(path: Path) -> None:
    """Raise if the parent of this process had a file open when this process was forked."""
    if str(path) in _INHERITED:
        raise StoreError(
            f"{path} was open in the parent of this process when it was forked, and cannot be used here: what is "
            f"written could be lost. {REMEDY}"
        )


def open_file(path: Path, *, create: bool) -> bool:
    """Before the first connection of a store to its file, which is created if it may be.

    Returns whether no other store of this process has it open.
    """
    with _LOCK:  # who creates a file closes it before anyone else here connects to it
        refuse_inherited(path)
        check_there(path)
        if create:
            _create(path)
        elif not path.is_file():
            raise StoreError(f"there is no file {path}. Create an experiment there, or correct the address.")
        _OPEN[str(path)] += 1
        return _OPEN[str(path)] == 1


def close_file(path: Path) -> None:
    """After the last connection of a store was closed."""
    with _LOCK:
        _OPEN[str(path)] -= 1
        if not _OPEN[str(path)]:
            _LOST.discard(str(path))


def _create(path: Path) -> None:
    """An empty file for its owner alone, if there is none; one that is there is never opened."""
    if os.path.lexists(path):
        return
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass  # another process was faster
    except OSError as error:
        raise StoreError(f"sqlite:///{path} cannot be written: {error.strerror}.") from error


def size_of(path: str | Path) -> int:
    """Bytes of a file, which is not opened; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def uri(path: str, *, mode: str = "ro") -> str:
    """A file as the URI by which SQLite opens it, by default for reading; never is one created.

    Where nobody can write, as on read-only media, SQLite reads without a log, if all is in the file.

    >>> uri("/data/50% of it?.db")
    'file:/data/50%25%20of%20it%3F.db?mode=ro'
    """
    effective = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    folder = os.path.dirname(path)
    fixed = os.path.exists(path) and not os.access(folder, os.W_OK, **effective) and not size_of(f"{path}-wal")
    return f"file:{quote(path)}?mode={'ro&immutable=1' if fixed else mode}"


def identity_of(path: str | Path) -> Identity | None:
    """That of the file that is there now, which is not opened; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def check_there(path: Path, opened: Identity | None = None, log: Identity | None = None) -> None:
    """Raise if a file, or its write-ahead log, is not the one that was opened; and ever after, until it is closed.

    As long as a process has the file open nobody deletes the log, unless the locks of that process were dropped.
    A connection that is made later would mix the old log with a new one, so there must be none.
    """
    if opened is not None and identity_of(path) != opened:
        _LOST.add(str(path))
    if log is not None and identity_of(f"{path}-wal") != log:
        _LOST.add(str(path))
    if str(path) in _LOST:
        raise StoreError(
            f"{path} or its log, {path.name}-wal, was deleted or replaced while this process had it open, or was "
            "opened here by other means than SQLite. This call is not acknowledged. Close all experiments of this file "
            "in this process; put the files back or restore a backup if they are gone; then open the experiments again."
        )
