"""Requests: what callers ask, as context sets with names, and how two of them are told apart."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import ParameterError, ShapeError, did_you_mean
from rareswitch.features import Cautions, Features
from rareswitch.ids import KeyArray, id_keys
from rareswitch.policy import MinPropensity
from rareswitch.store import Job
from rareswitch.validation import BoolArray, FloatArray, IntArray, Sets, context_sets


@dataclass(frozen=True, eq=False, kw_only=True)
class Requests:
    """Some requests in canonical form: the available arms of each come first, in the order in which they were given."""

    #: As they were given.
    ids: Sequence[Any]
    #: (n, 2)
    keys: KeyArray
    sets: ContextSets
    #: The ids of the available arms of each; None where arms have none.
    names: Sequence[tuple[str | int, ...]] | None
    #: (n, K) where each arm stood among those that were given; None: where it stands now.
    given: IntArray | None
    #: (n,) the place of the arm that the caller would have shown, -1 where one names none; None where none does.
    baselines: IntArray | None
    #: Of each request, what was clipped, missing, extra or unknown.
    cautions: Sequence[Cautions]

    def __len__(self) -> int:
        return len(self.keys)

    def vectors(self, at: int) -> FloatArray:
        """(K, d) of the available arms of one request."""
        return self.sets.contexts[at, : self.sizes[at]]

    @cached_property
    def sizes(self) -> list[int]:
        """(n,) how many arms are available."""
        found: list[int] = self.sets.available.sum(axis=1).tolist()
        return found

    def arm(self, at: int, arm_index: int) -> Any:
        """What the caller calls an arm."""
        if self.names is not None:
            return self.names[at][arm_index]
        return arm_index if self.given is None else int(self.given[at, arm_index])

    def protected(self, min_propensity: MinPropensity | None) -> BoolArray | None:
        """(n, K) where the protected arms stand; None where there is none, or it is for all arms."""
        if min_propensity is None or min_propensity.arms is None:
            return None
        if self.names is None:
            raise ParameterError(
                f"arms must be named with each request: this experiment has a minimum propensity for "
                f"{', '.join(min_propensity.arms):.100}, and vectors alone do not tell "
                "which they are. Pass arms=[…], the ids of the vectors."
            )
        return min_propensity.of_names(self.names, self.sets.available.shape[1])

    def names_text(self, at: int) -> str | None:
        """The ids of the arms of one request, as they are kept: texts, since 3 and "3" are one arm."""
        if self.names is None:
            return None
        return json.dumps([*map(str, self.names[at])], ensure_ascii=False, separators=(",", ":"))

    def digest(self, at: int, vectors: bytes) -> bytes:
        """16 bytes by which it is known whether a request comes again: over arm ids, vectors and baseline."""
        baseline = -1 if self.baselines is None else int(self.baselines[at])
        try:
            found = hashlib.blake2b(f"{baseline} {self.names_text(at)}\n".encode(), digest_size=16)
        except UnicodeEncodeError:
            for name in self.names[at] if self.names is not None else ():
                check_text("the id of an arm", str(name))
            raise
        found.update(vectors)
        return found.digest()


class Request(Job):
    """A single request, which is decided when its turn to be kept has come, together with others that wait."""

    __slots__ = ("arms", "at", "baseline", "batch", "context", "id", "prepare", "time")

    #: With which it was decided, and its place among them.
    batch: Requests
    at: int

    def __init__(
        self,
        context: Any,
        arms: Any,
        id: int | str,  # noqa: A002
        baseline: Any,
        time: float,
        prepare: Callable[[Sequence[Job]], None],
    ) -> None:
        super().__init__()
        self.context, self.arms, self.id, self.baseline, self.time = context, arms, id, baseline, time
        self.prepare = prepare


def check_text(name: str, text: str) -> None:
    """Refuse what no store can keep."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            f"{name} must be valid Unicode; got {text!r:.60}, with a lone surrogate. Give a hash of its bytes."
        ) from None


def read_requests(
    features: Features | None, dim: int, contexts: Any, arms: Any, *, ids: Any, baseline: Any = None
) -> Requests:
    """Check and encode requests: records where there are features, else vectors (n, K, d)."""
    names: Sequence[tuple[str | int, ...]] | None
    cautions: Sequence[Cautions]
    if features is not None:
        encoded = features.encode_many(contexts, arms)
        sets, names, cautions = encoded.sets, list(encoded.names), encoded.cautions
    else:
        sets = ContextSets.checked(_vectors(dim, contexts))
        cautions = ((),) * len(sets)
        names = None if arms is None else _named(arms, sets)
    keys = id_keys(ids, len(sets))
    given = None if sets.available.all() else np.argsort(~sets.available, axis=1, kind="stable")
    packed = sets.packed()
    arm_indices = None if baseline is None else _places(baseline, names, packed, given)
    return Requests(ids=ids, keys=keys, sets=packed, names=names, given=given, baselines=arm_indices, cautions=cautions)


def _vectors(dim: int, contexts: Any) -> Sets:
    sets = context_sets(contexts)
    if sets.contexts.shape[2] != dim:
        raise ShapeError(f"this experiment is for vectors of {dim} features; got {sets.contexts.shape[2]}.")
    return sets


def _named(arms: Any, sets: ContextSets) -> list[tuple[str, ...]]:
    """Ids of the available arms of each set, given once for all or one list each."""
    if isinstance(arms, (str, bytes)) or not isinstance(arms, Sequence):
        raise ShapeError(f"arms must be a list of ids, one for each vector; got {arms!r:.60}.")
    each = arms if arms and not isinstance(arms[0], (str, int)) else [arms] * len(sets)
    if len(each) != len(sets):
        raise ShapeError(f"arms must be one list of ids, or one for each of the {len(sets)} sets; got {len(each)}.")
    found = []
    for at, ids in enumerate(each):
        available = np.flatnonzero(sets.available[at]).tolist()
        if len(ids) not in (len(available), sets.available.shape[1]):
            raise ShapeError(f"set {at} has {len(available)} vectors, and {len(ids)} arm ids were given.")
        names = tuple(
            str(name) for name in (ids if len(ids) == len(available) else [ids[arm_index] for arm_index in available])
        )
        if len(set(names)) < len(names):
            raise ParameterError(f"arms must have different ids; set {at} has one twice: {', '.join(names):.100}.")
        found.append(names)
    return found


def _places(
    baseline: Sequence[Any], names: Sequence[tuple[str | int, ...]] | None, sets: ContextSets, given: IntArray | None
) -> IntArray:
    """(n,) where the baseline arms stand among those that are available."""
    if len(baseline) != len(sets):
        raise ShapeError(f"baseline must name an arm for each of the {len(sets)} requests; got {len(baseline)}.")
    found = np.empty(len(sets), dtype=np.int64)
    for at, arm in enumerate(baseline):
        if arm is None:
            found[at] = -1
            continue
        count = int(sets.available[at].sum())
        offered: Sequence[Any] = (
            names[at] if names is not None else list(range(count)) if given is None else given[at, :count].tolist()
        )
        arm_indices = {str(one): arm_index for arm_index, one in enumerate(offered)}  # 3 and "3" are one arm
        if isinstance(arm, float) and arm.is_integer():  # of a column of numbers in which some are missing
            arm = int(arm)
        if str(arm) not in arm_indices:
            raise ParameterError(
                f"baseline must be one of the arms that are offered; got {arm!r:.60} where there are "
                f"{', '.join(map(str, offered)):.200}.{did_you_mean(arm, offered)}"
            )
        found[at] = arm_indices[str(arm)]
    return found
