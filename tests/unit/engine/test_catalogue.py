from typing import Any

import pytest

from rareswitch.engine import Dask, Processes, Serial, make_engine
from rareswitch.errors import InputError, ParameterError


@pytest.mark.parametrize(
    ("name", "kind", "workers"), [("serial", Serial, 1), ("serial:3", Serial, 3), ("processes:5", Processes, 5)]
)
def test_engines_by_name(name: str, kind: type, workers: int) -> None:
    with make_engine(name) as engine:
        assert type(engine) is kind
        assert engine.workers == workers
        assert engine.name == name


def test_by_default_there_is_a_process_for_every_processor() -> None:
    assert make_engine("processes").workers >= 1


@pytest.mark.parametrize("name", ["", "serials", "Serial", "threads:2", ":4", "tcp://127.0.0.1:8786", 4, None])
def test_unknown_names(name: Any) -> None:
    with pytest.raises(InputError, match=r"no engine is called|named by a text"):
        make_engine(name)


@pytest.mark.parametrize("kind", ["serial", "processes", "dask"])
@pytest.mark.parametrize("count", ["", "0", "-1", "1025", "9" * 5000, "two", "1.5", " 2", "1_0", "٣", "2x", "+2"])
def test_numbers_of_workers_that_are_none(kind: str, count: str) -> None:
    with pytest.raises(ParameterError, match=r"a whole number between 1 and 1024.* got '") as caught:
        make_engine(f"{kind}:{count}")
    assert ("the address of a scheduler" in str(caught.value)) == (kind == "dask")


@pytest.mark.parametrize("bad", [0, -2, 1025, 1.5, "2", True])
def test_numbers_are_checked_by_the_engines_too(bad: Any) -> None:
    for make in (
        lambda: Serial(bad),
        lambda: Processes(bad),
        lambda: Processes(tries=bad and -1),
        lambda: Dask(None, bad),
    ):
        with pytest.raises(ParameterError, match="must be"):
            make()
