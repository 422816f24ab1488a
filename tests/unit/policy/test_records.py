"""Policies that carry features: records in, the decisions of the vectors out, on any machine."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.core.codec import pack, unpack
from rareswitch.decisions import DecisionLog
from rareswitch.design import GOptimal, Uniform
from rareswitch.errors import FileFormatError, ParameterError, ShapeError
from rareswitch.features import Arms, Features, Number
from rareswitch.learner import Foresight, make_learner, state_from_bytes, state_to_bytes
from rareswitch.policy import (
    Blend,
    HmacKey,
    Policy,
    PosteriorDraws,
    load_policy,
    policy_from_bytes,
    policy_to_bytes,
    save_policy,
)
from reference.hostile import resealed
from reference.records import AFFINITIES, MIXED, SHARED, drawn
from reference.refusals import raises

KEY = HmacKey(secret=b"0123456789abcdef")
OWN = Features(
    fields=[Number("age", mean=40, scale=10, alone=False)], arms=Arms(ids=["a", "b"], spare_arms=1, own=["age"])
)


def policy_of(features: Features) -> Policy:
    draws = np.random.default_rng(1).standard_normal((16, features.dim))
    sampler = Blend(main=PosteriorDraws(draws=draws), explorer=GOptimal(tol=1.0), share=0.1)
    return Policy(dim=features.dim, sampler=sampler, features=features)


def test_records_are_decided_as_their_vectors() -> None:
    policy, rng = policy_of(MIXED), np.random.default_rng(2)
    for k in range(50):
        context, arms = drawn(rng)
        encoded = MIXED.encode(context, arms)
        wanted = policy.decide(encoded.vectors, ids=f"r{k}", seed=3)
        found = policy.decide_records(context, arms, id=f"r{k}", seed=3)
        assert (found.arm_index, found.propensity) == (int(wanted.arms), float(wanted.propensities))
        assert found.arm == list(arms)[found.arm_index]
        assert (found.policy_id, found.counts) == (policy.id, encoded.counts)


def test_a_policy_file_is_all_that_another_process_needs(tmp_path: Path) -> None:
    policies = [policy_of(features) for features in (MIXED, AFFINITIES, SHARED)]
    for number, policy in enumerate(policies):
        save_policy(policy, tmp_path / f"{number}.policy", key=KEY)
    requests: list[Any] = [
        [
            {"age": 20.5 + k, "device": "ios", "city": f"c{k}", "likes_a_now": k, "likes_7_now": None},
            {"a": {"price": k, "new": k % 2 == 0, "maker": f"m{k}"}, "7": {"price": None, "brand": "b"}, f"{k}": {}},
        ]
        for k in range(40, 60)
    ]
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    script = (
        "import json, sys; from rareswitch import load_policy\n"
        "requests = json.load(open('requests.json'))\n"
        "for p in (load_policy(f'{number}.policy') for number in range(3)):\n"
        "    made = [p.decide_records(c, a, id=f'r{k}', seed=5) for k, (c, a) in enumerate(requests)]\n"
        "    print(json.dumps([p.id, [[d.arm, d.propensity.hex(), d.counts] for d in made]]))"
    )
    command = [sys.executable, "-c", script]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    for policy, line in zip(policies, out.splitlines(), strict=True):
        made = [policy.decide_records(c, a, id=f"r{k}", seed=5) for k, (c, a) in enumerate(requests)]
        assert json.loads(line) == [policy.id, [[d.arm, d.propensity.hex(), dict(d.counts)] for d in made]]
        assert len({d.arm for d in made}) > 1


def test_features_are_part_of_the_content_and_under_the_signature(tmp_path: Path) -> None:
    policy, other = policy_of(OWN), Policy(dim=OWN.dim, sampler=policy_of(OWN).sampler)
    moved = Features.from_plain(OWN.to_plain() | {"extra": "error"})
    assert len({policy.id, other.id, Policy(dim=OWN.dim, sampler=other.sampler, features=moved).id}) == 3
    data = policy_to_bytes(policy, key=KEY)
    assert policy_from_bytes(data, key=KEY).features == OWN
    meta, tensors = unpack(data)
    meta["content"]["features"]["fields"][0]["mean"] = 41.0
    raises(FileFormatError, "does not match its id", policy_from_bytes, pack(meta, tensors))
    raises(FileFormatError, None, policy_from_bytes, resealed(meta, tensors), key=KEY)
    assert b'features\\":null' in policy_to_bytes(other)


def test_features_fit_the_policy_or_are_refused() -> None:
    raises(ShapeError, "features of 9 columns in a policy of 5", Policy, dim=5, sampler=Uniform(), features=OWN)
    raises(ParameterError, "of type Features", Policy, dim=5, sampler=Uniform(), features={})
    with pytest.raises(ParameterError, match="this policy has none"):
        Policy(dim=5, sampler=Uniform()).decide_records({}, ["a"], id=1, seed=1)


def test_the_baseline_is_named_by_its_id() -> None:
    first = Foresight(dim=OWN.dim, horizon=1000).begin(features=OWN, baseline=0.0).policy
    chosen = first.decide_records({"age": 30}, ["b", "a", "new"], id=1, seed=1, baseline="a")
    assert (chosen.arm, chosen.arm_index, chosen.propensity) == ("a", 1, 1.0)
    with pytest.raises(ParameterError, match="baseline must be the id of an arm that is offered; got 'c'"):
        first.decide_records({"age": 30}, ["b", "a"], id=1, seed=1, baseline="c")


@pytest.mark.parametrize("name", ["foresight", "thompson", "batch-linucb-kw"])
def test_every_policy_of_a_run_carries_the_features(name: str, tmp_path: Path) -> None:
    learner: Any = make_learner(name, dim=OWN.dim, horizon=300, arms=3)
    state, plain = learner.begin(features=OWN), learner.begin()
    assert plain.policy.features is None
    rng = np.random.default_rng(1)
    while state.policies < 4 and not state.done:
        assert state.policy.features == OWN
        assert plain.policy.id != state.policy.id
        ids = range(state.start, state.stop)
        contexts = [{"age": float(rng.normal(40, 10))} for _ in ids]
        sets = OWN.encode_many(contexts, ["a", "b", "later"]).sets
        rewards = rng.normal(size=len(ids))
        both = []
        for one in (state, plain):
            decisions = one.policy.decide(sets, ids=ids, seed=1)
            both.append(learner.next(one, learner.summarize(one, DecisionLog.of(sets, decisions, rewards))))
        kept, (state, plain) = state, both
        chosen = kept.policy.decide_records(contexts[0], ["a", "b", "later"], id=ids[0], seed=1)
        assert chosen.propensity > 0
        # the features change nothing of what is learned
        again = Policy(**{f: getattr(state.policy, f) for f in ("dim", "sampler", "eliminations", "edition")})
        assert again.id == plain.policy.id
        state = state_from_bytes(state_to_bytes(state))
    save_policy(state.policy, tmp_path / "last.policy")
    assert load_policy(tmp_path / "last.policy").features == OWN
