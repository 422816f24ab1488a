"""What a learner needs of the decisions of one policy: sums, from any source, on any executor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Protocol

import numpy as np

from rareswitch.core import BoolArray, ContextSets, IntArray, KeyArray, Sets, run_shards, uniforms_at
from rareswitch.errors import BatchError, ParameterError, ShapeError
from rareswitch.learner import Learner, Rows, Sample, State, Summary, sampled
from rareswitch.log.decision_log import Source

#: Decisions that are gathered and summed at once, so that it does not matter in which order they came.
GATHERED = 1 << 16


@dataclass(frozen=True)
class HeldOut:
    """A share of the decisions whose context sets were kept, told by a hash of their ids alone.

    The hash is none of those by which arms are chosen, samples are taken or batches are halved, so that what is held
    out is like the rest. Decisions of which only the chosen arm was kept could not be tested on, and are never held
    out.

    Examples
    --------
    >>> from rareswitch.core import id_keys
    >>> int(HeldOut(share=0.3).among(id_keys(range(1000))).sum())
    264
    >>> int(HeldOut(share=0.3, context_sample_rate=0.1).among(id_keys(range(1000))).sum())
    30
    """

    share: float
    #: Share of the decisions whose context sets are kept.
    context_sample_rate: float = 1.0

    def among(self, keys: KeyArray) -> BoolArray:
        """(n,) which decisions are held out, by their keys (n, 2)."""
        return np.asarray((uniforms_at(0, "gate", keys) < self.share) & sampled(keys, self.context_sample_rate))


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What is wanted of all parts of a source."""

    learner: Learner
    state: State
    #: Of the policy whose decisions are wanted.
    policy_id: str
    #: Whether rows come back as they are, not summed.
    gathers: bool
    #: What :meth:`~rareswitch.learner.Learner.summarize` is told of rewards.
    counting: dict[str, Any]
    leave_out: HeldOut | None
    #: Whether times are needed.
    timed: bool

    def sampled(self, keys: KeyArray) -> IntArray:
        """(m,) of decisions (n, 2) those whose context sets may be sampled."""
        _, half = self.learner.parts.statistics.halves(keys, self.state.policies)
        shown = np.ones(len(keys), dtype=np.bool_) if half is None else half
        return np.flatnonzero(shown if self.leave_out is None else shown & ~self.leave_out.among(keys))

    def summary(self, rows: Rows) -> Summary:
        """The sums of some decisions."""
        return self.learner.summarize(self.state, rows, **self.counting, part=True)

    def no_rows(self) -> Rows:
        """Of no decisions."""
        none = np.zeros(0)
        times, features = none if self.timed else None, np.zeros((0, self.learner.dim))
        return Rows(ids=[], policy_id=self.policy_id, features=features, rewards=none, times=times, reward_times=times)


class SourcePart(Protocol):
    """Some decisions of a source; small, and can be sent to where it is read."""

    def read(self, task: Task) -> Iterator[Rows]:
        """Those of one policy, perhaps with context sets to sample from."""


class Learnable(NamedTuple):
    """The decisions of one policy, as they are learned from."""

    parts: Sequence[SourcePart]
    #: Samples context sets, where rows do not have them.
    sample: Callable[[Task, int], Sample | None] | None = None
    #: How many there are; None: in a single part they are gathered.
    rows: int | None = None


class BatchSource(Protocol):
    """Where decisions are learned from."""

    def learnable(self, policy_id: str) -> Learnable:
        """Those of one policy."""


def summarize(
    learner: Learner,
    state: State,
    source: BatchSource,
    *,
    policy_id: str | None = None,
    executor: Executor | None = None,
    window: float | None = None,
    now: float | None = None,
    default: float | None = None,
    clip: tuple[float, float] | None = None,
    leave_out: HeldOut | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Reduce the decisions of one policy to what is learned from; all rows are read once a pass.

    Parts are read where the executor is. At most 65,536 decisions are gathered and summed at once, so that it does not
    matter in which order they came; more are summed part by part, in their order. Clicks take several passes.

    Parameters
    ----------
    source
        A :class:`~rareswitch.log.ParquetLog`, or a :class:`~rareswitch.log.StoredBatch` of an experiment.
    policy_id
        Of the policy that decided: by default the current one of the state; or an earlier one, whose rewards may have
        come late.
    executor
        Where parts are read; here by default.
    window, now, default, clip
        As :meth:`~rareswitch.learner.Learner.summarize` takes them, in seconds since 1970; ``now`` is needed for a
        window.
    leave_out
        Decisions that are passed over, as if they had not been made.
    progress
        Called with the number of parts that were read, and how many there are.
    """
    policy_id = state.policy.id if policy_id is None else policy_id
    counting = {"window": window, "now": None if window is None else now, "default": default, "clip": clip}
    parts, sample, rows = source.learnable(policy_id)
    task = Task(
        learner=learner,
        state=state,
        policy_id=policy_id,
        gathers=len(parts) <= 1 if rows is None else rows <= GATHERED,
        counting=counting,
        leave_out=leave_out,
        timed=window is not None,
    )
    summary = _passed(parts, task, executor, progress)
    if policy_id != state.policy.id or state.done:
        return summary
    if summary.rewarded:  # some learners need several passes
        summary = learner.fitted(state, summary, lambda finer: _passed(parts, replace(task, state=finer), executor))
    size = learner.sample_size(state)
    return summary if sample is None or not size else replace(summary, sample=sample(task, size))


def summarize_source(
    learner: Learner, source: Source, *, default: float | None = None, clip: tuple[float, float] | None = None
) -> Summary:
    """The decisions of a log, whoever made them, as a learner begins with them: ``learner.begin(warm=…)``.

    They are counted as if the learner's own first policy had made them: what is learned from sums does not depend on
    how arms were chosen. Propensities are not looked at.

    Parameters
    ----------
    default
        The reward of decisions whose own is not known; by default they do not count.
    clip
        The least and the largest reward as they are summed.

    Examples
    --------
    >>> from rareswitch.learner import Foresight
    >>> from rareswitch.log import DecisionLog
    >>> x, arms = np.random.default_rng(1).standard_normal((500, 3, 2)), np.arange(500) % 3
    >>> rewards = x[np.arange(500), arms] @ [1.0, -1.0]
    >>> log = DecisionLog(contexts=x, arm_indices=arms, propensities=[0.5] * 500, rewards=rewards)
    >>> learner = Foresight(dim=2, horizon=1000)
    >>> state = learner.begin(warm=summarize_source(learner, log))
    >>> state, state.policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).round(3).tolist()
    (<state of foresight: policy 1, planned for decisions 0 to 5, then 7 more for 994>, [1.0, 0.0])
    """
    if source.dim is None:
        raise ParameterError(
            f"the log has no vectors of arms, and {learner.name} learns from those of {learner.dim} features. Read it "
            "with features, or begin without it."
        )
    if source.dim != learner.dim:
        raise ShapeError(
            f"the vectors of the log have {source.dim} features, and {learner.name} learns from those of "
            f"{learner.dim}. Make both with the same features."
        )
    summary = summarize(learner, learner.begin(), _AnyPolicy(source), default=default, clip=clip)
    if not summary.rewarded:
        raise BatchError(
            f"none of the {summary.decided} decisions of the log has a reward: there is nothing to begin with. Give it "
            "the rewards, or begin without it."
        )
    return summary


def _passed(
    parts: Sequence[SourcePart],
    task: Task,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """One pass over all parts."""
    gathered, sums = list[Rows](), list[Summary]()
    results = run_shards(partial(_read, task=task), parts, executor, label="part")
    for done, (rows, summaries) in enumerate(results, 1):
        gathered += rows
        sums = [reduce(add, [*sums, *summaries])] if sums or summaries else []
        if progress is not None:
            progress(done, len(parts))
    return sums[0] if sums else task.summary(Rows.concatenate([*gathered] or [task.no_rows()]))


def _read(part: SourcePart, *, task: Task) -> tuple[list[Rows], list[Summary]]:
    """The rows of a part, or what they sum up to."""
    gathered, total = list[Rows](), list[Summary]()
    for rows in part.read(task):
        if task.leave_out is not None:
            rows = rows[np.flatnonzero(~task.leave_out.among(rows.ids))]
        if task.gathers:
            gathered.append(rows)
        elif len(rows):
            total = [reduce(add, [*total, task.summary(rows)])]
    return gathered, total


@dataclass(frozen=True, eq=False)
class _AnyPolicy:
    """All decisions of a source as if one policy had made them."""

    source: Source

    def learnable(self, policy_id: str) -> Learnable:
        """Itself; chunks may be many, and are summed one by one."""
        return Learnable([self], self.sample, GATHERED + 1)

    def read(self, task: Task) -> Iterator[Rows]:
        for log in self.source.chunks(contexts=False):
            yield Rows(ids=log.ids, policy_id=task.policy_id, features=log.features, rewards=log.rewards)

    def sample(self, task: Task, size: int) -> Sample | None:
        """The context sets of the decisions with the smallest ranks."""
        samples = []
        for log in self.source.chunks(contexts=True):
            if log.contexts is not None:
                task.learner.check(Sets(log.contexts, log.available, False))
                rows = task.sampled(log.ids)
                samples.append(Sample.of(size, log.ids[rows], ContextSets(log.contexts, log.available), rows))
        return reduce(add, samples) if samples else None
