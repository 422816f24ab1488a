"""Kernels: machine code that is made when it is called, and never of other code than that which is there."""

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest

import rareswitch
from rareswitch.core.validation import _all_finite
from rareswitch.lanes import announced, compiled
from rareswitch.policy.samplers import blend
from reference.refusals import raises

PACKAGE = Path(rareswitch.__file__).parent
OUTER = """
from inner import inner
from rareswitch.lanes import compiled

@compiled
def outer(x):
    return inner(x) + 1
"""
INNER = """
from rareswitch.lanes import compiled

FACTOR = 2

@compiled
def inner(x):
    return FACTOR * x
"""


def edit(path: Path, old: str, new: str) -> None:
    """Change a file and keep its size and its time."""
    before = path.stat()
    text = path.read_text()
    assert text.count(old) == 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


Call = Callable[[], tuple[int, bool]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Loads two kernels anew, of which one calls the other with 3; the result, and whether it was compiled."""
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")

    def load_and_call() -> tuple[int, bool]:
        compilations: list[bool] = []
        for name in ("inner", "outer"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        with announced(lambda: compilations.append(True)):
            return importlib.import_module("outer").outer(3), bool(compilations)

    return load_and_call


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nb?"))


def test_machine_code_is_of_the_code_that_is_there(tmp_path: Path, call: Call) -> None:
    assert call() == (7, True)
    assert call() == (7, False)
    files = len(kept(tmp_path))
    edit(tmp_path / "inner.py", "FACTOR * x", "FACTOR - x")
    assert call() == (0, True)
    edit(tmp_path / "inner.py", "FACTOR = 2", "FACTOR = 5")
    assert call() == (3, True)
    assert call() == (3, False)
    assert len(kept(tmp_path)) == files, "what was compiled of other code is removed"


def test_a_change_of_the_row_operations_is_seen(tmp_path: Path) -> None:
    for name in ("__init__.py", "version.py", "lanes"):
        for path in sorted((PACKAGE / name).glob("*.py")) or [PACKAGE / name]:
            target = tmp_path / "rareswitch" / path.relative_to(PACKAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    script = "from rareswitch.lanes import padded_length; print(padded_length(3))"
    own = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(tmp_path / "own")}

    def run() -> str:
        return subprocess.check_output([sys.executable, "-c", script], env=os.environ | own, text=True).strip()

    assert run() == "8"
    (before,) = kept(tmp_path / "own")[::2]
    edit(tmp_path / "rareswitch" / "lanes" / "kernel.py", "WIDTH = 8", "WIDTH = 4")
    assert run() == "4"
    (after,) = kept(tmp_path / "own")[::2]
    assert after != before


def test_a_damaged_cache_is_compiled_again(tmp_path: Path, call: Call) -> None:
    assert call() == (7, True)
    for path in kept(tmp_path):
        path.write_bytes(path.read_bytes()[:50])
    assert call() == (7, True)
    assert call() == (7, False)


def test_where_nothing_can_be_written_kernels_run_all_the_same(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    locators = "numba.core.caching.IPythonCacheLocator"  # for notebooks alone: there is no folder for a file
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", locators)
    assert call() == (7, True)
    assert call() == (7, True)
    assert not kept(tmp_path)


def test_a_full_disk_stops_no_kernel(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("numba.core.caching.IndexDataCacheFile._save_data", full)
        assert call() == (7, True)
    assert call() == (7, True)
    assert call() == (7, False)


def test_kernels_travel_by_name() -> None:
    assert pickle.loads(pickle.dumps(blend)) is blend
    assert _all_finite(np.zeros(3))
    assert pickle.loads(pickle.dumps(_all_finite)) is _all_finite


TABLE = np.zeros(3)


@compiled
def look_up():  # type: ignore[no-untyped-def]
    return TABLE[0]


def test_kernels_use_nothing_whose_change_would_not_be_seen() -> None:
    raises(TypeError, "look_up uses TABLE; kernels know numbers, kernels and modules only", look_up)
