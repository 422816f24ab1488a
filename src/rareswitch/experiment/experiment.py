"""The experiment: records and ids in, decisions out, late rewards, updates when they are due; durable."""

import json
import threading
import time as clock
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.engine import Engine
from rareswitch.errors import ConflictError, FileFormatError, ParameterError, RareswitchError, ShapeError
from rareswitch.experiment.advance import Advance
from rareswitch.experiment.audit import Audit, audit_decision
from rareswitch.experiment.choice import Choice
from rareswitch.experiment.clock import seconds_of
from rareswitch.experiment.description import Description, describe
from rareswitch.experiment.learning import Learned, learn
from rareswitch.experiment.novelty import novelty
from rareswitch.experiment.requests import Requests, read_requests
from rareswitch.experiment.rewards import Rewards
from rareswitch.experiment.schedule import Due, Progress
from rareswitch.experiment.status import Batch, Status
from rareswitch.experiment.versions import Version, digest, version_row
from rareswitch.features import Features
from rareswitch.files import canonical_json, plain_json
from rareswitch.ids import id_keys
from rareswitch.learner import Ahead, sample_order
from rareswitch.policy import Key, Policy, check_signature, check_signs, sign, verify_signature
from rareswitch.store import Counts, DecisionRow, Marks, RewardRow, Store, open_store
from rareswitch.validation import LARGEST_SCALE

#: Seconds for which a process goes on without looking whether another one published a policy.
REFRESH = 1.0
#: Context sets by which novelty is measured.
LOOKED_AT = 200
#: Bytes of an event's name.
LONGEST_EVENT = 128


def create(
    url: str,
    name: str,
    *,
    learner: Any = "foresight",
    features: Features | None = None,
    dim: int | None = None,
    schedule: Any = None,
    rewards: Rewards | None = None,
    baseline: bool | str | None = None,
    keep: float = 1.0,
    seed: int | None = None,
    key: Key | None = None,
    now: Any = None,
    **settings: Any,
) -> "Experiment":
    """Begin an experiment: its description and its first policy are kept, and from then on everything else.

    Parameters
    ----------
    url
        Where it is kept: ``sqlite:///spring.db``, ``postgresql://…``, ``folder:spring``, or ``memory:``.
    name
        Letters, digits, '-', '_' and '.'.
    learner, settings
        The name of a learner and its settings, such as ``updates=8``; or a learner.
    features
        How records become vectors; without them, requests are vectors of ``dim`` features.
    schedule
        When updates are due: see :func:`~rareswitch.experiment.schedule_of`; by default the learner's own plan.
    rewards
        What counts as a reward.
    baseline
        For a start that is not blind: True, if each request names the arm that would have been shown, or the field of
        the context record that does. The first policy plays it, but for a planned share of exploration.
    keep
        The share of decisions whose whole context sets are kept: 1, all, lets every decision be audited, and every
        policy be evaluated.
    seed
        Keys the decisions; drawn by default. Keep it to yourself: who knows it can foretell decisions.
    key
        Signs all policies.
    now
        When it begins: a datetime, or seconds since 1970.

    Examples
    --------
    >>> trial = create("memory:", "spring", dim=2, updates=3, horizon=100, seed=1)
    >>> trial.decide([[1.0, 0.0], [0.0, 1.0]], arms=["red", "blue"], id="request-1").arm
    'blue'
    >>> trial.reward("request-1", True)
    >>> print(trial.audit("request-1"))
    decision 'request-1' of ...: arm blue, propensity 0.5
    policy 1, ...; reward 1
    The frozen policy decides the same, with the same propensity.
    """
    created = seconds_of(now)
    if key is not None:
        check_signs(key)
    description = describe(
        name,
        learner=learner,
        features=features,
        dim=dim,
        schedule=schedule,
        rewards=rewards,
        baseline=baseline,
        keep=keep,
        seed=seed,
        created=created,
        settings=settings,
    )
    store = open_store(url, name)
    state = description.learner.begin(baseline=description.baseline_share)
    text = description.to_text()
    whole = {"description": json.loads(text), "signature": None if key is None else sign(key, f"experiment/{text}")}
    first = version_row(
        1, state, experiment=digest(text), summaries=b"", report={"batches": [], "learned": []}, time=created, key=key
    )
    store.create(canonical_json(whole).decode(), first)
    return Experiment(store, description, key)


def open_experiment(url: str, name: str, *, key: Key | None = None) -> "Experiment":
    """The experiment that was created there; with a key, only if it was signed with it."""
    store = open_store(url, name)
    try:
        description, signed = _described(store.description(), key)
    except FileFormatError as error:
        raise FileFormatError(f"experiment '{name}' in {store.url}: {error}") from error
    return Experiment(store, description, key, signed=signed)


def _described(text: str, key: Key | None) -> tuple[Description, bool]:
    """The description in what a store holds, and whether it is signed."""
    try:
        whole = plain_json(text.encode(), most=1 << 21)
        if {*whole} != {"description", "signature"}:
            raise FileFormatError("it is not the description of an experiment.")
        content = canonical_json(whole["description"]).decode()
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"its description is damaged ({error!s:.200})") from error
    signature = whole["signature"]
    if signature is not None:
        check_signature(signature)
    if key is not None and signature is None:
        raise FileFormatError(
            "it is not signed, and a key was given to check it with. If you trust the store, leave the key out; "
            "otherwise its signature may have been taken away."
        )
    if key is not None:
        verify_signature(key, f"experiment/{content}", signature)
    return Description.from_text(content), signature is not None


class Experiment:
    """A durable experiment; :func:`rareswitch.create` and :func:`rareswitch.open` make one.

    All methods may be called from several threads, and several processes may have it open. What a method was given is
    kept when it returns.
    """

    def __init__(self, store: Store, description: Description, key: Key | None, *, signed: bool = False) -> None:
        self.store, self.description = store, description
        self._key, self._signed = key, signed or key is not None
        self._experiment = digest(description.to_text())
        self._versions: list[Version] = []
        self._looked = -np.inf
        self._lock = threading.RLock()
        self._records = Counter[str]()
        self._refresh(force=True)

    def __repr__(self) -> str:
        return (
            f"<experiment {self.name}: {self.description.learner.name}, policy {len(self._versions)}, {self.store.url}>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections; what was acknowledged stays."""
        self.store.close()

    @property
    def name(self) -> str:
        """As it was created."""
        return self.description.name

    @property
    def policy(self) -> Policy:
        """The frozen policy that decides now."""
        return self._refresh().policy

    @property
    def policies(self) -> tuple[Policy, ...]:
        """All that were published, the first first."""
        self._refresh(force=True)
        return tuple(version.policy for version in self._versions)

    def decide(self, context: Any, arms: Any = None, *, id: int | str, baseline: Any = None, now: Any = None) -> Choice:  # noqa: A002
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
        now
            When it is made: a datetime, or seconds since 1970.
        """
        given = [context] if self.description.features is not None else np.asarray(context)[None]
        named = arms if arms is None or self.description.features is None else [arms]
        shown = None if baseline is None else [baseline]
        return self.decide_many(given, named, ids=[id], baseline=shown, now=now)[0]

    def decide_many(
        self,
        contexts: Any,
        arms: Any = None,
        *,
        ids: Sequence[Any],
        baseline: Sequence[Any] | None = None,
        now: Any = None,
    ) -> list[Choice]:
        """:meth:`decide` for many requests at once, which is much faster: ``arms`` once for all, or one for each."""
        request = self._request(contexts, arms, ids, baseline)
        version = self._refresh()
        policy = version.policy
        baselines = {} if request.baselines is None or version.number > 1 else {"baseline": request.baselines}
        decided = policy.decide(request.sets, ids=request.keys, seed=self.description.seed, **baselines)
        rows = self._rows(request, version.number, decided.arms, decided.propensities, seconds_of(now))
        kept = self.store.add_decisions(rows)
        with self._lock:
            self._records += request.counts
        return [
            self._choice(request, at, row, repeated=row is not made)
            for at, (row, made) in enumerate(zip(kept, rows, strict=True))
        ]

    def _request(self, contexts: Any, arms: Any, ids: Any, baseline: Any) -> Requests:
        told = self.description
        if told.baseline_field is not None and baseline is None:
            baseline = [_field(context, told.baseline_field) for context in contexts]
        if baseline is not None and told.baseline_share is None:
            raise ParameterError(
                "baseline was given, and this experiment was created without one. Create it with baseline=True."
            )
        if isinstance(ids, (str, bytes)) or not isinstance(ids, (list, tuple, range, np.ndarray)):
            raise ShapeError(f"ids must be a list, one id for each request; got {ids!r:.60}.")
        return read_requests(told.features, told.learner.dim, contexts, arms, ids=list(ids), baseline=baseline)

    def _rows(self, request: Requests, version: int, places: Any, propensities: Any, now: float) -> list[DecisionRow]:
        ranks, keys = sample_order(request.keys).tolist(), request.keys.astype("<u8")
        rows = []
        for at, (place, propensity) in enumerate(zip(places.tolist(), propensities.tolist(), strict=True)):
            vectors = request.vectors(at)
            data = vectors.tobytes()
            kept = ranks[at] < self.description.keep
            rows.append(
                DecisionRow(
                    key=keys[at].tobytes(),
                    id=id_text(request.ids[at]),
                    version=version,
                    arm=str(request.arm(at, place)),
                    place=place,
                    propensity=propensity,
                    features=vectors[place].tobytes(),
                    digest=request.digest(at, data),
                    time=now,
                    rank=ranks[at],
                    baseline=None if request.baselines is None else int(request.baselines[at]),
                    contexts=data if kept else None,
                    names=request.names_text(at) if kept else None,
                )
            )
        return rows

    def _choice(self, request: Requests, at: int, row: DecisionRow, *, repeated: bool) -> Choice:
        if repeated:
            vectors = request.vectors(at).tobytes()
            if request.digest(at, vectors) != row.digest:
                raise ConflictError(
                    f"id {request.ids[at]!r:.100} was used before, for another request: other arms, other features or "
                    "another baseline. Give each decision an id of its own."
                )
        return Choice(
            id=request.ids[at],
            arm=request.arm(at, row.place),
            propensity=row.propensity,
            policy_id=self._version(row.version).policy.id,
            version=row.version,
            repeated=repeated,
        )

    def reward(
        self,
        id: int | str,
        value: Any,
        *,
        event: str | None = None,
        overwrite: bool = False,
        now: Any = None,
    ) -> None:
        """Say what a decision earned: a number or a boolean. Twice the same is as good as once.

        Parameters
        ----------
        id
            Of the decision, which may also come later.
        event
            The name of this reward, where several are summed: each counts once.
        overwrite
            Whether another value may take the place of one that is there; else that is an error.
        now
            When it came.
        """
        self.reward_many([id], [value], events=None if event is None else [event], overwrite=overwrite, now=now)

    def reward_many(
        self,
        ids: Sequence[Any],
        values: Sequence[Any],
        *,
        events: Sequence[str] | None = None,
        overwrite: bool = False,
        now: Any = None,
    ) -> None:
        """:meth:`reward` for many decisions at once."""
        if isinstance(ids, (str, bytes)) or not isinstance(ids, (list, tuple, range, np.ndarray)):
            raise ShapeError(f"ids must be a list; got {ids!r:.60}. For one reward call reward.")
        if len(values) != len(ids) or (events is not None and len(events) != len(ids)):
            raise ShapeError(
                f"each of the {len(ids)} ids needs one value"
                f"{'' if events is None else f' and one event; got {len(events)} events and'}; got {len(values)} values."
            )
        sums = self.description.rewards.sums
        if sums and events is None:
            raise ParameterError(
                "event must be given: rewards of this experiment are summed, and each is told apart by its event, such "
                "as an order number."
            )
        if not sums and events is not None:
            raise ParameterError("event was given, and a decision of this experiment has one reward. Leave it out.")
        came, keys = seconds_of(now), id_keys(list(ids)).astype("<u8")
        rows = [
            RewardRow(
                key=keys[at].tobytes(),
                id=id_text(one),
                event="" if events is None else _event(events[at]),
                value=_value(one, values[at]),
                time=came,
            )
            for at, one in enumerate(ids)
        ]
        before = self.store.add_rewards(rows, overwrite=overwrite)
        clashes = [
            (row, old) for row, old in zip(rows, before, strict=True) if old is not None and old.value != row.value
        ]
        if clashes and not overwrite:
            row, old = clashes[0]
            rest = f" {len(rows) - len(clashes)} others of this call were kept." if len(rows) > 1 else ""
            raise ConflictError(
                f"decision {row.id} has the reward {old.value:g}{f' for {row.event}' if row.event else ''} already, and "
                f"{row.value:g} was given; {len(clashes)} of {len(rows)} rewards differ so.{rest} Give overwrite=True "
                "to replace them."
            )

    def advance(
        self,
        *,
        now: Any = None,
        ahead: Ahead | None = None,
        anyway: bool = False,
        engine: Engine | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Advance:
        """Learn the next policy, if it is due; the only place where the policy changes.

        Of several processes that advance at once, one makes the new policy, and the others are told of it. What an
        update looks at is frozen when it starts: after a crash, the next call learns the very same policy.

        Parameters
        ----------
        now
            When it is made.
        ahead
            How many decisions are to come, in all or in each batch; by default what the schedule foresees.
        anyway
            Whether to make it although it is not due.
        engine
            Where decisions are read; here by default.
        progress
            Called with what was read, and how much there is.
        """
        with self._lock:
            current = self._versions[-1] if self._versions else self._refresh(force=True)
        self._check_key()
        moment = seconds_of(now)
        if self.store.head() == current.number:
            due, foreseen = self._due(moment)
            if not due.now and not anyway:
                return self._not_made(current, due.waits)
            plan = {"now": moment, "ahead": _plain_ahead(ahead if ahead is not None else foreseen)}
            started = self.store.start_update(current.number, canonical_json(plan).decode())
            if started is not None:
                return self._advance(current, *started, engine=engine, progress=progress)
        self._refresh(force=True)
        return self._advanced(self._version(current.number + 1), elsewhere=True)

    def _advance(self, current: Version, plan: str, marks: Marks, **how: Any) -> Advance:
        frozen = json.loads(plan)
        try:
            learned = self._learn(current, marks, frozen, **how)
        except RareswitchError:
            self.store.abandon_update(current.number)  # so that the next call looks at what has come since
            raise
        if learned.state.done:
            self.store.abandon_update(current.number)
            return self._not_made(current, ("nothing: its last planned batch is over. To go on, give ahead=…",))
        report = learned.report | {"marks": list(marks), "plan": frozen, "seconds": round(learned.seconds, 3)}
        row = version_row(
            current.number + 1,
            learned.state,
            experiment=self._experiment,
            summaries=learned.data,
            report=report,
            time=frozen["now"],
            key=self._key,
        )
        published = self.store.publish(row)
        self._refresh(force=True)
        return self._advanced(self._version(row.number), elsewhere=published != row)

    def preview(self, *, now: Any = None, ahead: Ahead | None = None, engine: Engine | None = None) -> Advance:
        """What an update made now would do; nothing is changed."""
        current, moment = self._refresh(force=True), seconds_of(now)
        _, foreseen = self._due(moment)
        frozen = {"now": moment, "ahead": _plain_ahead(ahead if ahead is not None else foreseen)}
        learned = self._learn(current, self.store.marks(), frozen, engine=engine)
        if learned.state.done:
            return self._not_made(current, ("nothing: its last planned batch is over. To go on, give ahead=…",))
        row = version_row(
            current.number + 1,
            learned.state,
            experiment=self._experiment,
            summaries=learned.data,
            report=learned.report | {"seconds": learned.seconds},
            time=moment,
            key=None,
        )
        return self._advanced(Version(row, self._experiment, None), elsewhere=False)

    def _learn(self, current: Version, marks: Marks, frozen: dict[str, Any], **how: Any) -> Learned:
        versions = self._versions[: current.number]
        told = {"now": frozen["now"], "ahead": frozen["ahead"]}
        return learn(self.description, versions, self.store, marks, **told, **how)

    def _advanced(self, version: Version, *, elsewhere: bool) -> Advance:
        report, state = version.report, version.state
        batch, *late = report["learned"]
        numbers = {one.policy.id: one.number for one in self._versions}
        holds = self.description.learner.holds(state)
        return Advance(
            made=not elsewhere,
            elsewhere=elsewhere,
            version=version.number,
            policy_id=state.policy.id,
            decided=batch["decided"],
            rewarded=batch["rewarded"],
            waiting=batch["waiting"],
            expired=batch["expired"],
            late={numbers[one["policy"]]: one["rewarded"] for one in late},
            sets=report["sets"],
            note=report["note"],
            ahead=state.ahead,
            holds=holds if holds.startswith("The batches were not") else "",
            seconds=report.get("seconds", 0.0),
        )

    def _not_made(self, current: Version, waits: tuple[str, ...]) -> Advance:
        return Advance(made=False, version=current.number, policy_id=current.policy.id, waits=waits)

    def _due(self, now: float) -> tuple[Due, Ahead | None]:
        """Whether the next update is due, and what is foreseen for the planner."""
        state, counts = self._versions[-1].state, {one.version: one for one in self.store.counts()}
        progress = self._progress(counts, now)
        if self.description.schedule is None:
            planned, came = (state.ahead or (0,))[0], progress.versions[-1].decisions
            waits = (f"{planned - came:,} more decisions, of {planned:,} that are planned",) if came < planned else ()
            return Due(now=not waits, waits=waits, decisions=max(0, planned - came)), None
        return self.description.schedule.due(progress), self.description.schedule.ahead(progress)

    def _progress(self, counts: dict[int, Counts], now: float) -> Progress:
        return Progress(
            created=self.description.created,
            now=now,
            versions=tuple(
                counts.get(version.number, Counts(version.number, 0, 0, version.row.time, version.row.time))
                for version in self._versions
            ),
            published=tuple(version.row.time for version in self._versions),
            window=self.description.rewards.window,
        )

    def status(self, *, now: Any = None) -> Status:
        """Where the experiment stands, and what its next update waits for."""
        current, moment, told = self._refresh(force=True), seconds_of(now), self.description
        counts = {one.version: one for one in self.store.counts()}
        due, _ = self._due(moment)
        totals = self.store.totals()
        return Status(
            name=self.name,
            url=self.store.url,
            learner=told.learner.name,
            schedule="updates as the learner plans them" if told.schedule is None else str(told.schedule),
            rewards=str(told.rewards),
            batches=tuple(
                Batch(
                    version=one.number,
                    policy_id=one.policy.id,
                    published=one.row.time,
                    decisions=counts[one.number].decisions if one.number in counts else 0,
                    rewarded=counts[one.number].rewarded if one.number in counts else 0,
                )
                for one in self._versions
            ),
            waits=() if due.now else due.waits,
            started=self.store.started(current.number),
            waiting=0 if told.rewards.window is None else self.store.younger(moment - told.rewards.window),
            unmatched=totals.unmatched,
            repeated_rewards=totals.repeated_rewards,
            overwritten=totals.overwritten,
            repeated_decisions=totals.repeated_decisions,
            novelty=self._novelty(current),
            records=dict(self._records),
        )

    def _novelty(self, current: Version) -> str:
        """Whether contexts are unlike those that the policy was learned from, in words."""
        if current.number == 1:
            return ""
        vectors = []
        for _, (_, data) in zip(range(LOOKED_AT), self.store.sample(current.number, self.store.marks()), strict=False):
            vectors.append(np.frombuffer(data, dtype="<f8").reshape(-1, self.description.learner.dim))
        return str(novelty(current.state, ContextSets.from_ragged(vectors))) if vectors else ""

    def audit(self, id: int | str, context: Any = None, arms: Any = None) -> Audit:  # noqa: A002
        """Recompute a decision from its frozen policy, and say whether arm and propensity match.

        Where its context set was not kept, give the request again: it is known by its hash.
        """
        key = id_keys([id]).astype("<u8")[0].tobytes()
        (kept,) = self.store.find([key])
        if kept is None:
            raise ParameterError(f"id must be that of a decision; there is none of {id!r:.100} in this experiment.")
        request = None
        if context is not None:
            given = [context] if self.description.features is not None else np.asarray(context)[None]
            named = arms if arms is None or self.description.features is None else [arms]
            request = read_requests(self.description.features, self.description.learner.dim, given, named, ids=[id])
        told = {"seed": self.description.seed, "dim": self.description.learner.dim}
        return audit_decision(id, kept, self._version(kept[0].version), request=request, **told)

    def _version(self, number: int) -> Version:
        if number > len(self._versions):
            self._refresh(force=True)
        return self._versions[number - 1]

    def _refresh(self, *, force: bool = False) -> Version:
        """The current version; whether there is a newer one is looked up now and then."""
        moment = clock.monotonic()
        if force or moment - self._looked > REFRESH:
            with self._lock:
                if self.store.head() > len(self._versions):
                    rows = self.store.versions(len(self._versions))
                    self._versions += [Version(row, self._experiment, self._key) for row in rows]
                self._looked = moment
        return self._versions[-1]

    def _check_key(self) -> None:
        """Refuse an update that could not be signed as those before it."""
        how = "--key-file FILE or --key NAME, key=… in Python"
        if self._signed and self._key is None:
            raise ParameterError(
                f"this experiment is signed, and its next policy must be. Open it with its key: {how}."
            )
        if self._key is not None:
            check_signs(self._key)


def id_text(id: int | str) -> str:  # noqa: A002
    """An id as it is kept.

    >>> id_text("r1"), id_text(7)
    ('"r1"', '7')
    """
    return json.dumps(id, ensure_ascii=False) if isinstance(id, str) else str(int(id))


def _value(id: Any, given: Any) -> float:  # noqa: A002
    kinds = (bool, int, float, np.bool_, np.integer, np.floating)
    if not isinstance(given, kinds) or not abs(float(given)) <= LARGEST_SCALE:
        raise ParameterError(
            f"value must be a number up to {LARGEST_SCALE:g}, or True or False; got {given!r:.60} for decision {id!r:.60}. "
            "A reward that is not known is simply not given."
        )
    return float(given)


def _event(given: Any) -> str:
    if not isinstance(given, str) or not 0 < len(given.encode(errors="replace")) <= LONGEST_EVENT:
        raise ParameterError(f"event must be a text of 1 to {LONGEST_EVENT} bytes; got {given!r:.60}.")
    return given


def _field(context: Any, name: str) -> Any:
    if not isinstance(context, dict) or context.get(name) is None:
        raise ParameterError(
            f"baseline is the field '{name}' of each context record; it is missing in {context!r:.100}."
        )
    return context[name]


def _plain_ahead(ahead: Ahead | None) -> Any:
    return None if ahead is None else np.asarray(ahead).astype(np.int64).tolist()
