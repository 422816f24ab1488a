"""``rareswitch contest``: learners in a fixed suite of worlds."""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rareswitch.cli.options import SEEDS_HELP, add_lists, add_options, of_runs
from rareswitch.cli.output import print_json
from rareswitch.core import make_executor, write_whole
from rareswitch.errors import FileFormatError
from rareswitch.lab.commands.simulate import status
from rareswitch.lab.contest import (
    CHALLENGERS,
    ENTRANTS,
    FROM_FILES,
    HALVES,
    RIVALS,
    SEEDS,
    SUITES,
    Contest,
    choose_entrants,
    contest,
    find_suite,
    first_seed,
    left_out,
    plain_name,
)
from rareswitch.lab.report.contest import contest_markdown, contest_text, draw_standings, draw_world
from rareswitch.lab.report.runs import linear_differs
from rareswitch.lab.report.verdict import ContestVerdict, judge_contest
from rareswitch.report import check_target, save

#: What a folder of tables holds.
TABLE_FILES = tuple(f"{name}.csv" for name, (folder, _) in FROM_FILES.items() if folder == "tables")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    suites = {name: f"{suite.text}\n    {_wrapped(suite.worlds)}" for name, suite in SUITES.items()}
    kinds = {label: entrant.kind for label, entrant in ENTRANTS.items()}
    add_lists(parser, {"entries and their kinds": kinds, "suites and their worlds": suites})
    parser.add_argument("--suite", default="ten", help=f"{', '.join(SUITES)} (default ten); see below")
    halves = "only the tables to develop on or to report on, and the seeds from 1000 or from 0 on; for the suite field"
    parser.add_argument("--half", metavar="HALF", help=f"{' or '.join(HALVES)}: {halves}")
    parser.add_argument("--data", metavar="FOLDER", help="MovieLens ratings; without them that world is left out")
    tables = "segment.csv, phishing.csv, banana.csv, diamonds.csv, cracker.csv; without it those worlds are left out"
    parser.add_argument("--tables", metavar="FOLDER", help=tables)
    add_options(parser, learners="entries, learners or kinds (default: those of the suite; in ten all but the slow)")
    parser.add_argument("--slow", action="store_true", help="also entries that are left out because they are slow")
    add_options(parser, worlds="a part of the suite, or other worlds (default: all)")
    add_options(parser, horizons="default: 1e4 1e5 in ten, otherwise 3e4")
    seeds = {"default": SEEDS, "help": f"{SEEDS_HELP} (default {SEEDS})"}
    first = "the seeds are this one and those that follow (default 0, or 1000 with --half development)"
    add_options(parser, seeds=seeds, first_seed={"default": None, "help": first})
    folder = "a folder of Parquet files for the runs; what it holds is not run again"
    add_options(parser, engine={}, out={"metavar": "FOLDER", "help": folder})
    parser.add_argument("--plots", metavar="FOLDER", help="write a picture for each world and one of all")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there, with links to the pictures")
    add_options(parser, quiet={})


def run(options: argparse.Namespace) -> int:
    """Run a fixed suite of worlds and learners.

    Each entry is compared with the yardstick: the single fully adaptive entry with the smallest geometric mean of
    regret + 10 over the worlds. Ratios come with intervals over the seeds; those wider than a factor 1.5 are marked as
    not resolved. Status 130 if Ctrl-C cut it short.
    """
    suite, folders = find_suite(options.suite), {"data": options.data, "tables": options.tables}
    options.horizons = list(suite.horizons) if options.horizons is None else options.horizons
    options.first_seed = first_seed(options.half) if options.first_seed is None else options.first_seed
    facts = of_runs(options) | folders | {"places": options.worlds, "horizons": options.horizons}
    facts |= {"suite": options.suite, "half": options.half}
    entrants = choose_entrants(options.learners, slow=options.slow, suite=options.suite)
    if options.tables is not None and not any((Path(options.tables) / name).is_file() for name in TABLE_FILES):
        raise FileFormatError(
            f"{options.tables}: --tables is a folder with {', '.join(TABLE_FILES)}, or some of them, and has none."
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
        found = contest(entrants, executor=executor, **facts)
    verdicts = _judged(found)
    if options.json:
        print_json([verdict.summary() for verdict in verdicts])
    elif verdicts:
        print(contest_text(verdicts))
    for label in dict.fromkeys(label for label, _ in found.skipped):
        worlds = [world for name, world in found.skipped if name == label]
        reason = found.skipped[label, worlds[0]]
        print(f"rareswitch: {label} was not run in {', '.join(worlds)}: {reason}", file=sys.stderr)
    said = _write(verdicts, options) if verdicts else []
    if found.resumed and options.out:
        said.append(f"\n{found.resumed} of {len(found.runs)} runs were taken from {options.out}")
    if said and not options.json:
        print(*said, sep="\n")
    return status(found, options.out)


def _judged(found: Contest) -> list[ContestVerdict]:
    """By regret against the best arm and, where that is another, against the best linear policy."""
    kinds = {label: entrant.kind for label, entrant in found.entrants.items()}
    rivals, challengers = (
        [label for label, entrant in found.entrants.items() if entrant.learner in names]
        for names in (RIVALS, CHALLENGERS)
    )
    verdicts = judge_contest(found.runs, kinds, rivals=rivals, challengers=challengers)
    if linear_differs(found.runs):
        against: Any = {"against": "best linear policy", "rivals": rivals, "challengers": challengers}
        verdicts += judge_contest(found.runs, kinds, **against)
    return [verdict for verdict in verdicts if verdict.worlds]


def _wrapped(worlds: Sequence[str]) -> str:
    return "\n    ".join(textwrap.wrap(", ".join(worlds), 100, break_on_hyphens=False))


def _write(verdicts: Sequence[ContestVerdict], options: argparse.Namespace) -> list[str]:
    """Write pictures and Markdown, and say what was written."""
    said, pictures = [], {}
    if options.plots is not None:
        folder = Path(options.plots)
        shown = [verdict for verdict in verdicts if verdict.against == "best arm"]
        for world in dict.fromkeys(world for verdict in shown for world in verdict.worlds):
            pictures[world] = folder / f"{plain_name(world)}.png"
            save(draw_world(shown, world), pictures[world])
        if any(verdict.yardstick is not None for verdict in shown):
            pictures[""] = folder / "all.png"
            save(draw_standings(shown), pictures[""])
        said.append(f"\n{len(pictures)} pictures written to {folder}")
    if options.markdown is not None:
        target = Path(options.markdown)
        links = {world: Path(os.path.relpath(path, target.parent)).as_posix() for world, path in pictures.items()}
        write_whole(contest_markdown(verdicts, links).encode(), target)
        said.append(f"\ntables written to {target}")
    return said
