"""A child that is interrupted while it learns: ``python interrupted.py MOMENTS``, by :mod:`test_state`.

For each moment it says ``begin`` and then makes the next state again and again until SIGINT comes, makes it once more
after that, and says the id of its policy.
"""

import sys
from types import TracebackType

from rareswitch.decisions import DecisionLog
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, State, state_to_bytes

LEARNER = Foresight(dim=5, grid=[400, 2000, 8000, 20_000])
WORLD = make_world("gaussian", dim=5, arms=8, noise=0.5)


def batch() -> tuple[State, DecisionLog]:
    """The first batch: a state, and what came of it."""
    state = LEARNER.begin()
    rounds = WORLD.draw(400, seed=1)
    decisions = state.policy.decide(rounds.contexts, ids=range(400), seed=1)
    return state, DecisionLog.of(
        rounds.contexts, decisions, WORLD.rewards(rounds.means[range(400), decisions.arms], seed=1)
    )


def inside(traceback: TracebackType | None) -> bool:
    """Whether the exception came out of ``Learner.next``."""
    while traceback is not None:
        if traceback.tb_frame.f_code is type(LEARNER).next.__code__:
            return True
        traceback = traceback.tb_next
    return False


def main(moments: int) -> None:
    state, rows = batch()
    summary = LEARNER.summarize(state, rows)
    before = state_to_bytes(state)
    LEARNER.next(state, summary)  # what must be compiled or loaded is
    for _ in range(moments):
        hit = False
        while not hit:
            try:
                print("begin", flush=True)
                while True:
                    LEARNER.next(state, summary)
            except KeyboardInterrupt as error:
                hit = inside(error.__traceback__)
        print(LEARNER.next(state, summary).policy.id, state_to_bytes(state) == before, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
