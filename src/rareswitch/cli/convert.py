"""``rareswitch convert``: a log from one format to another."""

import argparse
from typing import Any

from rareswitch.cli.output import Output
from rareswitch.errors import ParameterError, several

#: Columns of CSV, and what stands in them.
_COLUMNS = {
    "arm": "the id of the chosen arm; of dsjson the field of an action, such as item.id",
    "reward": "what it earned, empty where that is not known",
    "propensity": "the probability with which it was chosen",
    "id": "the id of the decision",
    "time": "seconds since 1970, or ISO 8601",
    "policy": "the policy that decided; each is a batch",
    "offered": "the ids of all arms that could be chosen, separated by |",
    "baseline": "the arm that would have been shown otherwise",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE", help="the log")
    parser.add_argument("target", metavar="TARGET", help="a fresh file")
    columns = parser.add_argument_group("columns of CSV", "by default those of these names")
    for name, text in _COLUMNS.items():
        columns.add_argument(f"--{name}", metavar="COLUMN", help=text)
    parser.add_argument("--where", metavar="COLUMN=VALUE", nargs="+", help="take only rows of CSV with these values")
    parser.add_argument("--features", metavar="FILE", help="make vectors of records by these features, TOML or JSON")
    parser.add_argument("--arms", metavar="FILE", help="records of the arms for features of CSV, each with its id")
    parser.add_argument(
        "--propensities",
        choices=("logged", "estimate"),
        help="estimate: from how often arms were chosen, where they are not known; the log is marked for good",
    )
    parser.add_argument("--within", metavar="COLUMN", nargs="+", help="estimate within the values of these columns")


def run(options: argparse.Namespace) -> Output:
    """Read a log of decisions and write it in another format.

    The endings name the formats: .parquet, .csv, or .dsjson, .json and .jsonl for the JSON lines of Vowpal Wabbit; text
    also compressed, as .csv.gz. The new log gives the same estimates.
    """
    from rareswitch.log import read, whole, write

    logged = whole(read(options.file, **_settings(options)))
    write(options.target, logged)
    rewarded = int((logged.rewards == logged.rewards).sum())
    facts = {
        "decisions": len(logged),
        "rewarded": rewarded,
        "batches": len(logged.batch_names),
        "arms": int(logged.available.shape[1]) if logged.arms is None else len(logged.arms),
        "dim": logged.dim,
        "estimated": logged.estimated,
        "file": options.target,
    }
    vectors = "without vectors" if logged.dim is None else f"vectors of {several(logged.dim, 'feature')}"
    text = (
        f"{several(len(logged), 'decision')}, {rewarded:,} of them rewarded, {several(facts['arms'], 'arm')}, {vectors}"
    )
    marked = f"\npropensities are estimated: {logged.estimated}" if logged.estimated else ""
    return Output(facts, f"{text}: written to {options.target}{marked}")


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of the reader."""
    names = (*_COLUMNS, "propensities", "within")
    settings = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.where is not None:
        settings["where"] = dict(_pair(text) for text in options.where)
    if options.features is not None:
        from rareswitch.features import Features

        settings["features"] = Features.load(options.features)
    if options.arms is not None:
        from rareswitch.cli.sources import read_records

        settings["arms"] = read_records(options.arms)
    return settings


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ParameterError(f"where must be COLUMN=VALUE; got {text!r:.60}.")
    return name, value
