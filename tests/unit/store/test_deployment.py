import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import BatchError, FileFormatError, InputError, ParameterError, UnsuitableError
from rareswitch.files import canonical_json
from rareswitch.learner import LEARNERS, StaticGrid, geometric_grid, state_to_bytes, summaries_to_bytes
from rareswitch.policy import HmacKey, load_policy, save_policy
from rareswitch.stats import Stats
from rareswitch.store import Deployment
from reference.logs import as_rows, played, recount

UPDATES = [{"summary": "", "ahead": None}]
DEPLOYABLE = {
    "foresight": {"updates": 4, "intercept": True},
    "batch-linucb": {"arms": 5},
    "batch-linucb-kw": {"arms": 5, "noise": 0.5},
    "batch-linucb-dg": {"arms": 5, "noise": 0.1, "confidence": 0.3},
    "batch-linucb-dg-certified": {"arms": 5, "noise": 0.1, "confidence": "tight"},
    "stale-linucb": {"arms": 5, "updates": 4},
    "stale-thompson": {"arms": 5, "updates": 4, "seed": 3},
    "pure-exploitation": {"arms": 5},
    "falcon": {"arms": 5, "updates": 4},
    "fixed-set-elimination": {"arms": 5, "updates": 4},
    "base": {"dim": 5, "arms": 5},
}


def advanced(deployment: Deployment, **given: Any) -> Deployment:
    env = {"fixed-set-elimination": "fixed", "base": "plain"}.get(deployment.learner.name, "gaussian")
    return deployment.advance(recount([played(deployment, env=env)], deployment).summary, **given)


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deployment after two batches."""
    folder = tmp_path_factory.mktemp("deployments") / "third"
    advanced(advanced(Deployment.begin("foresight", dim=3, horizon=300, updates=4))).save(folder)
    return folder


@pytest.fixture
def folder(third: Path, tmp_path: Path) -> Path:
    """A copy of it to do harm to."""
    return Path(shutil.copytree(third, tmp_path / "third"))


@pytest.mark.parametrize(("name", "settings"), DEPLOYABLE.items())
def test_a_loaded_deployment_goes_on_as_the_one_that_was_saved(
    name: str, settings: dict[str, object], tmp_path: Path
) -> None:
    here = Deployment.begin(name, **{"dim": 3, "horizon": 200} | settings)
    for step in range(20):
        here.save(tmp_path / str(step))
        there = Deployment.load(tmp_path / str(step))
        assert there.learner == here.learner
        assert state_to_bytes(there.state) == state_to_bytes(here.state)
        assert there.policy.id == here.policy.id == load_policy(tmp_path / str(step) / "policy.safetensors").id
        assert [p.id for p in there.policies] == [p.id for p in here.policies]
        assert [entry.data for entry in there.history] == [entry.data for entry in here.history]
        if there.state.done:
            break
        here = advanced(there)
    assert here.state.done
    assert len(here.history) >= 3
    found = here.verify()
    assert found.holds
    assert {entry.verdict for entry in found.policies} == {"same"}


def test_a_description_that_asks_for_too_much_is_refused(folder: Path) -> None:
    path = folder / "learner.json"
    described = json.loads(path.read_bytes())
    for change in ({"updates": 10**9, "horizon": 10**18, "grid": None}, {"grid": [10**6] * 1_200_000}):
        path.write_bytes(canonical_json(described | {"settings": described["settings"] | change}))
        with pytest.raises(FileFormatError, match=r"learner\.json: .*(between 1 and 10000|at most 1048576 values)"):
            Deployment.load(folder)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(FileFormatError):
        Deployment.load(folder)


def test_loading_learns_nothing(third: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("something was learned")

    monkeypatch.setattr("rareswitch.learner.foresight.PlannedExploration.next", refuse)
    monkeypatch.setattr("rareswitch.learner.foresight.PlannedExploration.first", refuse)
    assert Deployment.load(third).state.updates == 3


def test_a_changed_planner_changes_what_comes_and_not_what_is_there(
    third: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Deployment.load(third)
    monkeypatch.setattr("rareswitch.learner.planning.SCALES", (0.1, 0.6))
    monkeypatch.setattr("rareswitch.learner.planning.TRUTHS", 64)
    there = Deployment.load(third)
    assert [p.id for p in there.policies] == [p.id for p in before.policies]
    found = there.verify()
    assert [entry.verdict for entry in found.policies] == ["same", "otherwise", "otherwise"]
    assert not found.holds
    assert found.sums
    assert f"policy 2, {there.policies[1].id[:12]}…: would now be learned otherwise" in str(found)
    assert "The policies that are there stay as they are, and the run can go on." in str(found)
    after = advanced(there)
    after.save(tmp_path / "after")
    assert Deployment.load(tmp_path / "after").state.updates == 4


def test_verifying_says_what_cannot_be_learned_at_all(third: Path) -> None:
    here = Deployment.load(third)
    batch = here.history[1].summaries[0]
    nothing = replace(batch, rewarded=0, stats=tuple(Stats.zero(one.dim) for one in batch.stats))
    changed = replace(here.history[1], data=summaries_to_bytes([nothing]))
    found = replace(here, history=(here.history[0], changed)).verify()
    assert [entry.verdict for entry in found.policies] == ["same", "same", "otherwise"]
    assert "nothing to learn from" in str(found)
    assert not found.sums


def test_forecasts_and_late_batches_are_kept(tmp_path: Path) -> None:
    first = Deployment.begin("foresight", dim=3)
    rows = played(first, count=50)
    early = recount([[row if k % 3 else replace(row, reward=None) for k, row in enumerate(rows)]], first).summary
    here = first.advance(early, ahead=[100, 200])
    assert here.state.ahead == (100, 200)
    late = here.learner.summarize(here.state, as_rows(rows, first.policy.id, 3))
    here = here.advance(recount([played(here)], here).summary, late=[late], ahead=300)
    here.save(tmp_path / "d")
    there = Deployment.load(tmp_path / "d")
    assert [entry.ahead for entry in there.history] == [[100, 200], 300]
    assert [len(entry.summaries) for entry in there.history] == [1, 2]
    assert there.state.past[0].rewarded == 50
    assert there.verify().holds
    assert advanced(there, ahead=0).state.done


def test_advancing_leaves_the_deployment_as_it_was() -> None:
    first = Deployment.begin("foresight", dim=3, horizon=300)
    before = first.policy.id
    second = advanced(first)
    assert (first.policy.id, first.state.updates, first.state.start) == (before, 1, 0)
    assert second.policy.id == advanced(first).policy.id != before
    assert second.state.start == first.state.stop


def test_batch_ends_of_ones_own_are_kept(tmp_path: Path) -> None:
    for k, grid in enumerate(([30, 100, 300], StaticGrid(ends=(30, 100, 300)), (30, 100, np.int64(300)))):
        Deployment.begin("foresight", dim=3, horizon=300, grid=grid).save(tmp_path / str(k))
        assert Deployment.load(tmp_path / str(k)).state.ahead == (30, 70, 200)


def test_the_folder_has_no_secrets(third: Path) -> None:
    assert sorted(path.name for path in third.iterdir()) == [
        "batch-0001.policy.safetensors",
        "batch-0001.summary",
        "batch-0002.policy.safetensors",
        "batch-0002.summary",
        "learner.json",
        "policy.safetensors",
        "state.safetensors",
    ]
    described = json.loads((third / "learner.json").read_text(encoding="utf-8"))
    assert described["learner"] == "foresight"
    settings = {"dim": 3, "arms": None, "horizon": 300, "updates": 4, "intercept": False, "floor": 0.0003}
    known = {"delta": 0.05, "seed": 0, "grid": None, "noise_bound": None, "norm_bound": 1.0}
    assert described["settings"] == settings | known


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - set(DEPLOYABLE)))
def test_learners_whose_batches_end_where_features_say_are_refused(name: str) -> None:
    with pytest.raises(UnsuitableError, match=rf"{name} decides .* For updates from logs use foresight"):
        Deployment.begin(name)  # nothing else is asked for first


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("ucb", {}, "there is no learner 'ucb'"),
        ("batch-linucb-kw", {}, "batch-linucb-kw needs arms"),
        ("foresight", {"noise": 0.5}, "foresight does not take noise"),
        ("foresight", {"floor": 2.0}, "floor must be"),
        ("foresight", {"floor": float("nan")}, "floor must be"),
        ("foresight", {"grid": [30, 20, 300]}, "strictly increasing"),
        ("foresight", {"grid": geometric_grid(200, 3)}, "the grid ends at 200"),
        ("stale-linucb", {"arms": 5, "grid": object()}, "grid must be batch ends"),
        ("batch-linucb-kw", {"arms": 5, "g_optimal": object()}, "g_optimal must be a GOptimal"),
    ],
)
def test_settings_that_cannot_be_are_refused(name: str, settings: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Deployment.begin(name, dim=3, horizon=300, **settings)


def test_a_folder_is_never_overwritten(third: Path, tmp_path: Path) -> None:
    here = Deployment.load(third)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        with pytest.raises(FileFormatError, match=f"{name}: exists already, and a deployment is never overwritten"):
            here.save(tmp_path / name)
    (tmp_path / "empty").mkdir()
    here.save(tmp_path / "empty")
    here.save(tmp_path / "deep" / "er")
    assert Deployment.load(tmp_path / "empty").policy.id == Deployment.load(tmp_path / "deep" / "er").policy.id
    assert (tmp_path / "full" / "note").read_text(encoding="utf-8") == "mine"


def test_a_folder_appears_whole_or_not_at_all(third: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, left = Deployment.load(third), 3

    def interrupt(data: bytes, path: Path) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        path.write_bytes(data)

    monkeypatch.setattr("rareswitch.store.deployment.write_whole", interrupt)
    with pytest.raises(KeyboardInterrupt):
        here.save(tmp_path / "next")
    assert list(tmp_path.iterdir()) == []


def test_policies_are_signed(third: Path, tmp_path: Path) -> None:
    key, other = HmacKey(secret=b"0123456789abcdef"), HmacKey(secret=b"fedcba9876543210")
    Deployment.load(third).save(tmp_path / "signed", key=key)
    assert Deployment.load(tmp_path / "signed", key=key).state.updates == 3
    with pytest.raises(FileFormatError, match="the signature does not match"):
        Deployment.load(tmp_path / "signed", key=other)
    with pytest.raises(FileFormatError, match="not signed"):
        Deployment.load(third, key=key)


def test_a_file_that_was_changed_is_named(third: Path, tmp_path: Path) -> None:
    for number, name in enumerate(sorted(path.name for path in third.iterdir())):
        for k, change in enumerate(("flip", "cut", "empty", "remove")):
            copy = Path(shutil.copytree(third, tmp_path / f"{number}-{k}"))
            data = bytearray((copy / name).read_bytes())
            if change == "flip":
                data[len(data) * 3 // 4] ^= 1
            data = data[: {"cut": len(data) // 2, "empty": 0}.get(change, len(data))]
            (copy / name).write_bytes(data)
            if change == "remove":
                (copy / name).unlink()
            with pytest.raises(FileFormatError) as caught:
                Deployment.load(copy)
            assert name in str(caught.value)


def test_a_policy_from_elsewhere_is_refused(folder: Path) -> None:
    other = advanced(Deployment.begin("foresight", dim=3, horizon=300, updates=4, floor=0.5)).policy
    for name in ("policy.safetensors", "batch-0002.policy.safetensors"):
        kept = (folder / name).read_bytes()
        save_policy(other, folder / name)
        with pytest.raises(
            FileFormatError, match=rf"{name}: holds policy {other.id[:12]}… where learner.json tells of"
        ):
            Deployment.load(folder)
        (folder / name).write_bytes(kept)


def test_a_summary_from_elsewhere_is_refused(folder: Path) -> None:
    one, two = (folder / f"batch-000{k}.summary" for k in (1, 2))
    kept = two.read_bytes()
    two.write_bytes(one.read_bytes())
    with pytest.raises(FileFormatError, match=r"batch-0002.summary: not the file that learner.json tells of"):
        Deployment.load(folder)
    described = json.loads((folder / "learner.json").read_text(encoding="utf-8"))
    described["updates"][1]["summary"] = described["updates"][0]["summary"]
    (folder / "learner.json").write_bytes(canonical_json(described))
    assert "this summary is of policy" in str(Deployment.load(folder).verify())
    two.write_bytes(kept)
    (folder / "batch-0003.summary").write_bytes(kept)
    with pytest.raises(FileFormatError, match=r"batch-0003.summary: belongs to no batch"):
        Deployment.load(folder)


def test_a_state_from_elsewhere_is_refused(folder: Path) -> None:
    described = json.loads((folder / "learner.json").read_text(encoding="utf-8"))
    for other in (
        advanced(Deployment.begin("foresight", dim=3, horizon=300, updates=4)),
        advanced(advanced(Deployment.begin("stale-linucb", dim=3, arms=5, horizon=300))),
    ):
        data = state_to_bytes(other.state)
        (folder / "state.safetensors").write_bytes(data)
        with pytest.raises(FileFormatError, match=r"state.safetensors: not the file that learner.json tells of"):
            Deployment.load(folder)
        changed = described | {"state": hashlib.sha256(data).hexdigest()}
        (folder / "learner.json").write_bytes(canonical_json(changed))
        with pytest.raises(FileFormatError, match=r"state.safetensors: not a state of the run that learner.json"):
            Deployment.load(folder)
        (folder / "learner.json").write_bytes(canonical_json(described))


def test_what_learning_again_does_not_give_is_told(folder: Path) -> None:
    """Even if all hashes are right."""
    described = json.loads((folder / "learner.json").read_text(encoding="utf-8"))
    (summary,) = Deployment.load(folder).history[0].summaries
    changed = replace(summary, stats=(summary.stats[0] + Stats.of([[1.0, 0.0, 0.0]], [1.0]),))
    data = summaries_to_bytes([changed])
    (folder / "batch-0001.summary").write_bytes(data)
    described["updates"][0]["summary"] = hashlib.sha256(data).hexdigest()
    (folder / "learner.json").write_bytes(canonical_json(described))
    found = Deployment.load(folder).verify()
    assert [entry.verdict for entry in found.policies][:2] == ["same", "otherwise"]
    assert not found.sums
    assert "The sums in the state are not those of the summaries." in str(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 1}, "deployments have schema 3; this one has 1"),
        ({"learner": "ucb"}, "no learner can be made of it .*no learner 'ucb'"),
        ({"learner": "linucb"}, "no learner can be made of it"),
        ({"settings": {"dim": "three"}}, "no learner can be made of it"),
        ({"settings": {"dim": 4, "horizon": 300}}, "state.safetensors: not a state of the run that learner.json"),
        ({"policies": ["a", "b"], "updates": UPDATES[:1]}, "batch-0002.policy.safetensors: belongs to no batch"),
        ({"policies": ["a"] * 4, "updates": UPDATES * 3}, "batch-000..policy.safetensors: "),
        ({"policies": []}, "it was changed, or written by something else"),
        ({"updates": "none"}, "not the description of a deployment"),
        ({"updates": [1, 2]}, "not the description of a deployment"),
        ({"more": 1}, "it was changed, or written by something else"),
        ({"signature": "none"}, "the signature is damaged"),
        ({"signature": {"scheme": "hmac-sha256", "value": "AB" * 32}}, "the signature is damaged"),
        ({"schema": 2}, "it was changed, or written by something else"),
    ],
)
def test_a_description_that_was_changed_is_refused(folder: Path, change: dict[str, object], words: str) -> None:
    path = folder / "learner.json"
    path.write_bytes(canonical_json(json.loads(path.read_text(encoding="utf-8")) | change))
    with pytest.raises(FileFormatError, match=words):
        Deployment.load(folder)
    path.write_text("[1]")
    with pytest.raises(FileFormatError, match=r"learner.json: not the description of a deployment"):
        Deployment.load(folder)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    for name in ("nowhere", "."):
        with pytest.raises(FileFormatError, match=r"not the folder of a deployment: it has no learner.json"):
            Deployment.load(tmp_path / name)


def test_a_run_that_is_over_stays_over() -> None:
    here = Deployment.begin("foresight", dim=3, horizon=60, grid=[20, 60])
    here = advanced(advanced(here))
    assert here.state.done
    with pytest.raises(BatchError, match="this run is over"):
        here.advance(here.history[-1].summaries[0])


def test_a_deployment_is_verified_on_another_kind_of_processor(third: Path) -> None:
    """Where BLAS sums in another order, the policies that are learned again differ in their last bits."""
    script = (
        "import sys; from rareswitch.store import Deployment; d = Deployment.load(sys.argv[1]); "
        "print(d.policy.id, d.verify().holds)"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, str(third)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OPENBLAS_CORETYPE": "Nehalem"},
    ).stdout
    assert out.split() == [Deployment.load(third).policy.id, "True"]


def test_parameters_are_named_in_errors() -> None:
    with pytest.raises(ParameterError, match="whole number"):
        Deployment.begin("foresight", dim=3, horizon="many")
