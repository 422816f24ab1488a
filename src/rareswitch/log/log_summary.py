"""What a learner needs of a log in Parquet, where there is no experiment: every row under exactly one name."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import BatchError, several
from rareswitch.learner import Learner, State, Summary, in_seconds
from rareswitch.log.batch_sums import summarize
from rareswitch.log.parquet import ParquetLog
from rareswitch.log.parts import MOST_POLICIES

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Rows of an earlier batch of the run."""

    #: Its number.
    batch: int
    rows: int
    #: Rewards that were not known when the batch was learned from.
    new: int
    #: Decisions of it whose rows contradict each other: left out.
    conflicting: int
    #: Whether the batch, as the log has it now, took the place of what was counted before.
    used: bool


@dataclass(frozen=True, kw_only=True)
class LogReport:
    """What was read, what was used and what was not.

    ``rows`` is the sum of ``used``, ``unrewarded``, ``waiting``, ``expired``, ``copies``, ``conflicting_rows``,
    ``late_used``, ``late_unused`` and the rows of ``foreign`` policies; ``decided`` that of the first four.
    """

    #: The id of the policy that made the batch.
    policy: str
    #: Decisions that were planned for the batch.
    planned: int
    #: Decisions that came, but for those whose rows contradict each other.
    decided: int
    #: Files that were read.
    parts: int
    #: Those of them without a row.
    empty_parts: int
    rows: int
    #: Bytes of the files.
    size: int
    #: Decisions whose rewards were learned from.
    used: int
    #: Decisions whose reward is not known.
    unrewarded: int
    #: Decisions whose attribution window is still open.
    waiting: int
    #: Decisions whose reward came after the window.
    expired: int
    #: Those of the used whose reward was clipped.
    clipped: int
    #: Further rows of decisions that are counted already.
    copies: int
    #: Decisions whose rows contradict each other: left out.
    conflicting: int
    #: The rows of these.
    conflicting_rows: int
    #: Rows of earlier batches that took the place of what was counted before.
    late_used: int
    #: Other rows of earlier batches.
    late_unused: int
    #: By the id of an earlier policy of the run, what came of its batch.
    earlier: dict[str, Earlier]
    #: Rows by policy, of those that this run never had. All beyond the 100th are under ''.
    foreign: dict[str, int]
    #: Context sets that the learner asks for.
    wanted_sets: int
    #: Those that it got.
    sets: int
    seconds: float


@dataclass(frozen=True, eq=False, kw_only=True)
class LogSummary:
    """What a log comes to."""

    #: Of the current batch.
    summary: Summary
    #: Of earlier batches that the log has, for :meth:`~rareswitch.learner.Learner.next`.
    late: tuple[Summary, ...]
    report: LogReport


def summarize_log(
    learner: Learner,
    state: State,
    paths: Iterable[str | Path],
    *,
    executor: Executor | None = None,
    conflicts: bool = False,
    late: bool = True,
    window: float | None = None,
    now: Any = None,
    default: float | None = None,
    clip: tuple[float, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LogSummary:
    """Reduce a log of the current policy to what is learned from, where logs are kept and there is no experiment.

    Parts are read where the executor is, 65,536 rows at a time. The same sums are found on all; and where a
    policy has at most 65,536 rows, also for every order of the rows and every split into parts.

    Parameters
    ----------
    paths
        Files or patterns, also at URLs such as s3://…: see :func:`find_parts`.
    executor
        Where parts are read; here by default.
    conflicts
        Whether to leave out decisions whose rows contradict each other, and go on; by default they are an error.
    late
        Whether rows of earlier policies are used. They then must be all rows of their batch, the old ones too.
    window, now, default, clip
        As :meth:`~rareswitch.learner.Learner.summarize` takes them; ``now`` is by default the latest time in the log.
    progress
        Called with the number of parts that were read, and how many will be as far as is known.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.learner import make_learner
    >>> from rareswitch.log import write_part
    >>> learner = make_learner("foresight", dim=2, horizon=100, policies=4)
    >>> state, ids, rng = learner.begin(), ["a", "b", "c", "d", "e"], np.random.default_rng(1)
    >>> contexts = rng.standard_normal((5, 3, 2))                        # what was offered
    >>> decided = state.policy.decide(contexts, ids=ids, seed=1)
    >>> chosen = contexts[np.arange(5), decided.arms]
    >>> path = Path(tempfile.mkdtemp()) / "part-1.parquet"
    >>> write_part(
    ...     path,
    ...     policy_id=state.policy.id,
    ...     ids=ids,
    ...     features=chosen,
    ...     propensities=decided.propensities,
    ...     rewards=[0.3, None, 0.5, 0.1, 0.9],
    ...     contexts=dict(zip(ids, contexts)),
    ... )
    >>> found = summarize_log(learner, state, [path])
    >>> found.report.planned, found.report.decided, found.report.used
    (7, 5, 4)
    >>> learner.next(state, found.summary, late=found.late).policies
    2
    """
    began = time.perf_counter()
    if state.done:
        raise BatchError("this run is over: its last batch has been learned from. Begin a new one.")
    current, past = state.policy.id, [batch.policy_id for batch in state.past]
    # rows of two batches with one policy cannot be told apart
    usable = [name for name in past if late and past.count(name) == 1 and name != current]
    now = float(in_seconds(now)) if isinstance(now, np.datetime64) else now  # those of a log are since 1970
    steps: list[tuple[int, int]] = [(0, 0)]

    def show(done: int, total: int) -> None:
        steps.append((done, total))
        if progress is not None:
            progress(done, total)

    log = ParquetLog(
        paths,
        window=window,
        now=now,
        only=[*usable, current],
        dim=learner.dim,
        conflicts=conflicts,
        executor=executor,
        progress=show,
    )
    _check_policy(log, state)
    counting: dict[str, Any] = {"window": window, "now": log.now, "default": default, "clip": clip}
    summary, given, earlier = None, list[Summary](), dict[str, Earlier]()
    for number, name in enumerate([*past, current], 1):
        if not log.rows[name] or (name == current) != (number > len(past)):
            continue
        found = None
        if name == current or name in usable:
            before = steps[-1][0]
            found = summarize(
                learner,
                state,
                log,
                policy_id=name,
                executor=executor,
                progress=lambda done, total, before=before: show(before + done, before + total),  # type: ignore[misc]
                **counting,
            )
        if name == current:
            summary = found
        else:
            earlier[name] = _earlier(log, learner, state, number, name, found, given)
    assert summary is not None  # as the policy has rows
    foreign = Counter({name: rows for name, rows in log.rows.items() if name and name not in {*past, current}})
    named = dict(foreign.most_common(MOST_POLICIES))
    rest = foreign.total() + log.rows[""] - sum(named.values())
    report = LogReport(
        policy=current,
        planned=state.batch_sizes[0],
        decided=summary.decided,
        parts=len(log.parts),
        empty_parts=sum(part.rows == 0 for part in log.parts),
        rows=log.rows.total(),
        size=sum(part.size for part in log.parts),
        used=summary.rewarded,
        unrewarded=summary.missing - summary.waiting - summary.expired,
        waiting=summary.waiting,
        expired=summary.expired,
        clipped=summary.clipped,
        copies=log.copies_of[current],
        conflicting=log.conflicting[current],
        conflicting_rows=log.conflicting_rows[current],
        late_used=sum(entry.rows for entry in earlier.values() if entry.used),
        late_unused=sum(entry.rows for entry in earlier.values() if not entry.used),
        earlier=earlier,
        foreign=named | ({"": rest} if rest else {}),
        wanted_sets=learner.sample_size(state),
        sets=0 if summary.sample is None else len(summary.sample),
        seconds=time.perf_counter() - began,
    )
    return LogSummary(summary=summary, late=tuple(given), report=report)


def _earlier(
    log: ParquetLog,
    learner: Learner,
    state: State,
    number: int,
    name: str,
    summary: Summary | None,
    given: list[Summary],
) -> Earlier:
    """What came of an earlier batch; what the learner is given of it is added to ``given``.

    Where its proof needs fresh batches, late rewards are only counted.
    """
    batch = state.past[number - 1]
    new = 0 if summary is None else summary.rewarded - batch.rewarded
    used = summary is not None and learner.parts.statistics.pooled
    if summary is not None and new >= 0 and summary.decided >= batch.decided:
        given.append(summary)
    elif summary is not None and used:
        files = [part.path for part in log.parts if part.policies[name]]
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        raise BatchError(
            f"batch {number} was learned from with {batch.decided} decisions, {batch.rewarded} of them rewarded; "
            f"the log has {summary.decided} and {summary.rewarded} of it, in {', '.join(files[:_SHOWN])}{more}. "
            "Rows that are given again replace what was counted: name all parts of that batch, or leave late rows "
            "out with --no-late, late=False."
        )
    return Earlier(batch=number, rows=log.rows[name], new=new, conflicting=log.conflicting[name], used=used)


def _check_policy(log: ParquetLog, state: State) -> None:
    """Refuse a log in which nothing is of the current policy."""
    rows = log.rows.total()
    if not rows:
        raise BatchError(f"the log has no rows, in {several(len(log.parts), 'part')}.")
    if log.rows[state.policy.id]:
        return
    past = {batch.policy_id: f" (policy {k} of this run)" for k, batch in enumerate(state.past, 1)}
    shown = [f"{name[:12]}…{past.get(name, '')}" for name in sorted(filter(None, log.rows))]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    raise BatchError(
        f"none of the {rows} rows is of the current policy {state.policy.id[:12]}…; they are of "
        f"{', '.join(shown[:_SHOWN])}{more}. Name the log of the current policy, or the run that made this log."
    )
