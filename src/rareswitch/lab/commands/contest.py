"""``rareswitch contest``: learners in a fixed suite of worlds."""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rareswitch.cli.options import of_runs
from rareswitch.cli.output import print_json
from rareswitch.core import make_executor, table, write_whole
from rareswitch.errors import FileFormatError
from rareswitch.lab.commands.simulate import exit_status
from rareswitch.lab.contest import (
    CHALLENGERS,
    ENTRANTS,
    FROM_FILES,
    RIVALS,
    SUITES,
    Contest,
    choose_entrants,
    contest,
    find_suite,
    first_seed,
    left_out,
    plain_name,
)
from rareswitch.lab.report.contest import (
    ContestVerdict,
    contest_markdown,
    contest_text,
    draw_standings,
    draw_world,
    judge_contest,
)
from rareswitch.lab.report.runs import linear_differs
from rareswitch.report import check_target, save

#: What a folder of tables holds.
TABLE_FILES = tuple(f"{name}.csv" for name, (folder, _) in FROM_FILES.items() if folder == "tables")


def run_contest(options: argparse.Namespace) -> int:
    """Verdicts of a contest, as tables, pictures and Markdown."""
    if options.list:
        return _list(options)
    suite, folders = find_suite(options.suite), {"data": options.data, "tables": options.tables}
    options.horizons = list(suite.horizons) if options.horizons is None else options.horizons
    options.first_seed = first_seed(options.half) if options.first_seed is None else options.first_seed
    runs = of_runs(options)
    entrants = choose_entrants(options.learners, slow=options.slow, suite=options.suite)
    if options.tables is not None and not any((Path(options.tables) / name).is_file() for name in TABLE_FILES):
        raise FileFormatError(
            f"{options.tables}: --tables must be a folder with some of {', '.join(TABLE_FILES)}; it has none of them."
        )
    if options.plots is not None:
        folder = Path(options.plots)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileFormatError(f"{folder}: no folder can be made there ({error.strerror or error}).") from error
        check_target(folder / "all.png")
    if options.markdown is not None:
        target = Path(options.markdown)
        if not target.parent.is_dir():
            raise FileFormatError(f"{options.markdown}: cannot be written; there is no folder {target.parent}.")
        if target.exists() and not target.is_file():
            raise FileFormatError(f"{options.markdown}: cannot be written; it is no plain file. Name another.")
    missing = {} if options.worlds is not None else left_out(suite.of(options.half), folders)
    for which, what in (("data", "ratings"), ("tables", "tables")):
        if names := [place for place, needed in missing.items() if needed == which]:
            verb, whose = ("is", "its") if len(names) == 1 else ("are", "their")
            text = f"{', '.join(names)} {verb} left out; name a folder of {whose} {what} with --{which}."
            print(f"rareswitch: {text}", file=sys.stderr)
    with make_executor(options.engine) as executor:
        outcome = contest(
            entrants,
            suite=options.suite,
            half=options.half,
            places=options.worlds,
            data=options.data,
            tables=options.tables,
            horizons=options.horizons,
            executor=executor,
            **runs,
        )
    verdicts = _judged(outcome)
    if options.json:
        print_json([verdict.summary() for verdict in verdicts])
    elif verdicts:
        print(contest_text(verdicts))
    for label in dict.fromkeys(label for label, _ in outcome.skipped):
        worlds = [world for name, world in outcome.skipped if name == label]
        reason = outcome.skipped[label, worlds[0]]
        print(f"rareswitch: {label} was not run in {', '.join(worlds)}: {reason}", file=sys.stderr)
    lines = _write(verdicts, options) if verdicts else []
    if outcome.resumed and options.out:
        lines.append(f"\n{outcome.resumed} of {len(outcome.runs)} runs were taken from {options.out}")
    if lines and not options.json:
        print(*lines, sep="\n")
    return exit_status(outcome, options.out)


def _judged(outcome: Contest) -> list[ContestVerdict]:
    """By regret against the best arm and, where that is another, against the best linear policy."""
    kinds = {label: entrant.kind for label, entrant in outcome.entrants.items()}
    rivals, challengers = (
        [label for label, entrant in outcome.entrants.items() if entrant.learner in names]
        for names in (RIVALS, CHALLENGERS)
    )
    judge = partial(judge_contest, outcome.runs, kinds, rivals=rivals, challengers=challengers)
    verdicts = judge()
    if linear_differs(outcome.runs):
        verdicts += judge(against="best linear policy")
    return [verdict for verdict in verdicts if verdict.worlds]


def _list(options: argparse.Namespace) -> int:
    """Print the entries and the suites."""
    kinds = {label: entrant.kind for label, entrant in ENTRANTS.items()}
    if options.json:
        suites = {name: {"text": suite.text, "worlds": suite.worlds} for name, suite in SUITES.items()}
        print_json({"entries": kinds, "suites": suites})
        return 0
    print(table(["entry", "kind"], [[label, kind] for label, kind in kinds.items()], left=2))
    for name, suite in SUITES.items():
        worlds = textwrap.fill(
            ", ".join(suite.worlds), 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
        )
        print(f"\nsuite {name}: {suite.text}\n{worlds}")
    return 0


def _write(verdicts: Sequence[ContestVerdict], options: argparse.Namespace) -> list[str]:
    """Write pictures and Markdown, and return a line about each."""
    lines, pictures = [], {}
    if options.plots is not None:
        folder = Path(options.plots)
        shown = [verdict for verdict in verdicts if verdict.against == "best arm"]
        for world in dict.fromkeys(world for verdict in shown for world in verdict.worlds):
            pictures[world] = folder / f"{plain_name(world)}.png"
            save(draw_world(shown, world), pictures[world])
        if any(verdict.yardstick is not None for verdict in shown):
            pictures[""] = folder / "all.png"
            save(draw_standings(shown), pictures[""])
        lines.append(f"\n{len(pictures)} pictures written to {folder}")
    if options.markdown is not None:
        target = Path(options.markdown)
        links = {world: Path(os.path.relpath(path, target.parent)).as_posix() for world, path in pictures.items()}
        write_whole(contest_markdown(verdicts, links).encode(), target)
        lines.append(f"\ntables written to {target}")
    return lines
