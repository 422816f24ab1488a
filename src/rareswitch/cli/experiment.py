"""``rareswitch experiment status``, ``advance``, ``audit``, ``backup``, ``export``, ``import``; ``rareswitch key``."""

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from rareswitch.cli.options import add_options, count_option, id_option, json_option
from rareswitch.cli.output import Output
from rareswitch.cli.sources import add_columns, column_options, opened
from rareswitch.errors import FileFormatError, LevelWarning, OutlierWarning, ParameterError, several

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment, Gate

#: Status where no update was made; and where a gate rejected it.
NOT_DUE, REJECTED = 3, 4
#: Of a gate by default.
LEVEL = 0.05


def add_experiment_status(parser: argparse.ArgumentParser) -> None:
    """Show decisions and rewards by policy, the lift over the baseline, open windows, and the next update."""
    add_options(parser, now="as of this time (default: now)")


def run_experiment_status(options: argparse.Namespace) -> Output:
    """The status of an experiment."""
    from rareswitch.report import as_text

    with opened(options) as trial:
        status = trial.status(now=options.now)
    return Output(status.as_dict() | {"signature": trial.signature}, as_text(status, cli=True))


def add_experiment_report(parser: argparse.ArgumentParser) -> None:
    """Status, proposal, and the values of policies and arms; with --html, with all charts, as one file to keep."""
    parser.add_argument("--html", metavar="FILE", help="a file for the page, which needs no other")
    parser.add_argument("--no-values", action="store_true", help="leave out values, which take longest")
    add_options(parser, now="as of this time (default: now)")


def run_experiment_report(options: argparse.Namespace) -> Output:
    """All that is known of an experiment."""
    from rareswitch.report import as_text, check_page

    check_page(options.html)
    with opened(options) as trial:
        report = trial.report(now=options.now, values=not options.no_values)
        signature = trial.signature
    facts = report.status.as_dict() | {"history": report.history.as_dict(), "signature": signature}
    facts |= {"values": None if report.values is None else report.values.as_dict()}
    if options.html is None:
        return Output(facts, as_text(report, cli=True))
    report.to_html(options.html)
    return Output(facts | {"html": options.html}, f"report written to {options.html}")


def add_experiment_advance(parser: argparse.ArgumentParser) -> None:
    """Learn and publish the next policy, if it is due.

    Status 3 if no update is due. If several processes advance at once, one of them makes the policy. After a crash, run
    it again: it learns the same policy.
    """
    parser.add_argument(
        "--forecast",
        nargs="+",
        type=count_option,
        metavar="N",
        help="decisions to come, in total or for each batch (default: from the schedule)",
    )
    parser.add_argument("--force", action="store_true", help="update even if it is not due")
    parser.add_argument(
        "--gate",
        nargs="?",
        type=float,
        const=LEVEL,
        metavar="LEVEL",
        help="publish only if held-out decisions show that the new policy is not worse (false-promotion rate at most "
        f"LEVEL, default {LEVEL}); otherwise the old policy stays, with status {REJECTED}",
    )
    parser.add_argument("--gate-loss", type=float, metavar="X", help="tolerated loss per decision (default 0)")
    parser.add_argument("--gate-holdout", type=float, metavar="S", help="held-out share of the batch (default 0.3)")
    parser.add_argument("--preview", action="store_true", help="show the update without making it")
    add_options(parser, now="time of the update, for schedules and windows (default: now)", engine={}, quiet={})


def run_experiment_advance(options: argparse.Namespace) -> Output:
    """The report of an update."""
    from rareswitch.core import make_executor
    from rareswitch.report import ProgressBar

    gate = _gate(options)
    forecast = options.forecast[0] if options.forecast is not None and len(options.forecast) == 1 else options.forecast
    with (
        opened(options) as trial,
        make_executor(options.engine) as executor,
        ProgressBar("reading", quiet=options.quiet) as bar,
        warnings.catch_warnings(),
    ):
        for in_report in (LevelWarning, OutlierWarning):
            warnings.simplefilter("ignore", in_report)
        if options.preview:
            report = trial.preview(now=options.now, forecast=forecast, gate=gate, executor=executor)
        else:
            report = trial.advance(
                now=options.now, forecast=forecast, force=options.force, gate=gate, executor=executor, progress=bar
            )
    updated = report.made or report.elsewhere or report.proposed
    return Output(report, status=0 if updated else NOT_DUE if report.gate is None else REJECTED)


def _gate(options: argparse.Namespace) -> "Gate | None":
    """The gate of the options."""
    from rareswitch.experiment import Gate

    values = {"loss": options.gate_loss, "holdout": options.gate_holdout}
    settings = {name: value for name, value in values.items() if value is not None}
    if options.gate is not None:
        return Gate(level=options.gate, **settings)
    if settings:
        raise ParameterError(f"gate_{next(iter(settings))} is a setting of the gate: give --gate too.")
    return None


def add_experiment_approve(parser: argparse.ArgumentParser) -> None:
    """Publish the policy that waits for approval, and sign it where the experiment is signed."""
    parser.add_argument("--policy-id", metavar="ID", help="only if this policy waits, as its proposal says")
    add_options(parser, now="time of the policy (default: now)")


def run_experiment_approve(options: argparse.Namespace) -> Output:
    """The report of the update."""
    with opened(options) as trial:
        return Output(trial.approve(options.policy_id, now=options.now))


def add_experiment_reject(parser: argparse.ArgumentParser) -> None:
    """Drop the policy that waits for approval; the policy before goes on until a later batch end."""


def run_experiment_reject(options: argparse.Namespace) -> Output:
    """What was dropped."""
    with opened(options) as trial:
        proposal = trial.proposal
        trial.reject()
    text = "No policy waits for approval." if proposal is None else f"Rejected policy {proposal.policy_id[:12]}…"
    return Output({"rejected": None if proposal is None else proposal.policy_id}, text)


def add_experiment_list(parser: argparse.ArgumentParser) -> None:
    """List the experiments of a store, the oldest first."""


def run_experiment_list(options: argparse.Namespace) -> Output:
    """A line for each experiment."""
    from rareswitch.experiment import list_experiments

    experiments = list_experiments(options.url)
    text = "\n".join(map(str, experiments)) or f"{options.url} holds no experiments."
    return Output([entry.as_dict() for entry in experiments], text)


def add_experiment_end(parser: argparse.ArgumentParser) -> None:
    """Take no more decisions.

    Rewards still come in, and the experiment can be advanced, audited and evaluated.
    """
    add_options(parser, now="time of the end (default: now)")


def run_experiment_end(options: argparse.Namespace) -> Output:
    """The status after the end."""
    from rareswitch.report import as_text

    with opened(options) as trial:
        trial.end(now=options.now)
        status = trial.status(now=options.now)
    return Output(status, as_text(status, cli=True))


def add_experiment_delete(parser: argparse.ArgumentParser) -> None:
    """Delete an experiment with all decisions and rewards; its name is asked for again. A new one may have its name."""
    parser.add_argument("--force", action="store_true", help="do not ask for the name again")


def run_experiment_delete(options: argparse.Namespace) -> Output:
    """What was deleted."""
    name = options.name
    if not options.force:
        if not sys.stdin.isatty():
            raise ParameterError("force must be given where nobody can be asked for the name again: --force.")
        name = input(f"All decisions and rewards of {name} will be deleted. Its name again: ")
    with opened(options) as trial:
        trial.delete(name)
    return Output({"deleted": options.name, "url": options.url}, f"Deleted {options.name} from {options.url}.")


def add_experiment_audit(parser: argparse.ArgumentParser) -> None:
    """Recompute decisions from their frozen policies, and compare arm and propensity.

    Without an ID, learn all policies again from their summaries. Status 1 if anything differs.
    """
    parser.add_argument("ids", nargs="*", type=id_option, metavar="ID", help="ids of decisions (default: all policies)")
    parser.add_argument("--context", type=json_option, metavar="JSON", help="context of the decision, if not stored")
    parser.add_argument("--arms", type=json_option, metavar="JSON", help="arms of the decision, with --context")


def run_experiment_audit(options: argparse.Namespace) -> Output:
    """Audits of decisions, or a verification of all policies."""
    if options.context is not None and len(options.ids) != 1:
        raise ParameterError(f"context is that of one decision; got {len(options.ids)} ids. Audit one ID at a time.")
    if options.arms is not None and options.context is None:
        raise ParameterError("arms are those of a request that was not stored: give its --context too.")
    with opened(options) as trial:
        if options.ids:
            audits = [trial.audit(name, options.context, options.arms) for name in options.ids]
            facts = [audit.as_dict() | {"matches": audit.matches} for audit in audits]
            return Output(facts, "\n\n".join(map(str, audits)), int(not all(audit.matches for audit in audits)))
        verification = trial.verify()
        signed = "\nAll signatures are of this key." if trial.signature == "checked" else ""
        more = {"holds": verification.holds, "signature": trial.signature}
    return Output(verification.as_dict() | more, f"{verification}{signed}", int(not verification.holds))


def add_experiment_backup(parser: argparse.ArgumentParser) -> None:
    """Copy an SQLite store to a new file, while its experiments go on.

    The copy has all experiments of the store as of one moment, is checked, and opens like the store. Copying the file
    by other means while it is in use can damage the copy.
    """
    parser.add_argument("file", metavar="FILE", help="a new file for the copy")


def run_experiment_backup(options: argparse.Namespace) -> Output:
    """Where the copy is."""
    with opened(options) as trial:
        trial.backup(options.file)
        url = trial.store.url
    return Output({"url": url, "file": options.file}, f"Copied {url} to {options.file}.")


def add_experiment_export(parser: argparse.ArgumentParser) -> None:
    """Write decisions, with their rewards so far, as parts of a log in Parquet (docs/how-to/logs.md).

    With --policy, write the current policy to a file: any machine decides the same with it.
    """
    parser.add_argument("--out", metavar="FOLDER", help="folder of the parts, or a URL such as s3://bucket/folder")
    parser.add_argument("--policy", metavar="FILE", help="a new file for the policy, with its signature")
    add_options(parser, quiet={})


def run_experiment_export(options: argparse.Namespace) -> Output:
    """The files that were written."""
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
            trial.store, options.out, policies=policies, window=rewards.window, default=rewards.default, progress=bar
        )


def add_experiment_import(parser: argparse.ArgumentParser) -> None:
    """Import decisions and rewards that servers logged with a frozen policy of the experiment (docs/how-to/logs.md).

    Rows that are imported twice count once.
    """
    parser.add_argument(
        "--log",
        nargs="+",
        required=True,
        metavar="PATTERN",
        help="Parquet or CSV files, patterns in quotes, or URLs such as s3://…",
    )
    add_columns(parser)
    parser.add_argument("--skip-conflicts", action="store_true", help="leave out rows that contradict stored ones")
    add_options(parser, now="time of rows without one (default: now)", quiet={})


def run_experiment_import(options: argparse.Namespace) -> Output:
    """Counts of what was imported."""
    from rareswitch.log import import_parts
    from rareswitch.report import ProgressBar

    with opened(options) as trial, ProgressBar("reading", quiet=options.quiet) as bar:
        imported = import_parts(
            trial.store,
            options.log,
            learner=trial.description.learner,
            policies=[policy.id for policy in trial.policies],
            **column_options(options),
            features=trial.description.features,
            conflicts=options.skip_conflicts,
            now=options.now,
            progress=bar,
        )
    return Output(imported)


def add_key(parser: argparse.ArgumentParser) -> None:
    """Make a key and write it to a file with access for you alone.

    With hmac, everyone who signs or verifies shares the secret. With ed25519 FILE signs, and FILE.pub, which can be
    public, verifies.
    """
    parser.add_argument(
        "--scheme", required=True, choices=("hmac", "ed25519"), help="ed25519 needs the extra rareswitch[sign]"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="a new file for the key")


def run_key(options: argparse.Namespace) -> Output:
    """The files of the key."""
    from rareswitch.policy import new_key, save_key

    secret, *public = map(str, save_key(new_key(options.scheme), options.out))
    lines = [f"{secret}: signs and verifies; keep it secret"]
    lines += [f"{path}: verifies; give it to everyone who loads your policies" for path in public]
    facts = {"scheme": options.scheme, "secret": secret, "public": public[0] if public else None}
    return Output(facts, "\n".join(lines))
