"""``rareswitch contest``: every learner in a fixed suite of worlds."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rareswitch.cli.simulate import add_engine, count_option, status
from rareswitch.engine import make_engine
from rareswitch.errors import FileFormatError
from rareswitch.report.contest import contest_markdown, contest_text
from rareswitch.report.contest_plot import draw_standings, draw_world
from rareswitch.report.figures import check_target, save
from rareswitch.report.verdict import Verdict, judge
from rareswitch.sim import Contest, choose_entrants, contest
from rareswitch.sim.contest import ENTRANTS, HORIZONS, PLACES, SEEDS, plain_name
from rareswitch.validation import whole


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    entrants = "\n".join(f"  {label:28} {entrant.kind}" for label, entrant in ENTRANTS.items())
    parser = commands.add_parser(
        "contest",
        help="every learner in a fixed suite of worlds, against the best fully adaptive one",
        description=(
            "Run a fixed suite of worlds and learners. Each entry is compared with the yardstick: the single fully "
            "adaptive\nentry with the smallest geometric mean of regret + 10 over the worlds."
        ),
        epilog=f"entries and their kinds:\n{entrants}\n\nworlds:\n  {', '.join(PLACES)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", metavar="FOLDER", help="MovieLens ratings; without them that world is left out")
    parser.add_argument(
        "--learners", nargs="+", metavar="NAME", help="entries, learners or kinds (default: all but the slow)"
    )
    parser.add_argument("--slow", action="store_true", help="also entries that are left out because they are slow")
    parser.add_argument(
        "--envs", nargs="+", metavar="WORLD", help="a part of the suite, or other worlds (default: all)"
    )
    parser.add_argument(
        "--horizons", nargs="+", type=count_option, default=list(HORIZONS), metavar="T", help="default: 1e4 1e5"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many runs of each (default {SEEDS})")
    parser.add_argument("--first-seed", type=int, default=0, help="the seeds are this one and those that follow")
    add_engine(parser)
    parser.add_argument(
        "--out", metavar="FOLDER", help="a folder of Parquet files for the runs; what it holds is not run again"
    )
    parser.add_argument("--plots", metavar="FOLDER", help="write a picture for each world and one of all")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there, with links to the pictures")
    parser.add_argument("--json", action="store_true", help="print the verdicts as a list in place of the tables")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the suite, print tables or JSON, write pictures and Markdown. Status 130 if Ctrl-C cut it short."""
    for horizon in options.horizons:
        whole("horizon", horizon, low=2)
    whole("seeds", options.seeds)
    entrants = choose_entrants(options.learners, slow=options.slow)
    if options.plots is not None:
        _make_folder(Path(options.plots))
        check_target(Path(options.plots) / "all.png")
    if options.markdown is not None and not Path(options.markdown).parent.is_dir():
        raise FileFormatError(
            f"{options.markdown}: cannot be written; there is no folder {Path(options.markdown).parent}."
        )
    if options.markdown is not None and Path(options.markdown).is_dir():
        raise FileFormatError(f"{options.markdown}: cannot be written; it is a folder. Name a file.")
    if options.data is None and options.envs is None:
        print("rareswitch: movielens is left out; name a folder of its ratings with --data.", file=sys.stderr)
    with make_engine(options.engine) as engine:
        found = contest(
            entrants,
            places=options.envs,
            data=options.data,
            horizons=options.horizons,
            seeds=range(options.first_seed, options.first_seed + options.seeds),
            path=options.out,
            engine=engine,
            quiet=options.quiet,
        )
    verdicts = judge(found.runs, {label: entrant.kind for label, entrant in entrants.items()})
    verdicts = [verdict for verdict in verdicts if verdict.worlds]
    if options.json:
        print(json.dumps([verdict.summary() for verdict in verdicts], allow_nan=False))
    elif verdicts:
        print(contest_text(verdicts))
    _say_skipped(found)
    written = _write(verdicts, options)
    if not options.json:
        for line in written:
            print(line)
        if found.resumed and options.out:
            print(f"\n{found.resumed} of {len(found.runs)} runs were taken from {options.out}")
    return status(found, options.out)


def _say_skipped(found: Contest) -> None:
    """One line for each entrant that is not made for some worlds."""
    for label in dict.fromkeys(label for label, _ in found.skipped):
        places = [place for name, place in found.skipped if name == label]
        reason = found.skipped[label, places[0]]
        print(f"rareswitch: {label} was not run in {', '.join(places)}: {reason}", file=sys.stderr)


def _write(verdicts: Sequence[Verdict], options: argparse.Namespace) -> list[str]:
    """Write pictures and Markdown, and say what was written."""
    said, pictures = [], {}
    if options.plots is not None and verdicts:
        folder = Path(options.plots)
        for world in dict.fromkeys(world for verdict in verdicts for world in verdict.worlds):
            pictures[world] = folder / f"{plain_name(world)}.png"
            save(draw_world(verdicts, world), pictures[world])
        if any(verdict.yardstick is not None for verdict in verdicts):
            pictures[""] = folder / "all.png"
            save(draw_standings(verdicts), pictures[""])
        said.append(f"\n{len(pictures)} pictures written to {folder}")
    if options.markdown is not None and verdicts:
        target = Path(options.markdown)
        links = {world: Path(os.path.relpath(path, target.parent)).as_posix() for world, path in pictures.items()}
        try:
            target.write_text(contest_markdown(verdicts, links), encoding="utf-8")
        except OSError as error:
            raise FileFormatError(f"{target}: cannot be written ({error.strerror or error}).") from error
        said.append(f"\ntables written to {target}")
    return said


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder}: no folder can be made there ({error.strerror or error}).") from error
