"""What commands print: text for people, JSON for programs, pictures."""

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rareswitch.core import Result

#: What JSON has an object for.
Facts: TypeAlias = Mapping[str, object]


class Output(NamedTuple):
    """What a command has to say."""

    #: For ``--json``: a report, an object or a list.
    facts: "Result | Facts | Sequence[Facts]"
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


def print_json(facts: "Result | Facts | Sequence[Facts]") -> None:
    """One line of JSON; a number that is not finite is an error. Objects have the version of their schema."""
    from rareswitch.core import SCHEMA_VERSION, Result

    data = facts.as_dict() if isinstance(facts, Result) else facts
    data = {"schema_version": SCHEMA_VERSION, **data} if isinstance(data, Mapping) else data
    print(json.dumps(data, allow_nan=False))


def save_picture(drawn: "Figure", options: argparse.Namespace, gap: str = "\n") -> None:
    """Write the picture, with the command as its caption, and say so where text is printed."""
    from rareswitch.report import save

    save(drawn, options.plot, shlex.join(["rareswitch", *options.typed]))
    if not options.json:
        print(f"{gap}picture written to {options.plot}")
