"""The update at a batch's end: parts of a log, mapped to sums on any engine, reduced in their order, learned from."""

import glob
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rareswitch.contexts import ContextSets
from rareswitch.engine import Engine, Serial
from rareswitch.errors import BatchError, FileFormatError
from rareswitch.learner import Summary
from rareswitch.log.deployment import Deployment
from rareswitch.log.reduction import Reducer

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was read, what was used and what was not.

    ``rows`` is the sum of ``used``, ``unrewarded``, ``surplus``, ``conflicting_rows``, ``outside`` and the rows of
    ``earlier`` and ``foreign`` policies; the decisions of the batch are the sum of ``used``, ``unrewarded``,
    ``conflicting`` and ``absent``.
    """

    policy: str
    """The id of the policy that made the batch."""
    start: int
    stop: int
    """Its decisions: from ``start`` to before ``stop``."""
    parts: int
    """Files that were read."""
    empty_parts: int
    """Those of them without a row."""
    rows: int
    size: int
    """Bytes of the files."""
    used: int
    """Decisions whose rewards were handed to the learner."""
    unrewarded: int
    """Decisions whose reward is not known: left out of the sums."""
    surplus: int
    """Rows that say again, in every field, what another row says: each such decision counts once."""
    conflicting: int
    """Decisions of which two rows say different things: left out."""
    conflicting_rows: int
    """The rows of these."""
    outside: int
    """Rows of the policy whose decision is not one of the batch: not used."""
    earlier: dict[str, int]
    """Rows by policy, of earlier policies of this deployment: not used."""
    foreign: dict[str, int]
    """Rows by policy, of those that this deployment never had: not used. All beyond the 100th are under ''."""
    absent: int
    """Decisions of the batch without any row."""
    sets: int
    """Context sets that the learner plans with."""
    absent_sets: int
    """Sampled decisions whose context set is not there."""
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Update:
    """What an update comes to."""

    deployment: Deployment
    """With the next policy."""
    report: Report


def find_parts(patterns: Iterable[str | Path]) -> list[str]:
    """The files that the patterns name, as absolute paths, each once, in the order of these as strings.

    >>> find_parts(["/nowhere/part-*.parquet"])
    Traceback (most recent call last):
    rareswitch.errors.FileFormatError: /nowhere/part-*.parquet: no file matches this pattern. Put it in quotes, ...
    """
    found: dict[str, str] = {}
    for pattern in map(str, patterns):
        paths = [pattern] if os.path.lexists(pattern) else glob.glob(pattern, recursive=True)
        files = [path for path in paths if not os.path.isdir(path)]
        if paths and not files:
            raise FileFormatError(f"{pattern}: a folder; name the files in it, as {os.path.join(pattern, '*.parquet')}")
        if not files:
            raise FileFormatError(
                f"{pattern}: no file matches this pattern. Put it in quotes, and look where the log is."
            )
        for path in files:
            found.setdefault(os.path.realpath(path), os.path.abspath(path))
    return sorted(found.values())


def update(
    deployment: Deployment,
    paths: Iterable[str | Path],
    *,
    engine: Engine | None = None,
    incomplete: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Update:
    """Learn the next policy from a log of the current one.

    Parts are read where the engine runs, one at a time and 65,536 rows at a time; what comes back of a part is its
    sums. They are added in the order of the parts, so the same policy is learned on every engine.

    Parameters
    ----------
    deployment
        Whose current batch has ended.
    paths
        Files or patterns: see :func:`find_parts`.
    engine
        Where parts are read; here by default.
    incomplete
        Whether to learn although decisions of the batch are not in the log, or have rows that contradict each other.
    progress
        Called with the number of parts that were read, and how many will be as far as is known.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rareswitch.log import write_part
    >>> now = Deployment.begin("foresight", dim=2, horizon=100)
    >>> count, rng = now.learner.stop, np.random.default_rng(1)
    >>> contexts = rng.standard_normal((count, 3, 2))                    # what was offered
    >>> decided = now.policy.decide(contexts, seed=1)
    >>> chosen = contexts[np.arange(count), decided.arms]
    >>> path = Path(tempfile.mkdtemp()) / "part-1.parquet"
    >>> write_part(
    ...     path,
    ...     policy_id=now.policy.id,
    ...     decisions=np.arange(count),
    ...     features=chosen,
    ...     propensities=decided.propensities,
    ...     rewards=chosen @ [0.6, -0.3] + 0.1 * rng.standard_normal(count),
    ...     contexts=dict(enumerate(contexts)),
    ... )
    >>> done = update(now, [path])
    >>> done.report.rows, done.report.used, done.deployment.learner.updates
    (8, 8, 2)
    """
    began = time.perf_counter()
    learner = deployment.learner
    if learner.done:
        raise BatchError("this run is over: its last batch has been learned from. Begin a new one.")
    files = find_parts(paths)
    reducer = Reducer(learner, files, Serial() if engine is None else engine, progress)
    reducer.read()
    _check_policy(reducer, deployment)
    reducer.leave_out_copies()
    absent = learner.stop - learner.start - reducer.held.count
    if (absent or reducer.conflicting) and not incomplete:
        raise _incomplete(reducer, absent)
    stats = reducer.total()
    if not any(part.count for part in stats):
        raise BatchError(
            f"none of the decisions {learner.start} to {learner.stop - 1} that count for {learner.name} has a reward "
            "in the log. Wait for the rewards and write the parts anew."
        )
    sample = _sample(reducer)
    summary = Summary(start=learner.start, stop=learner.stop, policy_id=learner.policy.id, stats=stats, sample=sample)
    history = {policy.id for policy in deployment.policies}
    reports = reducer.reports
    return Update(
        deployment=deployment.advance(summary),
        report=Report(
            policy=learner.policy.id,
            start=learner.start,
            stop=learner.stop,
            parts=len(reports),
            empty_parts=sum(report.rows == 0 for report in reports),
            rows=sum(report.rows for report in reports),
            size=sum(report.size for report in reports),
            used=reducer.used,
            unrewarded=reducer.unrewarded,
            surplus=reducer.surplus,
            conflicting=reducer.conflicting,
            conflicting_rows=reducer.conflicting_rows,
            outside=sum(report.outside for report in reports),
            earlier={name: rows for name, rows in reducer.others.items() if name in history},
            foreign={name: rows for name, rows in reducer.others.items() if name not in history},
            absent=absent,
            sets=0 if sample is None else len(sample),
            absent_sets=reducer.wanted_sets - (0 if sample is None else len(sample)),
            seconds=time.perf_counter() - began,
        ),
    )


def _sample(reducer: Reducer) -> ContextSets | None:
    """The context sets that the learner plans with, in the order of their decisions."""
    learner = reducer.learner
    sets = dict(reducer.sets)
    for report in reducer.reports:
        sets |= report.sets
    if sets:
        return learner.keep(ContextSets.from_ragged([sets[decision] for decision in sorted(sets)]))
    if reducer.wanted_sets and learner.stop < learner.horizon:
        raise BatchError(
            f"{learner.name} plans with the context sets of {reducer.wanted_sets} of these decisions, and the log has "
            "none of them. Write the offered arms of the decisions that learner.sampled names into the column contexts."
        )
    return None


def _check_policy(reducer: Reducer, deployment: Deployment) -> None:
    """Refuse a log in which nothing is of the current policy."""
    rows = sum(report.rows for report in reducer.reports)
    if not rows:
        raise BatchError(f"the log has no rows, in {len(reducer.reports)} parts.")
    if sum(reducer.others.values()) < rows:
        return
    earlier = {policy.id: batch for batch, policy in enumerate(deployment.policies, 1)}
    known = [
        f"{name[:12]}… (policy {earlier[name]} of this deployment)" if name in earlier else f"{name[:12]}…"
        for name in reducer.others
        if name
    ]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    raise BatchError(
        f"none of the {rows} rows is of the current policy {deployment.policy.id[:12]}…; they are of "
        f"{', '.join(known[:_SHOWN])}{more}. Name the log of the current policy, or the deployment that made this log."
    )


def _incomplete(reducer: Reducer, absent: int) -> BatchError:
    learner = reducer.learner
    faults = []
    if absent:
        first = reducer.held.absent(_SHOWN)
        more = f" and {absent - len(first)} more" if absent > len(first) else ""
        faults.append(f"{absent} not in the log ({', '.join(map(str, first))}{more})")
    if reducer.conflicting:
        faults.append(f"{reducer.conflicting} with rows that contradict each other")
    outside = sum(report.outside for report in reducer.reports)
    others = sum(reducer.others.values())
    notes = f" The log also has {outside} rows of this policy with other decision numbers." if outside else ""
    notes += f" The log also has {others} rows of other policies." if others else ""
    return BatchError(
        f"the batch is not complete: of its {learner.stop - learner.start} decisions, {learner.start} to "
        f"{learner.stop - 1}, {' and '.join(faults)}.{notes} Mend the log, or learn without these decisions: "
        "--incomplete, incomplete=True."
    )
