"""Experiments are created once, opened by their URL and name, and copied to another store or key."""

import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import msgspec

from rareswitch.core import plain_json
from rareswitch.errors import ExistsError, FileFormatError, ParameterError
from rareswitch.experiment.description import MAX_ARMS, Description, WarmStart, check_schedule, learner_of
from rareswitch.experiment.experiment import Experiment
from rareswitch.experiment.requests import plain_text
from rareswitch.experiment.results import Listed
from rareswitch.experiment.rewards import Rewards
from rareswitch.experiment.versions import Version, sha256, sign_json, verified_json, version_row
from rareswitch.features import Features, OfferedArms, offer_of
from rareswitch.learner import Learner, Summary, add_learner, summaries_to_bytes
from rareswitch.log import summarize_source
from rareswitch.planning import LearnerSchedule, Moment, baseline_share, schedule_of, seconds_of
from rareswitch.policy import Key, MinPropensity, check_signs, least_probability
from rareswitch.store import EARLIEST, VersionRow, experiment_names, open_store

__all__ = ["copy_experiment", "create", "list_experiments", "open_experiment"]


def create(
    url: str,
    name: str,
    *,
    learner: Learner | str = "foresight",
    features: Features | None = None,
    dim: int | None = None,
    schedule: Any = None,
    rewards: Rewards | None = None,
    baseline: bool | str | None = None,
    min_propensity: MinPropensity | float | None = None,
    holdout: float | None = None,
    warm_start: Any = None,
    offer: OfferedArms = None,
    max_arms: int | None = None,
    context_sample_rate: float = 1.0,
    keep_records: bool = False,
    approval: bool = False,
    exist_ok: bool = False,
    seed: int | None = None,
    key: Key | None = None,
    now: Moment | None = None,
    **settings: Any,
) -> Experiment:
    """Begin an experiment: its description and its first policy are kept, and from then on everything else.

    Parameters
    ----------
    url
        Where it is kept: ``sqlite:///spring.db``, ``postgresql://…``, or ``memory:``.
    name
        Letters, digits, '-', '_' and '.'.
    learner, settings
        The name of a learner and its settings, such as ``policies=8``; or a learner. One of your own is a learner, or
        named by ``path/to/file.py:Class``; who opens the experiment in another process gives its class again.
    features
        How records become vectors; without them, requests are vectors of ``dim`` features.
    schedule
        When updates are due: see :func:`~rareswitch.experiment.schedule_of`; by default the learner's own plan.
    rewards
        What counts as a reward.
    baseline
        For a start that is not blind: True, if each request names the arm that would have been shown, or the field of
        the context record that does. The first policy plays it, but for a planned share of exploration.
    min_propensity
        The least probability of every offered arm, such as 0.02, in every policy: so that the log can tell what other
        policies would have earned. ``MinPropensity(least=0.02, arms=["red", "blue"])`` is for these arms alone.
    holdout
        The share of ids, such as 0.05, that keeps the baseline for good: no update changes what they are shown, and the
        lift of the policies is measured against them. Which ids these are depends on the seed. Every request then
        names its ``baseline``.
    warm_start
        A log that the first policy is learned from, whoever made its decisions: another experiment, a
        :class:`~rareswitch.log.Source` such as :class:`~rareswitch.log.DecisionLog`, or a file as
        :func:`rareswitch.evaluate` takes it. Its vectors must be made as those of this experiment. A ``baseline`` is
        then kept with each decision, and not played.
    offer
        What requests that name no arms choose from: a list of ids; records by id; or records that hold their id. By
        default the arms that features name.
    max_arms
        The most arms that a request may offer: 1,000 by default, or the number that features or learner know. An update
        takes time in proportion to the largest request.
    context_sample_rate
        The share of decisions whose whole context sets are kept: 1, all, lets every decision be audited, and every
        policy be evaluated.
    keep_records
        Whether the record of each request and the records of its arms are kept too, as they came: then rules of
        (record, arms) can be evaluated. They may be personal, and are not kept by default.
    approval
        Whether a new policy must be approved: ``advance`` then leaves a proposal, which ``approve`` publishes.
    exist_ok
        Open the experiment if it is there and was created with the same settings; other settings are refused.
    seed
        Keys the decisions; drawn by default. Keep it to yourself: who knows it can foretell decisions.
    key
        Signs all policies.
    now
        When it begins: a datetime, a text such as 2026-03-02 09:00, or seconds since 1970.

    Examples
    --------
    >>> trial = create("memory:", "spring", dim=2, policies=3, horizon=100, seed=1)
    >>> trial.decide([[1.0, 0.0], [0.0, 1.0]], arms=["red", "blue"], id="request-1").arm
    'blue'
    >>> print(trial.reward("request-1", True))
    1 reward stored.
    >>> print(trial.audit("request-1"))
    Decision 'request-1' of ...: arm blue, propensity 0.5.
    Policy 1 (...). Reward: 1.
    Matches: the frozen policy gives the same arm and propensity.
    """
    created = seconds_of(now)
    if key is not None:
        check_signs(key)
    rewards = Rewards() if rewards is None else rewards
    if not isinstance(rewards, Rewards):
        raise ParameterError(
            f"rewards must be Rewards(window=…, default=…, several=…, kind=…, clip=…); got {rewards!r:.60}."
        )
    kind = {} if rewards.kind is None else {"rewards": rewards.kind}
    chosen = learner_of(learner, features, dim, settings | kind)
    rewards = replace(rewards, kind=getattr(chosen, "rewards", None))  # also of a learner that has it in its settings
    updates = schedule_of(schedule, learner=chosen)
    check_schedule(updates, created, rewards)
    if baseline is not None and not isinstance(baseline, (bool, str)):
        raise ParameterError(
            f"baseline must be True, where each request names the arm that would be shown, or the field of the context "
            f"record that does; got {baseline!r:.60}."
        )
    if isinstance(baseline, str) and features is None:
        raise ParameterError(f"baseline names a field of context records, and there are no features; got {baseline!r}.")
    if holdout is not None and not baseline:
        raise ParameterError(
            "holdout: these ids keep the baseline, and this experiment has none. Give baseline=True (--baseline) too, "
            "or the field of the context record that names it."
        )
    if keep_records and features is None:
        raise ParameterError(
            "keep_records keeps records, and requests of this experiment are vectors. Create it with features=…, or "
            "leave it out."
        )
    if offer is not None and features is None:
        raise ParameterError(
            "offer names the arms of requests that name none, and requests of this experiment are vectors. Create it "
            "with features=…, or leave it out."
        )
    if min_propensity is not None and not isinstance(min_propensity, MinPropensity):
        min_propensity = MinPropensity(least=least_probability("min_propensity", min_propensity))
    blind = chosen.begin(min_propensity=min_propensity, holdout=holdout)  # refuses learners that can have none
    if context_sample_rate == 0.0 and chosen.sample_size(blind):
        raise ParameterError(
            f"context_sample_rate must be above 0: {chosen.name} plans its updates with context sets that were kept; "
            "got 0. A few hundred a batch are enough, as with context_sample_rate=0.01 of 50,000 decisions."
        )
    lengths = (
        blind.batch_sizes if isinstance(updates, LearnerSchedule) else updates.lengths(created, window=rewards.window)
    )
    known_arms = 0 if features is None or features.arms is None else len(features.arms.ids)
    if features is not None and offer is not None:
        named = offer_of(offer, features.key, ())
        records = [{}] * len(named.names) if named.records is None else named.records
        offer = [
            (str(name), msgspec.json.decode(plain_text(dict(record))))
            for name, record in zip(named.names, records, strict=True)
        ]
        known_arms = max(known_arms, len(offer))
    description = Description(
        name=name,
        learner=chosen,
        features=features,
        schedule=updates,
        rewards=rewards,
        baseline_share=baseline_share(chosen.dim, lengths) if baseline else None,
        baseline_field=baseline if isinstance(baseline, str) else None,
        min_propensity=min_propensity,
        holdout=holdout,
        offer=offer,
        max_arms=max(MAX_ARMS, chosen.arms or 0, known_arms) if max_arms is None else max_arms,
        context_sample_rate=context_sample_rate,
        keep_records=keep_records,
        approval=approval,
        seed=secrets.randbits(62) if seed is None else seed,
        created=created,
    )
    warm = None
    if warm_start is not None:
        held, warm = _warm_summary(warm_start, learner=chosen, features=features, rewards=rewards)
        description = replace(description, warm_start=held)
    state = description.begin(warm)
    store, text = open_store(url, name), description.to_text()
    first = version_row(
        1,
        state,
        experiment=sha256(text),
        summaries=b"" if warm is None else summaries_to_bytes([warm]),
        report="{}",
        time=created,
        key=key,
    )
    try:
        store.create(sign_json(text, "experiment", key), first)
    except ExistsError as error:
        store.close()
        if exist_ok:
            return _reopened(url, description, key, seed)
        raise error.with_traceback(None) from None  # common enough to be short: the store's own frames say nothing more
    return Experiment(store, description, key)


def _reopened(url: str, asked: Description, key: Key | None, seed: int | None) -> Experiment:
    """The experiment that is there, if it was created as is asked now; ``seed`` is None where any is right."""
    trial = open_experiment(url, asked.name, key=key)
    stored, wanted = ({**plain["settings"], **plain} for plain in (trial.description.to_plain(), asked.to_plain()))
    free = {"created", "version", "settings"} | ({"seed"} if seed is None else set())
    if differing := [name for name in wanted if name not in free and wanted[name] != stored.get(name)]:
        trial.close()
        raise ExistsError(
            f"there is an experiment '{asked.name}' in {trial.store.url} that was created with other settings "
            f"({', '.join(differing)}). Settings never change: open it as it is (rareswitch.open), or choose another "
            "name."
        )
    return trial


def _warm_summary(
    log: Any, *, learner: Learner, features: Features | None, rewards: Rewards
) -> tuple[WarmStart, Summary]:
    """What the log held, and the summary that the first policy is learned from."""
    if not learner.begins_with_logs:
        raise ParameterError(
            f"warm_start: {learner.name} cannot warm-start, because its guarantee needs data from its own policies. "
            "Use foresight without a noise_bound, or leave the log out."
        )
    from rareswitch.evaluation import source_of  # which takes time to load, and most experiments begin without a log

    source = source_of(log)
    features_ids = {None if policy.features is None else policy.features.id for policy in source.policies.values()}
    if features_ids - {None if features is None else features.id}:
        raise ParameterError(
            "warm_start: the policies of the log have other features than this experiment, so its vectors mean "
            "something else. Create the experiment with the features of the log."
        )
    summary = summarize_source(learner, source, default=rewards.default, clip=rewards.clip)
    if summary.sample is None and learner.sample_size(learner.begin()):
        raise ParameterError(
            f"warm_start: {learner.name} plans with the vectors of all arms that were offered, and the log has those "
            "of the chosen ones alone. Give a log with the whole sets of some decisions, or use another learner."
        )
    held = WarmStart(decisions=summary.decided, rewarded=summary.rewarded, estimated=source.estimated)
    return held, summary


def open_experiment(
    url: str, name: str, *, key: Key | None = None, learner: type[Learner] | str | None = None
) -> Experiment:
    """The experiment that was created there; with a key, only if it was signed with it.

    Where it was created with a learner of one's own, ``learner`` is its class, or ``path/to/file.py:Class``.
    """
    if learner is not None:
        add_learner(learner)
    store = open_store(url, name)
    try:
        description, signed = _checked(store.description(), key)
        trial = Experiment(store, Description.from_plain(description), key, signed=signed)
        _ = trial.policy  # so that what was damaged or edited is refused before anything is decided with it
    except BaseException as error:
        store.close()
        if isinstance(error, FileFormatError):
            raise FileFormatError(f"experiment '{name}' in {store.url}: {error}") from error
        raise
    return trial


def list_experiments(url: str) -> list[Listed]:
    """The experiments that a database holds, the oldest first. Signatures are not looked at.

    >>> import tempfile
    >>> url = f"sqlite:///{tempfile.mkdtemp()}/trials.db"
    >>> create(url, "spring", dim=2, now="2026-03-02").close()
    >>> print(list_experiments(url)[0])
    spring: foresight, 1 policy, 0 decisions, since 2026-03-02 00:00
    """
    listed = []
    for name in experiment_names(url):
        with closing(open_store(url, name)) as store:
            description, _ = _checked(store.description(), None)
            listed.append(
                Listed(
                    name=name,
                    learner=description["learner"],
                    created=description["created"],
                    ended=store.ended(),
                    policies=store.head(),
                    decisions=sum(count.decisions for count in store.counts()),
                )
            )
    return listed


def _checked(text: str, key: Key | None) -> tuple[dict[str, Any], bool]:
    """The description of an experiment, as JSON has it, and whether it is signed."""
    try:
        content, signed = verified_json(text, "experiment", key)
        return plain_json(content, most=1 << 21), signed
    except FileFormatError as error:
        raise FileFormatError(f"its description was damaged or edited: {error}") from error


def copy_experiment(
    trial: Experiment,
    url: str,
    *,
    key: Key | None = None,
    unchecked: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Experiment:
    """Copy an experiment to another store: to move it, to begin to sign it, to change its key, or to give up signing.

    Policies, decisions and rewards stay what they are. Rewards whose decision has not come, or was not activated, are
    not copied, nor are values that others took the place of. Let nobody add to the experiment meanwhile; a copy that
    did not end well is not complete, and should be removed.

    Parameters
    ----------
    url
        Of the other store, which must not have an experiment of this name.
    key
        Signs the copy; none gives up signing.
    unchecked
        Whether an experiment that is signed, and was opened without its key, is trusted.
    progress
        Called with the number of decisions that were copied, and the number in all.

    Examples
    --------
    >>> from rareswitch.experiment import create
    >>> from rareswitch.policy import new_key
    >>> trial = create("memory:", "spring", dim=2, seed=1)
    >>> signed = copy_experiment(trial, "memory:", key=new_key("hmac"))
    >>> (trial.signature, signed.signature, signed.policy.id == trial.policy.id)
    ('none', 'checked', True)
    """
    if trial.signature == "unchecked" and not unchecked:
        raise ParameterError(
            "key must be given where a signed experiment is opened: what was not checked is not copied. Open it with "
            "its key; or give unchecked=True, if you trust its store."
        )
    if key is not None:
        check_signs(key)
    store = open_store(url, trial.name)
    rows = [_signed(version, key) for version in trial.versions]
    try:
        store.create(sign_json(trial.description.to_text(), "experiment", key), rows[0])
        for row in rows:
            if row.number > 1:
                store.publish(row)
            for number, report in enumerate(trial.store.refusals(row.number), 1):
                store.refuse_update(row.number, number, report)
        if (ended := trial.store.ended()) is not None:
            store.end(ended)
        marks, done = trial.store.marks(), 0
        total = trial.store.totals().deferred + sum(count.decisions for count in trial.store.counts(marks))
        for page in trial.store.rows(EARLIEST, marks):
            store.add_decisions([row for row, _ in page])
            store.add_rewards([reward for _, rewards in page for reward in rewards])
            done += len(page)
            if progress is not None:
                progress(done, total)
        if url == "memory:":  # which no other can open
            return Experiment(store, trial.description, key)
    finally:
        store.close()
    return open_experiment(url, trial.name, key=key)


def _signed(version: Version, key: Key | None) -> VersionRow:
    """A version as it is kept under another key; its state is not read before its signature was checked."""
    return version_row(
        version.number,
        version.state,
        experiment=version.experiment,
        summaries=version.row.summaries,
        report=version.row.report,
        time=version.row.time,
        key=key,
    )
