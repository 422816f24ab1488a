"""States in files: kept for years, read without learning anything again."""

import numpy as np
import pytest

from golden.record_state import FILE, LEARNER, SEED, rows, world
from rareswitch.core import Stats
from rareswitch.learner import Summary, state_from_bytes, state_to_bytes, summaries_from_bytes, summaries_to_bytes


def test_a_state_that_was_kept_is_read_and_continued() -> None:
    data = FILE.read_bytes()
    state = state_from_bytes(data)
    assert repr(state) == "<state of foresight: policy 3, planned for decisions 50 to 172, then 2 more for 1,827>"
    assert state_to_bytes(state) == data
    assert [(batch.decided, batch.rewarded) for batch in state.past] == [(15, 15), (35, 32)]
    found = LEARNER.next(state, LEARNER.summarize(state, rows(state)))
    assert (found.policies, found.start) == (4, 173)
    assert len(found.notes) == len(state.notes) + 1
    # what it has learned is worth something: half of what chance loses, in the mean over 400 sets
    sets = world().draw(400, seed=SEED, first=10_000)
    played = (found.policy.probabilities(sets.contexts) * sets.means).sum(axis=1)
    best, chance = sets.means.max(axis=1), sets.means.mean(axis=1)
    assert (best - played).mean() < 0.5 * (best - chance).mean()


@pytest.mark.parametrize("level", [0.0, 0.1, -3.7, 1e9, 1e-12])
@pytest.mark.parametrize("noise", [0.0, 1e-9, 1.0])
def test_sums_with_shifts_are_read_however_they_were_rounded(level: float, noise: float) -> None:
    """Rewards that are all but equal leave nothing but rounding when another shift is taken off."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        parts = []
        for count in rng.integers(1, 40, 3):
            x = np.column_stack([rng.standard_normal((count, 2)), np.ones(count)])
            rewards = level + noise * rng.standard_normal(count)
            near = rewards.mean() * (1.0 + rng.uniform(-1.0, 1.0) * 10.0 ** -float(rng.integers(6, 17)))
            parts.append(Stats.of(x, rewards, shift=near))
        total = parts[0] + parts[1] + parts[2]
        summary = Summary(policy_id="a", decided=total.count, rewarded=total.count, stats=(total,))
        assert summaries_from_bytes(summaries_to_bytes([summary]))[0].stats[0].count == total.count
