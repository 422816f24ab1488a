"""The update at a batch's end: parts of a log, mapped to sums on any engine, added in their order, learned from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rareswitch.engine import Engine
from rareswitch.errors import BatchError
from rareswitch.learner import Ahead
from rareswitch.log.log_report import LogReport
from rareswitch.log.log_summary import summarize_log
from rareswitch.store import Deployment


@dataclass(frozen=True, eq=False, kw_only=True)
class Update:
    """What an update comes to."""

    #: With the next policy.
    deployment: Deployment
    report: LogReport


def update(
    deployment: Deployment,
    paths: Iterable[str | Path],
    *,
    engine: Engine | None = None,
    conflicts: bool = False,
    late: bool = True,
    ahead: Ahead | None = None,
    window: float | None = None,
    now: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Update:
    """Learn the next policy from a log of the current one, which ends its batch with as many decisions as came.

    Parts are read where the engine runs, 65,536 rows at a time. The same policy is learned on every engine; and where a
    policy has at most 65,536 rows, also for every order of the rows and every split into parts.

    Parameters
    ----------
    paths
        Files or patterns: see :func:`find_parts`.
    engine
        Where parts are read; here by default.
    conflicts
        Whether to leave out decisions whose rows contradict each other, and go on; by default they are an error.
    late
        Whether rows of earlier policies are used. They then must be all rows of their batch, the old ones too.
    ahead, window, now
        The forecast of :meth:`~rareswitch.learner.Learner.next`, and the attribution window of
        :meth:`~rareswitch.learner.Learner.summarize`; ``now`` is by default the latest time in the log.
    progress
        Called with the number of parts that were read, and how many will be as far as is known.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rareswitch.log import write_part
    >>> before = Deployment.begin("foresight", dim=2, horizon=100)
    >>> ids, rng = ["a", "b", "c", "d", "e"], np.random.default_rng(1)
    >>> contexts = rng.standard_normal((5, 3, 2))                        # what was offered
    >>> decided = before.policy.decide(contexts, ids=ids, seed=1)
    >>> chosen = contexts[np.arange(5), decided.arms]
    >>> path = Path(tempfile.mkdtemp()) / "part-1.parquet"
    >>> write_part(
    ...     path,
    ...     policy_id=before.policy.id,
    ...     ids=ids,
    ...     features=chosen,
    ...     propensities=decided.propensities,
    ...     rewards=[0.3, None, 0.5, 0.1, 0.9],
    ...     contexts=dict(zip(ids, contexts)),
    ... )
    >>> done = update(before, [path])
    >>> done.report.planned, done.report.decided, done.report.used, done.deployment.state.updates
    (8, 5, 4, 2)
    """
    learner, state = deployment.learner, deployment.state
    told: dict[str, Any] = {"engine": engine, "conflicts": conflicts, "late": late, "window": window, "now": now}
    found = summarize_log(learner, state, paths, progress=progress, **told)
    wanted = learner.sample_size(state)
    if wanted and found.summary.sample is None and ahead != 0:
        raise BatchError(
            f"{learner.name} plans with the context sets of {min(wanted, found.summary.decided)} of these decisions, "
            f"and the log has none of them. Write the available arms of about {2 * wanted} of them into the column "
            "contexts: those that rareswitch.learner.sampled names."
        )
    return Update(deployment=deployment.advance(found.summary, late=found.late, ahead=ahead), report=found.report)
