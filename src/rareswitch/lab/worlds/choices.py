"""A table of choices as a world: each round offers one of its sets, and each arm pays what the table says."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from rareswitch.errors import FileFormatError, InputError, ParameterError, ShapeError
from rareswitch.features import Encoded, Features
from rareswitch.lab.worlds.classification import random_rows
from rareswitch.lab.worlds.columns import Columns, read_columns
from rareswitch.lab.worlds.hindsight import InHindsight
from rareswitch.lab.worlds.table_features import MOST_COLUMNS, check_size, fitting, remarks_of
from rareswitch.lab.worlds.world import Rounds
from rareswitch.validation import BoolArray, FloatArray, context_sets, count_of, finite_array, frozen, unit_ball


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ChoiceWorld(InHindsight):
    """Each round shows a random set of a table; the chosen arm pays its reward there, without other noise.

    Parameters
    ----------
    contexts
        (sets, K, d), in the unit ball.
    payoffs
        (sets, K) rewards.
    available
        (sets, K) which arms exist; all by default.
    remarks
        What whoever runs it should know, as of columns that were left out.

    Examples
    --------
    >>> world = ChoiceWorld(name="toy", contexts=[[[1.0], [0.0]], [[0.2], [0.4]]], payoffs=[[3, 1], [0, 2]])
    >>> world.draw(1, seed=1).means
    array([[3., 1.]])
    >>> world.best_linear()
    array([1.])
    """

    name: str
    contexts: FloatArray
    payoffs: FloatArray
    available: BoolArray | None = None
    remarks: str = ""

    def __post_init__(self) -> None:
        sets = context_sets(self.contexts, self.available)
        unit_ball(sets)
        payoffs = finite_array("payoffs", self.payoffs)
        if sets.single or payoffs.shape != sets.available.shape:
            given = f"got {np.shape(self.contexts)} and {payoffs.shape}"
            raise ShapeError(f"contexts must be (sets, arms, dim) beside payoffs (sets, arms); {given}.")
        if np.ptp(payoffs[sets.available]) == 0.0:
            raise ParameterError("payoffs must differ; where all arms pay the same, there is nothing to choose.")
        payoffs = frozen(np.where(sets.available, payoffs, 0.0))
        vars(self).update(contexts=sets.contexts, payoffs=payoffs, available=sets.available)

    def __repr__(self) -> str:
        return f"ChoiceWorld({self.name}: {len(self.payoffs)} sets of up to {self.arms} arms, d = {self.dim})"

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        set: str = "set",  # noqa: A002
        arm: str = "arm",
        reward: str = "reward",
        columns: int = MOST_COLUMNS,
    ) -> Self:
        """The world of a table in CSV (also compressed, ``.csv.gz``) or Parquet with a row for each set and arm.

        Parameters
        ----------
        set, arm, reward
            The columns that say to which set a row belongs, what its arm is called, and what choosing it pays. All
            others are features: what is the same for all arms of a set, in every set, is of the context, the rest is of
            the arm.
        columns
            The most columns, 100 by default; what does not fit is left out, and told.
        """
        columns = count_of("columns", columns)
        if len({set, arm, reward}) < 3:
            raise ParameterError(
                f"set, arm and reward are three columns; got {set!r:.60}, {arm!r:.60} and {reward!r:.60}."
            )
        table = read_columns(path)
        sets, arms = table.names(set, "set"), table.names(arm, "arm")
        paid = table.numbers(reward, "reward")
        rows = _by_set(table, sets, arms)
        features = [name for name in table.values if name not in (set, arm, reward)]
        try:
            encoded, remarks = _encoded(table, rows, arms, features, columns, key=arm)
            payoffs = np.zeros(encoded.checked.available.shape)
            payoffs[encoded.checked.available] = [paid[row] for places in rows for row in places]
            return cls(
                name=Path(path).name,
                contexts=encoded.checked.contexts,
                payoffs=payoffs,
                available=encoded.checked.available,
                remarks=remarks,
            )
        except FileFormatError:
            raise
        except InputError as error:
            raise FileFormatError(f"{path}: {error}") from error

    @property
    def arms(self) -> int:
        """Most arms in a set."""
        return int(self.payoffs.shape[1])

    @property
    def dim(self) -> int:
        """Number of features of an arm."""
        return int(self.contexts.shape[2])

    @property
    def offered(self) -> BoolArray:
        """(sets, K) which arms exist."""
        assert self.available is not None
        return self.available

    @property
    def noise_scale(self) -> float:
        """σ of the rewards: that of any variable between the smallest and the largest."""
        return float(np.ptp(self.payoffs[self.offered])) / 2.0

    @cached_property
    def content(self) -> str:
        """A hash of all sets, by which runs that were kept are known to be of this table."""
        parts = (self.contexts.tobytes(), self.payoffs.tobytes(), self.offered.tobytes())
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def describe(self) -> str:
        """A line on what it is made of."""
        return f"{len(self.payoffs)} sets of up to {self.arms} arms. {self.remarks}".rstrip()

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        which = random_rows(len(self.payoffs), count, seed=seed, first=first)
        return Rounds(contexts=self.contexts[which], means=self.payoffs[which], available=self.offered[which])

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means

    def scores(self, theta: FloatArray) -> FloatArray:
        """(sets, K) xᵀθ of all arms of all sets."""
        return np.asarray(self.contexts @ theta)

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        """(d,) the sum of the vectors of all arms of all sets, with weights (sets, K)."""
        return np.asarray(weights.ravel() @ self.contexts.reshape(-1, self.dim))

    def least_squares(self) -> FloatArray:
        """(d,) the least-squares fit to the rewards of all arms of all sets."""
        fitted, *_ = np.linalg.lstsq(self.contexts[self.offered], self.payoffs[self.offered], rcond=None)
        return np.asarray(fitted)


def _by_set(table: Columns, sets: Sequence[str], arms: Sequence[str]) -> list[list[int]]:
    """The rows of each set, in the order in which sets come; within a set, in the order in which arms first come."""
    order = {name: place for place, name in enumerate(dict.fromkeys(arms))}
    found: dict[str, dict[str, int]] = {}
    for row, (name, arm) in enumerate(zip(sets, arms, strict=True)):
        first = found.setdefault(name, {}).setdefault(arm, row)
        if first != row:
            raise table.wrong(
                row,
                f"the arm {arm!r:.60} of the set {name!r:.60} was there in {table.places[first]}; each arm is offered "
                "once. Drop one of them, or give it another name.",
            )
    if max(map(len, found.values())) < 2:
        raise FileFormatError(
            f"{table.path}: no set has more than one arm, so there is nothing to choose. A choice table has a row for "
            "each set and arm, also for those that were not chosen."
        )
    return [sorted(rows.values(), key=lambda row: order[arms[row]]) for rows in found.values()]


def _encoded(
    table: Columns, rows: Sequence[Sequence[int]], arms: Sequence[str], names: Sequence[str], most: int, *, key: str
) -> tuple[Encoded, str]:
    """The vectors of all sets, by features that are proposed from them."""
    shared = [
        name
        for name in names
        if all(table.values[name][row] == table.values[name][places[0]] for places in rows for row in places)
    ]
    contexts = [{name: table.values[name][places[0]] for name in shared} for places in rows]
    own = [name for name in names if name not in shared]
    offers: list[dict[str, Any]] = [
        {arms[row]: {name: table.values[name][row] for name in own} for row in places} for places in rows
    ]
    features, beyond = Features.fit(contexts, offers, key=key, most=most), list[str]()
    how: dict[str, Any] = {"own": False}
    if features.arms is not None:  # all arms are known: there need not be room for others
        how = {"spare_arms": 0}
        features = Features.fit(contexts, offers, key=key, most=most, **how)
    if features.dim > most:
        levels = int(features.constant) if features.arms is None else len(features.arms.ids)
        telling = [field for field in features.fields if field.of != "context"]
        if not telling:
            raise ParameterError(f"columns must be at least {levels} for a level of each arm; got {most}.")
        kept = {field.name for field in fitting(telling, most, besides=levels)}
        beyond = [field.name for field in telling if field.name not in kept]
        features = Features.fit(contexts, offers, key=key, most=most, drop=beyond, **how)
    check_size(len(rows), max(map(len, rows)), features.dim)
    encoded = features.encode_many(contexts, offers)
    return encoded, remarks_of(features, encoded, beyond=beyond, columns=most)
