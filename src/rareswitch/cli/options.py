"""What several commands share: options and how they are read, keys, and settings of learners.

Keys come from a file or from the environment, never from the command line, where others can see them.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field
from typing import TYPE_CHECKING, Any, get_args

from rareswitch.errors import ParameterError, RareswitchError

if TYPE_CHECKING:
    from rareswitch.policy import Key

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


def with_option(error: RareswitchError, options: argparse.Namespace) -> str:
    """The message of an error; where it begins with a parameter, that is written as the option."""
    text, option, parameter = str(error), option_of(error, options), error.parameter
    if option is None or parameter is None or not text.startswith(parameter):
        return text
    return option_name(option) + text.removeprefix(parameter)


def moment_option(text: str) -> float:
    """A time as seconds since 1970, read as UTC where it has no zone.

    >>> moment_option("2026-03-09")
    1773014400.0
    """
    from rareswitch.plan import moment_of

    return _read_time(moment_of, text)


def duration_option(text: str) -> float:
    """A duration in seconds.

    >>> duration_option("2d"), duration_option("1 day 6 hours"), duration_option("0")
    (172800.0, 108000.0, 0.0)
    """
    from rareswitch.plan import duration_of

    return _read_time(duration_of, text)


def _read_time(read: Callable[[str, str], float], text: str) -> float:
    try:
        return read("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def id_option(text: str) -> int | str:
    """An id as JSON writes it, or as a bare text.

    >>> id_option("17"), id_option('"17"'), id_option("request-1")
    (17, '17', 'request-1')
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else text


def json_option(text: str) -> Any:
    """Any value, as JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r:.60} is not JSON ({error})") from None


#: A longer text that no variable is called by is taken for a key.
_LONGEST_NAME = 31


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the names of a store and an experiment, and its key."""
    parser.add_argument("url", metavar="STORE", help="spring.db, postgresql://… or another URL of a store")
    parser.add_argument("name", metavar="NAME", help="of the experiment")
    add_key(parser, "check the experiment, and sign what it learns, with the key in this file")


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
    if not (options.key.isidentifier() and options.key.isascii() and len(options.key) <= _LONGEST_NAME):
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
    entries: dict[str, Field[Any]] = {}
    for name, learner in learners.items():
        for entry in settings_of(learner):
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
        group.add_argument(
            option_name(name), help=help_text, default=None, **(GRID if name == "grid" else _kind(entry.type))
        )
    parser.set_defaults(learner_settings=[*entries])


def given_settings(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The settings that were given; an option that none of the learners would heed is refused."""
    names = list(names)
    values = {name: getattr(options, name) for name in options.learner_settings}
    settings = {name: ADAPTIVE if value == [ADAPTIVE] else value for name, value in values.items() if value is not None}
    for setting in settings:
        check_heeded(option_name(setting), setting, names)
    return settings


def check_heeded(option: str, setting: str, names: list[str]) -> None:
    """Refuse an option for a setting that none of these learners takes."""
    from rareswitch.learner import all_learners, takes

    if not any(setting in takes(name) for name in names):
        takers = ", ".join(name for name in all_learners() if setting in takes(name))
        raise ParameterError(f"{option} means nothing to {', '.join(names)}; it is for {takers}.")


def settings_for(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that the learner of that name takes."""
    from rareswitch.learner import takes

    return {key: value for key, value in settings.items() if key in takes(name)}


def count_option(text: str) -> int:
    """A whole number, also as 1e5 or 100_000."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not abs(value) <= 1e12 or value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at most 1e12")
    return int(value)


def end_option(text: str) -> int | str:
    """Where a batch ends, or the word for a grid that is adaptive."""
    return text if text == ADAPTIVE else count_option(text)


def confidence_option(text: str) -> float | str:
    """A confidence mode, or a number."""
    try:
        return float(text)
    except ValueError:
        return text


def _kind(annotation: Any) -> dict[str, Any]:
    """How the option of a setting of this type is read."""
    from rareswitch.learner import ConfidenceMode

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
    return {"type": count_option, "nargs": "+", "metavar": "N"}


#: How the ends of batches are read.
GRID: dict[str, Any] = {"type": end_option, "nargs": "+", "metavar": "N"}
#: The most runs of each kind that a command lines up.
MOST_SEEDS = 1_000_000
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
    "quiet": {"action": "store_true", "help": "no progress bar"},
    "id": {"type": id_option, "help": "of one decision"},
    "input": {"metavar": "FILE", "help": "read lines from a file (default: the standard input)"},
    "now": {"type": moment_option, "metavar": "ISO", "help": "when it happens (default: now)"},
}


def add_options(parser: argparse.ArgumentParser, **options: Any) -> None:
    """Add shared options, each with its default, its text, or a dictionary of what is not as usual."""
    for name, own in options.items():
        own = own if isinstance(own, dict) else {"help" if isinstance(own, str) else "default": own}
        parser.add_argument(f"--{name.replace('_', '-')}", **USUAL[name] | own)


def add_lists(parser: argparse.ArgumentParser, lists: Mapping[str, Mapping[str, str]]) -> None:
    """Show lists at the end of ``--help``: each has a title, names, and a text for each name."""
    parts = (
        "\n".join([f"{title}:", *(f"  {name:28} {text}" for name, text in texts.items())])
        for title, texts in lists.items()
    )
    parser.epilog = "\n\n".join(parts)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def of_runs(options: argparse.Namespace) -> dict[str, Any]:
    """Seeds, file and bar for the runs of a command, whose number and lengths are checked."""
    from rareswitch.core import count_of, whole

    for horizon in options.horizons if "horizons" in options else [options.horizon]:
        whole("horizon", horizon, low=2)
    first = whole("first_seed", options.first_seed, low=0)
    last = first + count_of("seeds", options.seeds, high=MOST_SEEDS)
    return {"seeds": range(first, last), "path": options.out, "quiet": options.quiet}
