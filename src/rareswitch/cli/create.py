"""``rareswitch experiment create``: a store holds the experiment from then on."""

import argparse
import json
from typing import TYPE_CHECKING

from rareswitch.cli.options import add_options, add_settings, check_heeded, duration_option, given_key, given_settings
from rareswitch.cli.output import Output
from rareswitch.cli.sources import ENDINGS, arm_count, given_arms, named_log
from rareswitch.errors import FileFormatError, ParameterError

if TYPE_CHECKING:
    from rareswitch.features import Features
    from rareswitch.policy import MinPropensity

#: Settings of learners for which there are options of another meaning.
OWN = ("arms", "dim", "seed", "rewards")


def add_experiment_create(parser: argparse.ArgumentParser) -> None:
    """Begin an experiment in a store: a file such as spring.db, or PostgreSQL. Its settings do not change later."""
    add_options(parser, learner={"default": "foresight", "help": "see rareswitch learners (default foresight)"})
    encoding = parser.add_argument_group("feature encoding, one of").add_mutually_exclusive_group()
    encoding.add_argument("--features", metavar="FILE", help="features, as .toml or .json (docs/how-to/features.md)")
    encoding.add_argument("--fit", metavar="SAMPLE", help=f"propose features from a sample of contexts: {ENDINGS}")
    encoding.add_argument(
        "--dim", type=int, metavar="D", help="requests are vectors of D numbers (no feature encoding)"
    )
    fit = parser.add_argument_group("for --fit")
    fit.add_argument("--spare-arms", type=int, metavar="N", help="parameter blocks for arms that are added later")
    kinds = "kinds of fields, such as price=log at=hour+weekday (docs/how-to/features.md)"
    fit.add_argument("--drop", nargs="+", metavar="NAME", help="columns of the sample that are no features")
    fit.add_argument("--kinds", nargs="+", metavar="NAME=KIND", help=kinds)
    fit.add_argument("--arm-key", metavar="NAME", help="field of the arms' records that holds their id (default: id)")
    fit.add_argument("--save-features", metavar="FILE", help="write the proposed features there, for editing")
    arms = "ids of the arms, or a file with their records, of which requests that name none choose; for --dim: a number"
    parser.add_argument("--arms", nargs="+", metavar="ID", help=arms)
    parser.add_argument("--schedule", help="times of updates (docs/how-to/schedules.md; default: the learner's plan)")
    parser.add_argument("--plan", metavar="FILE", help="schedule, and dim for vectors, of rareswitch plan … --json")
    parser.add_argument("--window", type=duration_option, metavar="TIME", help="attribution window, such as 2d")
    parser.add_argument(
        "--default", type=float, metavar="X", help="reward of decisions without one (default: not used)"
    )
    clip = "clip rewards to this range before learning"
    parser.add_argument("--clip", type=float, nargs=2, metavar=("LOW", "HIGH"), help=clip)
    parser.add_argument("--sum", action="store_true", help="sum the rewards of a decision, one for each event")
    rewards = "reward model; binary accepts only 0 and 1 (default: foresight chooses by the data)"
    parser.add_argument("--rewards", choices=("binary", "linear"), help=rewards)
    baseline = (
        "the first policy shows the baseline, named by requests or by a field of their records, and explores a little"
    )
    parser.add_argument("--baseline", nargs="?", const=True, metavar="FIELD", help=baseline)
    holdout = (
        "share of ids, such as 0.05, that keeps the baseline for good, to measure the lift against (needs --baseline)"
    )
    parser.add_argument("--holdout", type=float, metavar="SHARE", help=holdout)
    least = "minimum propensity of every offered arm, so that other policies can be evaluated from the log"
    parser.add_argument("--min-propensity", type=float, metavar="X", help=least)
    parser.add_argument(
        "--min-propensity-arms", nargs="+", metavar="ID", help="restrict --min-propensity to these arms"
    )
    warm_start = "learn the first policy from a log (Parquet, CSV, dsjson), or from another experiment (STORE NAME)"
    parser.add_argument("--warm-start", nargs="+", metavar="LOG", help=warm_start)
    parser.add_argument("--max-arms", type=int, metavar="N", help="most arms of a request (default 1000)")
    rate = "share of context sets to store (default 1: all)"
    parser.add_argument("--context-sample-rate", type=float, default=1.0, metavar="SHARE", help=rate)
    records = "store the record of each request and of its arms, which may be personal"
    parser.add_argument("--keep-records", action="store_true", help=records)
    approval = "required: advance leaves a proposal, which approve publishes (default none)"
    parser.add_argument("--approval", choices=("none", "required"), default="none", help=approval)
    add_options(
        parser,
        seed={"default": None, "help": "of the decisions (default: random, stored)"},
        now="time of the first policy (default: now)",
    )
    add_settings(parser, without=OWN)


def run_experiment_create(options: argparse.Namespace) -> Output:
    """The status of the new experiment."""
    from rareswitch.experiment import Rewards, create
    from rareswitch.learner import find_learner, required_settings
    from rareswitch.report import as_text

    kind = find_learner(options.learner)
    options.learner = kind.name
    settings = given_settings(options, [options.learner])
    if options.plan is not None:
        _follow(options)
    features = _features(options)
    arms = given_arms(options.arms)
    if options.arms is not None and features is None:
        check_heeded("--arms", "arms", [options.learner])
        settings["arms"] = arm_count(options.arms)
    elif arms is not None and "arms" in required_settings(kind):
        settings["arms"] = len(arms)
    rewards = Rewards(
        window=options.window,
        default=options.default,
        several="sum" if options.sum else "one",
        kind=options.rewards,
        clip=options.clip,
    )
    names = (
        "learner",
        "dim",
        "schedule",
        "baseline",
        "holdout",
        "max_arms",
        "context_sample_rate",
        "keep_records",
        "seed",
        "now",
    )
    with (
        named_log(options.warm_start) as log,
        create(
            options.url,
            options.name,
            features=features,
            rewards=rewards,
            min_propensity=_min_propensity(options),
            warm_start=log,
            offer=None if features is None else arms,
            approval=options.approval == "required",
            key=given_key(options),
            **{name: getattr(options, name) for name in names},
            **settings,
        ) as trial,
    ):
        status = as_text(trial.status(now=options.now), cli=True)
        facts = {
            "name": trial.name,
            "url": trial.store.url,
            "learner": options.learner,
            "policy_id": trial.policy.id,
            "dim": trial.policy.dim,
            "features": None if features is None else features.id,
        }
    encoding = "" if features is None else f"{features}\n\n"
    return Output(facts, f"{encoding}{facts['name']} begins in {facts['url']}.\n{status}")


def _follow(options: argparse.Namespace) -> None:
    """Take the schedule of a plan, and its number of features where requests are vectors."""
    from rareswitch.core import read_whole
    from rareswitch.planning import schedule_from_plain

    if options.schedule is not None:
        raise ParameterError("plan has a schedule: give --plan or --schedule, not both.", parameter="plan")
    try:
        facts = json.loads(read_whole(options.plan))
        schedule, dim = facts["schedule"], facts["dim"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(
            f"{options.plan}: no plan. Write one with rareswitch plan … --json > {options.plan}."
        ) from error
    options.schedule = schedule_from_plain(schedule)
    if options.dim is None and options.features is None and options.fit is None:
        options.dim = dim


def _min_propensity(options: argparse.Namespace) -> "MinPropensity | None":
    """A minimum propensity of all arms, or of some."""
    from rareswitch.policy import MinPropensity, least_probability

    least, arms = options.min_propensity, options.min_propensity_arms
    if least is not None:
        return MinPropensity(least=least_probability("min_propensity", least), arms=arms)
    if arms is not None:
        raise ParameterError("min_propensity_arms restricts a minimum propensity: give --min-propensity too.")
    return None


def _features(options: argparse.Namespace) -> "Features | None":
    """Features of a file, or proposed from a sample."""
    from rareswitch.core import read_records
    from rareswitch.features import Features

    if options.fit is not None:
        sample, arms = read_records(options.fit), given_arms(options.arms)
        if arms is None:
            raise ParameterError("arms must be given with --fit: ids, as in --arms A B, or a file with their records.")
        if options.arm_key is not None and arms is options.arms:
            raise ParameterError("arm_key is for arms that come from a file with their records: give --arms FILE.")
        more = {"spare_arms": options.spare_arms, "key": options.arm_key}
        more = {name: value for name, value in more.items() if value is not None}
        pairs = [word.rpartition("=") for word in options.kinds or ()]
        if wrong := [kind for name, _, kind in pairs if not name]:
            raise ParameterError(f"kinds must be NAME=KIND, such as price=log; got {wrong[0]!r:.60}.")
        features = Features.fit(
            sample, arms, kinds={name: kind for name, _, kind in pairs}, drop=options.drop or (), **more
        )
        if options.save_features is not None:
            features.save(options.save_features)
        return features
    for name in ("spare_arms", "arm_key", "drop", "kinds", "save_features"):
        if getattr(options, name) is not None:
            raise ParameterError(f"{name} is for features that are proposed from a sample: give --fit SAMPLE too.")
    if options.features is None:
        if options.dim is None:
            raise ParameterError(
                "dim must be given for vectors; for records give --fit SAMPLE --arms …, or --features FILE."
            )
        return None
    return Features.load(options.features)
