"""Files: written whole or not at all, by several writers too, and read only if they hold what they say."""

import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.core import decoding, plain_json, read_whole, replacing, write_whole
from rareswitch.core.codec import pack, unpack
from rareswitch.errors import FileFormatError
from reference.refusals import raises

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.ones(2)}
META = {"schema": 1, "name": "é"}


def crafted(header: dict[str, Any] | str, body: bytes = b"") -> bytes:
    """A file with any header, padded as it should be."""
    text = (header if isinstance(header, str) else json.dumps(header, sort_keys=True, separators=(",", ":"))).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def test_other_spellings_of_a_header_are_refused() -> None:
    header, body = header_of(pack(META, ARRAYS))
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    unpack(crafted(text, body))
    twice, decimal = text.replace('{"__', '{"a":{},"__'), text.replace("[2]", "[2.0]")
    for other in (json.dumps(header), text + " " * 8, twice, decimal):
        raises(ValueError, r"header|shape", unpack, crafted(other, body))
    raises(ValueError, "header", unpack, crafted(text, body + b"12345678"))


def test_entries_that_share_their_bytes_take_no_memory() -> None:
    """20,000 entries of one MiB each, in a file of two: they would fill 20 GB."""
    entry = {"dtype": "F64", "shape": [1 << 17], "data_offsets": [0, 1 << 20]}
    header: dict[str, Any] = {f"{k:05d}": entry for k in range(20_000)}
    header["__metadata__"] = {"rareswitch": "{}"}
    data = crafted(header, bytes(1 << 20))
    tracemalloc.start()
    try:
        raises(ValueError, "at most 65536 values", unpack, data)
        few = {name: header[name] for name in ["__metadata__", *sorted(header)[:1000]]}
        raises(ValueError, "header", unpack, crafted(few, bytes(1 << 20)))
        assert tracemalloc.get_traced_memory()[1] < 10 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[[]," * 200_000, '{"a":' * 5000, '["\u00e9"]', "[" + "9" * 5000 + "]"]
)
def test_plain_data_is_bounded_in_size_and_depth(text: str) -> None:
    for data in (text.encode(), crafted({"__metadata__": {"rareswitch": text}})):
        with pytest.raises(FileFormatError), decoding("a file"):
            unpack(data)
        with pytest.raises(FileFormatError), decoding("a file"):
            json.dumps(plain_json(text.encode()), allow_nan=False)


def test_nothing_is_written_that_would_not_be_read() -> None:
    assert plain_json(b"[1,2]") == [1, 2]
    raises(FileFormatError, "a file holds at most 65536 values beside its arrays", pack, list(range(200_000)), {})


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "/dev/null", tmp_path / "pipe"):
        raises(FileFormatError, "it is a device or a pipe", read_whole, path)
    for path, words in ((tmp_path, "Is a directory"), (tmp_path / "no", "No such file"), ("a\0b", "null byte")):
        raises(FileFormatError, f"cannot be read .*{words}", read_whole, path)
    assert read_whole(Path(__file__)) == Path(__file__).read_bytes()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs files whose size is not known beforehand")
def test_no_more_is_read_than_a_file_claims_to_hold() -> None:
    raises(FileFormatError, "grows while it is read", read_whole, "/proc/self/status")


def test_files_are_private_while_they_are_written_and_have_usual_modes_then(tmp_path: Path) -> None:
    os.umask(mask := os.umask(0))
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("all of it")
        (private,) = tmp_path.iterdir()
        assert temporary.parent == private
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_links_are_never_written_through(tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    target.write_text("old")
    (tmp_path / "a").symlink_to(target)
    (tmp_path / ".rareswitch-planted1.tmp").symlink_to(elsewhere)
    write_whole(b"new", tmp_path / "a")
    assert (target.read_text(), (tmp_path / "a").read_text()) == ("old", "new")
    assert not (tmp_path / "a").is_symlink()
    assert (elsewhere / "kept").read_text() == "kept"


KILLED = """
import os, signal, sys
from pathlib import Path
from rareswitch.core import replacing, write_whole
with replacing(sys.argv[1] + "/a") as first, replacing(sys.argv[1] + "/b"):
    first.write_text("half of it")
    write_whole(b"whole", first.parent / "c")
    with replacing(first.parent / "d"):
        print("here", flush=True)
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_writer_removes_what_a_killed_one_left_and_nothing_of_a_live_one(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "here\n"
        before = sorted(tmp_path.rglob("*"))
        write_whole(b"x", tmp_path / "other")
        assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "other"])  # it is still being written
        child.communicate("go on", timeout=60)
    finally:
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "other"])
    write_whole(b"y", tmp_path / "other")
    assert [path.name for path in tmp_path.rglob("*")] == ["other"]


def test_a_folder_taken_for_a_dead_one_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def mkdtemp(**where: Any) -> str:
        made.append(str(Path(where["dir"]) / f"{where['prefix']}{len(made)}{where['suffix']}"))
        if len(made) > 2:  # the first two are removed by another writer, at once
            os.mkdir(made[-1], 0o700)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    write_whole(b"x", tmp_path / "a")
    assert len(made) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_disk_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be brought to the disk is not there; only folders may be left to the file system."""
    real = os.fsync

    def fails(handle: int) -> None:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(5, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fails)
    raises(FileFormatError, re.escape("a: cannot be written (Input/output error)"), write_whole, b"x", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A device or a pipe would be gone for all processes of the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    raises(FileFormatError, r"pipe: cannot be written; it is there already, and no file\.", write_whole, b"x", pipe)
    assert pipe.is_fifo()
