"""Foresight: planned exploration with a handful of policies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rareswitch.confidence import LEAST_DELTA, Intervals, independent_intervals
from rareswitch.errors import ParameterError
from rareswitch.learner.clocks import Clock
from rareswitch.learner.grids import GrowingGrid, StaticGrid, as_grid, geometric_grid
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.logistic import ClicksModel
from rareswitch.learner.planned_exploration import PlannedExploration
from rareswitch.learner.reserve import Reserve
from rareswitch.learner.rule import OneModel
from rareswitch.learner.settings import choice, count, flag, real, setting
from rareswitch.validation import LARGEST_SCALE, whole

#: Policies where the horizon is known.
POLICIES = 8
#: Decisions of the first batch where the horizon is not known, or 4d if that is more.
FIRST = 30
#: κ/d, where a policy learned from t decisions costs κ/t of what a blind one does.
BLIND_WORTH = 1.5


@dataclass(frozen=True, kw_only=True)
class Foresight(Learner):
    """Near the regret of full adaptivity with eight policies; it needs no tuning and no noise estimate.

    All decisions so far give one belief N(θ̂, σ²Λ⁻¹), whose σ and ridge are those that make the rewards most likely: the
    units of the rewards and a common unit of the features do not matter. A policy holds 128 parameters drawn around θ̂,
    at a multiple of the belief's spread, and plays the best arm of one of them. Which multiple is *planned* at each
    update, by playing the rest of the run through: what each costs in the next batch, and what the data it gathers save
    afterwards (:mod:`rareswitch.learner.planning`). The last batch is greedy.

    A share ``design_share`` of decisions comes from the G-optimal design of the arms that confidence intervals leave.
    It keeps propensities positive on that design, and bounds a worst case: docs/foresight.md has the argument.

    The plan is for the decisions to come as they are forecast then: ``next(…, forecast=…)``. Without a horizon,
    an update is advised whenever the decisions have grown 2.5-fold, and the plan looks two batches past the next one.

    >>> Foresight(dim=10, horizon=100_000).clock.ends
    (45, 135, 406, 1223, 3678, 11060, 33257, 100000)
    >>> Foresight(dim=10).begin().batch_sizes
    (40, 60, 150)
    """

    policies: int | None = setting(
        None, "policies, the first included; 8, or any number for an unknown horizon", count()
    )
    intercept: bool | None = setting(
        None,
        "whether rewards have a level besides xᵀθ, as ratings and clicks have; on without noise_bound. Off can cost "
        "2.4 times the regret where clicks are rare",
        flag,
    )
    rewards: str | None = setting(
        None, '"binary" or "linear" rewards; by default binary while all were 0 or 1', choice("binary", "linear")
    )
    design_share: float = setting(
        0.0003,
        "share of decisions that explore by design; a tenth of it in the last batch. 0.03 can cost 4 times the regret",
        real(0.0, 1.0),
    )
    delta: float = setting(0.05, "failure probability of the intervals behind the design share", real(LEAST_DELTA, 1.0))
    seed: int = setting(0, "keys the draws", count(low=0))
    grid: StaticGrid | Sequence[int] | None = setting(None, "where batches end; by default geometric to T", as_grid)
    noise_bound: float | None = setting(
        None,
        "σ, if the noise is known to be at most that: arms then fall by proved intervals",
        real(0.0, LARGEST_SCALE, open_low=True),
    )
    norm_bound: float = setting(1.0, "‖θ‖ at most, beside noise_bound", real(0.0, LARGEST_SCALE, open_low=True))
    reserve: int = setting(
        0,
        "policies held in reserve for contexts that change; needs a horizon. Where nothing changes, 2 of 8 can cost "
        "2.4 times the regret",
        count(low=0),
    )
    discount: float = setting(
        1.0, "weight of a batch against the next one, below 1 where θ drifts", real(0.0, 1.0, open_low=True)
    )

    name: ClassVar[str] = "foresight"
    text: ClassVar[str] = "posterior draws, exploration planned at each update; nothing to tune"
    adaptivity: ClassVar[str] = "updates (8)"
    regret: ClassVar[str] = "d·√(T/design_share), stochastic, with many updates and a noise_bound"
    in_unit_ball: ClassVar[bool] = False

    def compose(self) -> Parts:
        grid = self.schedule()
        rule = PlannedExploration(self, self.proved_intervals(grid))
        if not self.may_be_logistic:
            return Parts(rule, grid, OneModel(dim=self.dim, intercept=self.has_level))
        return Parts(rule, grid, ClicksModel(dim=self.dim, intercept=self.has_level, only=self.rewards == "binary"))

    @property
    def has_level(self) -> bool:
        """Whether rewards have a level besides xᵀθ: by default, but not where intervals are proved."""
        return self.noise_bound is None if self.intercept is None else self.intercept

    @property
    def may_be_logistic(self) -> bool:
        """Whether rewards that are all 0 or 1 may be taken for clicks.

        What is proved is of linear ones; and without a level a logistic model says that an arm x = 0 pays a half, so
        it must be asked for.
        """
        return self.noise_bound is None and (self.rewards == "binary" or (self.rewards is None and self.has_level))

    def proved_intervals(self, grid: Clock) -> Intervals | None:
        """Those of the theorem in docs/foresight.md, where a bound on the noise is known."""
        if self.noise_bound is None:
            return None
        if self.discount < 1.0:
            raise ParameterError(
                "noise_bound asks for intervals that are proved for a θ that stays, and discount is for one that "
                "drifts: give one or the other."
            )
        if self.arms is None or self.horizon is None or self.intercept:
            raise ParameterError(
                "noise_bound asks for intervals that are proved for all arms of a run whose rewards are xᵀθ and noise: "
                "give arms and horizon too, and a constant feature in place of intercept=True."
            )
        if self.rewards == "binary":
            raise ParameterError(
                'noise_bound asks for intervals that are proved for linear rewards, and rewards="binary" for a '
                "logistic model: give one or the other."
            )
        return independent_intervals(
            "tight",
            dim=self.dim,
            arms=self.arms,
            horizon=self.horizon,
            batches=len(grid.begin()),
            delta=self.delta,
            noise=self.noise_bound,
            norm=self.norm_bound,
        )

    def rate(self) -> str:
        """The theorem's, for the number of batches; none where intervals rest on estimates."""
        batches = len(self.clock.begin())
        if self.noise_bound is None or self.design_share == 0.0 or batches < 2 or self.grid is not None:
            return "none"
        growth = (1.0 - 1.0 / batches) / (batches - 1 - self.reserve)  # T^growth is that of a batch
        return f"d·T^{0.5 + 0.5 * growth:.3f}/√design_share, stochastic"

    @property
    def _ends_freely(self) -> bool:
        # what is proved needs batches that do not end by their own features, as those of a reserve may
        proves = self.reserve and self.noise_bound is not None
        return not proves and super()._ends_freely

    def schedule(self) -> Clock:
        """The grid that was given, a geometric one, or one that grows where the horizon is not known."""
        if self.policies is not None and self.grid is not None:
            raise ParameterError("give policies, for a geometric grid of that many batches, or a grid; not both.")
        if self.reserve and (self.grid is not None or self.horizon is None):
            raise ParameterError(
                f"reserve={self.reserve} policies are kept back of a geometric schedule up to a horizon: give the "
                "horizon, and no grid."
            )
        if self.grid is not None:
            return as_grid("grid", self.grid)
        if self.horizon is None:
            return GrowingGrid(first=max(FIRST, 4 * self.dim), policies=self.policies)
        policies = min(POLICIES, self.horizon) if self.policies is None else self.policies
        usual = default_grid(self.dim, self.horizon, policies)
        if not self.reserve:
            return usual
        return Reserve(horizon=self.horizon, policies=usual.policies, reserve=self.reserve, first=usual.ends[0])


def default_grid(dim: int, horizon: int, policies: int) -> StaticGrid:
    """Geometric from κ^(1-1/M)·T^(1/M) decisions to T, κ = 1.5·d.

    In units of what a blind decision costs: the first batch of n costs n, and M - 1 batches that each let all decisions
    grow by r = (T/n)^(1/(M-1)) cost κ·(M - 1)·(r - 1), where one by a policy learned from t decisions costs κ/t. This n
    makes the sum least.

    >>> default_grid(10, 10_000, 2).ends, default_grid(10, 10_000, 5).ends
    ((387, 10000), (55, 201, 741, 2723, 10000))
    """
    whole("horizon", horizon, low=2)
    if whole("policies", policies) > horizon:
        raise ParameterError(f"policies must be at most the horizon, {horizon} decisions; got {policies}.")
    first = math.floor((BLIND_WORTH * dim) ** (1.0 - 1.0 / policies) * horizon ** (1.0 / policies))
    return geometric_grid(horizon, policies, first=max(1, min(first, horizon // 2, horizon - policies + 1)))
