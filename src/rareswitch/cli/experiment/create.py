"""``rareswitch experiment create``: a store holds the experiment from then on."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rareswitch.cli.experiment import add_now, add_verb
from rareswitch.cli.options import (
    add_options,
    add_settings,
    check_heeded,
    duration_option,
    given_key,
    given_settings,
    print_json,
    report_done,
)
from rareswitch.cli.sources import ENDINGS, arm_count, given_arms, is_experiment, read_records
from rareswitch.errors import FileFormatError, InputError, ParameterError

#: Settings of learners for which there are options of another meaning.
OWN = ("arms", "dim", "seed", "rewards")


def add_parser(commands: Any) -> None:
    """Add the command and its options: among them the settings of all learners."""
    parser = add_verb(
        commands,
        "create",
        run,
        key="sign all policies with the key in this file",
        description=(
            "Begin an experiment in a store: a file such as spring.db, or PostgreSQL. What "
            "is chosen here is kept and does not change."
        ),
    )
    add_options(parser, learner={"default": "foresight", "help": "see rareswitch learners (default foresight)"})
    records = parser.add_argument_group("how requests become vectors, one of").add_mutually_exclusive_group()
    records.add_argument("--features", metavar="FILE", help="features, as .toml or .json")
    records.add_argument("--fit", metavar="SAMPLE", help=f"propose features from a sample of contexts: {ENDINGS}")
    records.add_argument("--dim", type=int, metavar="D", help="none: requests are vectors of so many numbers")
    told = parser.add_argument_group("for --fit")
    told.add_argument(
        "--spare-arms", type=int, metavar="N", help="arms that may come later, with parameters of their own"
    )
    told.add_argument("--save-features", metavar="FILE", help="write the proposal there too, to be edited")
    parser.add_argument(
        "--arms",
        nargs="+",
        metavar="ID",
        help="for --fit, ids of today's arms, or a file with their records; otherwise the most arms of a set, a number",
    )
    parser.add_argument("--schedule", help="when updates are due: docs/schedules.md (default: as the learner plans)")
    parser.add_argument("--window", type=duration_option, metavar="TIME", help="how long rewards count, such as 2d")
    parser.add_argument("--default", type=float, metavar="X", help="the reward of decisions whose reward never comes")
    parser.add_argument(
        "--clip",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="learn from rewards as if none lay outside of these",
    )
    parser.add_argument("--sum", action="store_true", help="add up several rewards of a decision, told apart by events")
    parser.add_argument(
        "--rewards",
        choices=("binary", "linear"),
        help="what rewards are taken for; binary refuses others than 0 and 1 (default: foresight looks)",
    )
    parser.add_argument(
        "--baseline",
        nargs="?",
        const=True,
        metavar="FIELD",
        help="the first policy plays the arm that requests name, or a field of their records, but for exploration",
    )
    parser.add_argument(
        "--min-propensity",
        type=float,
        metavar="X",
        help="least probability of every offered arm, so that other policies can be evaluated from the log",
    )
    parser.add_argument(
        "--min-propensity-arms", nargs="+", metavar="ID", help="for --min-propensity, ids of the only arms it is for"
    )
    parser.add_argument(
        "--warm-start",
        nargs="+",
        metavar="LOG",
        help="learn the first policy from a log, whoever made its decisions: Parquet, CSV or dsjson; or from another "
        "experiment, by its STORE and NAME",
    )
    parser.add_argument("--max-arms", type=int, metavar="N", help="most arms of a request (default 1000)")
    parser.add_argument(
        "--context-sample-rate", type=float, default=1.0, metavar="SHARE", help="of context sets kept (default 1: all)"
    )
    parser.add_argument("--seed", type=int, help="keys the decisions (default: drawn, and kept in the store)")
    add_now(parser, "when it begins (default: now)")
    parser.add_argument("--json", action="store_true", help="print an object in place of text")
    add_settings(parser, without=OWN)


def run(options: argparse.Namespace) -> int:
    """Create it and say what it is."""
    from rareswitch.experiment import Rewards, create
    from rareswitch.learner import find_learner
    from rareswitch.report import as_text

    find_learner(options.learner)
    settings = given_settings(options, [options.learner])
    features = _features(options)
    if options.arms is not None and features is None:
        check_heeded("--arms", "arms", [options.learner])
        settings["arms"] = arm_count(options.arms)
    names = ("dim", "schedule", "max_arms", "context_sample_rate", "seed", "now")
    told: dict[str, Any] = {name: getattr(options, name) for name in names}
    counted = {"window": options.window, "default": options.default, "several": "sum" if options.sum else "one"}
    with (
        _log(options) as log,
        create(
            options.url,
            options.name,
            learner=options.learner,
            features=features,
            rewards=Rewards(**counted, kind=options.rewards, clip=options.clip),
            baseline=options.baseline,
            min_propensity=_floor(options),
            warm_start=log,
            key=given_key(options),
            **told,
            **settings,
        ) as trial,
    ):
        facts = {"name": trial.name, "url": trial.store.url, "learner": options.learner, "policy_id": trial.policy.id}
        if options.json:
            print_json(facts | {"dim": trial.policy.dim, "features": None if features is None else features.id})
            return 0
        shown = "" if features is None else f"{features}\n\n"
        text = f"{shown}{trial.name} begins in {trial.store.url}.\n{as_text(trial.status(now=options.now), cli=True)}"
    report_done(text, f"{options.name} was created in {facts['url']}")
    return 0


@contextmanager
def _log(options: argparse.Namespace) -> Iterator[Any]:
    """An experiment, one file, or the parts of a log."""
    given = options.warm_start
    if given is None or not is_experiment(given):
        yield given[0] if given is not None and len(given) == 1 else given
        return
    from rareswitch.experiment import open_experiment

    with open_experiment(*given) as other:
        yield other


def _floor(options: argparse.Namespace) -> Any:
    """A minimum propensity of all arms, or of some."""
    from rareswitch.policy import MinPropensity, least_probability

    if options.min_propensity is None and options.min_propensity_arms is not None:
        raise ParameterError(
            "min_propensity_arms says which arms have a minimum propensity, and there is none: "
            "give it with --min-propensity."
        )
    if options.min_propensity is None:
        return None
    return MinPropensity(
        least=least_probability("min_propensity", options.min_propensity), arms=options.min_propensity_arms
    )


def _features(options: argparse.Namespace) -> Any:
    """Features of a file, or proposed from a sample."""
    if options.fit is None:
        for name in ("spare_arms", "save_features"):
            if getattr(options, name) is not None:
                raise ParameterError(f"{name} is for features that are proposed from a sample: give it with --fit.")
    if options.fit is None and options.features is None:
        return None
    from rareswitch.features import Features

    if options.features is not None:
        try:
            return Features.load(options.features)
        except FileFormatError:
            raise
        except InputError as error:  # of what the file says
            raise FileFormatError(f"{options.features}: {error}") from error
    spare_arms = {} if options.spare_arms is None else {"spare_arms": options.spare_arms}
    features = Features.fit(read_records(options.fit), given_arms(options.arms), **spare_arms)
    if options.save_features is not None:
        features.save(options.save_features)
    return features
