"""What commands print: text for people, JSON for programs, pictures."""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rareswitch.core import Result


class Output(NamedTuple):
    """What a command has to say."""

    #: For ``--json``: a report, an object or a list.
    facts: "Result | Mapping[str, Any] | Sequence[Mapping[str, Any]]"
    #: Without ``--json``; by default the report as text.
    text: str = ""
    #: The exit status of the command.
    status: int = 0


def show(output: Output, *, as_json: bool) -> int:
    """Print what a command has to say, and return its exit status."""
    if as_json:
        print_json(output.facts)
    elif output.text:
        print(output.text)
    else:
        from rareswitch.report import as_text

        print(as_text(output.facts, cli=True))
    return output.status


def print_json(facts: "Result | Mapping[str, Any] | Sequence[Mapping[str, Any]]") -> None:
    """One line of JSON; a number that is not finite is an error. Objects name the version of their schema."""
    from rareswitch.core import SCHEMA_VERSION, Result

    data = facts.as_dict() if isinstance(facts, Result) else facts
    data = {"schema_version": SCHEMA_VERSION, **data} if isinstance(data, Mapping) else data
    print(json.dumps(data, allow_nan=False))


def save_picture(drawn: "Figure", options: argparse.Namespace, gap: str = "\n") -> None:
    """Write the picture and, where text is printed, say so."""
    from rareswitch.report import save

    save(drawn, options.plot, options.command)
    if not options.json:
        print(f"{gap}picture written to {options.plot}")
