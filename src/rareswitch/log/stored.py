"""An experiment's store as a source of decisions, read some rows at a time."""

import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from rareswitch.core import BoolArray, ContextSets, FloatArray, KeyArray, Sets, key_bytes, keys_of_bytes
from rareswitch.errors import EmptySetError, StoreError, several
from rareswitch.learner import Rows, Sample, attributed
from rareswitch.log.batch_sums import Learnable, Task
from rareswitch.log.decision_log import ArmCodes, DecisionLog, KeyedSample, prefetched
from rareswitch.policy import Policy
from rareswitch.store import DecisionColumns, Marks, Offers, Slice, Store


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


@dataclass(frozen=True, eq=False)
class _Part:
    """A slice of a store."""

    slice: Slice

    def read(self, task: Task) -> Iterator[Rows]:
        """Its decisions."""
        columns = self.slice.read()
        check_dim(columns.features, task.learner.dim)
        yield Rows(
            ids=columns.keys,
            policy_id=task.policy_id,
            features=columns.features,
            rewards=columns.rewards,
            times=columns.times if task.timed else None,
            reward_times=columns.reward_times if task.timed else None,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredBatch:
    """The decisions of one policy of an experiment, up to marks: what :func:`~rareswitch.log.summarize` takes.

    Examples
    --------
    >>> from rareswitch.core import id_keys, key_bytes
    >>> from rareswitch.learner import make_learner
    >>> from rareswitch.log import summarize
    >>> from rareswitch.store import DecisionRow, RewardRow, VersionRow, open_store
    >>> learner, store = make_learner("foresight", dim=1), open_store("memory:", "spring")
    >>> store.create("{}", VersionRow(1, b"", b"", b"", "{}", "", 0.0))
    >>> (key,), one, state = key_bytes(id_keys([7])), np.ones(1).tobytes(), learner.begin()
    >>> row = DecisionRow(key, "7", 1, "banner", 0, 1.0, one, bytes(16), time=0.0, rank=0.5, contexts=one)
    >>> _ = store.add_decisions([row]), store.add_rewards([RewardRow(key, "7", "", 0.25, time=60.0)])
    >>> summarize(learner, state, StoredBatch(store=store, version=1, upto=Marks(1, 1)))
    <summary of policy ...: 1 decision, 1 rewarded, 0 missing>
    """

    store: Store
    #: Number of the policy that decided.
    version: int
    upto: Marks
    #: Whether several rewards of a decision are summed.
    sums: bool = False
    #: Of rewards, in seconds: those that came later are not summed, where others came in time.
    window: float | None = None

    def learnable(self, policy_id: str) -> Learnable:
        """Its slices, which are only summed, as ids occur once; and the sample that the store has an index for."""
        slices = self.store.slices(self.version, self.upto, sums=self.sums, window=self.window)
        return Learnable([_Part(part) for part in slices], self._sample)

    def _sample(self, task: Task, size: int) -> Sample | None:
        """The sample of those decisions whose context sets were kept, which come in the order of their ranks."""
        kept, dim = self.store.sample(self.version, self.upto), task.learner.dim
        keys, sets = list[KeyArray](), list[FloatArray]()
        while len(sets) < size and (some := list(islice(kept, size - len(sets)))):
            words = keys_of_bytes(b"".join(key for key, _ in some), len(some))
            for at in task.sampled(words).tolist():
                key, arms = some[at]
                if not arms or len(arms) % (8 * dim):
                    raise _odd_size(f"the decision with the key {key.hex()}", len(arms), dim)
                keys.append(words[at])
                sets.append(np.frombuffer(arms, dtype="<f8").reshape(-1, dim))
        if not sets:
            return None
        found = ContextSets.from_ragged(sets)
        task.learner.check(Sets(found.contexts, found.available, False))
        return Sample.of(size, np.array(keys), found)


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
    open_from = math.inf

    def __init__(
        self,
        store: Store,
        policies: Sequence[Policy],
        *,
        dim: int,
        upto: Marks | None = None,
        only: int | None = None,
        window: float | None = None,
        now: float | None = None,
        default: float | None = None,
        sums: bool = False,
        keeps_records: bool = False,
    ) -> None:
        self.store, self.dim, self.keeps_records = store, dim, keeps_records
        self.upto = store.marks() if upto is None else upto
        self._window, self._sums = window, sums
        counts = {count.version: count for count in store.counts(self.upto) if only in (None, count.version)}
        #: How many there are.
        self.decisions = sum(count.decisions for count in counts.values())
        if not counts:
            raise EmptySetError(
                f"experiment '{store.name}' has not decided anything yet: there is nothing to evaluate."
            )
        check_newest(store, max(counts), len(policies))
        self._batches = {version: number for number, version in enumerate(counts)}
        self.batch_names = tuple(policies[version - 1].id for version in counts)
        #: Of all versions in order, those too that have not decided yet.
        self.policies: Mapping[str, Policy] = {policy.id: policy for policy in policies}
        self._counting: dict[str, Any] = {"default": default, "window": window}
        if window is not None:
            self._counting["now"] = max(count.last_time for count in counts.values()) if now is None else now
            self.open_from = self._counting["now"] - window
        if default is not None and window is None:
            self.cautions = (
                f"there is no window, so that a decision without a reward counts as {default:g} at once, also where "
                "its reward is still to come: values are too low as long as rewards are late. Say how late they may "
                "be: Rewards(window=…).",
            )

    def __repr__(self) -> str:
        batches = len(self.batch_names)
        return f"<log of {self.store.name}: {several(self.decisions, 'decision')}, {several(batches, 'batch')}>"

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; with ``contexts`` those of which all offered arms are known."""
        arms, sample = ArmCodes(), KeyedSample(len(self.batch_names))
        for batch, columns in prefetched(self._columns(contexts)):
            log = self._log(batch, columns)
            if columns.offers is not None:
                rows = columns.offers.rows
                sample.check(f"the decisions of {self.store.name}", log.batches, log.ids, rows)
                if not len(rows):
                    continue
                log = self._with_offers(log.select(rows), columns.offers, arms)
            yield log

    def records(self, ids: KeyArray) -> list[KeptRecord | None]:
        """The records of decisions (n, 2), as far as they were kept."""
        texts = self.store.records(key_bytes(ids))
        return [None if text is None else msgspec.json.decode(text, type=KeptRecord) for text in texts]

    def _columns(self, contexts: bool) -> Generator[tuple[int, DecisionColumns]]:
        """The decisions batch by batch, as the store has them."""
        for version, batch in self._batches.items():
            how = {"sums": self._sums, "window": self._window, "contexts": contexts}
            for part in self.store.slices(version, self.upto, **how):  # type: ignore[arg-type]
                yield batch, part.read()

    def _log(self, batch: int, columns: DecisionColumns) -> DecisionLog:
        """Decisions of one batch with the chosen arms alone."""
        check_dim(columns.features, self.dim)
        counted = attributed(columns.rewards, times=columns.times, reward_times=columns.reward_times, **self._counting)
        return DecisionLog.checked(
            propensities=columns.propensities,
            rewards=counted.rewards,
            expired=counted.expired,
            features=columns.features,
            ids=columns.keys,
            times=columns.times,
            batches=np.full(len(columns.rewards), batch),
            batch_names=self.batch_names,
            policies=self.policies,
        )

    def _with_offers(self, log: DecisionLog, offers: Offers, arms: ArmCodes) -> DecisionLog:
        """The same decisions with all that was offered."""
        lengths = np.array([len(data) for data in offers.contexts])
        sizes = lengths // (8 * self.dim)
        odd = (lengths == 0) | (lengths % (8 * self.dim) != 0)
        odd |= (offers.arm_indices < 0) | (np.maximum(offers.arm_indices, offers.baselines) >= sizes)
        self._refuse_changed(odd, offers)
        available = np.arange(sizes.max()) < sizes[:, None]
        contexts = np.zeros((*available.shape, self.dim))
        contexts[available] = np.frombuffer(b"".join(offers.contexts), "<f8").reshape(-1, self.dim)
        other = contexts[np.arange(len(log)), offers.arm_indices] != log.features
        unlikely = ~((log.propensities > 0.0) & (log.propensities <= 1.0))
        self._refuse_changed(other.any(axis=1) | unlikely | ~np.isfinite(contexts).all(axis=(1, 2)), offers)
        codes = None
        if any(offers.names):
            texts = zip(offers.names, sizes.tolist(), strict=True)
            lists = arms.listed([json.dumps([*range(size)]) if text is None else text for text, size in texts])
            self._refuse_changed(np.array([len(numbers) for numbers in lists]) != sizes, offers)
            codes = np.full(available.shape, -1)
            codes[available] = np.concatenate(lists)
        columns = {
            "available": available,
            "contexts": contexts,
            "arm_indices": offers.arm_indices,
            "arms": None if codes is None else arms.names,
            "codes": codes,
            "baselines": offers.baselines if (offers.baselines >= 0).any() else None,
        }
        return DecisionLog.checked(**vars(log) | columns)

    def _refuse_changed(self, odd: BoolArray, offers: Offers) -> None:
        """Raise if what was kept of an offer (m,) cannot be what was decided."""
        if odd.any():
            at = int(np.flatnonzero(odd)[0])
            raise StoreError(
                f"decision {offers.ids[at]} of '{self.store.name}' has arms, a propensity or features that cannot be "
                f"those of a decision among arms of {self.dim} features: the store was changed by something else."
            )


def check_dim(features: FloatArray, dim: int) -> None:
    """Refuse vectors that are of another length than those of the learner."""
    if features.shape[1] != dim:
        raise StoreError(
            f"stored decisions have {features.shape[1]} features, and the learner is for {dim}: the store was changed "
            "by something else."
        )


def _odd_size(which: str, size: int, dim: int) -> StoreError:
    return StoreError(
        f"{which} has contexts of {size} bytes, and arms of {dim} features take {8 * dim} each: the store was changed "
        "by something else."
    )
