"""Requests as context sets with names, and the digest by which two of them are compared."""

import hashlib
import json
import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Any, Self, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from rareswitch.core import (
    BoolArray,
    ContextSets,
    FloatArray,
    IntArray,
    KeyArray,
    Sets,
    context_sets,
    key_bytes,
    keys_of_bytes,
    sample_order,
)
from rareswitch.errors import ParameterError, ShapeError, did_you_mean
from rareswitch.features import Cautions, Contexts, Encoded, Features, OfferedArms, Record, offers_of
from rareswitch.planning import Moment, seconds_of
from rareswitch.policy import Decisions, Policy
from rareswitch.store import DecisionRow, Job

__all__ = ["Id", "Request", "Requests", "read_requests"]

T = TypeVar("T")
Id: TypeAlias = int | str
#: What one or many requests are about: records by field, a table of them; without features vectors of arms.
Asked: TypeAlias = "Record | Contexts | npt.ArrayLike | ContextSets | None"
#: An arm as a caller names it.
Arm: TypeAlias = str | float | None


@dataclass(eq=False, kw_only=True)
class Requests:
    """Some requests in canonical form: the available arms of each come first, in the order in which they were given."""

    #: As they were given; their keys where they were stored.
    ids: Sequence[Id] | KeyArray
    #: Context sets, or the single one of a single request.
    sets: Sets
    #: The ids of the available arms of each; None where arms have none.
    names: Sequence[tuple[str | int, ...]] | None
    #: (n, K) where each arm stood among those that were given; None: where it stands now.
    original: IntArray | None
    #: (n,) the arm_index of the arm that the caller would have shown, -1 where one names none; None where none does.
    baselines: IntArray | None
    #: Of each request, what was clipped, missing, extra or unknown.
    cautions: Sequence[Cautions]
    #: The records as they were encoded; None where there are no features.
    encoded: Encoded | None = None

    @classmethod
    def of_rows(cls, rows: Sequence[DecisionRow], dim: int) -> Self:
        """Those of decisions whose context sets are kept."""
        vectors = [np.frombuffer(row.contexts or b"", dtype="<f8").reshape(-1, dim) for row in rows]
        return cls(
            ids=keys_of_bytes(b"".join(row.key for row in rows), len(rows)),
            sets=context_sets(ContextSets.from_ragged(vectors)),
            names=[tuple(json.loads(row.names or "null")) for row in rows] if all(row.names for row in rows) else None,
            original=None,
            baselines=np.array([-1 if row.baseline is None else row.baseline for row in rows]),
            cautions=((),) * len(rows),
        )

    def decide(self, policy: Policy, seed: int) -> Decisions:
        """What a policy decides."""
        ids = self.ids[0] if self.sets.single else self.ids
        if policy.needs_baseline or policy.min_propensity is not None:
            return policy.decide(self.sets, ids=ids, seed=seed, **self._named(policy))
        return policy.decide(self.sets, ids=ids, seed=seed)

    def probabilities(self, policy: Policy) -> dict[Id, float]:
        """With what probability a policy chooses each arm of a single request."""
        shares = policy.probabilities(self.sets, **self._named(policy))
        return {self.arm(0, arm_index): share for arm_index, share in enumerate(shares.tolist())}

    def _named(self, policy: Policy) -> dict[str, IntArray | BoolArray | None]:
        """Where the baselines and the protected arms stand, if the policy asks for them."""
        least, flags = policy.min_propensity, None
        if least is not None and least.arms is not None:
            if self.names is None:
                raise ParameterError(
                    f"arms must be named with each request: this experiment has a minimum propensity for "
                    f"{', '.join(least.arms):.100}, and vectors alone do not tell which they are. Pass arms=[…], "
                    "the ids of the vectors."
                )
            flags = least.of_names(self.names, self.sets.available.shape[1])
            flags = flags[0] if self.sets.single and flags is not None else flags
        return {"baseline": self.baselines if policy.needs_baseline else None, "protected": flags}

    def arm(self, at: int, arm_index: int) -> Id:
        """What the caller calls an arm."""
        if self.names is not None:
            return self.names[at][arm_index]
        return arm_index if self.original is None else int(self.original[at, arm_index])

    def identity(self, at: int) -> tuple[FloatArray, str | None, bytes]:
        """What is kept of one request: the vectors (K, d) of its arms, their ids, and 16 bytes by which it is known.

        These are over arm ids, codes or vectors, and baseline. Ids are kept as texts, since 3 and "3" are one arm.
        """
        size = int(np.count_nonzero(self.sets.available[at])) if self.names is None else len(self.names[at])
        vectors = self.sets.contexts[at, :size]
        names = None
        if self.names is not None:
            try:
                names = msgspec.json.encode([*map(str, self.names[at])]).decode()
            except UnicodeEncodeError:
                for name in self.names[at]:
                    check_text("the id of an arm", str(name))
                raise
        baseline = -1 if self.baselines is None else int(self.baselines[at])
        digest = hashlib.sha256(f"{baseline} {names}\n".encode())
        digest.update(vectors.data if self.encoded is None else self.encoded.codes(at))
        return vectors, names, digest.digest()[:16]

    def record_texts(self) -> list[str]:
        """The record and the arms of each request, as they are kept."""
        assert self.encoded is not None
        offers = [
            msgspec.Raw(
                plain_text(
                    offer.names
                    if offer.records is None
                    else dict(zip(map(str, offer.names), offer.records, strict=True))
                )
            )
            for offer in self.encoded.offers
        ]
        return [
            plain_text({"context": dict(record), "arms": offers[at if len(offers) > 1 else 0]}).decode()
            for at, record in enumerate(self.encoded.table)
        ]

    def rows(
        self,
        decided: Decisions,
        *,
        version: int,
        context_sample_rate: float,
        times: float | Sequence[float],
        cohorts: Sequence[str] | None = None,
        keep_records: bool = False,
        deferred: Sequence[bool] | None = None,
    ) -> list[DecisionRow]:
        """What is kept of decisions; of a share ``context_sample_rate``, by their ids, the whole sets."""
        records = self.record_texts() if keep_records else None
        keys = decided.ids.reshape(-1, 2)
        ranks, key_data = sample_order(keys).tolist(), key_bytes(keys)
        arms, propensities = decided.arms.reshape(-1).tolist(), decided.propensities.reshape(-1).tolist()
        rows = []
        for at, arm_index in enumerate(arms):
            vectors, names, digest = self.identity(at)
            rank, cautions, baseline = ranks[at], self.cautions[at], None
            if self.baselines is not None and self.baselines[at] >= 0:
                baseline = int(self.baselines[at])
            keep_set = rank < context_sample_rate
            rows.append(
                DecisionRow(
                    key_data[at],
                    id_text(self.ids[at]),
                    version,
                    str(self.arm(at, arm_index)),
                    arm_index,
                    propensities[at],
                    vectors[arm_index].tobytes(),
                    digest,
                    times if isinstance(times, float) else times[at],
                    rank,
                    baseline,
                    cohort=None if cohorts is None else cohorts[at],
                    deferred=1 if deferred is not None and deferred[at] else None,
                    contexts=vectors.tobytes() if keep_set else None,
                    names=names if keep_set else None,
                    record=None if records is None else records[at],
                    cautions=_cautions_text(cautions) if cautions else None,
                )
            )
        return rows


def plain_text(data: Any) -> bytes:
    """JSON; what it has no form for is a text, and what is missing is null."""
    try:
        return msgspec.json.encode(data, enc_hook=_plain_value)
    except UnicodeEncodeError:
        raise ParameterError(
            "keep_records keeps records as texts, which must be valid Unicode; a field has a lone surrogate. Give a "
            "hash of its bytes."
        ) from None


def _plain_value(value: Any) -> Any:
    """A value of another library as Python's own."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


class Request(Job):
    """A single request, which is decided when its turn to be kept has come, together with others that wait."""

    #: With which it was decided, and its arm_index among them.
    batch: Requests
    at: int

    context: Any

    def __init__(
        self,
        prepare: Callable[[Sequence[Job]], None],
        context: Asked,
        arms: OfferedArms,
        id: Id,  # noqa: A002
        baseline: Arm,
        deferred: bool,
        now: Moment | None,
    ) -> None:
        if arms is not None and (isinstance(arms, (str, bytes)) or (hasattr(arms, "__len__") and not len(arms))):
            raise ShapeError(f"arms must be at least one, as a list of ids or as records by id; got {arms!r:.60}.")
        self.prepare, self.context, self.arms, self.id = prepare, context, arms, id
        self.baseline, self.deferred, self.time = baseline, deferred, clock.time() if now is None else seconds_of(now)


@lru_cache(maxsize=4096)
def _cautions_text(cautions: Cautions) -> str:
    return json.dumps(cautions)


def id_text(id: int | str) -> str:  # noqa: A002
    """An id as it is kept.

    >>> id_text("r1"), id_text(7)
    ('"r1"', '7')
    """
    return msgspec.json.encode(id).decode() if isinstance(id, str) else str(int(id))


def entity_id(entity: str, version: int) -> str:
    """The id of what is decided for an entity, such as a user, under a policy, by its number.

    >>> entity_id("user-7", 2)
    'user-7@2'
    """
    return f"{entity}@{version}"


def check_text(name: str, text: str) -> None:
    """Refuse what no store can keep."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            f"{name} must be valid Unicode; got {text!r:.60}, with a lone surrogate. Give a hash of its bytes."
        ) from None


def listed(name: str, values: Iterable[T]) -> list[T]:
    """One for each request, by place: also of an array, or of a column of a table, whose index says nothing.

    >>> listed("values", np.array([0.5, 1.0]))
    [0.5, 1.0]
    """
    items = values
    for method in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas, polars, Arrow
        if hasattr(values, method):
            items = getattr(values, method)()
            break
    if not isinstance(items, (list, tuple, range)):
        raise ShapeError(
            f"{name} must be a list, one for each decision; got a {type(values).__name__}, {values!r:.60}. For a "
            "single decision call decide or reward."
        )
    return list(items)


def read_requests(
    features: Features | None,
    dim: int,
    contexts: Any,
    arms: OfferedArms,
    *,
    ids: Sequence[Id],
    baseline: Sequence[Arm] | None = None,
    single: bool = False,
) -> Requests:
    """Check and encode requests: records where there are features, else vectors (n, K, d); or a single one."""
    names: Sequence[tuple[str | int, ...]] | None
    cautions: Sequence[Cautions]
    original = encoded = None
    if features is not None:
        encoded = features.encode(contexts, arms) if single else features.encode_many(contexts, arms)
        sets, cautions = encoded.checked, encoded.cautions
        names = [encoded.names] if single else encoded.names
    else:
        sets = context_sets(contexts)
        if single and not sets.single:
            raise ShapeError(
                f"a request is one set of vectors (arms, dim); got shape {sets.contexts.shape}. For many, decide_many."
            )
        if sets.contexts.shape[2] != dim:
            raise ShapeError(f"this experiment is for vectors of {dim} features; got {sets.contexts.shape[2]}.")
        cautions = ((),) * len(sets.contexts)
        names = None if arms is None else _named(arms, sets.available)
        if not sets.available.all():
            original = np.argsort(~sets.available, axis=1, kind="stable")
            packed = ContextSets.checked(sets).packed()
            sets = Sets(packed.contexts, packed.available, False)
    arm_indices = None if baseline is None else _places(baseline, names, sets.available, original)
    return Requests(
        ids=ids, sets=sets, names=names, original=original, baselines=arm_indices, cautions=cautions, encoded=encoded
    )


def _named(arms: OfferedArms, available: BoolArray) -> list[tuple[str, ...]]:
    """Ids of the available arms of each set, given once for all or one list each."""
    offers, named = offers_of(arms, len(available), "id", ()), []
    for at, there in enumerate(available):
        ids, count = offers[at if len(offers) > 1 else 0].names, int(there.sum())
        if len(ids) not in (count, len(there)):
            raise ShapeError(f"set {at} has {count} vectors, and {len(ids)} arm ids were given.")
        named.append(tuple(map(str, ids if len(ids) == count else compress(ids, there))))
    return named


def _places(
    baseline: Sequence[Arm],
    names: Sequence[tuple[str | int, ...]] | None,
    available: BoolArray,
    original: IntArray | None,
) -> IntArray:
    """(n,) where the baseline arms stand among those that are available."""
    if len(baseline) != len(available):
        raise ShapeError(f"baseline must name an arm for each of the {len(available)} requests; got {len(baseline)}.")
    positions = np.empty(len(available), dtype=np.int64)
    for at, arm in enumerate(baseline):
        if arm is None:
            positions[at] = -1
            continue
        count = int(available[at].sum())
        offered: Sequence[Id] = (
            names[at]
            if names is not None
            else list(range(count))
            if original is None
            else original[at, :count].tolist()
        )
        arm_indices = {str(name): arm_index for arm_index, name in enumerate(offered)}  # 3 and "3" are one arm
        if isinstance(arm, float) and arm.is_integer():  # of a column of numbers in which some are missing
            arm = int(arm)
        if str(arm) not in arm_indices:
            raise ParameterError(
                f"baseline must be one of the arms that are offered; got {arm!r:.60} where there are "
                f"{', '.join(map(str, offered)):.200}.{did_you_mean(arm, offered)}"
            )
        positions[at] = arm_indices[str(arm)]
    return positions
