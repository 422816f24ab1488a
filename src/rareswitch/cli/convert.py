"""``rareswitch convert``: a log from one format to another."""

import argparse
from typing import Any

from rareswitch.cli.output import Output
from rareswitch.cli.sources import add_columns, column_options, given_pairs, read_records
from rareswitch.errors import several


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE", help="the log")
    parser.add_argument("target", metavar="TARGET", help="a fresh file")
    add_columns(parser)
    parser.add_argument(
        "--where", metavar="COLUMN=VALUE", nargs="+", help="take only rows of a table with these values"
    )
    parser.add_argument("--features", metavar="FILE", help="make vectors of records by these features, TOML or JSON")
    parser.add_argument("--arms", metavar="FILE", help="records of the arms for features of a table, each with its id")
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
    from rareswitch.log import read, read_all, write

    logged = read_all(read(options.file, **_settings(options)))
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
    settings = column_options(options)
    settings |= {name: value for name in ("propensities", "within") if (value := getattr(options, name)) is not None}
    if options.where is not None:
        settings["where"] = given_pairs("where", options.where)
    if options.features is not None:
        from rareswitch.features import Features

        settings["features"] = Features.load(options.features)
    if options.arms is not None:
        settings["arms"] = read_records(options.arms)
    return settings
