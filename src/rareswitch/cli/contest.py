"""``rareswitch contest``: every learner in a fixed suite of worlds."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rareswitch.cli.options import SEEDS_HELP, add_command, add_options, listing, of_runs, print_json
from rareswitch.cli.simulate import status
from rareswitch.engine import make_engine
from rareswitch.errors import FileFormatError
from rareswitch.report import (
    Verdict,
    check_target,
    contest_markdown,
    contest_text,
    draw_standings,
    draw_world,
    judge,
    save,
)
from rareswitch.sim import ENTRANTS, HORIZONS, SEEDS, SUITE, choose_entrants, contest, plain_name


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    entrants = listing("entries and their kinds", {label: entrant.kind for label, entrant in ENTRANTS.items()}, 28)
    worlds = f"worlds:\n  {', '.join(SUITE)}"
    parser = add_command(commands, "contest", run, epilog=f"{entrants}\n\n{worlds}")
    parser.description = (
        "Run a fixed suite of worlds and learners. Each entry is compared with the yardstick: the single fully "
        "adaptive\nentry with the smallest geometric mean of regret + 10 over the worlds. Ratios come with intervals "
        "over the seeds; those\nwider than a factor 1.5 are marked as not resolved."
    )
    parser.add_argument("--data", metavar="FOLDER", help="MovieLens ratings; without them that world is left out")
    add_options(parser, learners="entries, learners or kinds (default: all but the slow)")
    parser.add_argument("--slow", action="store_true", help="also entries that are left out because they are slow")
    add_options(parser, envs="a part of the suite, or other worlds (default: all)")
    add_options(parser, horizons={"default": list(HORIZONS), "help": "default: 1e4 1e5"})
    add_options(parser, seeds={"default": SEEDS, "help": f"{SEEDS_HELP} (default {SEEDS})"}, first_seed=0)
    folder = "a folder of Parquet files for the runs; what it holds is not run again"
    add_options(parser, engine={}, out={"metavar": "FOLDER", "help": folder})
    parser.add_argument("--plots", metavar="FOLDER", help="write a picture for each world and one of all")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there, with links to the pictures")
    add_options(parser, json="print the verdicts as a list in place of the tables", quiet={})


def run(options: argparse.Namespace) -> int:
    """Run the suite, print tables or JSON, write pictures and Markdown. Status 130 if Ctrl-C cut it short."""
    facts = of_runs(options) | {"places": options.envs, "data": options.data, "horizons": options.horizons}
    entrants = choose_entrants(options.learners, slow=options.slow)
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
    if options.data is None and options.envs is None:
        print("rareswitch: movielens is left out; name a folder of its ratings with --data.", file=sys.stderr)
    with make_engine(options.engine) as engine:
        found = contest(entrants, engine=engine, **facts)
    kinds = {label: entrant.kind for label, entrant in entrants.items()}
    verdicts = [verdict for verdict in judge(found.runs, kinds) if verdict.worlds]
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


def _write(verdicts: Sequence[Verdict], options: argparse.Namespace) -> list[str]:
    """Write pictures and Markdown, and say what was written."""
    said, pictures = [], {}
    if options.plots is not None:
        folder = Path(options.plots)
        for world in dict.fromkeys(world for verdict in verdicts for world in verdict.worlds):
            pictures[world] = folder / f"{plain_name(world)}.png"
            save(draw_world(verdicts, world), pictures[world])
        if any(verdict.yardstick is not None for verdict in verdicts):
            pictures[""] = folder / "all.png"
            save(draw_standings(verdicts), pictures[""])
        said.append(f"\n{len(pictures)} pictures written to {folder}")
    if options.markdown is not None:
        target = Path(options.markdown)
        links = {world: Path(os.path.relpath(path, target.parent)).as_posix() for world, path in pictures.items()}
        try:
            target.write_text(contest_markdown(verdicts, links), encoding="utf-8")
        except OSError as error:
            raise FileFormatError(f"{target}: cannot be written ({error.strerror or error}).") from error
        said.append(f"\ntables written to {target}")
    return said
