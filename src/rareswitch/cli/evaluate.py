"""``rareswitch evaluate``: what another policy would have earned, or why that cannot be said."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rareswitch.cli.options import add_options
from rareswitch.cli.output import print_json, save_picture
from rareswitch.cli.sources import add_source, is_experiment, opened_source
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment

#: Status where the log can answer for no candidate.
NO_ANSWER = 3
#: As in the library, which takes longer to load than these take to be refused.
ESTIMATORS = ("ips", "snips", "dr")
POOLING = ("traffic", "stationary")
RULES = ("uniform", "baseline", "logged")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_source(parser)
    asked = parser.add_argument_group("candidates")
    asked.add_argument("--policy", nargs="+", metavar="FILE", default=[], help="policies in files, named by these")
    asked.add_argument(
        "--version",
        nargs="+",
        type=int,
        metavar="N",
        default=[],
        help="policies of the experiment, by number; each is judged by the decisions since it was learned",
    )
    asked.add_argument(
        "--rule",
        nargs="+",
        choices=RULES,
        default=[],
        help="uniform: every offered arm alike; baseline: the arm that would have been shown; logged: what was done",
    )
    asked.add_argument("--always", nargs="+", metavar="ARM", default=[], help="one arm, wherever it is offered")
    parser.add_argument(
        "--behavior-policy",
        nargs="+",
        metavar="FILE",
        help="for Parquet, the policies that decided, in their order: then it is known what they could not have shown",
    )
    how = parser.add_argument_group("how they are evaluated")
    how.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        default="dr",
        help="dr: weighted rewards and a model of them (default); ips, snips: weighted rewards alone",
    )
    how.add_argument("--level", type=_level, default=0.95, metavar="P", help="of the intervals (default 0.95)")
    how.add_argument("--anytime", action="store_true", help="intervals that hold however often one looks")
    how.add_argument(
        "--bounds",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="all rewards lie between these (default 0 and 1 for clicks)",
    )
    how.add_argument(
        "--pooling",
        choices=POOLING,
        default="traffic",
        help="traffic: batches count with their decisions (default); stationary: by precision, if nothing drifts",
    )
    parser.add_argument("--batches", action="store_true", help="show the values in every batch too")
    add_options(parser, plot={}, quiet={})


def run(options: argparse.Namespace) -> int:
    """Estimate what candidate policies would have earned per decision, from a log of other policies.

    The confidence intervals stay valid under adaptive updates. Where the log cannot answer, the reason and the data
    that would are shown; status 3 where it can answer for no candidate. The lift over the baseline comes first. By
    default the candidates are the uniform choice and, of an experiment, its baseline and the policy before the current
    one.
    """
    from rareswitch.evaluation import evaluate
    from rareswitch.report import ProgressBar, check_target, draw_evaluation, evaluation_text

    check_target(options.plot)
    with opened_source(options, **_deciding(options)) as log, ProgressBar("reading", quiet=options.quiet) as bar:
        found = evaluate(
            log.source,
            _candidates(options, log.experiment),
            estimator=options.estimator,
            level=options.level,
            anytime=options.anytime,
            bounds=None if options.bounds is None else tuple(options.bounds),
            pooling=options.pooling,
            progress=bar,
        )
    if options.json:
        print_json(found.as_dict())
    else:
        print(evaluation_text(found, batches=options.batches))
    if options.plot is not None:
        save_picture(draw_evaluation(found), options)
    return 0 if any(value.answered for value in found.values) else NO_ANSWER


def _deciding(options: argparse.Namespace) -> dict[str, Any]:
    """The policies that decided, where they are given."""
    if options.behavior_policy is None:
        return {}
    if is_experiment(options.source):
        raise ParameterError("behavior_policy is for logs in Parquet; an experiment has its policies: leave it out.")
    from rareswitch.policy import load_policy

    return {"policies": [load_policy(path) for path in options.behavior_policy]}


def _candidates(options: argparse.Namespace, trial: "Experiment | None") -> dict[str, Any]:
    """What was asked for, by name; else what is usual."""
    from rareswitch.evaluation import Always
    from rareswitch.policy import load_policy

    found: dict[str, Any] = {rule: rule for rule in options.rule}
    found |= {f"always {arm}": Always(arm) for arm in options.always}
    for number in options.version:
        found[f"policy {number}"] = _version(trial, number)
    for path in options.policy:
        stem = Path(path).stem
        found[path if stem in found else stem] = load_policy(path)
    if found:
        return found
    if trial is None:
        return {"uniform": "uniform"}
    usual: dict[str, Any] = {"uniform": "uniform"}
    if trial.description.baseline_share is not None:
        usual["baseline"] = "baseline"
    before = len(trial.policies) - 1
    return usual | ({f"policy {before}": trial.policies[before - 1]} if before else {})


def _version(trial: "Experiment | None", number: int) -> Any:
    if trial is None:
        raise ParameterError("version is the number of an experiment's policy; name its STORE and its NAME.")
    count = len(trial.policies)
    if not 1 <= number <= count:
        raise ParameterError(f"version must be a policy of {trial.name}, from 1 to {count}; got {number}.")
    return trial.policies[number - 1]


def _level(text: str) -> float:
    """The level of an interval."""
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0.5 <= level < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r:.60} is no level; it must be at least 0.5 and below 1")
    return level
