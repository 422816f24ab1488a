"""What several commands share: options and how they are read, keys, and settings of learners.

Keys come from a file or from the environment, never from the command line, where others can see them.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, get_args

from rareswitch.errors import InputError, ParameterError, RareswitchError

if TYPE_CHECKING:
    from dataclasses import Field

    from rareswitch.policy import Key

#: Arguments of a call by name, and the value of an option that is written in JSON.
Arguments: TypeAlias = dict[str, Any]
Json: TypeAlias = Any
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
    for name, values in vars(options).items():
        for text in values if isinstance(values, list) and name != "typed" else [values]:
            if text == "":
                raise ParameterError(f"{name} must not be empty; got ''. Leave it out, or give it a value.", given=text)
            if isinstance(text, str) and not text.isascii() and text != text.encode(errors="replace").decode():
                raise ParameterError(f"{name} must be valid Unicode; got {text!a:.60}. Rename what it stands for.")


def option_of(error: RareswitchError, options: argparse.Namespace) -> str | None:
    """The option of the command, as options have it, that an error is about; None where it is about none."""
    name = error.parameter or ""
    names = (name, f"{name}s", f"design_{name}")  # --horizons are several, --design-tol is that of a design
    return next((option for option in names if option in options), None)


#: How messages give a setting to both: ``overwrite=True (--overwrite)``.
_BOTH = re.compile(r"\b\w+=\S+ \((--[^()]+)\)")


def with_option(error: RareswitchError, options: argparse.Namespace) -> str:
    """The message of an error as the command line says it: with options in place of parameters."""
    text, option, parameter = _BOTH.sub(r"\1", str(error)), option_of(error, options), error.parameter
    if option is None or parameter is None or not text.startswith(parameter):
        return text
    return option_name(option) + text.removeprefix(parameter)


def moment_option(text: str) -> float:
    """A time as seconds since 1970, read as UTC where it has no zone.

    >>> moment_option("2026-03-09")
    1773014400.0
    """
    from rareswitch.planning import moment_of

    return _read_time(moment_of, text)


def duration_option(text: str) -> float:
    """A duration in seconds.

    >>> duration_option("2d"), duration_option("1 day 6 hours"), duration_option("0")
    (172800.0, 108000.0, 0.0)
    """
    from rareswitch.planning import duration_of

    return _read_time(duration_of, text)


def _read_time(read: Callable[[str, str], float], text: str) -> float:
    try:
        return read("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("it ")) from None


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


def json_option(text: str) -> Json:
    """Any value, as JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        example = """such as '{"age": 31}' with quotes around it"""
        raise argparse.ArgumentTypeError(f"must be JSON, {example}; got {text!r:.60} ({error})") from None


def add_experiment(parser: argparse.ArgumentParser, *, named: bool = True) -> None:
    """Add the names of a store and an experiment, and its key; or of the store alone."""
    parser.add_argument("url", metavar="STORE", help="a file such as spring.db, or a URL such as postgresql://…")
    if not named:
        return
    parser.add_argument("name", metavar="NAME", help="name of the experiment")
    add_key_options(parser, "key file: verify the experiment, and sign its policies")
    if not parser.prog.endswith(" create"):
        add_own_learner(parser)


def add_own_learner(parser: argparse.ArgumentParser) -> None:
    """Add the class of an experiment's own learner."""
    own = "path/to/file.py:Class, if the experiment was created with a learner of your own"
    parser.add_argument("--learner", metavar="FILE:CLASS", help=own)


def add_key_options(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the two options, of which one may be given."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--key-file", metavar="FILE", help=f"{purpose}; see rareswitch key --help")
    group.add_argument("--key", metavar="VARIABLE", help="environment variable that holds this key")


def given_key(options: argparse.Namespace) -> "Key | None":
    """The key that was given, if one was."""
    from rareswitch.policy import find_key

    return find_key(options.key_file, options.key)


#: A grid whose batches follow the widths of intervals, as learners name it.
ADAPTIVE = "adaptive"
#: Settings that are objects; commands have options of their own for them, or none.
SPECIAL = {"g_optimal", "designer"}


def add_settings(parser: argparse.ArgumentParser, *, without: Iterable[str] = ()) -> None:
    """Add the settings of learners that were typed; for ``--help``, those of the learners that are named."""
    words: Sequence[str] = parser.get_default("typed")
    typed = [word[2:].partition("=")[0].removeprefix("no-").replace("-", "_") for word in words if word[:2] == "--"]
    helps = "-h" in words or any(len(word) > 1 and "help".startswith(word) for word in typed)
    many = parser.prog.endswith(" compare")
    option = "--learners NAME …" if many else "--learner NAME"
    text = f"Every setting of a learner is an option too: {parser.prog} {option} --help lists them."
    parser.set_defaults(learner_settings=[])
    if helps and not any(word.startswith("learner") for word in typed):
        parser.epilog = text
        return
    from rareswitch.learner import all_learners, find_learner, settings_of

    for word in words:
        if ".py:" in word and typed and any(name.startswith("learner") for name in typed):
            with suppress(InputError):  # of a world, or what the command says of it
                find_learner(word.partition("=")[2] or word if word.startswith("--") else word)
    learners = all_learners()
    named = {word.partition("=")[2] or word for word in words} & learners.keys()
    group = parser.add_argument_group(f"settings of {', '.join(sorted(named))}" if named else "settings of learners")
    own, names = SPECIAL | set(without), []
    for learner in (learners[name] for name in learners if not helps or name in named):
        for entry in settings_of(learner):
            if entry.name in own or not (helps or any(entry.name.startswith(word) for word in typed if word)):
                continue
            name, text = option_name(entry.name), entry.metadata["text"]
            own.add(entry.name)
            names.append(entry.name)
            default = getattr(learner, entry.name, None)
            usual = "" if "default" in text or default is None or default is False else f" (default {default})"
            if entry.name == "grid":
                usual = f"; {ADAPTIVE}: at most --policies batches, by the widths of intervals"
            kind: OptionKind = {"help": f"{text}{usual}".replace("%", "%%"), "default": None}
            group.add_argument(name, **(kind | _kind(entry)))
    parser.set_defaults(learner_settings=names)


def given_settings(options: argparse.Namespace, names: Sequence[str]) -> Arguments:
    """The settings that were given; an option that none of the learners has is refused."""
    values = {name: getattr(options, name) for name in options.learner_settings}
    settings = {name: ADAPTIVE if value == [ADAPTIVE] else value for name, value in values.items() if value is not None}
    for setting in settings:
        check_heeded(option_name(setting), setting, names)
    return settings


def check_heeded(option: str, setting: str, names: Sequence[str]) -> None:
    """Refuse an option for a setting that none of these learners has."""
    from rareswitch.learner import all_learners, takes

    if not any(setting in takes(name) for name in names):
        takers = ", ".join(name for name in all_learners() if setting in takes(name))
        raise ParameterError(f"{option} is no setting of {', '.join(names)}. Leave it out, or take {takers}.")


def settings_for(name: str, settings: Arguments) -> Arguments:
    """Those of the settings that the learner of that name has."""
    from rareswitch.learner import takes

    return {key: value for key, value in settings.items() if key in takes(name)}


def count_option(text: str) -> int:
    """A whole number, also as 1e5 or 100_000."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number; got {text!r:.60}") from None
    if not abs(value) <= 1e12 or value != int(value):
        raise argparse.ArgumentTypeError(f"must be a whole number of at most 1e12; got {text!r:.60}")
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


class OptionKind(TypedDict, total=False):
    """How an option is read and described, as ``add_argument`` takes it."""

    action: str | type[argparse.Action]
    type: Callable[[str], Any]
    nargs: str
    metavar: str
    default: float | str | Sequence[float | str] | None
    required: bool
    help: str


def _kind(entry: "Field[Json]") -> OptionKind:
    """How the option of a setting of this type is read."""
    from rareswitch.learner import ConfidenceMode

    kinds = {entry.type, *get_args(entry.type)}
    if entry.name == "grid":
        return {"type": end_option, "nargs": "+", "metavar": "N"}
    if bool in kinds:
        return {"action": argparse.BooleanOptionalAction}
    if ConfidenceMode in kinds or entry.type == ConfidenceMode | float:
        return {"type": confidence_option, "metavar": "MODE"}
    if int in kinds:
        return {"type": count_option, "metavar": "N"}
    if str in kinds:
        return {"metavar": "KIND"}
    if float in kinds:
        return {"type": float, "metavar": "X"}
    return {"type": count_option, "nargs": "+", "metavar": "N"}


#: The most runs of each kind that a command lines up.
MOST_SEEDS = 1_000_000
#: For commands that compare.
SEEDS_HELP = (
    "runs of each; from 5 on, ratios have confidence intervals; 20 often resolve them to a factor 1.5, rare failures "
    "need hundreds"
)
#: How shared options are read, and their descriptions where a command has no other.
USUAL: dict[str, OptionKind] = {
    "learner": {"metavar": "NAME"},
    "learners": {"metavar": "NAME", "nargs": "+"},
    "world": {"metavar": "WORLD"},
    "worlds": {"metavar": "WORLD", "nargs": "+"},
    "horizon": {"metavar": "T", "type": count_option, "default": 100_000, "help": "decisions (default %(default)s)"},
    "horizons": {"metavar": "T", "type": count_option, "nargs": "+"},
    "dim": {"metavar": "D", "type": int, "help": "features of an arm (default %(default)s)"},
    "arms": {"metavar": "K", "type": int, "help": "arms in a set (default %(default)s)"},
    "noise": {"metavar": "SIGMA", "type": float, "help": "standard deviation of rewards (default %(default)s)"},
    "seed": {"metavar": "SEED", "type": int, "default": 0, "help": "of the world and the decisions (default 0)"},
    "seeds": {"metavar": "N", "type": int, "help": "runs of each (default %(default)s)"},
    "first_seed": {"metavar": "SEED", "type": int, "default": 0, "help": "the first of the seeds (default 0)"},
    "engine": {"default": "serial", "help": "executor: serial, processes[:n] or dask:address (default serial)"},
    "out": {"metavar": "PARQUET", "help": "file of runs; finished ones are read from it, new ones are added"},
    "plot": {"metavar": "PNG", "help": "write a picture (needs rareswitch[plot])"},
    "quiet": {"action": "store_true", "help": "no progress bar"},
    "id": {"type": id_option, "help": "id of a single decision"},
    "input": {"metavar": "FILE", "help": "file of JSON lines (default: the standard input)"},
    "now": {"type": moment_option, "metavar": "TIME", "help": "time of the decisions (default: now)"},
}


def add_options(parser: argparse.ArgumentParser, **options: str | int | float | Sequence[str] | OptionKind) -> None:
    """Add shared options: each with its default (a number or a list), its description (a text), or an own kind."""
    for name, own in options.items():
        kind: OptionKind = own if isinstance(own, dict) else {"help": own} if isinstance(own, str) else {"default": own}
        parser.add_argument(f"--{name.replace('_', '-')}", **(USUAL[name] | kind))


class RunSettings(TypedDict):
    """Seeds, file and progress bar of runs."""

    seeds: range
    path: str | None
    quiet: bool


def of_runs(options: argparse.Namespace) -> RunSettings:
    """Seeds, file and progress bar for the runs of a command, whose number and lengths are checked."""
    from rareswitch.core import whole

    for horizon in options.horizons if "horizons" in options else [options.horizon]:
        whole("horizon", horizon, low=2)
    first = whole("first_seed", options.first_seed, low=0)
    last = first + whole("seeds", options.seeds, high=MOST_SEEDS)
    return {"seeds": range(first, last), "path": options.out, "quiet": options.quiet}
