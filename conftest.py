"""What holds for every test, however the runner was started.

Hypothesis draws the same examples in every run, and an experiment that a test makes without a seed gets the same one;
children of tests can be interrupted; tests that take long are marked.
"""

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from rareswitch.learner import LEARNERS, all_learners
from reference.postgres import database, server

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script, and in some CI systems
    # a signal that is ignored stays so in children, one that is caught is theirs again; and this one does nothing here
    signal.signal(signal.SIGINT, lambda number, frame: None)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

os.environ.pop("PYTHONUNBUFFERED", None)  # what is printed is gathered, as where nobody said otherwise
os.environ["PYTHONUTF8"] = "1"  # what is printed does not hang on the locale, but where a test is about that

all_learners()  # what is asked of every learner is asked of the laboratory's too
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")

#: What `make quick` leaves out: whole runs, processes and clusters that are started, commands that are run.
SLOW = (
    *("golden/test_runs", "statistical/", "core/test_executors", "unit/cli/", "unit/test_readme", "dask", "processes"),
    *("_kills", "store/test_faults", "lab/test_collaborate", "lab/test_sweep_engines", "lab/test_contest"),
    *("property/test_lower_bound", "test_memory_does_not_grow", "test_a_first_batch_that_pays_nothing"),
    *("test_prospects_match", "test_eight_weeks", "service/test_browser"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that take long."""
    for item in items:
        if any(part in item.nodeid for part in SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def seeded_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment that is given no seed draws one; here it is always the same, so that what passed passes again."""
    monkeypatch.setattr("rareswitch.experiment.opening.secrets", SimpleNamespace(randbits=lambda bits: 1))


@pytest.fixture(autouse=True)
def own_learners_are_forgotten() -> Iterator[None]:
    """A learner that a test or a page adds is not one of the next test's."""
    known = dict(LEARNERS)
    yield
    if known != LEARNERS:
        LEARNERS.clear()
        LEARNERS.update(known)


@pytest.fixture
def short_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Foresight looks ahead with an eighth of the parameters: for tests that are about other things than its plans."""
    monkeypatch.setattr("rareswitch.belief.planning.TRUTHS", 64)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server, the same for all workers of a run; where none starts, tests fail."""
    with server(os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)) as url:
        yield url


@pytest.fixture(scope="session")
def postgres(postgres_server: str) -> Iterator[str]:
    """The URL of a database, one for each worker: experiments in it need names of their own."""
    with database(postgres_server, f"rareswitch-{os.getpid()}") as url:
        yield url


@pytest.fixture
def store_url(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """The address of a kind of store, the same at every call of a test."""

    def url(kind: str) -> str:
        if kind == "postgres":
            return str(request.getfixturevalue("postgres"))
        return {"memory": "memory:", "sqlite": f"sqlite:///{tmp_path}/trial.db"}[kind]

    return url
