"""Experiments are created once, opened by their URL and name, and copied to another store or key."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rareswitch.errors import ExistsError, FileFormatError, ParameterError
from rareswitch.experiment.description import Description, describe
from rareswitch.experiment.experiment import Experiment
from rareswitch.experiment.rewards import Rewards
from rareswitch.experiment.versions import Version, digest, version_row
from rareswitch.experiment.warm_start import warm_summary
from rareswitch.features import Features
from rareswitch.files import canonical_json, plain_json
from rareswitch.learner import summaries_to_bytes
from rareswitch.plan import seconds_of
from rareswitch.policy import Key, MinPropensity, check_signature, check_signs, sign, verify_signature
from rareswitch.store import VersionRow, open_store


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
    min_propensity: MinPropensity | float | None = None,
    warm_start: Any = None,
    max_arms: int | None = None,
    context_sample_rate: float = 1.0,
    seed: int | None = None,
    key: Key | None = None,
    now: Any = None,
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
        The name of a learner and its settings, such as ``policies=8``; or a learner.
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
    warm_start
        A log that the first policy is learned from, whoever made its decisions: another experiment, a
        :class:`~rareswitch.log.Source` such as :class:`~rareswitch.log.DecisionLog`, or a file as
        :func:`rareswitch.evaluate` takes it. Its vectors must be made as those of this experiment. A ``baseline`` is
        then kept with each decision, and not played.
    max_arms
        The most arms that a request may offer: 1,000 by default, or as many as the features or the learner know. An
        update takes time in proportion to the largest request.
    context_sample_rate
        The share of decisions whose whole context sets are kept: 1, all, lets every decision be audited, and every
        policy be evaluated.
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
    >>> trial.reward("request-1", True)
    >>> print(trial.audit("request-1"))
    Decision 'request-1' of ...: arm blue, propensity 0.5.
    Policy 1 (...). Reward: 1.
    Matches: the frozen policy gives the same arm and propensity.
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
        min_propensity=min_propensity,
        max_arms=max_arms,
        context_sample_rate=context_sample_rate,
        seed=seed,
        created=created,
        settings=settings,
    )
    warm = None
    if warm_start is not None:
        learns = description.learner
        held, warm = warm_summary(warm_start, learner=learns, features=features, rewards=description.rewards)
        description = replace(description, warm=held)
    state = description.begin(warm)
    store, text = open_store(url, name), description.to_text()
    first = version_row(
        1,
        state,
        experiment=digest(text),
        summaries=b"" if warm is None else summaries_to_bytes([warm]),
        report="{}",
        time=created,
        key=key,
    )
    try:
        store.create(signed_description(text, key), first)
    except ExistsError as error:
        store.close()
        raise error.with_traceback(None) from None  # common enough to be short: the store's own frames say nothing more
    return Experiment(store, description, key)


def open_experiment(url: str, name: str, *, key: Key | None = None) -> Experiment:
    """The experiment that was created there; with a key, only if it was signed with it."""
    store = open_store(url, name)
    try:
        description, signed = _described(store.description(), key)
        trial = Experiment(store, description, key, signed=signed)
        _ = trial.policy  # so that what was damaged or edited is refused before anything is decided with it
    except BaseException as error:
        store.close()
        if isinstance(error, FileFormatError):
            raise FileFormatError(f"experiment '{name}' in {store.url}: {error}") from error
        raise
    return trial


def signed_description(text: str, key: Key | None) -> str:
    """The text of a description as stores keep it, with its signature where there is a key."""
    signature = None if key is None else sign(key, f"experiment/{text}")
    return canonical_json({"description": json.loads(text), "signature": signature}).decode()


def _described(text: str, key: Key | None) -> tuple[Description, bool]:
    """The description in what :func:`signed_description` gave, and whether it is signed."""
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


def copy_experiment(
    trial: Experiment,
    url: str,
    *,
    key: Key | None = None,
    unchecked: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Experiment:
    """Copy an experiment to another store: to move it, to begin to sign it, to change its key, or to give up signing.

    Policies, decisions and rewards stay what they are. Rewards whose decision has not come are not copied, nor are
    values that others took the place of. Let nobody add to the experiment meanwhile; a copy that did not end well is
    not complete, and should be removed.

    Parameters
    ----------
    url
        Of the other store, which must not have an experiment of this name.
    key
        Signs the copy; none gives up signing.
    unchecked
        Whether an experiment that is signed, and was opened without its key, is trusted.
    progress
        Called with the number of decisions that were copied, and how many there are.

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
        store.create(signed_description(trial.description.to_text(), key), rows[0])
        for row in rows:
            if row.number > 1:
                store.publish(row)
            for number, report in enumerate(trial.store.refusals(row.number), 1):
                store.refuse_update(row.number, number, report)
        marks, done = trial.store.marks(), 0
        total = sum(one.decisions for one in trial.store.counts(marks))
        for _, some in trial.store.rows(0, marks):
            store.add_decisions([row for row, _ in some])
            store.add_rewards([reward for _, rewards in some for reward in rewards])
            done += len(some)
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
