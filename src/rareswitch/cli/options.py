"""What several commands share: options, the listings of their help, pictures and JSON."""

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any

from rareswitch.cli.commands import COMMANDS, Entry
from rareswitch.cli.settings import count_option
from rareswitch.errors import RareswitchError

#: The most runs of each kind that a command lines up.
MOST_SEEDS = 1_000_000
Command = Callable[[argparse.Namespace], int]
#: For commands that compare.
SEEDS_HELP = (
    "how many runs of each: ratios have intervals from 5 on; 20 often resolve them to a factor 1.5, a world in which "
    "rare runs fail needs hundreds, and the tables say how many"
)
#: How shared options are read, and what is said about them where a command says nothing else.
USUAL: dict[str, dict[str, Any]] = {
    "learner": {"metavar": "NAME"},
    "learners": {"metavar": "NAME", "nargs": "+"},
    "world": {"metavar": "WORLD"},
    "worlds": {"metavar": "WORLD", "nargs": "+"},
    "horizon": {"metavar": "T", "type": count_option, "default": 100_000, "help": "default: 100000"},
    "horizons": {"metavar": "T", "type": count_option, "nargs": "+"},
    "dim": {"type": int, "help": "features of an arm (default %(default)s)"},
    "arms": {"type": int, "help": "arms in a set (default %(default)s)"},
    "noise": {"type": float, "help": "σ of the rewards (default %(default)s)"},
    "seed": {"type": int, "default": 0, "help": "keys the world and the decisions (default 0)"},
    "seeds": {"type": int, "help": "how many runs of each (default %(default)s)"},
    "first_seed": {"type": int, "default": 0, "help": "the seeds are this one and those that follow"},
    "engine": {
        "default": "serial",
        "help": "where the work runs: serial, processes[:n] or dask:address (default serial)",
    },
    "out": {"metavar": "PARQUET", "help": "keep the runs there; what it holds is not run again"},
    "plot": {"metavar": "PNG", "help": "write a picture (needs rareswitch[plot])"},
    "json": {"action": "store_true"},
    "quiet": {"action": "store_true", "help": "no progress bar"},
}


def add_command(
    commands: Any, name: str, run: Command, table: Mapping[str, Entry] = COMMANDS, /, **texts: str
) -> argparse.ArgumentParser:
    """A parser for a command; where it lists something at its end, lines are shown as they are."""
    kind = argparse.RawDescriptionHelpFormatter if "epilog" in texts else argparse.HelpFormatter
    parser: argparse.ArgumentParser = commands.add_parser(name, help=table[name].help, formatter_class=kind, **texts)
    parser.set_defaults(run=run)
    return parser


def add_options(parser: argparse.ArgumentParser, **options: Any) -> None:
    """Add shared options, each with its default, its text, or a dictionary of what is not as usual."""
    for name, own in options.items():
        own = own if isinstance(own, dict) else {"help" if isinstance(own, str) else "default": own}
        parser.add_argument(f"--{name.replace('_', '-')}", **USUAL[name] | own)


def listing(title: str, texts: Mapping[str, str], width: int = 26) -> str:
    """Names and what they stand for, a line for each."""
    return "\n".join([f"{title}:", *(f"  {name:{width}} {text}" for name, text in texts.items())])


def of_runs(options: argparse.Namespace) -> dict[str, Any]:
    """Seeds, file and bar for the runs of a command, whose number and lengths are checked."""
    from rareswitch.validation import count_of, whole

    for horizon in options.horizons if "horizons" in options else [options.horizon]:
        whole("horizon", horizon, low=2)
    first = whole("first_seed", options.first_seed, low=0)
    last = first + count_of("seeds", options.seeds, high=MOST_SEEDS)
    return {"seeds": range(first, last), "path": options.out, "quiet": options.quiet}


def print_json(data: Any, **more: Any) -> None:
    """One line; a number that is not finite is an error. Objects tell the version of their schema."""
    from rareswitch.structs import SCHEMA_VERSION, Result

    data = data.as_dict() if isinstance(data, Result) else data
    print(
        json.dumps(
            {"schema_version": SCHEMA_VERSION, **data, **more} if isinstance(data, dict) else data, allow_nan=False
        )
    )


def save_picture(made: Any, options: argparse.Namespace, gap: str = "\n") -> None:
    """Write the picture and, where text is printed, say so."""
    from rareswitch.report import save

    save(made, options.plot, options.command)
    if not getattr(options, "json", False):
        print(f"{gap}picture written to {options.plot}")


def report_done(text: str, done: str) -> None:
    """Print what was done; where that cannot be shown, say at least that it was done."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RareswitchError(f"the report could not be shown ({error.strerror or error}), but {done}.") from error
