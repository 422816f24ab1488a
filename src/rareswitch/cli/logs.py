"""``rareswitch evaluate``, ``effects`` and ``convert``: commands that read a log."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rareswitch.cli.options import Arguments, add_options
from rareswitch.cli.output import Output, print_json, save_picture
from rareswitch.cli.sources import add_columns, add_source, column_options, given_pairs, is_experiment, opened_source
from rareswitch.errors import ParameterError, several

if TYPE_CHECKING:
    from rareswitch.evaluation import Always, By
    from rareswitch.experiment import Experiment
    from rareswitch.policy import Policy

    Candidates: TypeAlias = dict[str, str | Always | Policy]

#: Status where the log can answer nothing that was asked.
NO_ANSWER = 3
#: As in the library, which takes longer to load than these take to be refused.
ESTIMATORS = ("ips", "snips", "dr")
POOLING = ("traffic", "stationary")
RULES = ("uniform", "baseline", "logged")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Estimate the value of candidate policies, the mean reward per decision, from a log of other policies.

    The confidence intervals stay valid under adaptive updates. Where a value is not identifiable, the reason and the
    missing data are shown; status 3 if no value is. The lift over the baseline comes first. By default the candidates
    are the uniform policy and, of an experiment, its baseline and the policy before the current one.
    """
    add_source(parser)
    candidates = parser.add_argument_group("candidates")
    candidates.add_argument("--policy", nargs="+", metavar="FILE", default=[], help="policy files")
    candidates.add_argument(
        "--version",
        nargs="+",
        type=int,
        metavar="N",
        default=[],
        help="policies of the experiment, by number; each is evaluated on the decisions after it was learned",
    )
    candidates.add_argument(
        "--rule",
        nargs="+",
        choices=RULES,
        default=[],
        help="uniform: offered arms with equal probabilities; baseline: the arm of the baseline; logged: the log's own "
        "policies",
    )
    candidates.add_argument("--always", nargs="+", metavar="ARM", default=[], help="one arm, wherever it is offered")
    parser.add_argument(
        "--behavior-policy",
        nargs="+",
        metavar="FILE",
        help="files of the policies that decided, in their order, for Parquet: their exact support",
    )
    settings = parser.add_argument_group("estimation")
    settings.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        default="dr",
        help="dr: doubly robust (default); ips: inverse propensity scores; snips: the same, self-normalized",
    )
    settings.add_argument("--level", type=_level, default=0.95, metavar="P", help="confidence level (default 0.95)")
    settings.add_argument("--anytime", action="store_true", help="intervals that are valid at all times together")
    settings.add_argument(
        "--bounds",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="bounds of all rewards (default 0 and 1 for clicks)",
    )
    settings.add_argument(
        "--pooling",
        choices=POOLING,
        default="traffic",
        help="weights of batches: traffic: their decisions (default); stationary: their precision, if nothing drifts",
    )
    parser.add_argument("--batches", action="store_true", help="show the values of every batch too")
    add_options(parser, plot={}, quiet={})


def run_evaluate(options: argparse.Namespace) -> int:
    """Values of candidates."""
    from rareswitch.evaluation import evaluate
    from rareswitch.report import ProgressBar, check_target, draw_evaluation, evaluation_text

    check_target(options.plot)
    with opened_source(options, **_deciding(options)) as log, ProgressBar("reading", quiet=options.quiet) as bar:
        evaluation = evaluate(
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
        print_json(evaluation.as_dict())
    else:
        print(evaluation_text(evaluation, batches=options.batches))
    if options.plot is not None:
        save_picture(draw_evaluation(evaluation), options)
    return 0 if any(value.answered for value in evaluation.values) else NO_ANSWER


def _deciding(options: argparse.Namespace) -> Arguments:
    """The policies that decided, where they are given."""
    if options.behavior_policy is None:
        return {}
    if is_experiment(options.source):
        raise ParameterError("behavior_policy is for logs in Parquet; an experiment has its policies. Leave it out.")
    from rareswitch.policy import load_policy

    return {"policies": [load_policy(path) for path in options.behavior_policy]}


def _candidates(options: argparse.Namespace, trial: "Experiment | None") -> "Candidates":
    """The candidates by name; without any, those of the default."""
    from rareswitch.evaluation import Always
    from rareswitch.policy import load_policy

    candidates: Candidates = {rule: rule for rule in options.rule}
    candidates |= {f"always {arm}": Always(arm) for arm in options.always}
    for number in options.version:
        candidates[f"policy {number}"] = _version(trial, number)
    for path in options.policy:
        stem = Path(path).stem
        candidates[path if stem in candidates else stem] = load_policy(path)
    if candidates:
        return candidates
    candidates = {"uniform": "uniform"}
    if trial is not None and trial.description.baseline_share is not None:
        candidates["baseline"] = "baseline"
    if trial is not None and (before := len(trial.policies) - 1):
        candidates[f"policy {before}"] = trial.policies[before - 1]
    return candidates


def _version(trial: "Experiment | None", number: int) -> "Policy":
    if trial is None:
        raise ParameterError(
            "version is the number of a policy of an experiment, and SOURCE is a log. Use --policy FILE."
        )
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
        raise argparse.ArgumentTypeError(f"must be at least 0.5 and below 1, as in 0.95; got {text!r:.60}")
    return level


def add_effects(parser: argparse.ArgumentParser) -> None:
    """Estimate the effect of one arm against another on the reward of a decision, overall or by group.

    The confidence intervals stay valid under adaptive updates. Where an effect is not identifiable, the reason and the
    missing data are shown; status 3 if no effect is.
    """
    add_source(parser)
    contrast = parser.add_argument_group("contrast")
    contrast.add_argument("--arm", metavar="ARM", help="one arm (default: every arm, the best first)")
    contrast.add_argument(
        "--against",
        metavar="ARM",
        help="another arm; baseline: the arm of the baseline; rest: the mean of the other offered arms (default: "
        "baseline if the log has one, else rest)",
    )
    contrast.add_argument(
        "--by",
        metavar="FIELD",
        help="groups: levels of a field of the context or of a column of a table, halves of a number, or position, the "
        "place of the arm",
    )
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="confidence level (default 0.95)")
    add_options(parser, plot={})


def run_effects(options: argparse.Namespace) -> int:
    """Effects of arms."""
    from rareswitch.evaluation import effects
    from rareswitch.report import check_target, draw_effects

    check_target(options.plot)
    with opened_source(options) as log:
        estimates = effects(log.source, options.arm, options.against, by=_groups(options), level=options.level)
    if options.json:
        print_json(estimates.as_dict())
    else:
        print(estimates)
    if options.plot is not None:
        save_picture(draw_effects(estimates), options)
    return 0 if any(estimate.interval is not None for estimate in estimates) else NO_ANSWER


def _groups(options: argparse.Namespace) -> "By | None":
    """For whom: a column of a table as labels of its rows, which its log does not keep; anything else as it is."""
    from rareswitch.core import read_table
    from rareswitch.evaluation import by_column
    from rareswitch.log import format_of

    by: str | None = options.by
    path, *others = options.source
    if by in (None, "position") or others or Path(path).is_dir():
        return by
    kind = format_of(path)
    table = kind == "csv" or (kind == "parquet" and options.columns is not None)
    return by_column(by, read_table(path)) if by is not None and table else by


def add_convert(parser: argparse.ArgumentParser) -> None:
    """Read a log of decisions and write it in another format. The new log gives the same estimates.

    Formats by ending: .parquet, .csv, or .dsjson, .json and .jsonl for the JSON lines of Vowpal Wabbit; text also
    compressed, as .csv.gz.
    """
    parser.add_argument("file", metavar="FILE", help="the log")
    parser.add_argument("target", metavar="TARGET", help="a new file")
    add_columns(parser)
    parser.add_argument("--where", metavar="COLUMN=VALUE", nargs="+", help="only rows with these values")
    parser.add_argument("--features", metavar="FILE", help="features, as TOML or JSON, that turn records into vectors")
    parser.add_argument("--arms", metavar="FILE", help="records of the arms, each with its id, for --features")
    parser.add_argument(
        "--propensities",
        choices=("logged", "estimate"),
        help="estimate: relative frequencies of arms, if the log has no propensities; the new log says so",
    )
    parser.add_argument(
        "--within", metavar="COLUMN", nargs="+", help="estimate propensities for each value of these columns"
    )


def run_convert(options: argparse.Namespace) -> Output:
    """Counts of the log."""
    from rareswitch.log import read, read_all, write

    log = read_all(read(options.file, **_reading(options)))
    write(options.target, log)
    rewarded = int((log.rewards == log.rewards).sum())
    arms = int(log.available.shape[1]) if log.arms is None else len(log.arms)
    facts = {
        "decisions": len(log),
        "rewarded": rewarded,
        "batches": len(log.batch_names),
        "arms": arms,
        "dim": log.dim,
        "estimated": log.estimated,
        "file": options.target,
    }
    vectors = "no vectors" if log.dim is None else f"vectors of {several(log.dim, 'feature')}"
    text = f"{several(len(log), 'decision')}, {rewarded:,} rewarded, {several(arms, 'arm')}, {vectors}"
    marked = f"\nestimated propensities: {log.estimated}" if log.estimated else ""
    return Output(facts, f"{text}: written to {options.target}{marked}")


def _reading(options: argparse.Namespace) -> Arguments:
    """Settings of the reader."""
    settings = column_options(options)
    settings |= {name: value for name in ("propensities", "within") if (value := getattr(options, name)) is not None}
    if options.where is not None:
        settings["where"] = given_pairs("where", options.where)
    if options.features is not None:
        from rareswitch.features import Features

        settings["features"] = Features.load(options.features)
    if options.arms is not None:
        from rareswitch.core import read_records

        settings["arms"] = read_records(options.arms)
    return settings
