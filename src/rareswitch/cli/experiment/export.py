"""``rareswitch experiment export``: decisions and rewards for other tools, the policy for servers."""

import argparse
from pathlib import Path
from typing import Any

from rareswitch.cli.experiment import add_verb, opened
from rareswitch.cli.options import print_json, report_done
from rareswitch.errors import FileFormatError, ParameterError, several


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "export",
        run,
        key="check the experiment with the key in this file",
        description=(
            "Write the decisions of an experiment, with their rewards so far, as parts of a log in Parquet "
            "(docs/logs.md); and the policy that decides now as a file, from which any machine decides the same."
        ),
    )
    parser.add_argument("--out", metavar="FOLDER", help="for the parts: a folder, or a URL such as s3://bucket/folder")
    parser.add_argument("--policy", metavar="FILE", help="a fresh file for the frozen policy, signed as it is")
    parser.add_argument("--json", action="store_true", help="print an object in place of text")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(options: argparse.Namespace) -> int:
    """Write, and say what."""
    if options.out is None and options.policy is None:
        raise ParameterError("out must be given, a folder for decisions; or --policy FILE, or both.")
    facts: dict[str, Any] = {}
    with opened(options) as trial:
        if options.policy is not None:
            facts |= {"policy": options.policy, "policy_id": _write_policy(trial, options.policy)}
        if options.out is not None:
            facts["parts"] = _write(trial, options)
    if options.json:
        print_json(facts)
        return 0
    lines = [f"policy {facts['policy_id'][:12]}… written to {options.policy}"] if options.policy is not None else []
    if options.out is not None:
        count = len(facts["parts"])
        lines.append(f"{several(count, 'part')} written to {options.out}")
    report_done("\n".join(lines), " and ".join(lines))
    return 0


def _write_policy(trial: Any, path: str) -> str:
    """Write the current policy as the store has it, with its signature, and return its id."""
    from rareswitch.files import write_whole

    if Path(path).exists():
        raise FileFormatError(f"{path}: exists already, and a policy is never overwritten. Name another file.")
    current = trial.versions[-1]
    policy_id: str = current.policy.id  # which is checked before anything is written
    write_whole(current.row.policy, path)
    return policy_id


def _write(trial: Any, options: argparse.Namespace) -> list[str]:
    from rareswitch.log import export_parts
    from rareswitch.report import Progress

    with Progress(1, "writing", quiet=options.quiet) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done)

        policies = [policy.id for policy in trial.policies]
        told = trial.description.rewards
        counting = {"window": told.window, "default": told.default}
        return export_parts(trial.store, options.out, policies=policies, **counting, progress=show)
