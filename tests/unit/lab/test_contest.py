from pathlib import Path

import pytest

from rareswitch.errors import FileFormatError, InputError, UnsuitableError
from rareswitch.lab import ENTRANTS, choose_entrants, contest, load_runs, simulate
from rareswitch.lab.contest import ARMS, DIM, NOISE, POLICIES, Entrant
from rareswitch.lab.worlds import make_world
from rareswitch.learner import LEARNERS
from reference.refusals import raises

WORLD = make_world("gaussian", dim=DIM, arms=ARMS, noise=NOISE)
FEW = choose_entrants(["linucb 1", "thompson-grid 0.5", "batch-linucb"])


def test_every_learner_takes_part() -> None:
    assert {entrant.learner for entrant in ENTRANTS.values()} == set(LEARNERS)


@pytest.mark.parametrize("label", ENTRANTS)
def test_kinds_are_what_runs_show(label: str) -> None:
    entrant = ENTRANTS[label]
    place = make_world("plain", dim=4, arms=4, noise=NOISE) if entrant.learner == "base" else WORLD
    place = make_world("fixed", dim=4, arms=5, noise=NOISE) if "fixed" in label or label == "e4" else place
    run = simulate(entrant.make(place, 300, 1), place, seed=1)
    assert run.horizon == 300
    if entrant.kind == "rare":
        assert run.policies <= POLICIES
        assert run.policies == POLICIES or "policies" not in entrant.settings
    else:
        assert (run.policies == 300) == (entrant.kind == "adaptive")
    if entrant.kind == "rare" and entrant.learner != "base":
        assert entrant.make(WORLD, 100_000, 1).horizon == 100_000


def test_parts_are_chosen_by_label_learner_or_kind() -> None:
    assert "suplinrel" not in choose_entrants()
    assert "suplinrel" in choose_entrants(slow=True)
    assert "suplinrel" not in choose_entrants(["adaptive"])
    assert list(choose_entrants(["suplinrel"])) == ["suplinrel"]
    assert list(choose_entrants(["base", "thompson"])) == [f"thompson {a}" for a in (0.25, 0.5, 1, 2)] + ["base"]
    assert {e.kind for e in choose_entrants(["rare"]).values()} == {"rare"}
    with pytest.raises(InputError, match=r"called 'nobody'; there are foresight.*adaptive, rare, other for all"):
        choose_entrants(["oful", "nobody"])


def test_a_contest_runs_everyone_everywhere_on_the_same_seeds() -> None:
    found = contest(FEW, places=["gaussian", "fixed"], horizons=[40, 80], seeds=[3, 5])
    shown = [(run.horizon, run.world, run.learner, run.seed) for run in found.runs]
    assert shown == [(t, w, e, s) for t in (40, 80) for w in ("gaussian", "fixed") for e in FEW for s in (3, 5)]
    assert (found.interrupted, found.resumed, found.skipped, found.entrants) == (False, 0, {}, FEW)
    alone = simulate(FEW["linucb 1"].make(WORLD, 80, 5), WORLD, seed=5)
    assert found.runs[shown.index((80, "gaussian", "linucb 1", 5))].regret == alone.regret


def test_who_does_not_fit_is_skipped_with_the_reason() -> None:
    entrants = choose_entrants(["fixed-set-elimination", "base"])
    found = contest(entrants, places=["fixed", "gaussian"], horizons=[40], seeds=[0, 1])
    assert [(run.learner, run.world) for run in found.runs] == [("fixed-set-elimination", "fixed")] * 2
    assert set(found.skipped) == {("fixed-set-elimination", "gaussian"), ("base", "fixed"), ("base", "gaussian")}
    assert "one action set that never changes" in found.skipped["fixed-set-elimination", "gaussian"]
    raises(UnsuitableError, None, entrants["base"].make, WORLD, 40, 0)
    short = contest(
        choose_entrants(["foresight 16", "linucb 1"]), places=["fixed"], horizons=[10], seeds=[1], quiet=True
    )
    assert short.skipped == {("foresight 16", "fixed"): "16 policies do not fit into 10 decisions."}


def test_a_contest_resumes_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "runs.parquet"
    first = contest(FEW, places=["gaussian", "fixed"], horizons=[40], seeds=range(2), path=path)
    assert sorted(file.name for file in path.iterdir()) == ["fixed-40.parquet", "gaussian-40.parquet"]
    assert len(load_runs(path / "fixed-40.parquet")) == 6
    more = {**FEW, "greedy": Entrant(learner="linucb", kind="adaptive", settings={"confidence": 0.0})}
    second = contest(more, places=["gaussian", "fixed"], horizons=[40, 50], seeds=range(3), path=path)
    assert (first.resumed, second.resumed, len(second.runs)) == (0, 12, 48)
    assert second.runs[0].seconds == first.runs[0].seconds
    changed = {"linucb 1": Entrant(learner="linucb", kind="adaptive", settings={"confidence": 0.9})}
    assert contest(changed, places=["fixed"], horizons=[40], seeds=range(2), path=path).resumed == 0


def test_bad_contests_are_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileFormatError, match="kept in a folder and this is a file"):
        contest(FEW, places=["fixed"], horizons=[30], seeds=[0], path=tmp_path / "file")
    with pytest.raises(FileFormatError, match="cannot be made"):
        contest(FEW, places=["fixed"], horizons=[30], seeds=[0], path=tmp_path / "file" / "x")
    with pytest.raises(InputError, match="at least one entrant, world, horizon and seed"):
        contest(FEW, places=["fixed"], horizons=[30], seeds=[])
    raises(InputError, r"no world 'tabel:iris.csv'.* Did you mean 'table'\?", make_world, "tabel:iris.csv")
    raises(InputError, "no world 'nowhere'", contest, FEW, places=["fixed", "nowhere"], horizons=[30], seeds=[0])
