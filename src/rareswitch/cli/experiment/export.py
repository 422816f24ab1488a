"""``rareswitch experiment export``: decisions and rewards for other tools, the policy for servers."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rareswitch.cli.options import add_options
from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened
from rareswitch.errors import FileFormatError, ParameterError, several

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--out", metavar="FOLDER", help="for the parts: a folder, or a URL such as s3://bucket/folder")
    parser.add_argument("--policy", metavar="FILE", help="a fresh file for the frozen policy, signed as it is")
    add_options(parser, quiet={})


def run(options: argparse.Namespace) -> Output:
    """Write the decisions of an experiment, with their rewards so far, as parts of a log in Parquet (docs/logs.md).

    With --policy, write the current policy to a file, from which any machine decides the same.
    """
    if options.out is None and options.policy is None:
        raise ParameterError("out must be given, a folder for decisions; or --policy FILE, or both.")
    facts: dict[str, str | list[str]] = {}
    lines = []
    with opened(options) as trial:
        if options.policy is not None:
            policy_id = _write_policy(trial, options.policy)
            facts |= {"policy": options.policy, "policy_id": policy_id}
            lines.append(f"policy {policy_id[:12]}… written to {options.policy}")
        if options.out is not None:
            parts = _write_parts(trial, options)
            facts["parts"] = parts
            lines.append(f"{several(len(parts), 'part')} written to {options.out}")
    return Output(facts, "\n".join(lines))


def _write_policy(trial: "Experiment", path: str) -> str:
    """Write the current policy as the store has it, with its signature, and return its id."""
    from rareswitch.core import write_whole

    if Path(path).exists():
        raise FileFormatError(f"{path}: exists already, and a policy is never overwritten. Name another file.")
    current = trial.versions[-1]
    policy_id = current.policy.id  # which is checked before anything is written
    write_whole(current.row.policy, path)
    return policy_id


def _write_parts(trial: "Experiment", options: argparse.Namespace) -> list[str]:
    from rareswitch.log import export_parts
    from rareswitch.report import ProgressBar

    rewards, policies = trial.description.rewards, [policy.id for policy in trial.policies]
    with ProgressBar("writing", quiet=options.quiet) as bar:
        return export_parts(
            trial.store,
            options.out,
            policies=policies,
            window=rewards.window,
            default=rewards.default,
            progress=bar,
        )
