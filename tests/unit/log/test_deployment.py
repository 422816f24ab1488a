import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rareswitch.errors import BatchError, FileFormatError, InputError, ParameterError, UnsuitableError
from rareswitch.files import canonical_json
from rareswitch.learner import LEARNERS, Summary, custom_grid, geometric_grid, summary_to_bytes
from rareswitch.log import Deployment
from rareswitch.policy import HmacKey, load_policy, save_policy
from rareswitch.stats import Stats
from reference.logs import played, recount

DEPLOYABLE = {
    "foresight": {"updates": 4, "intercept": True},
    "batch-linucb": {"arms": 5},
    "batch-linucb-kw": {"arms": 5, "noise": 0.5},
    "batch-linucb-dg": {"arms": 5, "noise": 0.1, "confidence": 0.3},
    "batch-linucb-dg-certified": {"arms": 5, "noise": 0.1, "confidence": "tight"},
    "stale-linucb": {"arms": 5, "batches": 4},
    "stale-thompson": {"arms": 5, "batches": 4, "seed": 3},
    "pure-exploitation": {"arms": 5},
    "falcon": {"arms": 5, "batches": 4},
    "fixed-set-elimination": {"arms": 5, "batches": 4},
    "base": {"dim": 5, "arms": 5},
}


def advanced(deployment: Deployment) -> Deployment:
    env = {"fixed-set-elimination": "fixed", "base": "plain"}.get(deployment.name, "gaussian")
    summary = recount([played(deployment, env=env)], deployment).summary
    assert summary is not None
    return deployment.advance(summary)


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
        assert (there.name, there.settings) == (here.name, here.settings)
        assert there.policy.id == here.policy.id == load_policy(tmp_path / str(step) / "policy.safetensors").id
        assert (there.learner.start, there.learner.stop) == (here.learner.start, here.learner.stop)
        assert (there.learner.updates, there.learner.done) == (step + 1 - here.learner.done, here.learner.done)
        assert [p.id for p in there.policies] == [p.id for p in here.policies]
        if there.learner.done:
            break
        here = advanced(there)
    assert here.learner.done
    assert len(here.policies) == len(here.summaries) >= 3


def test_advancing_leaves_the_deployment_as_it_was() -> None:
    first = Deployment.begin("foresight", dim=3, horizon=300)
    before = first.policy.id
    second = advanced(first)
    assert (first.policy.id, first.learner.updates, first.learner.start) == (before, 1, 0)
    assert second.policy.id == advanced(first).policy.id != before
    assert second.learner.start == first.learner.stop


def test_batch_ends_of_ones_own_are_kept(tmp_path: Path) -> None:
    for grid in ([30, 100, 300], custom_grid([30, 100, 300]), (30, 100, np.int64(300))):
        here = Deployment.begin("foresight", dim=3, horizon=300, grid=grid)
        here.save(tmp_path / str(type(grid)))
        assert Deployment.load(tmp_path / str(type(grid))).learner.stop == 30


def test_the_folder_has_no_secrets(third: Path) -> None:
    assert sorted(path.name for path in third.iterdir()) == [
        "batch-0001.policy.safetensors",
        "batch-0001.summary",
        "batch-0002.policy.safetensors",
        "batch-0002.summary",
        "learner.json",
        "policy.safetensors",
    ]
    described = json.loads((third / "learner.json").read_text())
    assert described["learner"] == "foresight"
    assert described["settings"] == {"dim": 3, "horizon": 300, "updates": 4}


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - set(DEPLOYABLE)))
def test_learners_whose_batches_end_where_features_say_are_refused(name: str) -> None:
    with pytest.raises(UnsuitableError, match=rf"{name} decides .* For updates from logs use foresight"):
        Deployment.begin(name, dim=3, arms=5, horizon=300)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("ucb", {}, "there is no learner 'ucb'"),
        ("batch-linucb-kw", {}, "batch-linucb-kw needs arms, and it was not given"),
        ("foresight", {"noise": 0.5}, "foresight does not take noise"),
        ("foresight", {"floor": 2.0}, "floor must be"),
        ("foresight", {"floor": float("nan")}, "keeps its settings as JSON: floor of foresight"),
        ("foresight", {"grid": [30, 20, 300]}, "strictly increasing"),
        ("foresight", {"grid": geometric_grid(200, 3)}, "the grid ends at 200"),
        ("stale-linucb", {"arms": 5, "grid": object()}, "keeps its settings as JSON: grid of stale-linucb"),
        ("batch-linucb-kw", {"arms": 5, "g_optimal": object()}, "keeps its settings as JSON: g_optimal"),
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
    assert (tmp_path / "full" / "note").read_text() == "mine"


def test_a_folder_appears_whole_or_not_at_all(third: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Deployment.load(third)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rareswitch.log.deployment.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        here.save(tmp_path / "next")
    assert list(tmp_path.iterdir()) == []


def test_policies_are_signed(third: Path, tmp_path: Path) -> None:
    key, other = HmacKey(secret=b"0123456789abcdef"), HmacKey(secret=b"fedcba9876543210")
    Deployment.load(third).save(tmp_path / "signed", key=key)
    assert Deployment.load(tmp_path / "signed", key=key).learner.updates == 3
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
    other = advanced(Deployment.begin("foresight", dim=3, horizon=300, updates=4, seed=9)).policy
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
    with pytest.raises(FileFormatError, match=r"batch-0002.summary: not the summary that learner.json tells of"):
        Deployment.load(folder)
    described = json.loads((folder / "learner.json").read_text())
    described["summaries"][1] = described["summaries"][0]
    (folder / "learner.json").write_bytes(canonical_json(described))
    with pytest.raises(FileFormatError, match=r"batch-0002.summary: the learner cannot learn from it .*of policy"):
        Deployment.load(folder)
    two.write_bytes(kept)
    (folder / "batch-0003.summary").write_bytes(kept)
    with pytest.raises(FileFormatError, match=r"batch-0003.summary: belongs to no batch"):
        Deployment.load(folder)


def test_what_learning_again_does_not_give_is_refused(folder: Path) -> None:
    """Even if all hashes are right."""
    described = json.loads((folder / "learner.json").read_text())
    summary = Deployment.load(folder).summaries[0]
    changed = Summary(
        start=summary.start,
        stop=summary.stop,
        policy_id=summary.policy_id,
        stats=(summary.stats[0] + Stats.of([[1.0, 0.0, 0.0]], [1.0]),),
        sample=summary.sample,
    )
    data = summary_to_bytes(changed)
    (folder / "batch-0001.summary").write_bytes(data)
    described["summaries"][0] = hashlib.sha256(data).hexdigest()
    (folder / "learner.json").write_bytes(canonical_json(described))
    with pytest.raises(FileFormatError, match=r"batch-0002.policy.safetensors: holds policy .*, and learning again"):
        Deployment.load(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "deployments have schema 1; this one has 2"),
        ({"learner": "ucb"}, "no learner can be made of it .*no learner 'ucb'"),
        ({"learner": "linucb"}, "no learner can be made of it"),
        ({"settings": {"dim": "three"}}, "no learner can be made of it"),
        ({"settings": {"dim": 3, "horizon": 300, "updates": 5}}, "holds policy|the learner cannot learn"),
        ({"policies": ["a", "b"], "summaries": ["c"]}, "batch-0002.policy.safetensors: belongs to no batch"),
        ({"policies": ["a"] * 4, "summaries": ["b"] * 3}, "batch-0003.policy.safetensors: missing; learner.json tells"),
        ({"policies": []}, "it was changed, or written by something else"),
        ({"summaries": "none"}, "it was changed, or written by something else"),
        ({"more": 1}, "it was changed, or written by something else"),
    ],
)
def test_a_description_that_was_changed_is_refused(folder: Path, change: dict[str, object], words: str) -> None:
    path = folder / "learner.json"
    path.write_bytes(canonical_json(json.loads(path.read_text()) | change))
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
    assert here.learner.done
    with pytest.raises(BatchError, match="this run is over"):
        here.advance(here.summaries[-1])


def test_a_deployment_loads_on_another_kind_of_processor(third: Path) -> None:
    """Where BLAS sums in another order, the policies that are learned again differ in their last bits."""
    script = (
        "import sys; from rareswitch.log import Deployment; d = Deployment.load(sys.argv[1]); "
        "print(d.policy.id, d.learner.policy.id)"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, str(third)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OPENBLAS_CORETYPE": "Nehalem"},
    ).stdout
    assert out.split() == [Deployment.load(third).policy.id] * 2


def test_parameters_are_named_in_errors() -> None:
    with pytest.raises(ParameterError, match="whole number"):
        Deployment.begin("foresight", dim=3, horizon="many")
