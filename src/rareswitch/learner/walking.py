"""Learners that can run the loop in compiled steps."""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from rareswitch.learner.feedback import Summary
from rareswitch.learner.learner import Learner
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, IntArray, Sets


class Walk(NamedTuple):
    """The first of the sets that a learner was given to walk through."""

    arms: IntArray
    """(m,) what it chose."""
    ends: IntArray | None
    """The decision counts at which policies retired on the way; None if that is after every step."""


class Walker(Learner):
    """Decides, learns and changes its policy as the loop would, many decisions at a call."""

    walks: bool = True
    """Whether it can with the settings it has."""

    @abstractmethod
    def walk(self, sets: Sets, rewards: FloatArray, *, changes: int) -> Walk:
        """Go on until the sets or the ``changes`` are used up.

        Parameters
        ----------
        sets
            The next context sets, n of them, none past the horizon.
        rewards
            (n, K) what each arm would pay; only the entries of chosen arms are looked at.
        """


class Advance(NamedTuple):
    """How far a frozen policy went."""

    steps: int
    due: bool
    """Whether it ended there because the next policy is due."""
    layers: IntArray
    """(steps,) the model that each decision teaches."""


class GrowthWalker(Walker):
    """Walks stretch by stretch: a policy is frozen until a determinant has grown."""

    _pending: Summary | None = None
    """What the current policy has done so far on a walk."""

    @abstractmethod
    def _advance(self, sets: Sets, arms: IntArray) -> Advance:
        """Decide until the next policy is due or the sets are used up; ``arms`` takes what is chosen."""

    @abstractmethod
    def _by_model(self, features: FloatArray, rewards: FloatArray, layers: IntArray) -> tuple[Stats, ...]:
        """The statistics of decisions, by the model that each teaches."""

    def walk(self, sets: Sets, rewards: FloatArray, *, changes: int) -> Walk:
        count, done, ends = len(sets.contexts), 0, []
        arms = np.empty(count, dtype=np.int64)
        while done < count and changes > 0:
            steps, due, layers = self._advance(Sets(sets.contexts[done:], sets.alive[done:], False), arms[done:])
            at = np.arange(done, done + steps)
            done += steps
            start = self.start if self._pending is None else self._pending.stop
            part = Summary(
                start=start,
                stop=start + steps,
                policy_id=self.policy.id,
                stats=self._by_model(sets.contexts[at, arms[at]], rewards[at, arms[at]], layers),
                sample=None,
            )
            self._pending = part if self._pending is None else self._pending + part
            if due or part.stop == self.horizon:
                self.next(self._pending)
                self._pending = None
                changes -= 1
                if not self.done:
                    ends.append(part.stop)
        return Walk(arms[:done], np.array(ends, dtype=np.int64))
