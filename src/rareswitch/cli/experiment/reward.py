"""``rareswitch experiment reward``: what decisions earned."""

import argparse
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rareswitch.cli.experiment import add_now, add_verb, id_option, json_option, opened
from rareswitch.cli.json_lines import answer_lines, one_or_lines, together
from rareswitch.cli.options import print_json, report_done
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Experiment

NEEDED = ("id", "value")
FIELDS = ("id", "value", "event", "time")


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "reward",
        run,
        key="check the experiment with the key in this file",
        description=(
            "Say what a decision earned. Without --id, each line of the standard input is a reward, "
            '{"id": "r1", "value": true}, and its answer a line of JSON, durable when it is printed. Twice the same '
            "reward counts once; another value for the same decision is refused."
        ),
    )
    parser.add_argument("--id", type=id_option, help="of one decision")
    parser.add_argument("--value", type=json_option, metavar="X", help="its reward: a number, true or false")
    parser.add_argument("--event", metavar="TEXT", help="the name of this reward, where several are summed")
    parser.add_argument("--overwrite", action="store_true", help="let another value take the place of one that is kept")
    parser.add_argument("--input", metavar="FILE", help="read lines from a file (default: the standard input)")
    add_now(parser, "when it came (default: now)")
    parser.add_argument("--json", action="store_true", help="print an object in place of a sentence")


def run(options: argparse.Namespace) -> int:
    """Keep rewards."""
    if not one_or_lines(options, ("value", "event")):
        with opened(options) as trial:
            return answer_lines(lambda lines: _kept(trial, lines, options), FIELDS, NEEDED, options)
    if options.value is None:
        raise ParameterError("value must be given with --id: a number, true or false.")
    with opened(options) as trial:
        told: dict[str, Any] = {"event": options.event, "overwrite": options.overwrite, "now": options.now}
        trial.reward(options.id, options.value, **told)
    if options.json:
        print_json({"id": options.id, "value": float(options.value)})
    else:
        report_done(f"{options.id!r}: {float(options.value):g} is kept", "the reward is kept")
    return 0


def _kept(
    trial: "Experiment", lines: Sequence[Mapping[str, Any]], options: argparse.Namespace
) -> list[dict[str, Any] | Exception]:
    """Answers to lines; those of one time that follow each other are kept together."""

    def kept(some: Sequence[Mapping[str, Any]]) -> list[None]:
        moment = some[0].get("time")
        told: dict[str, Any] = {"events": [line["event"] for line in some] if "event" in some[0] else None}
        told |= {"overwrite": options.overwrite, "now": options.now if moment is None else moment}
        trial.reward_many([line["id"] for line in some], [line["value"] for line in some], **told)
        return [None] * len(some)

    groups = groupby(lines, lambda line: (line.get("time"), "event" in line))
    found = [one for _, group in groups for one in together(kept, list(group))]
    answers = zip(lines, found, strict=True)
    return [{"id": line["id"], "value": float(line["value"])} if one is None else one for line, one in answers]
