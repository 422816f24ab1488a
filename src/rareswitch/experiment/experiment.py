"""The experiment: records and ids in, decisions out, late rewards, updates when they are due; durable."""

import time as clock
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NoReturn, Self

import numpy as np
from msgspec import structs

from rareswitch.core import ContextSets, KeyArray, Sets, id_keys, key_bytes, summable
from rareswitch.errors import ConflictError, ParameterError, ShapeError, UnsuitableError
from rareswitch.experiment.audit import audit_decision, verify_versions
from rareswitch.experiment.description import Description
from rareswitch.experiment.gate import Gate
from rareswitch.experiment.history import ExperimentReport, History, history_of, report_values
from rareswitch.experiment.requests import Arm, Asked, Id, Request, Requests, entity_id, listed, read_requests
from rareswitch.experiment.results import Activated, Advance, Audit, Choice, Rewarded, Status, Verification
from rareswitch.experiment.rewards import RewardValue, refuse_other_values, reward_rows
from rareswitch.experiment.status import status_of
from rareswitch.experiment.update import Updates, log_of
from rareswitch.experiment.versions import REFRESH, Version, Versions, sha256
from rareswitch.features import OfferedArms, field_values
from rareswitch.learner import Forecast
from rareswitch.log import StoredLog
from rareswitch.planning import Moment, minute_text, seconds_of
from rareswitch.policy import Key, Policy, check_signs, in_holdout
from rareswitch.store import DecisionRow, Job, RewardRow, Store

__all__ = ["Experiment"]


class Experiment:
    """A durable experiment; :func:`rareswitch.create` and :func:`rareswitch.open` make one.

    All methods may be called from several threads, and several processes may have it open. What a method was given is
    kept when it returns.
    """

    def __init__(self, store: Store, description: Description, key: Key | None, *, signed: bool = False) -> None:
        self.store, self.description = store, description
        self._key, self._signed = key, signed or key is not None
        self._versions = Versions(store, sha256(description.to_text()), key)
        #: What requests that name no arms choose from, where features do not say it.
        named = description.named_arms if description.offer is not None else {}
        self._offer: OfferedArms = (named if any(named.values()) else [*named]) or None
        self._updates = Updates(description, self._versions)

    def __repr__(self) -> str:
        policy = len(self._versions.known)
        return f"<experiment {self.name}: {self.description.learner.name}, policy {policy}, {self.store.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections; what was acknowledged stays."""
        self.store.close()

    def end(self, *, now: Moment | None = None) -> None:
        """Let it decide no more; it still takes rewards, learns from them, and can be evaluated. Again changes nothing.

        Other processes notice within a second.
        """
        self.store.end(seconds_of(now))
        self._versions.refresh()

    def delete(self, name: str) -> None:
        """Delete it, with all decisions and rewards, and close it; its name is given again, so that none is by mistake.

        Other experiments of its database stay, and a new one may have its name.
        """
        if name != self.name:
            raise ParameterError(
                f"name must be {self.name!r}, that of the experiment to delete; got {name!r:.80}. Nothing was deleted."
            )
        self.store.delete()

    @property
    def name(self) -> str:
        """As it was created."""
        return self.description.name

    @property
    def signature(self) -> Literal["none", "checked", "unchecked"]:
        """Whether its description and policies are signed, and were checked with a key."""
        return "none" if not self._signed else "unchecked" if self._key is None else "checked"

    @property
    def policy(self) -> Policy:
        """The frozen policy that decides now."""
        return self._current().policy

    @property
    def policies(self) -> tuple[Policy, ...]:
        """All that were published, the first first."""
        return tuple(version.policy for version in self.versions)

    @property
    def versions(self) -> tuple[Version, ...]:
        """All that were published, with what each was learned from."""
        return self._versions.refresh()

    def decide(
        self,
        context: Asked,
        arms: OfferedArms = None,
        *,
        id: Id,  # noqa: A002
        baseline: Arm = None,
        deferred: bool = False,
        now: Moment | None = None,
    ) -> Choice:
        """Choose an arm; the same id again gives the same answer, and with another request it is an error.

        Parameters
        ----------
        context
            The record of the request, a dict; without features the vectors of the arms, (K, d).
        arms
            What may be chosen: ids, or a dict of ids and their records. Without features the ids of the vectors.
        id
            The name of the decision: a whole number or a string.
        baseline
            The arm that would have been shown, for an experiment that was created with a baseline.
        deferred
            Whether the arm may never be shown: the decision then counts only when it is activated, by :meth:`activate`
            or by the same request without ``deferred``. The answer for the id is the same before and after.
        now
            When it is made: a datetime, a text such as 2026-03-02 09:00, or seconds since 1970.
        """
        request = Request(self._prepare, context, arms, id, baseline, deferred, now)
        self.store.submit(request)
        choice = self._choice(request.batch, request.at, request.decisions[0], request.stored[0])
        if isinstance(choice, ConflictError):
            raise choice
        return choice

    def request(
        self,
        context: Asked,
        arms: OfferedArms = None,
        *,
        id: Id,  # noqa: A002
        baseline: Arm = None,
        deferred: bool = False,
        now: Moment | None = None,
    ) -> Request:
        """What :meth:`decide` decides, for :meth:`decide_together`."""
        return Request(self._prepare, context, arms, id, baseline, deferred, now)

    def decide_together(self, requests: Sequence[Request]) -> list[Choice | Exception]:
        """:meth:`decide` for requests of several callers, which share a commit: each has a choice or its own error."""
        try:
            self.store.submit(*requests)
        except Exception:
            if any(request.error is None for request in requests):  # of the store as a whole
                raise
        return [
            self._choice(request.batch, request.at, request.decisions[0], request.stored[0])
            if request.error is None
            else request.error
            for request in requests
        ]

    def decide_many(
        self,
        contexts: Asked,
        arms: OfferedArms = None,
        *,
        ids: Sequence[Id],
        baseline: Sequence[Arm] | None = None,
        deferred: bool = False,
        now: Moment | None = None,
    ) -> list[Choice]:
        """:meth:`decide` for many requests at once, which is much faster: ``arms`` once for all, or one for each."""
        ids = listed("ids", ids)
        batch, rows = self._decide(contexts, arms, ids, baseline, seconds_of(now), [deferred] * len(ids))
        pairs = enumerate(zip(rows, self.store.add_decisions(rows), strict=True))
        return _refuse_other_requests([self._choice(batch, at, row, stored) for at, (row, stored) in pairs], ids)

    def _current(self) -> Version:
        """The version that decides; whether there is a newer one is looked up now and then."""
        versions = self._versions
        return (versions.known if clock.monotonic() - versions.checked <= REFRESH else versions.refresh())[-1]

    def _prepare(self, jobs: Sequence[Job]) -> None:
        """Decide requests of several callers, which are kept together."""
        groups: dict[tuple[bool, bool], list[Request]] = {}
        for job in jobs:
            if isinstance(job, Request):
                groups.setdefault((job.arms is None, job.baseline is None), []).append(job)
        for group in groups.values():
            first, single = group[0], len(group) == 1
            contexts, arms = first.context, first.arms
            if not single:
                contexts, arms = [job.context for job in group], None if arms is None else [job.arms for job in group]
                contexts = contexts if self.description.features is not None else ContextSets.from_ragged(contexts)
            batch, rows = self._decide(
                contexts,
                arms,
                [job.id for job in group],
                None if first.baseline is None else [job.baseline for job in group],
                [job.time for job in group],
                [job.deferred for job in group],
                single=single,
            )
            for at, job in enumerate(group):
                job.batch, job.at, job.decisions = batch, at, rows[at : at + 1]

    def _decide(
        self,
        contexts: Any,
        arms: OfferedArms,
        ids: list[Id],
        baseline: Sequence[Arm] | None,
        times: float | list[float],
        deferred: list[bool],
        *,
        single: bool = False,
    ) -> tuple[Requests, list[DecisionRow]]:
        description = self.description
        batch, version = self._read(contexts, arms, ids, baseline, single=single)
        decided, cohorts = batch.decide(version.policy, description.seed), None
        if self._versions.ended is not None:
            self._refuse_new(ids, decided.ids.reshape(-1, 2), self._versions.ended)
        if description.holdout is not None:
            held = in_holdout(decided.ids.reshape(-1, 2), seed=description.seed, share=description.holdout)
            cohorts = np.where(held, "holdout", "policy").tolist()
        return batch, batch.rows(
            decided,
            version=version.row.number,
            context_sample_rate=description.context_sample_rate,
            times=times,
            cohorts=cohorts,
            keep_records=description.keep_records,
            deferred=deferred,
        )

    def probabilities(
        self, context: Asked, arms: OfferedArms = None, *, baseline: Arm = None, version: int | None = None
    ) -> dict[Id, float]:
        """With what probability a policy, by default the current one, would choose each arm; nothing is kept.

        >>> from rareswitch.experiment import create
        >>> create("memory:", "spring", dim=2).probabilities([[1.0, 0.0], [0.0, 1.0]], ["red", "blue"])
        {'red': 0.5, 'blue': 0.5}
        """
        shown = None if baseline is None else [baseline]
        batch, current = self._read(context, arms, ["probabilities"], shown, single=True)
        return batch.probabilities((current if version is None else self._versions.numbered(version)).policy)

    def _read(
        self, contexts: Any, arms: OfferedArms, ids: list[Id], baseline: Sequence[Arm] | None, *, single: bool
    ) -> tuple[Requests, Version]:
        """Requests as they are checked and encoded, and the version that decides."""
        description, own = self.description, self.description.baseline_field
        shown: Sequence[Any] | None = baseline
        arms = self._offer if arms is None else arms
        if own is not None and baseline is None:
            shown = field_values([contexts] if single else contexts, own)
        if shown is not None and description.baseline_share is None:
            raise ParameterError(
                "baseline was given, and this experiment was created without one. Create it with baseline=True "
                "(--baseline)."
            )
        learner = description.learner
        batch = read_requests(description.features, learner.dim, contexts, arms, ids=ids, baseline=shown, single=single)
        offered = batch.sets.contexts.shape[1]
        if offered > description.max_arms or (learner.arms is not None and offered > learner.arms):
            self._refuse_arms(offered)
        if description.features is None:  # those of features are never longer than 1
            learner.check(Sets(summable("contexts", batch.sets.contexts), batch.sets.available, False))
        if own is not None:  # which is used, if not by the features
            batch.cautions = [tuple(c for c in texts if c != (own, "extra")) for texts in batch.cautions]
        version = self._current()
        if version.policy.needs_baseline and (batch.baselines is None or (batch.baselines < 0).any()):
            at = 0 if batch.baselines is None else int(np.flatnonzero(batch.baselines < 0)[0])
            where = "" if own is None else f" in the field {own!r} of its record"
            who = "The first policy needs it, later ones do not."
            if description.holdout is not None:
                who = "With a holdout, which keeps it, every request does."
            raise ParameterError(
                f"baseline must name the arm that would have been shown{where}; request {ids[at]!r:.100} names none. "
                f"{who}"
            )
        return batch, version

    def _refuse_arms(self, offered: int) -> NoReturn:
        """Of sets from which the learner could not learn: kept, they would stand in the way of every update."""
        most, least = self.description.max_arms, self.description.learner.arms
        if offered > most:
            raise ParameterError(
                f"arms must be at most {most:,} in a request, as this experiment was created; got {offered:,}. Offer "
                "fewer, or create an experiment with a larger max_arms: its updates take time in proportion."
            )
        raise ParameterError(
            f"arms must be at most {least}, for which this experiment's learner was made; got {offered}. Offer fewer, "
            "or create an experiment with more arms."
        )

    def _refuse_new(self, ids: list[Id], keys: KeyArray, ended: float) -> None:
        """Refuse ids that were not decided before the experiment was ended."""
        for name, stored in zip(ids, self.store.find(key_bytes(keys)), strict=True):
            if stored is None:
                raise UnsuitableError(
                    f"experiment '{self.name}' was ended on {minute_text(ended)} UTC and makes no new decisions, such "
                    f"as {name!r:.100}; rewards, evaluations and the decisions so far stay. Create another one: "
                    "warm_start=… (--warm-start STORE NAME) lets it begin with what this one learned."
                )

    def _choice(self, batch: Requests, at: int, decided: DecisionRow, stored: DecisionRow) -> Choice | ConflictError:
        """What is answered to one of some requests; an id that was used before is its caller's alone."""
        if stored.digest != decided.digest:
            return _other_request(batch.ids[at])
        known = self._versions.known
        version = known[stored.version - 1] if stored.version <= len(known) else self._versions.numbered(stored.version)
        return Choice(
            id=batch.ids[at],
            arm=batch.arm(at, stored.arm_index),
            propensity=stored.propensity,
            policy_id=version.policy.id,
            version=stored.version,
            repeated=stored is not decided,
            deferred=stored.deferred is not None and stored.waits,
            cohort=stored.cohort,  # type: ignore[arg-type]
            cautions=batch.cautions[at],
        )

    def reward(
        self,
        id: Id,  # noqa: A002
        value: RewardValue,
        *,
        event: str | None = None,
        overwrite: bool = False,
        now: Moment | None = None,
    ) -> Rewarded:
        """Say what a decision earned: a number or a boolean. Twice the same is as good as once.

        Parameters
        ----------
        id
            Of the decision, which may also come later: then the result has it ``unmatched``.
        event
            The name of this reward, where several are summed: each counts once.
        overwrite
            Whether another value may take the place of one that is there; else that is an error.
        now
            When it came.
        """
        return self.reward_many([id], [value], events=None if event is None else [event], overwrite=overwrite, now=now)

    def reward_many(
        self,
        ids: Sequence[Id],
        values: Sequence[RewardValue],
        *,
        events: Sequence[str] | None = None,
        overwrite: bool = False,
        now: Moment | None = None,
    ) -> Rewarded:
        """:meth:`reward` for many decisions at once."""
        return self._keep_rewards(
            reward_rows(self.description.rewards, ids, values, events, seconds_of(now)), overwrite=overwrite
        )

    def entity_id(self, entity: str) -> str:
        """The id of what is decided for an entity, such as a user, while the policy that decides now does.

        With it an entity sees the same arm until the next policy, and :meth:`reward_by_entity` finds what it was shown.

        >>> from rareswitch.experiment import create
        >>> create("memory:", "spring", dim=2).entity_id("user-7")
        'user-7@1'
        """
        return entity_id(entity, self._current().row.number)

    def reward_by_entity(
        self,
        entities: Sequence[str],
        values: Sequence[RewardValue],
        times: Sequence[Moment],
        *,
        events: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> Rewarded:
        """:meth:`reward_many`, where it is known who earned a reward and when: it is of the last decision before.

        Decisions of an entity are those with an :meth:`entity_id`. Rewards of entities for whom nothing that counts was
        decided before are left out, and counted as ``skipped``.

        >>> from rareswitch.experiment import create
        >>> trial = create("memory:", "spring", dim=2)
        >>> choice = trial.decide([[1.0, 0.0], [0.0, 1.0]], id=trial.entity_id("user-7"), now="2026-03-02 09:00")
        >>> print(trial.reward_by_entity(["user-7", "user-8"], [1.0, 0.0], ["2026-03-02 09:05"] * 2))
        1 reward stored; 1 skipped, whose entity had no decision before.
        """
        names, amounts, moments = listed("entities", entities), listed("values", values), listed("times", times)
        for title, column in (("values", amounts), ("times", moments), ("events", events)):
            if column is not None and len(column) != len(names):
                raise ShapeError(f"{title} must be one for each of the {len(names)} entities; got {len(column)}.")
        numbers = range(1, len(self.versions) + 1)
        ids = [entity_id(name, number) for name in dict.fromkeys(map(str, names)) for number in numbers]
        decided: dict[str, list[tuple[float, str]]] = {}
        for id, stored in zip(ids, self.store.find(key_bytes(id_keys(ids))), strict=True) if ids else ():  # noqa: A001
            if stored is not None and not stored[0].waits:
                decided.setdefault(id.rpartition("@")[0], []).append((stored[0].time, id))
        before = [
            max((pair for pair in decided.get(str(name), ()) if pair[0] <= at), default=None)
            for name, at in zip(names, map(seconds_of, moments), strict=True)
        ]
        matched = [at for at, pair in enumerate(before) if pair is not None]
        rows = reward_rows(
            self.description.rewards,
            [pair[1] for pair in before if pair is not None],
            [amounts[at] for at in matched],
            None if events is None else [events[at] for at in matched],
            0.0,
        )
        timed = [row._replace(time=seconds_of(moments[at])) for row, at in zip(rows, matched, strict=True)]
        rewarded = self._keep_rewards(timed, overwrite=overwrite)
        return structs.replace(rewarded, skipped=len(names) - len(matched))

    def _keep_rewards(self, rows: list[RewardRow], *, overwrite: bool) -> Rewarded:
        job = Job(rewards=rows, overwrite=overwrite)
        if rows:
            self.store.submit(job)
        if not overwrite:
            refuse_other_values(rows, job.before)
        same = sum(old is not None and old.value == row.value for row, old in zip(rows, job.before, strict=True))
        return Rewarded(rewards=len(rows), repeated=same, unmatched=job.unmatched)

    def activate(self, *ids: Id, now: Moment | None = None) -> Activated:
        """Let deferred decisions count, since their arms were shown; again changes nothing.

        A decision that is activated is treated as if it was made then by the policy that made it, but its attribution
        window runs from when it was made. Rewards that came before are kept, and count from then on.

        >>> from rareswitch.experiment import create
        >>> trial = create("memory:", "spring", dim=2)
        >>> choice = trial.decide([[1.0, 0.0], [0.0, 1.0]], id="r1", deferred=True)
        >>> trial.status().decisions, trial.activate("r1").repeated, trial.status().decisions
        (0, 0, 1)
        """
        moment = seconds_of(now)
        outcomes = self.store.activate([(key, moment) for key in key_bytes(id_keys(ids))]) if ids else []
        if unknown := [name for name, outcome in zip(ids, outcomes, strict=True) if outcome is None]:
            rest = f"; the other {len(ids) - len(unknown)} of this call count" if len(unknown) < len(ids) else ""
            raise ParameterError(
                f"id must be that of a decision; there is none of {unknown[0]!r:.100} in this experiment{rest}."
            )
        return Activated(decisions=len(ids), repeated=sum(outcome is False for outcome in outcomes))

    def advance(
        self,
        *,
        now: Moment | None = None,
        forecast: Forecast | None = None,
        force: bool = False,
        gate: Gate | bool | None = None,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Advance:
        """Learn the next policy, if it is due; the only place where the policy changes.

        Of several processes that advance at once, one makes the new policy, and the others report it. What an
        update looks at is frozen when it starts: after a crash, the next call learns the very same policy.

        Parameters
        ----------
        now
            When it is made.
        forecast
            Decisions to come, in all or in each batch; by default what the schedule foresees.
        force
            Whether to make it although it is not due.
        gate
            Deploys the policy only if decisions that it was not learned from say that it is no worse than the
            incumbent: True, or a :class:`Gate`. Otherwise the incumbent goes on, and the outcome says why.
        executor
            Where decisions are read; here by default.
        progress
            Called with what was read, and how much there is.
        """
        if not self.description.approval:  # who approves signs
            self._check_key()
        return self._updates.advance(
            now=seconds_of(now), forecast=forecast, force=force, gate=gate, executor=executor, progress=progress
        )

    @property
    def proposal(self) -> Advance | None:
        """The update whose policy waits for approval; None where none does."""
        return self._updates.proposed()

    def approve(self, policy_id: str | None = None, *, now: Moment | None = None) -> Advance:
        """Publish the policy that waits for approval, and sign it where the experiment is signed.

        With ``policy_id`` only if it is that one: what was looked at may have been replaced by a later batch end.
        """
        self._check_key()
        return self._updates.approve(policy_id, seconds_of(now))

    def reject(self) -> None:
        """Drop the policy that waits for approval: the one that decides now goes on until a later batch end."""
        self.store.withdraw()

    def preview(
        self,
        *,
        now: Moment | None = None,
        forecast: Forecast | None = None,
        gate: Gate | bool | None = None,
        executor: Executor | None = None,
    ) -> Advance:
        """What an update made now would do; nothing is changed.

        What it says of a gate is a look that is not counted: who advances when a preview looks good deploys worse
        policies more often than the gate's level says.
        """
        return self._updates.preview(now=seconds_of(now), forecast=forecast, gate=gate, executor=executor)

    def status(self, *, now: Moment | None = None) -> Status:
        """Where the experiment stands, and what its next update waits for."""
        return status_of(self.description, self.store, self.versions, now=seconds_of(now))

    def history(self, *, now: Moment | None = None) -> History:
        """What was shown and earned over time, and how late rewards came.

        >>> from rareswitch.experiment import create
        >>> trial = create("memory:", "spring", dim=2, now=0.0)
        >>> choice = trial.decide([[1.0, 0.0], [0.0, 1.0]], ["red", "blue"], id="r1", now=10.0)
        >>> _ = trial.reward("r1", 1.0, now=40.0)
        >>> history = trial.history(now=60.0)
        >>> history.arms, history.ages.in_window
        ({'blue': (1,)}, 1)
        """
        return history_of(self.description, self.store, now=seconds_of(now))

    def report(self, *, now: Moment | None = None, values: bool = True) -> ExperimentReport:
        """All that is known of it, to look at: ``report().to_html("spring.html")``.

        Without ``values`` the values of policies and arms, which take longest, are left out.
        """
        moment = seconds_of(now)
        history = self.history(now=moment)
        return ExperimentReport(
            at=moment,
            status=self.status(now=moment),
            history=history,
            proposal=self.proposal,
            values=report_values(self, history, now=moment) if values and history.decisions else None,
        )

    def audit(self, id: Id, context: Asked = None, arms: OfferedArms = None) -> Audit:  # noqa: A002
        """Recompute a decision from its frozen policy, and say whether arm and propensity match.

        Where its context set was not kept, give the request again: it is known by its hash.
        """
        (key,) = key_bytes(id_keys([id]))
        (stored,) = self.store.find([key])
        if stored is None:
            raise ParameterError(f"id must be that of a decision; there is none of {id!r:.100} in this experiment.")
        request = None
        if context is not None:
            features, dim = self.description.features, self.description.learner.dim
            offered = self._offer if arms is None else arms
            request = read_requests(features, dim, context, offered, ids=[id], single=True)
        settings = {"seed": self.description.seed, "dim": self.description.learner.dim}
        return audit_decision(id, stored, self._versions.numbered(stored[0].version), request=request, **settings)

    def logged(self, *, now: Moment | None = None) -> StoredLog:
        """The decisions so far with their rewards, as they count then: what :func:`rareswitch.evaluate` reads.

        By default windows are looked at when the last decision was made, whose clock may be a simulated one.
        """
        upto = self.store.marks()  # before the policies are read, so that there is one for each decision
        moment = None if now is None else seconds_of(now)
        return log_of(self.description, self.store, self.versions, upto, moment)

    def verify(self) -> Verification:
        """Learn everything again from the summaries, and say which policies come out and whether they decide alike.

        The store's files are checked too.
        """
        return verify_versions(self.description, self.versions, self.store)

    def policy_file(self) -> tuple[str, bytes]:
        """The id and the file of the policy that decides, with its signature."""
        newest = self.versions[-1]
        return newest.policy.id, newest.row.policy

    def check(self) -> None:
        """Raise if its store cannot be written to, or the policy that decides is not what was published."""
        self.store.check_writable()
        _ = self._versions.refresh()[-1].policy

    def backup(self, path: str | Path) -> None:
        """Write a copy of the whole SQLite store, as of one moment, to a new file, while others go on using it.

        It is opened as any store: ``rareswitch.open("sqlite:///copy.db", name)``. Never copy the file itself while it
        is open. PostgreSQL has ``pg_dump`` for this.
        """
        self.store.backup(path)

    def _check_key(self) -> None:
        """Refuse an update that could not be signed as those before it."""
        if self._signed and self._key is None:
            raise ParameterError(
                "this experiment is signed, and its next policy must be. Open it with its key: --key-file FILE or "
                "--key NAME, key=… in Python."
            )
        if self._key is not None:
            check_signs(self._key)


def _other_request(id: Id, rest: str = "") -> ConflictError:  # noqa: A002
    """The error for an id that was used before, for another request."""
    return ConflictError(
        f"id {id!r:.100} was used before, for another request: other arms, other features or another baseline.{rest} "
        "Give each decision an id of its own."
    )


def _refuse_other_requests(answers: Sequence[Choice | ConflictError], ids: Sequence[Id]) -> list[Choice]:
    """Raise if an id was used before, for another request; the choices otherwise."""
    choices = [answer for answer in answers if isinstance(answer, Choice)]
    if len(choices) == len(answers):
        return choices
    wrong = next(at for at, answer in enumerate(answers) if not isinstance(answer, Choice))
    rest = f" The other {len(choices)} of this call were decided." if choices else ""
    error = _other_request(ids[wrong], rest)
    error.each = answers
    raise error
