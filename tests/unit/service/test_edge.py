"""A server at the edge decides as the experiment whose policy and seed it has."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import rareswitch
from rareswitch.errors import FileFormatError, ParameterError, RecordError
from rareswitch.experiment import Experiment
from rareswitch.features import Features
from rareswitch.log import import_parts
from rareswitch.policy import new_key
from rareswitch.service import EdgeHub, FrozenPolicy, Service, application, read_settings
from reference.refusals import raises

RECORDS = [{"age": 20 + 7 * k % 50, "device": ("ios", "web")[k % 2]} for k in range(200)]
ONE = {"id": "r1", "context": RECORDS[0], "arms": ["red", "blue"]}


@pytest.fixture
def trial(tmp_path: Path) -> Experiment:
    features = Features.fit(RECORDS, ["red", "blue"])
    settings: dict[str, Any] = {"features": features, "policies": 4, "horizon": 1000, "seed": 7}
    trial = rareswitch.create("memory:", "spring", min_propensity=0.05, **settings)
    (tmp_path / "p.policy").write_bytes(trial.policy_file()[1])
    return trial


def learned(trial: Experiment) -> None:
    trial.decide_many(RECORDS, ["red", "blue"], ids=range(200))
    trial.reward_many(range(200), np.tile([0.0, 1.0], 100).tolist())
    assert trial.advance(force=True).made


Ask = Callable[[str, Any], httpx.Response]


def asking(hub: EdgeHub) -> Ask:
    service = Service(hub=hub)
    token = service.security.tokens.add("all", ["admin"])

    def ask(path: str, body: Any = None) -> httpx.Response:
        async def answer() -> httpx.Response:
            transport, headers = httpx.ASGITransport(application(service)), {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
                return await client.request("GET" if body is None else "POST", path, json=body)

        return asyncio.run(answer())

    return ask


def test_decisions_are_those_of_the_experiment_and_come_back_as_parts(trial: Experiment, tmp_path: Path) -> None:
    hub = EdgeHub(FrozenPolicy(tmp_path / "p.policy", name="spring", seed=7, logs=True), tmp_path / "logs")
    ask = asking(hub)
    single = [ask("/v1/experiments/spring/decide", {**ONE, "id": f"r{k}"}).json() for k in range(5)]
    many = {"ids": [f"m{k}" for k in range(30)], "contexts": RECORDS[:30], "arms": ["red", "blue"]}
    columns = ask("/v1/experiments/spring/decide-many", many).json()
    assert ask("/v1/experiments/autumn/decide", ONE).status_code == 404
    assert ask("/v1/experiments/spring/advance", {}).status_code == 404
    hub.close()
    parts = sorted((tmp_path / "logs").glob("*.parquet"))
    learner, policies = trial.description.learner, [trial.policy.id]
    report = import_parts(trial.store, parts, learner=learner, policies=policies)
    assert (report.new, report.conflicting) == (35, 0)
    for answer in single:
        choice = trial.decide(ONE["context"], ONE["arms"], id=answer["id"])  # type: ignore[arg-type]
        assert (choice.arm, choice.propensity, choice.repeated) == (answer["arm"], answer["propensity"], True)
    assert all(trial.audit(name).matches for name in columns["ids"])


def test_what_is_asked_at_once_is_decided_as_alone(trial: Experiment, tmp_path: Path) -> None:
    frozen = FrozenPolicy(tmp_path / "p.policy", name="spring", seed=7)
    wrong: list[dict[str, Any]] = [{"age": "old", "device": "ios"}, {"age": 31, "device": ["ios"]}]
    records: list[dict[str, Any]] = [*RECORDS[:6], *wrong]
    asked = [frozen.request(r, ["red", "blue"][: 2 - k % 2], id=f"r{k}") for k, r in enumerate(records)]
    asked += [asked[0], frozen.request(RECORDS[0], id="named")]
    together, alone = frozen.decide_together(asked), [frozen.decide_together([each])[0] for each in asked]
    assert [*map(str, together)] == [*map(str, alone)]
    assert [isinstance(answer, RecordError) for answer in together] == [False] * 6 + [True] * 2 + [False] * 2


def test_a_new_file_is_taken_if_it_is_whole_and_signed(tmp_path: Path) -> None:
    key, path = new_key("hmac"), tmp_path / "p.policy"
    features = Features.fit(RECORDS, ["red", "blue"])
    trial = rareswitch.create("memory:", "spring", features=features, policies=4, horizon=1000, seed=7, key=key)
    first = trial.policy_file()
    path.write_bytes(first[1])
    frozen = FrozenPolicy(path, name="spring", seed=7, key=key)
    assert not frozen.refresh()
    path.write_bytes(first[1][:-9])
    raises(FileFormatError, None, frozen.refresh)
    assert frozen.policy.id == first[0]
    learned(trial)
    second = trial.policy_file()
    path.write_bytes(second[1])
    assert frozen.refresh()
    assert frozen.policy.id == second[0] != first[0]
    shares = frozen.probabilities(ONE["context"], ONE["arms"])
    assert shares == trial.probabilities(ONE["context"], ONE["arms"])  # type: ignore[arg-type]
    other = rareswitch.create("memory:", "other", features=features, policies=4, horizon=1000, key=new_key("hmac"))
    path.write_bytes(other.policy_file()[1])
    raises(FileFormatError, "sign", frozen.refresh)


def test_an_edge_server_needs_its_seed() -> None:
    raises(ParameterError, "seed must be given with --policy", read_settings, None, {}, {"policy": "p.policy"})
    assert read_settings(None, {"RARESWITCH_SEED": "7"}, {"policy": "p.policy"}).seed == 7
    with pytest.raises(ParameterError, match="url must name a store"):
        read_settings(None, {"RARESWITCH_SEED": "7"}, {"policy": "p.policy", "url": "a.db"})
