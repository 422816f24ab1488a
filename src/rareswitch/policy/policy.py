"""The frozen policy: past eliminations, a sampler on the arms they leave, a minimum propensity of arms."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import (
    BoolArray,
    Displayed,
    FloatArray,
    IntArray,
    KeyArray,
    Sets,
    SetsLike,
    codec,
    id_keys,
    number,
    of_type,
    one_key,
    owned,
    read_whole,
    sealed,
    sets_of,
    stream_key,
    uniforms_at,
    whole,
    write_whole,
)
from rareswitch.design import Sampler, check_sampler
from rareswitch.errors import EmptySetError, FileFormatError, ParameterError, ShapeError
from rareswitch.features import Features, OfferedArms, Record
from rareswitch.policy.keys import Key, check_signature, sign, verify_signature
from rareswitch.policy.min_propensity import MinPropensity
from rareswitch.policy.samplers import Baseline, Elimination, draw_arms, eliminate, samplers_in, with_baseline

__all__ = ["Chosen", "Decisions", "Policy", "in_holdout", "load_policy", "policy_from_bytes", "policy_to_bytes"]
__all__ += ["save_policy"]


class Decisions(Displayed, msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What a policy decided, read-only; for one set the fields lack the axis n."""

    #: (n,) index of the chosen arm in its set.
    arms: IntArray
    #: (n,) the exact probability with which the policy chooses that arm.
    propensities: FloatArray
    #: (n,) how many arms the eliminations left.
    survivors: IntArray
    policy_id: str
    #: (n, 2) the keys of the ids, as :func:`rareswitch.core.rng.id_keys` makes them, read-only.
    ids: KeyArray

    def upto(self, count: int) -> Self:
        """The first ``count`` of these decisions."""
        arrays = ("arms", "propensities", "survivors", "ids")
        return msgspec.structs.replace(self, **{name: getattr(self, name)[:count] for name in arrays})


class Chosen(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What a policy decided for one request of records."""

    #: The id of the chosen arm, as the caller gave it.
    arm: str | int
    #: Where that arm stands among those that were offered.
    arm_index: int
    #: The exact probability with which the policy chooses that arm.
    propensity: float
    policy_id: str
    #: What was clipped, missing, unknown …; see :attr:`rareswitch.features.Encoded.counts`.
    counts: Counter[str]


@codec.kind("policy")
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Policy(Displayed):
    """A frozen function from a context set to probabilities over its arms. It never learns.

    Examples
    --------
    >>> from rareswitch.design import Uniform
    >>> policy = Policy(dim=2, sampler=Uniform())
    >>> decisions = policy.decide([[[1.0, 0.0], [0.0, 1.0]]] * 4, ids=range(4), seed=7)
    >>> decisions.arms.tolist(), decisions.propensities.tolist()
    ([1, 0, 1, 1], [0.5, 0.5, 0.5, 0.5])
    >>> again = policy.decide([[[1.0, 0.0], [0.0, 1.0]]] * 2, ids=[3, 1], seed=7)   # the same decisions, asked apart
    >>> again.arms.tolist()
    [1, 0]
    >>> one = policy.decide([[1.0, 0.0], [0.0, 1.0]], ids="request-41c9", seed=7)
    >>> int(one.arms), float(one.propensities)
    (0, 0.5)
    """

    dim: int
    sampler: Sampler
    eliminations: tuple[Elimination, ...] = ()
    #: Tells policies apart that decide alike: each batch of a run has a policy of its own.
    edition: int = 0
    #: How records become its contexts, where it decides about records.
    features: Features | None = None
    #: The least probability of arms, those too that were eliminated; None: there is none.
    min_propensity: MinPropensity | None = None
    #: The share of ids that keeps the arm that the caller names, whatever is learned; None: there is none.
    holdout: float | None = field(default=None, metadata={"sparse": True})

    def __post_init__(self) -> None:
        dim, edition = whole("dim", self.dim), whole("edition", self.edition, low=0)
        vars(self).update(dim=dim, edition=edition, eliminations=tuple(self.eliminations))
        check_sampler("sampler", self.sampler)
        for sampler in samplers_in(self.sampler):
            if isinstance(sampler, Baseline) and self.eliminations:
                raise ParameterError(
                    "a policy that plays what the caller names is the first one, before any elimination: an arm that "
                    "is named could be eliminated. Use another sampler, or no eliminations."
                )
            fitted = getattr(sampler, "dim", None)
            if fitted not in (None, dim):
                raise ShapeError(f"a sampler of {fitted} dimensions in a policy of {dim}.")
        if self.features is not None and of_type("features", self.features, Features).dim != dim:
            raise ShapeError(f"features of {self.features.dim} columns in a policy of {dim} dimensions.")
        if self.min_propensity is not None:
            of_type("min_propensity", self.min_propensity, MinPropensity)
        if self.holdout is not None:
            holdout = number("holdout", self.holdout, low=0.0, high=1.0, open_low=True)
            if holdout == 1.0:
                raise ParameterError("holdout must be below 1: a policy decides for the others; got 1.")
            vars(self).update(holdout=holdout)
        for elimination in self.eliminations:
            if len(of_type("eliminations", elimination, Elimination).estimate) != dim:
                raise ShapeError(f"an elimination of {len(elimination.estimate)} dimensions in a policy of {dim}.")

    @cached_property
    def id(self) -> str:
        """SHA-256 of the content: equal policies have equal ids, on every machine."""
        return codec.content_id(self)

    @cached_property
    def needs_baseline(self) -> bool:
        """Whether it plays the arm that the caller names, so that one must be named with every decision."""
        return self.holdout is not None or any(isinstance(sampler, Baseline) for sampler in samplers_in(self.sampler))

    @cached_property
    def _estimates(self) -> FloatArray:
        return sealed(np.array([e.estimate for e in self.eliminations]).reshape(-1, self.dim))

    @cached_property
    def _roots(self) -> FloatArray:
        return sealed(np.array([e.root for e in self.eliminations]).reshape(-1, self.dim, self.dim))

    def survivors(self, contexts: SetsLike, available: ArrayLike | None = None) -> BoolArray:
        """Which arms all eliminations keep, (n, K), or (K,) for one set."""
        sets = sets_of(self.dim, contexts, available)
        survivors, _ = self._kept(sets)
        return owned(survivors[0] if sets.single else survivors)

    def probabilities(
        self,
        contexts: SetsLike,
        available: ArrayLike | None = None,
        *,
        baseline: ArrayLike | None = None,
        protected: ArrayLike | None = None,
    ) -> FloatArray:
        """Probability of each arm, (n, K), or (K,) for one set; ``baseline`` and ``protected`` as in :meth:`decide`."""
        sets = with_baseline(sets_of(self.dim, contexts, available), baseline)
        surviving, _ = self._kept(sets)
        probabilities = self._own(sets, surviving, protected)
        if self.holdout is not None:
            probabilities = (1.0 - self.holdout) * probabilities
            probabilities[np.arange(len(surviving)), self._named(sets)] += self.holdout
        return probabilities[0] if sets.single else probabilities

    def _own(self, sets: Sets, surviving: BoolArray, protected: ArrayLike | None) -> FloatArray:
        """Probability of each arm (n, K) outside of the holdout."""
        probabilities = self.sampler.probabilities(Sets(sets.contexts, surviving, False, sets.baseline))
        return (
            probabilities if self.min_propensity is None else self.min_propensity.raised(sets, probabilities, protected)
        )

    def _named(self, sets: Sets) -> IntArray:
        """(n,) the arms that the holdout keeps."""
        if sets.baseline is None:
            raise ParameterError(
                f"baseline must be named for every decision: {self.holdout:g} of the ids keep it, as holdout says. "
                "Pass baseline=…, the place of the arm that you would show."
            )
        return sets.baseline

    def decide(
        self,
        contexts: SetsLike,
        available: ArrayLike | None = None,
        *,
        ids: Any,
        seed: int,
        baseline: ArrayLike | None = None,
        protected: ArrayLike | None = None,
    ) -> Decisions:
        """Choose an arm of each set.

        An id that is used twice gets the same random number twice. With the same contexts that is the same decision,
        as a retry or a replay should have it. With other contexts the two decisions are not independent, and a log
        counts them as one decision or as a conflict: give each decision an id of its own.

        Parameters
        ----------
        contexts
            (n, K, d), or (K, d) for one set.
        available
            Which arms may be chosen, (n, K) or (K,); all by default.
        ids
            The names of the decisions: n of them, or a single one for one set. Each is a whole number 0 ≤ id < 2⁶³ or
            a string of 1 to 128 bytes; see :func:`rareswitch.core.rng.id_keys`.
        seed
            The randomness of a decision depends on seed and id alone, however the sets are split or ordered.
        baseline
            The place of the arm that the caller would show in each set, (n,), or one number for one set. Needed by a
            first policy that was begun with a baseline, and by those with a holdout; others do not look at it.
        protected
            Where the arms stand that the policy's minimum propensity names, (n, K) or (K,). Needed where it
            names some; others do not look at it.
        """
        sets = sets_of(self.dim, contexts, available)
        if baseline is not None:
            sets = with_baseline(sets, baseline)
        keys = np.array([one_key(ids)], np.uint64) if sets.single else id_keys(ids, len(sets.contexts))
        keys.setflags(write=False)
        surviving, survivors = self._kept(sets)
        probabilities = self._own(sets, surviving, protected)
        arms = np.empty(len(surviving), dtype=np.int64)
        propensities = np.empty(len(surviving))
        _refuse(draw_arms(probabilities, *stream_key(seed, "decide"), keys, arms, propensities))
        if self.holdout is not None:
            named, held = self._named(sets), in_holdout(keys, seed=seed, share=self.holdout)
            arms[held] = named[held]
            own = probabilities[np.arange(len(arms)), arms]
            propensities = (1.0 - self.holdout) * own + self.holdout * (arms == named)
        for part in (arms, propensities, survivors):
            part.setflags(write=False)
        at = 0 if sets.single else slice(None)
        return Decisions(
            arms=arms[at], propensities=propensities[at], survivors=survivors[at], policy_id=self.id, ids=keys[at]
        )

    def decide_records(
        self,
        context: Record | None,
        arms: OfferedArms = None,
        *,
        id: str | int,  # noqa: A002
        seed: int,
        baseline: str | int | None = None,
    ) -> Chosen:
        """Choose an arm for one request of records: what :meth:`decide` chooses given their vectors.

        Parameters
        ----------
        context
            The record of the request, fields by name.
        arms
            What is offered: ids, records by id, or records that hold their ids; see
            :meth:`rareswitch.features.Features.encode`.
        id
            The name of the decision.
        seed
            As in :meth:`decide`.
        baseline
            The id of the arm that the caller would show, where the policy needs it.

        Examples
        --------
        >>> from rareswitch.design import Uniform
        >>> from rareswitch.features import Arms, Features, Number
        >>> age = Number("age", mean=40, scale=10, alone=False)
        >>> features = Features(fields=[age], arms=Arms(ids=["a", "b"], own=["age"]))
        >>> policy = Policy(dim=features.dim, sampler=Uniform(), features=features)
        >>> chosen = policy.decide_records({"age": 31}, ["a", "b"], id="request-41c9", seed=7)
        >>> chosen.arm, chosen.propensity
        ('a', 0.5)
        """
        if self.features is None:
            raise ParameterError(
                "features: this policy has none, so it decides about vectors: use decide, or begin the learner with "
                "features=…."
            )
        encoded = self.features.encode(context, arms)
        names = encoded.names
        if baseline is not None and baseline not in names:
            raise ParameterError(f"baseline must be the id of an arm that is offered; got {baseline!r:.60}.")
        shown = None if baseline is None else names.index(baseline)
        flags = None if self.min_propensity is None else self.min_propensity.of_names([names], len(names))
        protected = None if flags is None else flags[0]
        decided = self.decide(encoded.checked, ids=id, seed=seed, baseline=shown, protected=protected)
        arm_index = int(decided.arms)
        return Chosen(
            arm=names[arm_index],
            arm_index=arm_index,
            propensity=float(decided.propensities),
            policy_id=decided.policy_id,
            counts=encoded.counts,
        )

    def _kept(self, sets: Sets) -> tuple[BoolArray, IntArray]:
        """The surviving arms (n, K), and how many there are (n,)."""
        if not self.eliminations:  # a first policy has none, and need not wait for the kernel
            return sets.available, np.add.reduce(sets.available, axis=1, dtype=np.int64)
        surviving, counts = np.empty_like(sets.available), np.empty(len(sets.available), dtype=np.int64)
        _refuse(eliminate(sets.contexts, sets.available, self._estimates, self._roots, surviving, counts))
        return sealed(surviving), counts


def in_holdout(keys: KeyArray, *, seed: int, share: float) -> BoolArray:
    """(n,) which ids, by their keys (n, 2), are in the holdout: for good, whatever the policy.

    >>> int(in_holdout(id_keys(range(1000)), seed=7, share=0.05).sum())
    59
    """
    return np.asarray(uniforms_at(seed, "holdout", keys) < share)


def _refuse(empty: int) -> None:
    """Where numbers overflow, no arm is left to play."""
    if empty >= 0:
        raise EmptySetError(
            f"this policy leaves no arm of set {empty}: its values overflow double precision. Rescale the contexts, "
            "or deploy another policy."
        )


def save_policy(policy: Policy, path: str | Path, *, key: Key | None = None) -> None:
    """Write a policy; with a key, sign it. The file appears whole or not at all.

    >>> import tempfile
    >>> from rareswitch.design import Uniform
    >>> path = Path(tempfile.mkdtemp()) / "first.policy"
    >>> save_policy(Policy(dim=3, sampler=Uniform()), path)
    >>> load_policy(path).dim
    3
    """
    write_whole(policy_to_bytes(policy, key=key), path)


def load_policy(path: str | Path, *, key: Key | None = None) -> Policy:
    """Read a policy; with a key, only if it was signed with it."""
    data = read_whole(path)
    try:
        return policy_from_bytes(data, key=key)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error


def policy_to_bytes(policy: Policy, *, key: Key | None = None) -> bytes:
    """The content of a policy file: the same policy always gives the same bytes."""
    return codec.to_bytes(policy, signed=None if key is None else lambda own: sign(key, f"{codec.SCHEMA}/{own}"))


def policy_from_bytes(data: bytes, *, key: Key | None = None) -> Policy:
    """The policy in the content of a policy file."""
    policy, content_id, signature = codec.from_bytes(Policy, data)
    vars(policy)["id"] = content_id
    if signature is not None:
        check_signature(signature)
    if key is not None:
        verify_signature(key, f"{codec.SCHEMA}/{policy.id}", signature)
    return policy
