"""Files on this machine: written whole or not at all, and read up to a size."""

import gzip
import importlib.util
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TextIO

from rareswitch.errors import FileFormatError, InputError, MissingExtraError

__all__ = ["class_of_file", "lock", "naming_file", "pyarrow", "read_whole", "reading", "replacing", "write_whole"]

_LARGEST = 1 << 30
#: Characters of a line of text.
LONGEST_LINE = 1 << 26
#: Bytes that a compressed file, or a column of a row group, may always unpack to; beyond them, this multiple of its
#: own size.
EXPANDED, EXPANSION = 1 << 30, 200
#: What folders are called in which files are written before they have their names.
_PREFIX, _SUFFIX = ".rareswitch-", ".tmp"


def pyarrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            "this is kept in Parquet. Install what it needs with: pip install 'rareswitch[parquet]'"
        ) from error
    return pa, parquet


@contextmanager
def naming_file(path: str | Path) -> Iterator[None]:
    """A block that makes something of what a file holds: what is wrong with that is raised with the file's name.

    >>> with naming_file("log.csv"):
    ...     raise InputError("rewards must be finite.")
    Traceback (most recent call last):
    rareswitch.errors.FileFormatError: log.csv: rewards must be finite.
    """
    try:
        yield
    except FileFormatError:  # which says it already
        raise
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A private file to write to, which takes the name ``path`` when the block ends well and is on the disk.

    If the block ends by an exception, nothing appears. What was under the name before stays until then. What writers
    that were killed left beside it is removed.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [entry.name for entry in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise FileFormatError(f"{path}: cannot be written; it is there already, and no file.")
    try:
        with _private_folder(path.parent) as private:
            temporary = private / "new"
            temporary.touch()
            yield temporary
            _synchronize(temporary)
            temporary.replace(path)
            _synchronize(path.parent)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error


@contextmanager
def _private_folder(parent: Path) -> Iterator[Path]:
    """A folder that no other user can enter, removed in the end with all that is in it.

    It is locked while it is in use. The lock goes with its process, however that ends: a folder that can be locked was
    left by a writer that is dead.
    """
    for left in parent.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError), _opened(left) as handle:
            lock(handle, wait=False)
            shutil.rmtree(left, ignore_errors=True)
    while True:
        private = Path(tempfile.mkdtemp(dir=parent, prefix=_PREFIX, suffix=_SUFFIX))
        with ExitStack() as held:
            held.callback(shutil.rmtree, private, ignore_errors=True)
            with suppress(OSError):  # where the file system has no locks, nobody can take it for a dead one either
                lock(held.enter_context(_opened(private)))
            if not private.exists():  # another writer took it for a dead one before it was locked
                continue
            yield private
            return


def lock(handle: int, *, wait: bool = True) -> None:
    """Hold an open file alone until it is closed; an OSError where others hold it, or where there are no locks."""
    try:
        import fcntl
    except ImportError as error:
        raise OSError("this system has no locks of files") from error
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A handle of a folder; a link is not followed."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


def write_whole(data: bytes, path: str | Path) -> None:
    """Write a file that appears whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _synchronize(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some file systems cannot do this for a folder
            raise
    finally:
        os.close(handle)


@contextmanager
def _readable(path: str | Path) -> Iterator[BinaryIO]:
    """A regular file to read; what is wrong with the file itself is raised with its name."""
    try:
        # a pipe would wait for its writer, and a device has no end
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileFormatError(f"{path}: cannot be read (it is a device or a pipe). Name a regular file.")
            yield file
    except InputError:
        raise
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(
            f"{path}: not a whole gzip file ({error!s:.100}). It may be cut short; copy it again."
        ) from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text in UTF-8 ({error.reason}). Convert it.") from error
    except (OSError, ValueError) as error:  # a ValueError is of a name that no file can have
        raise FileFormatError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from error


def read_whole(path: str | Path) -> bytes:
    """The content of a regular file, unless it is larger than anything written here.

    No more is read than the file had when it was opened: what only looks like a file has no end.
    """
    with _readable(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _LARGEST:
            raise FileFormatError(f"{path}: such a file has at most {_LARGEST} bytes; this one has {size}.")
        data = file.read(size + 1)
        if len(data) > size:
            raise FileFormatError(f"{path}: cannot be read (it grows while it is read). Name a file that is complete.")
        return data


class _Lines(TextIOWrapper):
    """A text whose lines are read up to a length: a compressed file of some kilobytes can hold a line of gigabytes."""

    def __init__(self, raw: Any, path: str | Path) -> None:
        super().__init__(raw, encoding="utf-8-sig", newline="")
        self._path, self._number = path, 0

    def __next__(self) -> str:  # type: ignore[override]
        text = self.readline(LONGEST_LINE + 1)
        if not text:
            raise StopIteration
        self._number += 1
        if len(text) > LONGEST_LINE:
            raise FileFormatError(
                f"{self._path}, line {self._number}: a line has at most {LONGEST_LINE:,} characters, and this one has "
                "more. Write one decision a line."
            )
        return text


class _Unzipped(gzip.GzipFile):
    """The content of a compressed file, as long as it is not far more than such a file holds."""

    def __init__(self, raw: Any, path: str | Path) -> None:
        super().__init__(fileobj=raw)
        self._path, self._packed, self._unpacked = path, os.fstat(raw.fileno()).st_size, 0

    def read1(self, size: int = -1) -> bytes:
        data = super().read1(size)
        self._unpacked += len(data)
        if self._unpacked > max(EXPANDED, EXPANSION * self._packed):
            raise FileFormatError(
                f"{self._path}: its {self._packed:,} bytes are those of more than {self._unpacked - 1:,}; a file that "
                f"holds more than {EXPANDED:,} is read if it is compressed to no less than 1/{EXPANSION}. If it is a "
                "log, unpack it first."
            )
        return data


@contextmanager
def reading(path: str | Path) -> Iterator[TextIO]:
    """A text file to read; a name that ends in ``.gz`` is that of a compressed one."""
    with ExitStack() as held:
        raw: Any = held.enter_context(_readable(path))
        if str(path).endswith(".gz"):
            raw = held.enter_context(_Unzipped(raw, path))
        yield held.enter_context(_Lines(raw, path))


@lru_cache(maxsize=64)
def _loaded(path: str, changed: int, what: str) -> ModuleType:
    """The module of a file, as it was when it was changed last."""
    spec = importlib.util.spec_from_file_location(f"rareswitch_{what}_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def class_of_file(name: str, what: str) -> Any:
    """The class that ``path/to/file.py:Class`` names: a ``what`` of one's own. The file is run once."""
    path, _, attribute = name.rpartition(":")
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; a {what} of your own is named path/to/file.py:Class.")
    try:
        return getattr(_loaded(path, Path(path).stat().st_mtime_ns, what), attribute)
    except AttributeError as error:
        raise InputError(f"{path} has no class {attribute} ({error}).") from error
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name} could not be made: {type(error).__name__}: {error}") from error
