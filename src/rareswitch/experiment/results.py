"""What an experiment tells: structs that are kept, printed as text or JSON, and sent. They hold no sentences."""

from typing import Any, Literal

import msgspec

from rareswitch.core import Result
from rareswitch.evaluation import Difference
from rareswitch.experiment.description import WarmStart
from rareswitch.experiment.gate import Gate, GateReport
from rareswitch.experiment.rewards import Rewards
from rareswitch.learner import Novelty
from rareswitch.planning import KnownRegret, MinPropensityPrice, Price, ScheduleTable, Wait
from rareswitch.store import Counts, Marks

__all__ = ["Activated", "Advance", "Audit", "BatchStatus", "Choice", "Coefficient", "GroupChange", "LearnerNote"]
__all__ += ["Lift", "Listed", "PolicyChanges", "Relearned", "Rewarded", "Status", "Verification"]


class Choice(Result, frozen=True, kw_only=True):
    """The arm to show, and all that is worth writing down with it. Prints as text."""

    #: Of the decision, as it was given.
    id: int | str
    #: The id of the chosen arm; its place among the vectors that were given where arms have no ids.
    arm: Any
    #: The exact probability with which the policy chooses this arm.
    propensity: float
    policy_id: str
    #: Number of the policy, from 1.
    version: int
    #: Whether this id was asked for before: then it is the answer of then.
    repeated: bool = False
    #: Whether it is still to be activated, and does not count until then.
    deferred: bool = False
    #: Where there is a holdout, whether this id keeps the baseline.
    cohort: Literal["holdout", "policy"] | None = None
    #: What was not as the features describe it: (field, what), where what is missing, extra (a field that is not
    #: described, and not used), unknown, clipped, or of the arms spare or shared.
    cautions: tuple[tuple[str, str], ...] = ()


class Lift(Result, frozen=True, kw_only=True):
    """Over the baseline, so far and by week, of the decisions that name one. Prints as a line.

    >>> print(Lift(reason="no decision names a baseline"))
    Lift over the baseline: not identifiable: no decision names a baseline.
    """

    #: So far, then by week; empty where nothing is known.
    parts: tuple[Difference, ...] = ()
    #: Why nothing is.
    reason: str = ""
    #: As of when, in seconds since 1970.
    at: float | None = None


class LearnerNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a learner believed, planned and concluded at an update, as far as it says so."""

    update: int | None = None
    #: σ of the rewards.
    noise: float | None = None
    #: The model that is believed, logistic or linear, and its log-likelihood of held-out batches above the other's.
    link: str | None = None
    held_out: float | None = None
    #: By how much more the batch differs from what was believed than it should, and by what the belief's variance was
    #: multiplied for that: 1 where chance explains it.
    surprise: float | None = None
    widening: float | None = None
    #: Whether the policy lies between what was believed and what is.
    between: bool = False
    #: Regret of the batch, as it is known now, and as it was expected.
    lost: float | None = None
    expected: float | None = None
    #: Exploration in units of the uncertainty; expected regret of the decisions to come, and of the next batch.
    scale: float | None = None
    cost: float | None = None
    next_cost: float | None = None
    #: The most that a decision costs on average, if the intervals hold.
    certificate: float | None = None
    #: Rewards lie around it, and the features do not explain it.
    level: float | None = None
    #: Standard deviations between the farthest reward and the mean.
    outlier: float | None = None
    #: The least probability of arms, where costs are without it.
    min_propensity: float | None = None
    #: Share of decisions that play the best known arm.
    greedy: float | None = None


class LearnedBatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was learned from the decisions of a policy."""

    policy_id: str
    decided: int
    #: Those that were learned from, with those that count by default.
    learned: int
    waiting: int = 0
    expired: int = 0
    clipped: int = 0
    held_out: int = 0


class RewardsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What tells that rewards of decisions that had some have changed."""

    rewards: int
    overwritten: int


class UpdatePlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is frozen of an update when it starts, beside the marks."""

    now: float
    forecast: int | tuple[int, ...] | None
    seen: RewardsSeen
    gate: Gate | None = None


class GroupChange(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a group of requests that would see another arm."""

    field: str
    group: str
    requests: int
    share: float


class Coefficient(msgspec.Struct, frozen=True, kw_only=True):
    """What a feature adds to the reward, as it was believed and as it would be."""

    #: Of the column, as the features call it.
    name: str
    before: float
    after: float


class PolicyChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a new policy would decide otherwise, on requests whose arms were kept."""

    requests: int
    #: Of these, the share that would see another arm.
    share: float
    #: The shares of the requests that see each arm, as it was and as it would be; the largest change first.
    arms: dict[str, tuple[float, float]]
    #: What it is expected to earn more, a decision, by what it was learned from; None where that is no linear model.
    gain: float | None = None
    #: By field of the context, where it can be read off the vectors.
    groups: tuple[GroupChange, ...] = ()
    #: Those that moved, the largest change first, 20 at the most.
    coefficients: tuple[Coefficient, ...] = ()


class UpdateReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of an update with the policy that it made."""

    #: What the store held of each policy when its marks were frozen.
    batches: tuple[Counts, ...] = ()
    #: Of the batch that ended, then of earlier ones with rewards that came late.
    learned: tuple[LearnedBatch, ...] = ()
    #: Context sets that the plan was made with.
    sets: int = 0
    note: LearnerNote = LearnerNote()
    marks: Marks | None = None
    plan: UpdatePlan | None = None
    seconds: float = 0.0
    lift: Lift | None = None
    gate: GateReport | None = None
    #: What the policy would decide otherwise, where it was proposed.
    changes: PolicyChanges | None = None
    #: Of two that learned the same, it tells who published.
    by: str = ""


class Advance(Result, frozen=True, kw_only=True):
    """The outcome of :meth:`Experiment.advance`: what was seen, believed and concluded. Prints as text."""

    #: Whether the policy changed.
    made: bool
    #: Number of the policy that decides now.
    version: int
    policy_id: str
    #: What the update waits for, where none was made, or it was but tried.
    waits: tuple[Wait, ...] = ()
    #: Whether it was only tried, by :meth:`Experiment.preview`: all else is then what an update would do.
    preview: bool = False
    #: Whether another process made the update meanwhile.
    elsewhere: bool = False
    #: Whether the policy waits for approval: the one before goes on until then.
    proposed: bool = False
    #: What the policy would decide otherwise, of a preview or a proposal.
    changes: PolicyChanges | None = None
    #: Decisions of the batch that ended.
    decided: int = 0
    #: Those with a reward, as :class:`BatchStatus` counts them.
    rewarded: int = 0
    #: Those that were learned from: in time, and with those that count by default.
    learned: int = 0
    #: Those whose attribution window was still open.
    waiting: int = 0
    #: Those whose reward came after the window.
    expired: int = 0
    #: Those whose reward was clipped; they are learned from.
    clipped: int = 0
    #: Those that were held out for a gate; the next update learns from them.
    held_out: int = 0
    #: Earlier batches of which more was known than before, by the number of their policy: decisions with a reward.
    late: dict[int, int] = msgspec.field(default_factory=dict)
    #: Context sets that the plan was made with.
    sets: int = 0
    #: What the learner believed and planned.
    note: LearnerNote = LearnerNote()
    #: Decisions that are planned for the new policy, and for those after it.
    batch_sizes: tuple[int, ...] = ()
    #: What is proved of the regret, where the batches were not those planned; else None.
    regret: KnownRegret | None = None
    seconds: float = 0.0
    #: What the gate says, where there was one.
    gate: GateReport | None = None
    #: What was earned more than the baseline would have, as of the last update; None without a baseline.
    lift: Lift | None = None


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions of one policy."""

    version: int
    policy_id: str
    #: Seconds since 1970.
    published: float
    decisions: int
    #: Those with a reward.
    rewarded: int


class Status(Result, frozen=True, kw_only=True):
    """What was decided and earned, what is missing, and what the next update waits for. Prints as text."""

    name: str
    url: str
    learner: str
    #: As people write it.
    schedule: str
    rewards: Rewards
    #: By policy, the current one last.
    batches: tuple[BatchStatus, ...]
    #: Of all policies.
    decisions: int
    #: What the schedule costs by the model of the regret; None where the model cannot tell.
    price: Price | None = None
    #: Where the current batch and those after it end, as far as is known.
    planned: ScheduleTable | None = None
    #: The share of ids that keeps the baseline; None where there is none.
    holdout: float | None = None
    #: What the least probability of arms costs; None where there is none.
    min_propensity: MinPropensityPrice | None = None
    #: The log that the first policy was learned from; None where there is none.
    warm_start: WarmStart | None = None
    #: When it was ended, in seconds since 1970; None while it goes on.
    ended: float | None = None
    #: Whether the next update can be made, and what it waits for.
    due: bool
    waits: tuple[Wait, ...] = ()
    #: Whether an update was begun and not finished; it goes on where it was.
    started: bool
    #: Decisions of the current policy whose attribution window is open.
    waiting: int
    #: Rewards whose decision has not come.
    unmatched: int
    #: Rewards that came again with the same value.
    repeated_rewards: int
    #: Rewards that took the place of others.
    overwritten: int
    #: Rewards that were clipped by updates.
    clipped: int
    #: Decisions that were asked for again.
    repeated_decisions: int
    #: Deferred decisions that were not activated: they are counted nowhere else.
    deferred: int = 0
    #: How unlike the contexts are to those that the policy was learned from; None while nothing is known.
    novelty: Novelty | None = None
    #: By how unlike its decisions are the learner asks for an update before the batch was to end; None: it does not.
    early: Novelty | None = None
    #: Decisions whose records were not as described, by field and by what was not: missing, extra, unknown, clipped,
    #: or of the arms spare or shared.
    fields: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    #: What was earned more than the baseline would have, as of the last update; None without a baseline.
    lift: Lift | None = None
    #: What the gate said of the policies that it rejected in this batch.
    rejected: tuple[GateReport, ...] = ()


class Rewarded(Result, frozen=True, kw_only=True):
    """What became of rewards. Prints as a line.

    >>> print(Rewarded(rewards=2, unmatched=1))
    2 rewards stored, 1 of them for an id that has not been decided: kept until it is.
    """

    rewards: int
    #: Those that were there before, with the same value.
    repeated: int = 0
    #: Those whose id has not been decided: they are kept until it is.
    unmatched: int = 0
    #: Those that were not stored, as nothing was decided before for the entity that earned them.
    skipped: int = 0


class Activated(Result, frozen=True, kw_only=True):
    """What became of deferred decisions. Prints as a line.

    >>> print(Activated(decisions=3, repeated=1))
    3 decisions count, 1 of them as before.
    """

    decisions: int
    #: Those that counted before.
    repeated: int = 0


class Listed(Result, frozen=True, kw_only=True):
    """An experiment of a store. Prints as a line."""

    name: str
    learner: str
    #: Seconds since 1970; of the end None while it goes on.
    created: float
    ended: float | None
    policies: int
    decisions: int


class Audit(Result, frozen=True, kw_only=True):
    """A decision, and what its policy says of it now. Prints as text."""

    id: int | str
    #: contexts needed: its set was not kept; other contexts: the request that was given is another.
    verdict: Literal["matches", "differs", "contexts needed", "other contexts"]
    arm: str
    propensity: float
    policy_id: str
    version: int
    #: Seconds since 1970.
    time: float
    #: Event and value of each that is in force.
    rewards: dict[str, float]
    #: Whether it was deferred, and when it was activated: None while it does not count.
    deferred: bool = False
    activated: float | None = None
    #: What the policy says now: the place of the arm among those available, and its propensity.
    recomputed: tuple[int, float] | None = None

    @property
    def matches(self) -> bool:
        """Whether arm and propensity come out again, exactly."""
        return self.verdict == "matches"


class Relearned(msgspec.Struct, frozen=True, kw_only=True):
    """What learning again says about one policy of an experiment, given those before it as they are."""

    policy_id: str
    verdict: Literal["same", "rounding", "otherwise"]
    #: The error, where nothing can be learned again.
    reason: str = ""
    #: Stored requests on which policies equal up to rounding were compared, and the number on which arms differ.
    decisions: int = 0
    differing: int = 0


class Verification(Result, frozen=True, kw_only=True):
    """What learning again from the summaries of an experiment gives, policy by policy. Prints as text.

    >>> from rareswitch.experiment import create
    >>> print(create("memory:", "spring", dim=2).verify())
    Policy 1 (...): reproduced.
    All policies are reproduced from their summaries.
    """

    #: The first one included, which nothing was learned for.
    policies: tuple[Relearned, ...]
    #: Whether the sums that the experiment goes on with are those of its summaries.
    sums: bool
    #: Of rareswitch, with which it was created.
    version: str
    #: What is damaged in the files of the store.
    faults: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything is learned again."""
        return self.sums and not self.faults and all(entry.verdict != "otherwise" for entry in self.policies)
