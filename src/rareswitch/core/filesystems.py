"""Where parts of a log are: on this machine, or at a URL, as s3://bucket/part.parquet, by pyarrow's file systems."""

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rareswitch.core.files import pyarrow, replacing
from rareswitch.errors import FileFormatError

__all__ = ["exists", "find_parts", "is_url", "making_file"]

_URL = re.compile(r"[a-z][a-z0-9+.-]*://")
_SECRET = re.compile(r"://[^/?@:]*:[^?]*@")
#: Bytes that are sent at a time.
_PIECE = 1 << 24
_REMEDY = (
    "Look whether bucket and name are right, and whether credentials are in the environment: AWS_ACCESS_KEY_ID, "
    "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL for s3://, GOOGLE_APPLICATION_CREDENTIALS for gs://"
)


def find_parts(patterns: Iterable[str | Path]) -> list[str]:
    """The files that the patterns name, as absolute paths or URLs, each once, in the order of these as strings.

    >>> find_parts(["/nowhere/part-*.parquet"])
    Traceback (most recent call last):
    rareswitch.errors.FileFormatError: /nowhere/part-*.parquet: no file matches this pattern. Put it in quotes, ...
    """
    names: dict[str, str] = {}
    for pattern in map(str, patterns):
        files = _matching_urls(pattern) if is_url(pattern) else _matching_paths(pattern)
        if not files:
            raise FileFormatError(
                f"{pattern}: no file matches this pattern. Put it in quotes, and look where the log is."
            )
        for path in files:
            same, name = (path, path) if is_url(path) else (os.path.realpath(path), os.path.abspath(path))
            names.setdefault(same, name)
    return sorted(names.values())


def is_url(path: str | Path) -> bool:
    """Whether it is on another machine.

    >>> is_url("s3://logs/part-1.parquet"), is_url("logs/part-1.parquet")
    (True, False)
    """
    return _URL.match(str(path)) is not None


def exists(path: str | Path) -> bool:
    """Whether there is anything under this name."""
    if not is_url(path):
        return os.path.lexists(path)
    with _reaching(path) as (system, inner):
        return bool(system.get_file_info(inner).type.name != "NotFound")


def opened_file(path: str) -> Any:
    """A file to read from anywhere in it, an Arrow file; what is wrong is an OSError, or raised with its name."""
    pa, _ = pyarrow()
    if not is_url(path):
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for its writer
            raise FileFormatError(f"{path}: cannot be read (it is a device or a pipe). Name a regular file.")
        return pa.OSFile(path)
    with _reaching(path) as (system, inner):
        return system.open_input_file(inner)


@contextmanager
def making_file(path: str | Path) -> Iterator[Path]:
    """A private file to write to, which takes its place when the block ends well; if it does not, nothing appears."""
    if not is_url(path):
        with replacing(path) as temporary:
            yield temporary
        return
    with TemporaryDirectory() as folder:
        temporary = Path(folder) / "new"
        yield temporary
        with _reaching(path) as (system, inner):
            try:
                with open(temporary, "rb") as source, system.open_output_stream(inner) as target:
                    while piece := source.read(_PIECE):
                        target.write(piece)
            except BaseException:  # what was sent so far may be there
                with suppress(OSError):
                    system.delete_file(inner)
                raise


def _matching_paths(pattern: str) -> list[str]:
    paths = [pattern] if os.path.lexists(pattern) else glob.glob(pattern, recursive=True)
    files = [path for path in paths if not os.path.isdir(path)]
    if paths and not files:
        raise FileFormatError(f"{pattern}: a folder; name the files in it, as {os.path.join(pattern, '*.parquet')}")
    return files


def _matching_urls(pattern: str) -> list[str]:
    """The objects that a URL names, or one with * and [ ] in it: * is within one folder, ** is any number of them."""
    from pyarrow.fs import FileSelector

    scheme, _, rest = pattern.partition("://")
    rest, mark, query = rest.partition("?")  # of the file system, such as its region
    fixed = rest[: rest.rindex("/") + 1] if "/" in rest else ""
    if not set("*[") & set(rest):
        with _reaching(pattern) as (system, inner):
            target = system.get_file_info(inner)
        if target.type.name == "Directory":
            raise FileFormatError(f"{pattern}: a folder; name the files in it, as {scheme}://{target.path}/*.parquet")
        return [pattern] if target.is_file else []
    while set("*[") & set(fixed):
        fixed = fixed[: fixed.rindex("/", 0, -1) + 1]
    with _reaching(pattern, folder=f"{scheme}://{fixed}{mark}{query}") as (system, inner):
        try:
            every = system.get_file_info(FileSelector(inner, recursive=True))
        except FileNotFoundError:
            return []
    wanted = rest.split("/")
    paths = [entry.path for entry in every if entry.is_file and _matches(entry.path.split("/"), wanted)]
    return [f"{scheme}://{path}{mark}{query}" for path in paths]


def _matches(steps: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the steps of a path are those of a pattern.

    >>> _matches(["logs", "2026", "part-1.parquet"], ["logs", "**", "part-[!0]*.parquet"])
    True
    """
    if not pattern or not steps:
        return not steps and {*pattern} <= {"**"}
    if pattern[0] == "**":
        return _matches(steps, pattern[1:]) or _matches(steps[1:], pattern)
    return fnmatchcase(steps[0], pattern[0]) and _matches(steps[1:], pattern[1:])


@contextmanager
def _reaching(path: str | Path, *, folder: str = "") -> Iterator[tuple[Any, str]]:
    """The file system of a URL, or of its folder, and the name in it; errors are raised with the URL and the remedy."""
    pa, _ = pyarrow()
    from pyarrow.fs import FileSystem

    if _SECRET.search(str(path)):  # addresses are in messages, reports and histories of shells
        raise FileFormatError(f"{_SECRET.sub('://…@', str(path))}: an address with a password in it. {_REMEDY}.")
    try:
        yield FileSystem.from_uri(folder or str(path))
    except (pa.ArrowException, OSError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(f"{path}: cannot be reached ({text}). {_REMEDY}.") from error
