"""Updates of an experiment: when one is made, what is frozen of it, and how it is published."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.engine import Engine
from rareswitch.errors import RareswitchError, StoreError
from rareswitch.experiment.advance import Advance, advance_of
from rareswitch.experiment.counted import OVER, ByHand, Planned
from rareswitch.experiment.description import Description
from rareswitch.experiment.learning import Learned, learn, rewards_seen
from rareswitch.experiment.status import progress_of
from rareswitch.experiment.versions import Version, version_row
from rareswitch.files import canonical_json
from rareswitch.learner import Ahead
from rareswitch.policy import Key
from rareswitch.store import Marks, Store

Versions = tuple[Version, ...]


@dataclass(frozen=True, eq=False)
class Updating:
    """Makes the updates of one experiment; several processes may."""

    store: Store
    description: Description
    #: A policy that was published, by its number.
    version: Callable[[int], Version]
    #: Digest of the description.
    experiment: str
    #: Signs what is published.
    key: Key | None

    def advance(self, known: Versions, *, now: float, ahead: Ahead | None, anyway: bool, **how: Any) -> Advance:
        """Publish the next policy after those that are known, if it is due."""
        current = known[-1]
        if self.store.head() == current.number:
            schedule = self.description.schedule
            progressed = progress_of(self.description, self.store, known, now)
            due = schedule.due(progressed)
            over = isinstance(schedule, Planned) and progressed.over
            asked = due.now or anyway or isinstance(schedule, ByHand) or (over and ahead is not None)
            if not asked and not self.store.started(current.number):  # one that was begun is brought to its end
                return _not_made(current, due.waits)
            plan = self._plan(now, schedule.ahead(progressed) if ahead is None else ahead)
            started = self.store.start_update(current.number, canonical_json(plan).decode())
            if started is not None:
                return self._advance(known, *started, **how)
        return self._advanced(current.number + 1, elsewhere=True)

    def _advance(self, known: Versions, plan: str, marks: Marks, **how: Any) -> Advance:
        frozen, current = json.loads(plan), known[-1]
        try:
            learned = self._learn(known, marks, frozen, **how)
        except StoreError:
            raise  # it goes on with what was frozen when the store is back
        except RareswitchError:
            self.store.abandon_update(current.number)  # so that the next call looks at what has come since
            raise
        if learned.state.done:
            self.store.abandon_update(current.number)
            return _not_made(current, (OVER,))
        report = learned.report | {"marks": list(marks), "plan": frozen, "seconds": round(learned.seconds, 3)}
        report["by"] = secrets.token_hex(8)  # of two that learned the same, it tells who published
        row = version_row(
            current.number + 1,
            learned.state,
            experiment=self.experiment,
            summaries=learned.data,
            report=report,
            time=frozen["now"],
            key=self.key,
        )
        published = self.store.publish(row)
        return self._advanced(row.number, elsewhere=published != row)

    def preview(self, known: Versions, *, now: float, ahead: Ahead | None, engine: Engine | None) -> Advance:
        """What an update made now would do; nothing is changed."""
        current = known[-1]
        foreseen = self.description.schedule.ahead(progress_of(self.description, self.store, known, now))
        frozen = self._plan(now, foreseen if ahead is None else ahead)
        learned = self._learn(known, self.store.marks(), frozen, engine=engine)
        if learned.state.done:
            return _not_made(current, (OVER,))
        report = learned.report | {"seconds": learned.seconds}
        return advance_of(self.description.learner, current.number + 1, learned.state, report)

    def _plan(self, moment: float, ahead: Ahead | None) -> dict[str, Any]:
        """What is frozen of an update beside the marks."""
        return {"now": moment, "ahead": _plain(ahead), "seen": rewards_seen(self.description, self.store)}

    def _learn(self, known: Versions, marks: Marks, frozen: dict[str, Any], **how: Any) -> Learned:
        return learn(self.description, known, self.store, marks, **frozen, **how)

    def _advanced(self, number: int, *, elsewhere: bool) -> Advance:
        made = self.version(number)
        return advance_of(self.description.learner, number, made.state, made.report, elsewhere=elsewhere)


def _not_made(current: Version, waits: tuple[str, ...]) -> Advance:
    return Advance(made=False, version=current.number, policy_id=current.policy.id, waits=waits)


def _plain(ahead: Ahead | None) -> Any:
    return None if ahead is None else np.asarray(ahead).astype(np.int64).tolist()
