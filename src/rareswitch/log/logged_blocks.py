"""Blocks of rows, of a part of a log or of a store, as logged decisions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.ids import KeyArray
from rareswitch.learner import attributed, sample_order
from rareswitch.log.block import Block
from rareswitch.log.logged import DecisionLog
from rareswitch.log.offered import read_offered, rows_with_sets
from rareswitch.log.vocabulary import Vocabulary
from rareswitch.policy import Policy
from rareswitch.validation import FloatArray, IntArray, read_only, sealed

#: Columns that are read of chosen arms alone, and those that tell of all that were offered.
CHOSEN = ("id", "key", "policy", "features", "propensity", "reward", "time", "reward_time")
ALL = (*CHOSEN, "contexts", "arm_index", "arm", "names", "baseline", "behavior_probs", "available")


@dataclass(frozen=True, eq=False, kw_only=True)
class About:
    """What holds for all rows of a source."""

    batch_names: tuple[str, ...]
    policies: Mapping[str, Policy]
    dim: int | None
    estimated: str = ""
    #: Ids of arms that are known beforehand.
    arms: Sequence[str] = ()
    #: As :func:`~rareswitch.learner.attributed` takes them.
    counting: Mapping[str, Any] = field(default_factory=dict)


class LoggedBlocks:
    """Makes logged decisions of blocks, in one pass over a source."""

    def __init__(self, about: About) -> None:
        self.about = about
        self._numbers = {name: number for number, name in enumerate(about.batch_names)}
        self._words = Vocabulary(about.arms)
        self._sample = _KeyedSample(len(about.batch_names))

    def chosen(self, block: Block) -> DecisionLog:
        """All rows, with the vectors of the chosen arms alone."""
        columns, count = self._columns(block), len(block.numbers)
        return self._logged(**columns, available=_one(count), arm_indices=_zeros(count))

    def with_sets(self, block: Block) -> DecisionLog | None:
        """The rows of which all offered arms are known; None where there are none."""
        rows = rows_with_sets(block, self.about.dim)
        columns = self._columns(block)
        self._sample.check(block, columns["batches"], columns["ids"], rows)
        if not len(rows):
            return None
        if len(rows) < len(block.numbers):
            block = block.take(rows)
            columns = {name: None if one is None else sealed(one[rows]) for name, one in columns.items()}
        told = {name: columns[name] for name in ("features", "propensities")}
        found = read_offered(block, **told, words=self._words)
        named = None if found.codes is None else self._words.arms
        return self._logged(**columns, **found._asdict(), arms=named)

    def _columns(self, block: Block) -> dict[str, Any]:
        names, dim = block.batch.schema.names, self.about.dim
        block.check_present("key" if "key" in names else "id", "policy", "propensity")
        block.check_propensities()
        features, rewards = None, block.rewards()
        if dim is not None:
            block.check_present("features")
            features = block.features(dim)
        block.check_numbers(np.zeros((len(rewards), 0)) if features is None else features, rewards)
        times = block.times("time") if "time" in names else None
        if self.about.counting:
            rewards = self._counted(block, rewards, times)
        column = block.batch.column("policy")
        numbers = np.array([self._numbers.get(name, -1) for name in column.dictionary.to_pylist()], dtype=np.int64)
        return {
            "batches": sealed(numbers[column.indices.to_numpy()]),
            "propensities": read_only(block.batch.column("propensity").to_numpy()),
            "rewards": rewards,
            "features": None if features is None else read_only(features),
            "ids": block.keys(),
            "times": None if times is None else read_only(times),
        }

    def _counted(self, block: Block, rewards: FloatArray, times: FloatArray | None) -> FloatArray:
        """What counts of the rewards."""
        when: dict[str, Any] = {}
        if self.about.counting.get("window") is not None:
            made = np.full(len(rewards), np.nan) if times is None else times
            rule = "An attribution window needs the column 'time' of every decision."
            block.refuse(~np.isfinite(made), "has no time", rule)
            when = {"times": made, "reward_times": block.times("reward_time")}
        return read_only(attributed(rewards, **when, **self.about.counting).rewards)

    def _logged(self, **columns: Any) -> DecisionLog:
        about, none = self.about, dict.fromkeys(("contexts", "codes", "behavior_probs", "baselines", "arms"))
        told = {"batch_names": about.batch_names, "policies": about.policies, "estimated": about.estimated}
        return DecisionLog.checked(**none | columns | told)


class _KeyedSample:
    """Checks that the rows with context sets are those of each batch whose ids have the smallest hashes."""

    def __init__(self, batches: int) -> None:
        #: By batch, the largest hash of a row with a set, and the smallest of one without.
        self.last, self.missing = np.full(batches, -np.inf), np.full(batches, np.inf)

    def check(self, block: Block, batches: IntArray, keys: KeyArray, rows: IntArray) -> None:
        """Take the next rows, of which ``rows`` (m,) have sets."""
        ranks, has = sample_order(keys), np.zeros(len(keys), dtype=np.bool_)
        has[rows] = True
        np.maximum.at(self.last, batches[has], ranks[has])
        np.minimum.at(self.missing, batches[~has], ranks[~has])
        if (self.last > self.missing).any():
            raise FileFormatError(
                f"{block.source}: some decisions have no contexts, and not those that a share of all would leave out: "
                "sets were kept by something else than the hash of the id, so that values estimated from them could be "
                "of other decisions than the rest. Keep the contexts of all decisions, or of those that "
                "rareswitch.learner.sampled(ids, share) names."
            )


def _one(count: int) -> Any:
    return sealed(np.ones((count, 1), dtype=np.bool_))


def _zeros(count: int) -> IntArray:
    return sealed(np.zeros(count, dtype=np.int64))
