"""What a learner needs of the decisions of one policy: sums, from any source, on any executor."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import NamedTuple, Protocol

import numpy as np

from rareswitch.core import BoolArray, ContextSets, IntArray, KeyArray, Sets, run_shards, uniforms_at
from rareswitch.decisions import DecisionLog
from rareswitch.errors import BatchError, ParameterError, ShapeError
from rareswitch.learner import Learner, Sample, State, Summary, sampled
from rareswitch.log.source import Source

__all__ = ["HeldOut", "summarize", "summarize_source"]

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
    #: Whether decisions come back as they are, not summed.
    gathers: bool
    #: Which rewards count; see :class:`Learnable`.
    counting: Mapping[str, float | None]
    clip: tuple[float, float] | None = None
    leave_out: HeldOut | None = None

    def sampled(self, keys: KeyArray) -> IntArray:
        """(m,) of decisions (n, 2) those whose context sets may be sampled."""
        _, half = self.learner.parts.statistics.halves(keys, self.state.policies)
        shown = np.ones(len(keys), dtype=np.bool_) if half is None else half
        return np.flatnonzero(shown if self.leave_out is None else shown & ~self.leave_out.among(keys))

    def summary(self, log: DecisionLog) -> Summary:
        """The sums of some decisions."""
        return self.learner.summarize(self.state, log, clip=self.clip, part=True)


class SourcePart(Protocol):
    """Some decisions of a source; small, and can be sent to where it is read."""

    def read(self) -> Iterator[DecisionLog]:
        """Those of one policy, with the chosen arms alone and the rewards that came."""


class Learnable(NamedTuple):
    """The decisions of one policy, as they are learned from."""

    parts: Sequence[SourcePart]
    #: How many there are.
    rows: int
    #: Samples as many context sets, where the executor is.
    sample: Callable[[Task, int, Executor | None], Sample | None]
    #: Window, now and default of rewards, as far as they are wanted.
    counting: Mapping[str, float | None]


class BatchSource(Protocol):
    """Where decisions are learned from."""

    def learnable(self, policy_id: str, learner: Learner) -> Learnable:
        """Those of one policy, fit for a learner."""


def summarize(
    learner: Learner,
    state: State,
    source: BatchSource,
    *,
    policy_id: str | None = None,
    executor: Executor | None = None,
    clip: tuple[float, float] | None = None,
    leave_out: HeldOut | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Reduce the decisions of one policy to what is learned from; all rows are read once a pass.

    Rewards count as the source says: its window, its now and its default. Parts are read where the executor is. At most
    65,536 decisions are gathered and summed at once, so that it does not matter in which order they came; more are
    summed part by part, in their order. Clicks take several passes.

    Parameters
    ----------
    source
        A :class:`~rareswitch.log.ParquetLog`, or a :class:`~rareswitch.log.StoredLog` of an experiment.
    policy_id
        Of the policy that decided: by default the current one of the state; or an earlier one, whose rewards may have
        come late.
    executor
        Where parts are read; here by default.
    clip
        The least and the largest reward as they are summed.
    leave_out
        Decisions that are passed over, as if they had not been made.
    progress
        Called with the number of parts that were read, and how many there are.
    """
    policy_id = state.policy.id if policy_id is None else policy_id
    parts, rows, sample, counting = source.learnable(policy_id, learner)
    task = Task(learner=learner, state=state, policy_id=policy_id, gathers=rows <= GATHERED, counting=counting)
    task = replace(task, clip=clip, leave_out=leave_out)
    summary = _passed(parts, task, executor, progress)
    if policy_id != state.policy.id or state.done:
        return summary
    if summary.rewarded:  # some learners need several passes
        summary = learner.fitted(state, summary, lambda finer: _passed(parts, replace(task, state=finer), executor))
    size = learner.sample_size(state)
    return replace(summary, sample=sample(task, size, executor)) if size else summary


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
    >>> from rareswitch.decisions import DecisionLog
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
    summary = summarize(learner, learner.begin(), _AnyPolicy(source, default), clip=clip)
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
    gathered, sums = list[DecisionLog](), list[Summary]()
    results = run_shards(partial(_read, task=task), parts, executor, label="part")
    for done, (logs, summaries) in enumerate(results, 1):
        gathered += logs
        sums = [reduce(add, [*sums, *summaries])] if sums or summaries else []
        if progress is not None:
            progress(done, len(parts))
    if sums:
        return sums[0]
    zeros = np.zeros(0)
    none = {"ids": np.zeros((0, 2), dtype=np.uint64), "rewards": zeros, "propensities": zeros}
    none |= {"features": np.zeros((0, task.learner.dim))}
    return task.summary(
        DecisionLog.joined(gathered) if gathered else DecisionLog.checked(batch_names=(task.policy_id,), **none)
    )


def _read(part: SourcePart, *, task: Task) -> tuple[list[DecisionLog], list[Summary]]:
    """The decisions of a part, or what they sum up to."""
    gathered, total = list[DecisionLog](), list[Summary]()
    for chunk in part.read():
        log = chunk.of_batch(0, [task.policy_id]).attributed(**task.counting)
        if task.leave_out is not None:
            log = log.select(~task.leave_out.among(log.ids))
        if len(log) and task.gathers:
            gathered.append(log)
        elif len(log):
            total = [reduce(add, [*total, task.summary(log)])]
    return gathered, total


@dataclass(frozen=True, eq=False)
class _AnyPolicy:
    """All decisions of a source as if one policy had made them."""

    source: Source
    default: float | None

    def learnable(self, policy_id: str, learner: Learner) -> Learnable:
        """Itself; chunks may be many, and are summed one by one."""
        return Learnable([self], GATHERED + 1, self.sample, {"default": self.default})

    def read(self) -> Iterator[DecisionLog]:
        return (chunk.without_offers() for chunk in self.source.chunks(contexts=False))

    def sample(self, task: Task, size: int, executor: Executor | None) -> Sample | None:
        """The context sets of the decisions with the smallest ranks."""
        samples = []
        for log in self.source.chunks(contexts=True):
            if log.contexts is not None:
                task.learner.check(Sets(log.contexts, log.available, False))
                rows = task.sampled(log.ids)
                samples.append(Sample.of(size, log.ids[rows], ContextSets(log.contexts, log.available), rows))
        return reduce(add, samples) if samples else None
