"""What several commands share: options and how they are read, keys, settings of learners, pictures and JSON.

Keys come from a file or from the environment, never from the command line, where others can see them.
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from rareswitch.cli.commands import COMMANDS, Entry
from rareswitch.errors import ParameterError, RareswitchError

if TYPE_CHECKING:
    from rareswitch.policy import Key

#: Parameters that texts of one command name, and that are options of another.
_ELSEWHERE = {
    "forecast": "--forecast N",
    "force": "--force",
    "min_propensity": "--min-propensity",
    "baseline": "--baseline",
    "conflicts": "--skip-conflicts",
}
#: What has no dashes.
_POSITIONAL = {"file": "FILE", "url": "STORE", "name": "NAME", "ids": "ID", "source": "SOURCE", "target": "TARGET"}


def option_name(name: str) -> str:
    """What a parameter is called on the command line.

    >>> option_name("first_seed"), option_name("file")
    ('--first-seed', 'FILE')
    """
    return _POSITIONAL.get(name, "--" + name.replace("_", "-"))


def check_texts(options: argparse.Namespace) -> None:
    """Refuse texts that name nothing: empty ones, as an unset variable of a shell gives, and what is no Unicode."""
    for name, given in vars(options).items():
        for text in given if isinstance(given, list) else [given]:
            if text == "":
                raise ParameterError(f"{name} must not be empty; got ''. Leave it out, or give it a value.", given=text)
            if isinstance(text, str) and not text.isascii() and text != text.encode(errors="replace").decode():
                raise ParameterError(f"{name} must be valid Unicode; got {text!a:.60}. Rename what it stands for.")


def option_of(error: RareswitchError, options: argparse.Namespace) -> str | None:
    """The option of the command, as options have it, that an error is about; None where it is about none."""
    name = error.parameter or ""
    names = (name, f"{name}s", f"design_{name}")  # --horizons are several, --design-tol is that of a design
    return next((option for option in names if option in options), None)


def told(error: RareswitchError, options: argparse.Namespace) -> str:
    """The message of an error, with the names of options in place of the parameters' that it is about."""
    text, option = in_options(error, options), option_of(error, options)
    if option is None or error.parameter is None:
        return text
    return option_name(option) + text.removeprefix(error.parameter) if text.startswith(error.parameter) else text


def in_options(report: object, options: argparse.Namespace | None = None) -> str:
    """The text of a report or an error, with options of the command, or of others, in place of Python's parameters.

    >>> in_options("advance with force=True, or create it with min_propensity=0.02")
    'advance with --force, or create it with --min-propensity 0.02'
    >>> in_options("Give overwrite=True", argparse.Namespace(overwrite=False))
    'Give --overwrite'
    """
    return re.sub(r"\b(\w+)=(True\b|…|0\.\d+)", partial(_as_option, options or argparse.Namespace()), str(report))


def _as_option(options: argparse.Namespace, parameter: re.Match[str]) -> str:
    """``overwrite=True``, where there is such an option, as ``--overwrite``."""
    name, value = parameter[1], parameter[2]
    if name in _ELSEWHERE:
        return _ELSEWHERE[name] + (f" {value}" if value[0] == "0" else "")
    return option_name(name) + ("" if value == "True" else f" {value}") if name in options else parameter[0]


def moment_option(text: str) -> float:
    """A time as seconds since 1970, read as UTC where it has no zone.

    >>> moment_option("2026-03-09")
    1773014400.0
    """
    from rareswitch.plan import moment_of

    try:
        return moment_of("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def duration_option(text: str) -> float:
    """A duration in seconds.

    >>> duration_option("2d"), duration_option("1 day 6 hours"), duration_option("0")
    (172800.0, 108000.0, 0.0)
    """
    from rareswitch.plan import duration_of

    try:
        return duration_of("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


#: A longer text that no variable is called by is taken for a key.
_LONGEST_NAME = 31


def add_key(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the two options, of which one may be given."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--key-file", metavar="FILE", help=f"{purpose}; see rareswitch key")
    group.add_argument("--key", metavar="NAME", help="the same key in an environment variable of this name")


def given_key(options: argparse.Namespace) -> "Key | None":
    """The key that was given, if one was."""
    from rareswitch.policy import key_from_text, load_key

    if options.key_file is not None:
        return load_key(options.key_file)
    if options.key is None:
        return None
    text = os.environ.get(options.key)
    if text is not None:
        return key_from_text(text.encode(errors="replace"), f"the environment variable {options.key}")
    if not re.fullmatch(rf"[A-Za-z_]\w{{0,{_LONGEST_NAME - 1}}}", options.key, re.ASCII):
        raise ParameterError(
            "--key takes the name of an environment variable, never the key itself, and what was given cannot be one. "
            "If it was a key, others may have seen it on the command line: make a new one, and pass it with "
            "--key-file FILE or in a variable."
        )
    raise ParameterError(
        f"--key takes the name of an environment variable that holds the key; there is no variable {options.key}. Set "
        "it, or pass a file: --key-file FILE."
    )


#: A grid whose batches follow the widths of intervals, as learners name it.
ADAPTIVE = "adaptive"
#: Settings that are objects; commands have options of their own for them, or none.
SPECIAL = {"g_optimal", "designer"}


def add_settings(parser: argparse.ArgumentParser, *, without: Iterable[str] = ()) -> None:
    """Add an option for every setting that some learner takes, but for those that the command sets itself."""
    from rareswitch.learner import all_learners, settings_of

    group = parser.add_argument_group("settings of learners, which have their own defaults")
    learners, own = all_learners(), SPECIAL | set(without)
    takers: dict[str, list[str]] = {}
    entries: dict[str, Any] = {}
    for name, kind in learners.items():
        for entry in settings_of(kind):
            if entry.name not in own:
                takers.setdefault(entry.name, []).append(name)
                entries.setdefault(entry.name, entry)
    for name, entry in entries.items():
        text = entry.metadata["text"]
        defaults = {getattr(learners[taker], name, None) for taker in takers[name]}
        plain = len(defaults) == 1 and "default" not in text and not any(d is None or d is False for d in defaults)
        usual = f" (default {defaults.pop()})" if plain else ""
        few = f"; for {', '.join(takers[name])}" if len(takers[name]) <= 3 else ""
        if name == "grid":
            few = f"; {ADAPTIVE}: at most --policies batches, by the widths of intervals, for learners that eliminate"
        help_text = f"{text}{usual}{few}".replace("%", "%%")
        group.add_argument(option_name(name), help=help_text, default=None, **_kind(entry.type))
    parser.set_defaults(learner_settings=[*entries])


def given_settings(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The settings that were given; an option that none of the learners would heed is refused."""
    names = list(names)
    given = {name: getattr(options, name) for name in options.learner_settings if getattr(options, name) is not None}
    for setting in given:
        check_heeded(option_name(setting), setting, names)
    return given


def check_heeded(option: str, setting: str, names: list[str]) -> None:
    """Refuse an option for a setting that none of these learners takes."""
    from rareswitch.learner import all_learners, takes

    if not any(setting in takes(name) for name in names):
        takers = ", ".join(name for name in all_learners() if setting in takes(name))
        raise ParameterError(f"{option} means nothing to {', '.join(names)}; it is for {takers}.")


def settings_for(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Those of the given settings that the learner of that name takes."""
    from rareswitch.learner import takes

    return {key: value for key, value in given.items() if key in takes(name)}


def count_option(text: str) -> int:
    """A whole number, also as 1e5 or 100_000."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not abs(value) <= 1e12 or value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at most 1e12")
    return int(value)


def end_option(text: str) -> Any:
    """Where a batch ends, or the word for a grid that is adaptive."""
    return text if text == ADAPTIVE else count_option(text)


class GridAction(argparse.Action):
    """Reads where batches end, or that they are adaptive."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        if ADAPTIVE in values and len(values) > 1:
            parser.error(f"argument {option_string}: {ADAPTIVE} stands alone, without batch ends")
        setattr(namespace, self.dest, ADAPTIVE if ADAPTIVE in values else values)


def confidence_option(text: str) -> Any:
    """A confidence mode, or a number."""
    try:
        return float(text)
    except ValueError:
        return text


def _kind(annotation: Any) -> dict[str, Any]:
    """How the option of a setting of this type is read."""
    from rareswitch.confidence import ConfidenceMode

    kinds = {annotation, *get_args(annotation)}
    if bool in kinds:
        return {"action": argparse.BooleanOptionalAction}
    if ConfidenceMode in kinds or annotation == ConfidenceMode | float:
        return {"type": confidence_option, "metavar": "MODE"}
    if int in kinds:
        return {"type": count_option, "metavar": "N"}
    if str in kinds:
        return {"metavar": "KIND"}
    if float in kinds:
        return {"type": float, "metavar": "X"}
    return {"type": end_option, "nargs": "+", "metavar": "N", "action": GridAction}


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
