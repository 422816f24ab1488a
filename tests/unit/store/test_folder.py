"""The folder against the store in memory, against other processes, and against what may befall its files."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import FileFormatError, RareswitchError, StoreError
from rareswitch.ids import id_keys, key_bytes
from rareswitch.store import DecisionRow, Marks, RewardRow, Store, VersionRow, experiment_names, open_store
from rareswitch.store.folder import FolderStore

DIM = 2


def version(number: int, policy: bytes = b"policy") -> VersionRow:
    return VersionRow(number, policy, b"state", b"" if number == 1 else b"sums", '{"a":1}', "", 10.0 * number)


def decision(number: int, *, of: int = 1, kept: bool = True, value: float = 0.5) -> DecisionRow:
    rng = np.random.default_rng(number)
    arms = rng.standard_normal((1 + number % 4, DIM))
    return DecisionRow(
        key=key_bytes(id_keys([number]))[0],
        id=str(number),
        version=of,
        arm=f"arm é {number % 3}",
        place=0,
        propensity=value,
        features=arms[0].tobytes(),
        digest=number.to_bytes(16, "little"),
        time=float(number),
        rank=float(rng.random()),
        baseline=None if number % 2 else 1,
        contexts=arms.tobytes() if kept else None,
        names=json.dumps(["a", "b"]) if kept and number % 3 else None,
    )


def reward(number: int, value: float, event: str = "") -> RewardRow:
    return RewardRow(key_bytes(id_keys([number]))[0], str(number), event, value, 100.0 + number)


def begun(path: Path, name: str = "spring") -> FolderStore:
    store = open_store(f"folder:{path}", name)
    assert isinstance(store, FolderStore)
    store.create("described", version(1))
    return store


def again(store: FolderStore) -> FolderStore:
    """The same experiment as another process would open it."""
    return FolderStore(store.path.parent, store.name)


def everything(store: Store, marks: Marks) -> list[Any]:
    """What each verb that reads says."""
    keys = [key_bytes(id_keys([number]))[0] for number in range(60)]
    found: list[Any] = [store.description(), store.head(), store.versions(), store.find(keys)]
    for upto in (None, marks, store.marks()):
        found += [store.counts(upto)]
    for upto in (marks, store.marks()):
        for of in (1, 2):
            found += [[part.read().to_pylist() for part in store.slices(of, upto, sums=sums)] for sums in (False, True)]
            found.append(list(store.sample(of, upto)))
        rows = list(store.rows(3, upto))
        found += [[row for _, some in rows for row in some], rows[-1][0] if rows else None]
    started = [store.started(number) for number in (1, 2)]
    return [*found, store.totals(), store.marks(), started, [store.younger(moment) for moment in (-1.0, 20.0)]]


@pytest.mark.parametrize("seed", range(6))
def test_a_folder_says_what_the_store_in_memory_says_before_and_after_it_is_opened_again(
    seed: int, tmp_path: Path
) -> None:
    draw, folder, memory = random.Random(seed), begun(tmp_path), open_store("memory:", "spring")
    memory.create("described", version(1))
    marks = Marks(0, 0)
    for step in range(25):
        if step == 10:
            for store in (folder, memory):
                assert store.start_update(1, '{"plan":1}') == (marks := store.marks(), ('{"plan":1}', marks))[1]
                assert store.publish(version(2)) == version(2)
        numbers = [draw.randrange(60) for _ in range(draw.randrange(1, 9))]
        if draw.random() < 0.5:
            rows = [decision(k, of=1 + (step > 10), kept=draw.random() < 0.6, value=draw.random()) for k in numbers]
            assert folder.add_decisions(rows) == memory.add_decisions(rows)
        else:
            over = draw.random() < 0.5
            given = [reward(k, draw.choice([0.0, 1.0]), draw.choice(["", "sale"])) for k in numbers]
            assert folder.add_rewards(given, overwrite=over) == memory.add_rewards(given, overwrite=over)
        if draw.random() < 0.2:
            folder = again(folder)
    assert everything(folder, marks) == everything(memory, marks) == everything(again(folder), marks)
    assert folder.totals().repeated_rewards
    assert folder.totals().overwritten
    assert folder.totals().repeated_decisions


def test_new_rows_are_handed_back_as_they_are(tmp_path: Path) -> None:
    store, row = begun(tmp_path), decision(7)
    assert store.add_decisions([row, decision(7)])[0] is row
    other = store.add_decisions([decision(7, value=0.1)])[0]
    assert (other, other is row) == (row, False)


def test_a_call_is_a_file_and_repeats_are_none(tmp_path: Path) -> None:
    store = begun(tmp_path)
    for _ in range(2):
        store.add_decisions([decision(1), decision(2)])
        store.add_rewards([reward(1, 1.0)])
    store.add_decisions([])
    assert [sorted(os.listdir(store.path / name)) for name in ("decisions", "rewards")] == [["00000001.parquet"]] * 2


def test_experiments_stand_side_by_side(tmp_path: Path) -> None:
    begun(tmp_path, "spring")
    other = begun(tmp_path, "autumn")
    other.add_decisions([decision(1)])
    assert experiment_names(f"folder:{tmp_path}") == experiment_names(str(tmp_path)) == ["autumn", "spring"]
    assert open_store(f"{tmp_path}/", "spring").counts() == []
    with pytest.raises(StoreError, match=r"there is an experiment 'spring' in folder:.* already. Open it"):
        begun(tmp_path, "spring")
    with pytest.raises(StoreError, match=r"there is no experiment 'winter' in folder:.*. Create it, or correct"):
        open_store(f"folder:{tmp_path}", "winter").head()


def test_what_other_processes_wrote_is_noticed(tmp_path: Path) -> None:
    one = begun(tmp_path)
    other = again(one)
    for k in range(5):
        assert one.add_decisions([decision(k, value=0.25)])[0].propensity == 0.25
        assert other.add_decisions([decision(k, value=0.75)])[0].propensity == 0.25
        assert other.add_rewards([reward(k, 1.0)]) == [None]
        assert one.add_rewards([reward(k, 0.0)]) == [reward(k, 1.0)]
    assert one.publish(version(2, b"one")).policy == other.publish(version(2, b"other")).policy == b"one"
    assert one.head() == other.head() == 2
    assert one.start_update(1, "{}") is None
    assert one.start_update(2, '{"a":1}') == other.start_update(2, '{"b":1}') == ('{"a":1}', Marks(5, 5))
    other.abandon_update(2)
    assert one.start_update(2, '{"c":1}') == ('{"c":1}', Marks(5, 5))


def test_threads_and_stores_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    stores = [begun(tmp_path)]
    stores += [again(stores[0]) for _ in range(2)]

    def work(store: FolderStore, first: int) -> None:
        for k in range(first, first + 8):
            store.add_decisions([decision(k), decision(100)])
            store.add_rewards([reward(k, 1.0)])

    threads = [threading.Thread(target=work, args=(stores[k % 3], 8 * k)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in (*stores, again(stores[0])):
        (counted,) = store.counts()
        assert (counted.decisions, counted.rewarded, store.totals().repeated_decisions) == (49, 48, 47)


CHILD = """
import sys
sys.path[:0] = sys.argv[3:]
from unit.store.test_folder import again, decision, reward, version
from rareswitch.store.folder import FolderStore
store = FolderStore(sys.argv[1], "spring")
for k in range(int(sys.argv[2]), 1 << 30):
    store.add_decisions([decision(k)])
    store.add_rewards([reward(k, 1.0)])
    store.publish(version(store.head() + 1))
    print(k, flush=True)
"""


def test_a_process_that_is_killed_leaves_what_it_was_told_is_kept(tmp_path: Path) -> None:
    store, acknowledged = begun(tmp_path), 0
    source = [str(Path(__file__).parents[2]), str(Path(__file__).parents[3] / "src")]
    for round_ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, tmp_path, str(1000 * round_), *source], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(3 + 2 * round_)]
        child.send_signal(signal.SIGKILL)
        told += map(int, child.stdout.read().split(b"\n")[:-1])
        child.wait()
        child.stdout.close()
        found = again(store).find([decision(k).key for k in told])
        assert all(one is not None and one[0].version == 1 and len(one[1]) == 1 for one in found)
        acknowledged += len(told)
        (counted,) = again(store).counts()
        assert acknowledged <= counted.decisions <= acknowledged + round_ + 1
        assert acknowledged + 1 <= again(store).head() <= acknowledged + 1 + round_ + 1
    again(store).add_decisions([decision(5000)])  # the lock went with its process
    assert not [name for name in os.listdir(store.path / "decisions") if not name.endswith(".parquet")]


@pytest.mark.parametrize("verb", ["add_decisions", "add_rewards", "publish", "start_update"])
def test_what_cannot_be_written_is_not_there(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = begun(tmp_path)
    store.add_decisions([decision(1)])
    store.add_rewards([reward(1, 1.0)])
    before = everything(store, Marks(1, 1))
    calls: dict[str, Callable[[], Any]] = {
        "add_decisions": lambda: store.add_decisions([decision(2)]),
        "add_rewards": lambda: store.add_rewards([reward(1, 0.0), reward(2, 0.0)], overwrite=True),
        "publish": lambda: store.publish(version(2)),
        "start_update": lambda: store.start_update(1, "{}"),
    }

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rareswitch.files.os.fsync", full)
        with pytest.raises(FileFormatError, match=r"cannot be written \(No space left on device\)"):
            calls[verb]()
    assert everything(store, Marks(1, 1)) == everything(again(store), Marks(1, 1)) == before
    calls[verb]()
    assert everything(again(store), Marks(1, 1)) != before


def test_creation_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rareswitch.store.folder.write_json", interrupt)
        with pytest.raises(KeyboardInterrupt):
            begun(tmp_path)
    assert os.listdir(tmp_path) == []
    begun(tmp_path)


def damaged(path: Path) -> list[bytes]:
    data = path.read_bytes()
    middle = len(data) // 2
    return [b"", data[:-1], data[: len(data) // 3], data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]]


def test_every_file_that_was_changed_is_named(tmp_path: Path) -> None:
    store = begun(tmp_path)
    store.add_decisions([decision(k) for k in range(8)])
    store.add_rewards([reward(k, 1.0) for k in range(8)])
    store.publish(version(2))
    store.start_update(2, "{}")
    files = [path for path in sorted(store.path.rglob("*")) if path.is_file() and path.stat().st_size]
    assert len(files) == 13  # the description; two versions of 5 and 4 files that are not empty; an update; two parts
    for path in files:
        data = path.read_bytes()
        for change in damaged(path):
            path.write_bytes(change)
            with pytest.raises(RareswitchError, match=path.name):
                (everything(again(store), Marks(8, 8)), again(store).start_update(2, "{}"))
            path.write_bytes(data)
    everything(again(store), Marks(8, 8))


@pytest.mark.parametrize("name", ["versions", "decisions", "rewards"])
def test_a_file_that_is_missing_is_noticed(name: str, tmp_path: Path) -> None:
    store = begun(tmp_path)
    for k in range(3):
        store.add_decisions([decision(k)])
        store.add_rewards([reward(k, 1.0)])
        store.publish(version(k + 2))
    first = sorted((store.path / name).iterdir())[1]
    first.rename(tmp_path / "gone")
    with pytest.raises(StoreError, match=f"{name}: number 2 is missing, and there is a number [34]. Restore it"):
        again(store).head()


def test_a_new_experiment_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert begun(tmp_path).path.stat().st_mode & 0o777 == 0o700


def test_a_folder_of_the_first_schema_opens_and_is_brought_up_when_an_update_is_refused(tmp_path: Path) -> None:
    from rareswitch.store.folder_files import read_json, write_json

    store = begun(tmp_path)
    path, update = store.path / "experiment.json", store.path / "updates" / "0001.json"
    write_json(path, read_json(path) | {"schema": 1})
    write_json(update, {"plan": '{"now":1}', "marks": [0, 0]})  # as that schema kept it
    old = again(store)
    assert (old.head(), old.started(1), old.refusals(1)) == (1, True, [])
    assert old.start_update(1, "{}") == ('{"now":1}', Marks(0, 0))
    assert read_json(path)["schema"] == 1
    old.refuse_update(1, 1, "no")
    assert read_json(path)["schema"] == 2
    assert (again(store).refusals(1), again(store).started(1)) == (["no"], False)
    assert again(store).description() == store.description()


def test_another_schema_is_refused(tmp_path: Path) -> None:
    from rareswitch.store.folder_files import read_json, write_json

    store = begun(tmp_path)
    path = store.path / "experiment.json"
    write_json(path, read_json(path) | {"schema": 3})
    with pytest.raises(StoreError, match="experiments in folders have schema 1 or 2; this one has 3"):
        again(store).head()
    write_json(path, read_json(path) | {"schema": 2})
    store.path.rename(tmp_path / "autumn")
    with pytest.raises(StoreError, match="and the name 'spring'"):
        FolderStore(tmp_path, "autumn").head()


def test_a_folder_without_rights_says_so(tmp_path: Path) -> None:
    store = begun(tmp_path)
    (store.path / "lock").unlink()
    with pytest.raises(StoreError, match=r"lock: cannot be locked \(No such file or directory\). Nothing was kept"):
        store.add_decisions([decision(1)])
    assert store.counts() == []
