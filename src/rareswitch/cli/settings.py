"""Options that learners' settings make: names, types, defaults and texts are those of their classes.

The classes are imported where they are asked: many commands read their options by this without them.
"""

import argparse
from collections.abc import Iterable
from typing import Any, get_args

from rareswitch.cli.arguments import option_name
from rareswitch.errors import ParameterError

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
