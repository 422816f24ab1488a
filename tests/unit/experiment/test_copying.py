from pathlib import Path
from typing import Any

import pytest

from rareswitch.errors import FileFormatError, ParameterError, StoreError
from rareswitch.experiment import Experiment, copy_experiment, create, open_experiment
from rareswitch.policy import Ed25519Key, new_key
from reference.trials import advance_batch, play_batch

TOLD: dict[str, Any] = {"dim": 3, "horizon": 300, "policies": 4, "seed": 5, "now": 0.0}


def content(trial: Experiment) -> list[Any]:
    return [one for some in trial.store.rows(0, trial.store.marks()) for one in some]


def test_a_copy_in_another_store_goes_on_as_the_original(tmp_path: Path) -> None:
    trial = create(f"sqlite:///{tmp_path}/one.db", "spring", **TOLD)
    advance_batch(trial)
    play_batch(trial, count=7)
    trial.decide([[1.0, 0.0, 0.0]], id="later", deferred=True)
    seen: list[tuple[int, int]] = []
    copies = [
        copy_experiment(trial, url, progress=lambda *step: seen.append(step))
        for url in ("memory:", f"sqlite:///{tmp_path}/two.db")
    ]
    for copy in copies:
        assert content(copy) == content(trial)
        assert copy.audit(3).matches
        assert (copy.status().deferred, copy.audit("later").activated) == (1, None)
        assert copy.verify().holds
    assert seen[-1][0] == seen[-1][1] == trial.store.counts()[0].decisions + 8
    ids = {one.advance(now=500.0, force=True).policy_id for one in (trial, *copies)}
    assert len(ids) == 1
    with pytest.raises(StoreError, match=r"there is an experiment 'spring' in .* already"):
        copy_experiment(trial, f"sqlite:///{tmp_path}/two.db")
    for one in (trial, *copies):
        one.close()


def test_keys_are_changed_and_given_up_on_purpose(tmp_path: Path) -> None:
    old, new = new_key("ed25519"), new_key("hmac")
    url = f"sqlite:///{tmp_path}/old.db"
    advance_batch(create(url, "spring", key=old, **TOLD))
    public = Ed25519Key(public=old.public)
    checked, unchecked = open_experiment(url, "spring", key=public), open_experiment(url, "spring")
    with pytest.raises(ParameterError, match=r"what was not checked is not copied. Open it with its key; or give"):
        copy_experiment(unchecked, "memory:", key=new)
    with pytest.raises(ParameterError, match="with the public half given one can verify only"):
        copy_experiment(checked, "memory:", key=public)
    assert advance_batch(copy_experiment(checked, f"sqlite:///{tmp_path}/new.db", key=new)).version == 3
    there = open_experiment(f"sqlite:///{tmp_path}/new.db", "spring", key=new)
    assert (there.signature, len(there.policies)) == ("checked", 3)
    with pytest.raises(FileFormatError, match="it is signed with 'hmac-sha256'"):
        open_experiment(f"sqlite:///{tmp_path}/new.db", "spring", key=public)
    assert copy_experiment(unchecked, "memory:", unchecked=True).signature == "none"
    assert [one.id for one in there.policies][:2] == [one.id for one in checked.policies]
