"""Record a state in the middle of a run: ``python tests/golden/record_state.py``."""

from pathlib import Path

import numpy as np

from rareswitch.core import write_whole
from rareswitch.decisions import DecisionLog
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import Foresight, State, state_to_bytes

FILE = Path(__file__).parent / "foresight.state"
LEARNER = Foresight(dim=3, horizon=2000, policies=5, intercept=True, seed=7)
SEED = 11


def world() -> World:
    return make_world("one-big", dim=3, arms=5, noise=0.5)


def rows(state: State, *, late: bool = False) -> DecisionLog:
    """What came of the current batch: names as ids, every tenth reward unknown unless it is ``late``."""
    rounds, count = world().draw(state.batch_sizes[0], seed=SEED, first=state.start), state.batch_sizes[0]
    names = [f"decision {state.start + k}" for k in range(count)]
    decisions = state.policy.decide(rounds.contexts, rounds.available, ids=names, seed=SEED)
    rewards = world().rewards(rounds.means[np.arange(count), decisions.arms], seed=SEED, first=state.start)
    unknown = (np.arange(count) % 10 == 9) & (not late)
    return DecisionLog.of(rounds.contexts, decisions, np.where(unknown, np.nan, rewards), rounds.available)


def recorded() -> State:
    """After two updates, the second with the late rewards of the first batch."""
    state = LEARNER.begin()
    all_of_it = rows(state, late=True)
    state = LEARNER.next(state, LEARNER.summarize(state, rows(state)))
    late = LEARNER.summarize(state, all_of_it)
    return LEARNER.next(state, LEARNER.summarize(state, rows(state)), late=[late])


if __name__ == "__main__":
    write_whole(state_to_bytes(recorded()), FILE)
