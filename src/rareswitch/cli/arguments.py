"""What was given on the command line, and what it is called there."""

import argparse
import re
from functools import partial

from rareswitch.errors import ParameterError, RareswitchError

#: Parameters that texts of one command name, and that are options of another.
_ELSEWHERE = {
    "forecast": "--forecast N",
    "force": "--force",
    "min_propensity": "--min-propensity",
    "baseline": "--baseline",
}
_ELSEWHERE |= {"conflicts": "--skip-conflicts"}
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
