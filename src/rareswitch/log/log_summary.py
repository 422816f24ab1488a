"""What a learner needs of a log in Parquet: parts, mapped to sums on any executor, added in their order."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rareswitch.errors import BatchError, several
from rareswitch.learner import Learner, State, Summary
from rareswitch.log.log_report import Earlier, LogReport
from rareswitch.log.places import find_parts
from rareswitch.log.reading import MOST_POLICIES
from rareswitch.log.reduction import Reduction

_SHOWN = 5


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

    Parts are read where the executor runs them, 65,536 rows at a time. The same sums are found on every executor; and
    where a policy has at most 65,536 rows, also for every order of the rows and every split into parts.

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
    >>> import numpy as np
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
    files = find_parts(paths)
    read = Reduction(
        learner, state, files, executor=executor, late=late, window=window, now=now, default=default, clip=clip
    )
    read.progress = progress
    read.count()
    _check_policy(read)
    read.find_repeats()
    read.sum()
    if read.conflicting and not conflicts:
        raise BatchError(
            f"{several(read.conflicting.total(), 'decision')} with rows that contradict each other; the first are "
            f"{read.contradiction}. Keep the right ones, or learn without these decisions: conflicts=True."
        )
    current, wanted = state.policy.id, learner.sample_size(state)
    summary = learner.fitted(state, read.summaries[current], read.again)
    earlier, given = _late(read)
    foreign = Counter({name: rows for name, rows in read.rows.items() if name and name not in read.known})
    named = dict(foreign.most_common(MOST_POLICIES))
    rest = {"": foreign.total() + read.rows[""] - sum(named.values())}
    report = LogReport(
        policy=current,
        planned=state.batch_sizes[0],
        decided=summary.decided,
        parts=len(files),
        empty_parts=sum(part.rows == 0 for part in read.parts),
        rows=read.rows.total(),
        size=sum(part.size for part in read.parts),
        used=summary.rewarded,
        unrewarded=summary.missing - summary.waiting - summary.expired,
        waiting=summary.waiting,
        expired=summary.expired,
        clipped=summary.clipped,
        copies=read.rows[current] - summary.decided - read.conflicting_rows[current],
        conflicting=read.conflicting[current],
        conflicting_rows=read.conflicting_rows[current],
        late_used=sum(entry.rows for entry in earlier.values() if entry.used),
        late_unused=sum(entry.rows for entry in earlier.values() if not entry.used),
        earlier=earlier,
        foreign=named | (rest if rest[""] else {}),
        wanted_sets=wanted,
        sets=0 if summary.sample is None else len(summary.sample),
        seconds=time.perf_counter() - began,
    )
    return LogSummary(summary=summary, late=tuple(given), report=report)


def _late(read: Reduction) -> tuple[dict[str, Earlier], list[Summary]]:
    """What came of earlier batches, and what the learner is given of them.

    Where its proof needs fresh batches, late rewards are only counted.
    """
    found, given, pooled = {}, [], read.learner.parts.statistics.pooled
    for number, batch in enumerate(read.state.past, 1):
        name, rows = batch.policy_id, read.rows[batch.policy_id]
        if not rows or name == read.state.policy.id:
            continue
        summary = read.summaries.get(name)
        new = 0 if summary is None else summary.rewarded - batch.rewarded
        used, conflicting = summary is not None and pooled, read.conflicting[name]
        found[name] = Earlier(batch=number, rows=rows, new=new, conflicting=conflicting, used=used)
        if summary is not None and new >= 0 and summary.decided >= batch.decided:
            given.append(summary)
        elif summary is not None and used:
            files = [path for path, part in zip(read.files, read.parts, strict=True) if part.policies[name]]
            more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
            raise BatchError(
                f"batch {number} was learned from with {batch.decided} decisions, {batch.rewarded} of them rewarded; "
                f"the log has {summary.decided} and {summary.rewarded} of it, in {', '.join(files[:_SHOWN])}{more}. "
                "Rows that are given again replace what was counted: name all parts of that batch, or leave late rows "
                "out with --no-late, late=False."
            )
    return found, given


def _check_policy(read: Reduction) -> None:
    """Refuse a log in which nothing is of the current policy."""
    rows = read.rows.total()
    if not rows:
        raise BatchError(f"the log has no rows, in {several(len(read.parts), 'part')}.")
    if read.rows[read.state.policy.id]:
        return
    past = {batch.policy_id: f" (policy {k} of this run)" for k, batch in enumerate(read.state.past, 1)}
    shown = [f"{name[:12]}…{past.get(name, '')}" for name in sorted(filter(None, read.rows))]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    raise BatchError(
        f"none of the {rows} rows is of the current policy {read.state.policy.id[:12]}…; they are of "
        f"{', '.join(shown[:_SHOWN])}{more}. Name the log of the current policy, or the run that made this log."
    )
