import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.decisions import DecisionLog
from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.features import Category, Features, Hashed
from rareswitch.log import dsjson_records, read_dsjson, write_dsjson
from reference.logged import log_of
from reference.refusals import raises


def line(**changes: Any) -> dict[str, Any]:
    """A decision as services write it: the third of three actions was shown."""
    actions = [
        {"_tag": name, "item": {"kind": kind}} for name, kind in (("tea", "hot"), ("ice", "cold"), ("rum", "hot"))
    ]
    usual: dict[str, Any] = {
        "_label_cost": -0.5,
        "_label_probability": 0.800000011920929,
        "_label_Action": 3,
        "_labelIndex": 2,
        "o": [{"v": 0.5, "EventId": "e1"}],
        "Timestamp": "2021-02-04T16:31:29.2460000Z",
        "Version": "1",
        "EventId": "e1",
        "a": [3, 1, 2],
        "c": {"user": {"name": "Cathy", "_secret": 7}, "urls": [{"day": "Monday"}], "_multi": actions},
        "p": [0.800000011920929, 0.05000000074505806, 0.15000000596046448],
        "VWState": {"m": "model-1"},
    }
    return {name: value for name, value in (usual | changes).items() if value is not ...}


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "log.dsjson"
    path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in lines))
    return path


def test_a_decision_of_a_service(tmp_path: Path) -> None:
    log = read_dsjson(written(tmp_path, line(), "", line(EventId="e2", _label_cost=-0.0, VWState={"m": "model-2"})))
    assert log.chosen_names == ["rum", "rum"]
    assert log.propensities.tolist() == [0.800000011920929] * 2
    assert log.rewards.tolist() == [0.5, 0.0]
    assert log.behavior_probs[0].tolist() == [0.05000000074505806, 0.15000000596046448, 0.800000011920929], (
        "p is in the order of a"
    )
    assert log.batch_names == ("model-1", "model-2")
    assert log.times[0] == 1612456289.246
    assert log.contexts is None


def test_records_and_features(tmp_path: Path) -> None:
    path = written(tmp_path, line(), line(EventId="e2"))
    records = dsjson_records(path)
    assert records.contexts[0] == {"user.name": "Cathy", "urls.day": "Monday"}
    assert records.arms[0] == {"tea": {"item.kind": "hot"}, "ice": {"item.kind": "cold"}, "rum": {"item.kind": "hot"}}
    features = Features(
        fields=[Hashed("user.name", columns=4), Category("item.kind", of="arm", levels=["hot", "cold"])],
        crossings=[("user.name", "item.kind")],
    )
    log = read_dsjson(path, features=features)
    assert log.contexts.tolist() == features.encode_many(*records).vectors.tolist()
    assert Features.fit(*records).dim > 0


def test_ids_of_arms_may_be_a_field_of_actions(tmp_path: Path) -> None:
    path = written(tmp_path, line(c={"_multi": [{"i": [{"id": 4}]}, {"i": [{"id": "b"}]}, {"i": [{"id": "c"}]}]}))
    assert read_dsjson(path).arms is None
    assert read_dsjson(path, arm="i.id").arms == ("4", "b", "c")
    raises(FileFormatError, r"no id 'i\.name'", read_dsjson, path, arm="i.name")


def test_rewards_are_unknown_without_a_cost_and_where_nothing_is_to_be_learned(tmp_path: Path) -> None:
    path = written(tmp_path, line(_label_cost=...), line(EventId="e2", _skipLearn=True), line(EventId="e3"))
    assert np.isnan(read_dsjson(path).rewards).tolist() == [True, True, False]


def test_probabilities_may_be_told_once_or_not_at_all(tmp_path: Path) -> None:
    assert read_dsjson(written(tmp_path, line(_label_probability=...))).propensities.tolist() == [0.800000011920929]
    assert read_dsjson(written(tmp_path, line(p=...))).behavior_probs is None
    path = written(tmp_path, line(p=..., _label_probability=...), line(EventId="e2", p=..., _label_probability=...))
    raises(FileFormatError, "propensities='estimate'", read_dsjson, path)
    log = read_dsjson(path, propensities="estimate")
    assert log.propensities.tolist() == pytest.approx([3 / 5] * 2)
    assert "arm frequencies" in log.estimated
    raises(ParameterError, "propensities", read_dsjson, path, propensities="guess")


def test_events_that_were_left_out_must_be_so_evenly(tmp_path: Path) -> None:
    assert len(read_dsjson(written(tmp_path, line(pdrop=0.5), line(EventId="e2", pdrop=0.5)))) == 2
    raises(FileFormatError, "different rates", read_dsjson, written(tmp_path, line(pdrop=0.5), line(EventId="e2")))


HOSTILE: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "line 2: no decision in JSON"),
    "cut short": (json.dumps(line())[:100], "line 2: no decision in JSON"),
    "a list": ("[]", "line 2: no decision in JSON (Expected `object`"),
    "NaN": (json.dumps(line(_label_cost=float("nan"))), "line 2: no decision in JSON"),
    "a cost that is a text": (line(_label_cost="1"), "at `$._label_cost`"),
    "a cost beyond floats": (json.dumps(line()).replace("-0.5", "-1e999"), "at `$._label_cost`"),
    "a negative probability": (
        line(_label_probability=-0.5, p=...),
        "propensities must be above 0 and at most 1; row 1",
    ),
    "a probability of 0": (line(_label_probability=0, p=...), "propensities must be above 0 and at most 1; row 1"),
    "a probability above 1": (line(_label_probability=1.5, p=...), "propensities must be above 0 and at most 1; row 1"),
    "two probabilities": (
        line(_label_probability=0.5),
        "behavior_probs must give the chosen arm its propensity; row 1",
    ),
    "probabilities that do not sum to 1": (
        line(p=[0.8, 0.8, 0.8], _label_probability=...),
        "behavior_probs must sum to 1",
    ),
    "too few probabilities": (line(p=[0.8]), "line 2: 'p' must be probabilities"),
    "an unknown action": (line(_label_Action=4), "line 2: _label_Action must be that of one of the 3 actions"),
    "action 0": (line(_label_Action=0), "line 2: _label_Action"),
    "an action that is a text": (line(_labelIndex="2"), "at `$._labelIndex`"),
    "different actions": (line(_label_Action=2), "tell of different actions"),
    "no action": (line(_label_Action=..., _labelIndex=..., a=..., p=...), "does not say which action"),
    "an order of unknown actions": (line(a=[3, 1, 9]), "line 2: 'a' must be numbers of the 3 actions"),
    "an order with one twice": (line(a=[3, 1, 1]), "line 2: 'a' must be numbers of the 3 actions, from 1, each once"),
    "no context": (line(c=...), "line 2: a decision needs its context"),
    "an outcome alone": ({"RewardValue": 1.0, "EventId": "e1"}, "outcome whose decision is missing"),
    "no actions": (line(c={"_multi": []}), "line 2: a context needs its actions"),
    "slots": (line(c={"_multi": [{}], "_slots": [{}]}), "CCB or slates"),
    "outcomes of slots": ({"_outcomes": []}, "CCB or slates"),
    "a bad time": (line(Timestamp="yesterday"), "line 2: Timestamp"),
    "the same id": (line(EventId="e0"), "ids must differ within a batch; rows [0, 1]"),
    "a share left out of 1": (line(pdrop=1), "pdrop"),
    "a damaged mark": (line(**{"rareswitch.estimated": 7}), "rareswitch.estimated"),
    "a damaged baseline": (line(**{"rareswitch.baseline": 3}), "baselines must be"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_wrong_is_told_with_its_line(kind: str, tmp_path: Path) -> None:
    bad, expected = HOSTILE[kind]
    path = written(tmp_path, line(EventId="e0"), bad)
    with pytest.raises(FileFormatError) as caught:
        read_dsjson(path)
    assert expected in str(caught.value)


def test_a_field_that_is_there_twice(tmp_path: Path) -> None:
    path = written(tmp_path, line(c={"user": {"age": 1}, "user.age": 2, "_multi": [{}, {}, {}]}))
    raises(FileFormatError, r"'user.age' is there twice", dsjson_records, path)


def test_empty_and_truncated_files(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    for text in ("", "\n\n"):
        path.write_text(text)
        for read in (read_dsjson, dsjson_records):
            raises(FileFormatError, "no decision", read, path)
    packed = tmp_path / "log.json.gz"
    write_dsjson(packed, log_of(1030))
    packed.write_bytes(packed.read_bytes()[:-20])
    raises(FileFormatError, "cut short", read_dsjson, packed)


def test_what_is_written_is_what_services_write(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "arm_indices": [1, 0],
        "propensities": [0.25, 0.75],
        "rewards": [2.0, None],
        "behavior_probs": [[0.75, 0.25], [0.75, 0.25]],
        "arms": ["red", "blue"],
        "times": [1612456289.246, 0.0],
        "ids": ["e1", 5],
    }
    log = DecisionLog(**columns)
    path = tmp_path / "log.dsjson"
    write_dsjson(path, log)
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["_label_cost"] == -2.0
    assert (first["_label_Action"], first["_labelIndex"], first["a"], first["p"]) == (2, 1, [2, 1], [0.25, 0.75])
    assert first["Timestamp"] == "2021-02-04T16:31:29.2460000Z"
    assert first["c"] == {"_multi": [{"_tag": "red"}, {"_tag": "blue"}]}
    assert second["_skipLearn"] is True
    assert second["EventId"] == "5"
