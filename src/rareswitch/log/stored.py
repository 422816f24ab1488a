"""An experiment's store as a source of decisions, read some rows at a time."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from rareswitch.core import ContextSets, FloatArray, IntArray, KeyArray, Sets, key_bytes, keys_of_bytes
from rareswitch.decisions import ArmCodes, DecisionLog
from rareswitch.errors import EmptySetError, StoreError, several
from rareswitch.learner import Learner, Sample
from rareswitch.log.batch_sums import HeldOut, Learnable, Task
from rareswitch.log.source import KeyedSample, prefetched
from rareswitch.policy import Policy
from rareswitch.store import OFFERS, Marks, Slice, Store

__all__ = ["KeptRecord", "StoredLog", "check_newest"]


def check_newest(store: Store, decided: int, published: int) -> None:
    """Refuse decisions of a policy that the store does not hold: a policy of that number would be taken for theirs."""
    if decided > published:
        raise StoreError(
            f"policy {decided} of experiment '{store.name}' has decided, and {store.url} holds {published}: its "
            "policies were taken back to an older state. Restore the newest copy, and open the experiment again."
        )


class KeptRecord(msgspec.Struct, frozen=True):
    """A request as it came: the record, and the arms, ids or records by id."""

    context: dict[str, Any]
    arms: list[str | int] | dict[str, dict[str, Any]]


class StoredLog:
    """The decisions of an experiment, a :class:`~rareswitch.log.Source`; a batch is what one of its policies decided.

    All passes see the same decisions and rewards: those that were there when it was made. Rewards count as they do when
    the next policy is learned.

    Parameters
    ----------
    policies
        Of the experiment, the first first; only those that decided something are batches.
    dim
        d, features of an arm.
    upto
        What is looked at; all that is there by default.
    only
        Number of the one policy whose decisions are wanted.
    held_out
        Which decisions :meth:`chunks` gives; all by default.
    window, now, default
        As :func:`~rareswitch.log.summarize` takes them; ``now`` is by default when the last decision was made.
    sums
        Whether several rewards of a decision are summed.
    keeps_records
        Whether the records of requests were kept.

    Examples
    --------
    >>> from rareswitch.experiment import create
    >>> with create("memory:", "spring", dim=2, horizon=100) as trial:
    ...     choices = trial.decide_many([[[1.0, 0.0], [0.0, 1.0]]] * 3, ids=[1, 2, 3])
    ...     _ = trial.reward(2, 1.0)
    ...     log = trial.logged()
    ...     [chunk.rewards.tolist() for chunk in log.chunks()]
    [[nan, 1.0, nan]]
    """

    estimated = ""
    cautions: tuple[str, ...] = ()

    def __init__(
        self,
        store: Store,
        policies: Sequence[Policy],
        *,
        dim: int,
        upto: Marks | None = None,
        only: int | None = None,
        held_out: HeldOut | None = None,
        window: float | None = None,
        now: float | None = None,
        default: float | None = None,
        sums: bool = False,
        keeps_records: bool = False,
    ) -> None:
        self.store, self.dim, self.keeps_records = store, dim, keeps_records
        self.upto = store.marks() if upto is None else upto
        self._sums, self._held_out = sums, held_out
        counts = {count.version: count for count in store.counts(self.upto) if only in (None, count.version)}
        #: How many there are.
        self.decisions = sum(count.decisions for count in counts.values())
        check_newest(store, max(counts, default=0), len(policies))
        self._batches = {version: number for number, version in enumerate(counts)}
        self._versions = {policy.id: version for version, policy in enumerate(policies, 1) if version in counts}
        self.batch_names = tuple(policies[version - 1].id for version in counts)
        #: Of all versions in order, those too that have not decided yet.
        self.policies: Mapping[str, Policy] = {policy.id: policy for policy in policies}
        self._counting: dict[str, float | None] = {"default": default, "window": window}
        if window is not None:
            last = max((count.last_time for count in counts.values()), default=None)
            self._counting["now"] = last if now is None else now
        if default is not None and window is None:
            self.cautions = (
                f"there is no window, so that a decision without a reward counts as {default:g} at once, also where "
                "its reward is still to come: values are too low as long as rewards are late. Say how late they may "
                "be: Rewards(window=…).",
            )

    def __repr__(self) -> str:
        batches = len(self.batch_names)
        return f"<log of {self.store.name}: {several(self.decisions, 'decision')}, {several(batches, 'batch')}>"

    def learnable(self, policy_id: str, learner: Learner) -> Learnable:
        """The decisions of one policy in slices, and the sample that the store has an index for."""
        version = self._versions.get(policy_id)
        parts = [] if version is None else self._slices(version)
        return Learnable(parts, sum(part.rows for part in parts), partial(self._sample, version), self._counting)

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; with ``contexts`` those of which all offered arms are known."""
        if not self._batches:
            raise EmptySetError(
                f"experiment '{self.store.name}' has not decided anything yet: there is nothing to evaluate."
            )
        sample = KeyedSample(len(self.batch_names))
        for batch, chunk, rows, offers in prefetched(self._read(contexts)):
            log = chunk.of_batch(batch, self.batch_names, policies=self.policies).attributed(**self._counting)
            if rows is not None:
                sample.check(f"the decisions of {self.store.name}", log.batches, log.ids, rows)
                if not len(rows):
                    continue
                log = log.select(rows)
                log = log.checked(**vars(log) | offers)
            which = None if self._held_out is None else self._held_out.among(log.ids)
            if which is None or which.any():
                yield log if which is None else log.select(which)

    def records(self, ids: KeyArray) -> list[KeptRecord | None]:
        """The records of decisions (n, 2), as far as they were kept."""
        texts = (None if stored is None else stored[0].record for stored in self.store.find(key_bytes(ids)))
        return [None if text is None else msgspec.json.decode(text, type=KeptRecord) for text in texts]

    def _slices(self, version: int, **size: int) -> Sequence[Slice]:
        return self.store.slices(version, self.upto, sums=self._sums, window=self._counting["window"], **size)

    def _read(self, contexts: bool) -> Generator[tuple[int, DecisionLog, IntArray | None, dict[str, Any]]]:
        """The decisions batch by batch, as the store has them, and what was offered."""
        arms = ArmCodes()
        for version, batch in self._batches.items():
            if contexts:
                yield from ((batch, *part.read_offers(arms)) for part in self._slices(version, size=OFFERS))
            else:
                yield from ((batch, log, None, {}) for part in self._slices(version) for log in part.read())

    def _sample(self, version: int | None, task: Task, size: int, executor: Executor | None) -> Sample | None:
        """The sample of those decisions whose context sets were kept, which come in the order of their ranks."""
        stored = iter(()) if version is None else self.store.sample(version, self.upto)
        keys, sets = list[KeyArray](), list[FloatArray]()
        while len(sets) < size and (rows := list(islice(stored, size - len(sets)))):
            words = keys_of_bytes(b"".join(key for key, _ in rows), len(rows))
            for at in task.sampled(words).tolist():
                keys.append(words[at])
                sets.append(np.frombuffer(rows[at][1], dtype="<f8").reshape(-1, self.dim))
        if not sets:
            return None
        offered = ContextSets.from_ragged(sets)
        task.learner.check(Sets(offered.contexts, offered.available, False))
        return Sample.of(size, np.array(keys), offered)
