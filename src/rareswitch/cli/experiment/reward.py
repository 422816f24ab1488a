"""``rareswitch experiment reward``: what decisions earned."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rareswitch.cli.json_lines import Dialogue, LineData, answer_lines, one_or_lines
from rareswitch.cli.options import add_options, json_option
from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment

DIALOGUE = Dialogue(
    fields=("id", "value", "event", "time"),
    needed=("id", "value"),
    alike=lambda line: (line.get("time"), "event" in line),
    answer=lambda line, _: {"id": line["id"], "value": float(line["value"])},
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--value", type=json_option, metavar="X", help="its reward: a number, true or false")
    parser.add_argument("--event", metavar="TEXT", help="the name of this reward, where several are summed")
    parser.add_argument("--overwrite", action="store_true", help="replace a reward that the decision has already")
    add_options(parser, id={}, input={}, now="when it came (default: now)")


def run(options: argparse.Namespace) -> Output | int:
    """Store what a decision earned.

    Without --id, each line of the standard input is a reward, {"id": "r1", "value": true}, and its answer a line of
    JSON, durable when it is printed. The same reward twice counts once; another value for the same decision is refused.
    """
    single = one_or_lines(options, ("value", "event"))
    if single and options.value is None:
        raise ParameterError("value must be given with --id: a number, true or false.")
    with opened(options) as trial:
        if not single:
            return answer_lines(partial(_reward, trial, options), DIALOGUE, options.input)
        trial.reward(options.id, options.value, event=options.event, overwrite=options.overwrite, now=options.now)
    value = float(options.value)
    return Output({"id": options.id, "value": value}, f"{options.id!r}: {value:g} is stored")


def _reward(trial: "Experiment", options: argparse.Namespace, lines: Sequence[LineData]) -> list[None]:
    """Store rewards of one time together."""
    first = lines[0]
    trial.reward_many(
        [line["id"] for line in lines],
        [line["value"] for line in lines],
        events=[line["event"] for line in lines] if "event" in first else None,
        overwrite=options.overwrite,
        now=options.now if first.get("time") is None else first["time"],
    )
    return [None] * len(lines)
