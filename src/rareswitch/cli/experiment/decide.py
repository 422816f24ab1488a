"""``rareswitch experiment decide``: an arm for a request, or for each line of the input."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rareswitch.cli.json_lines import Dialogue, LineData, answer_lines, one_or_lines
from rareswitch.cli.options import add_options, json_option
from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Choice, Experiment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--context", type=json_option, metavar="JSON", help="its record, or the vectors of its arms")
    parser.add_argument("--arms", nargs="+", metavar="ID", help="its arms, or one JSON text with their records")
    parser.add_argument("--baseline", metavar="ID", help="the arm that would have been shown")
    add_options(parser, id={}, input={}, now={})


def run(options: argparse.Namespace) -> Output | int:
    """Choose an arm.

    Without --id, each line of the standard input is a request, {"id": "r1", "context": {"age": 31}, "arms": ["a",
    "b"]}, and its answer a line of JSON, durable when it is printed. The same id again gives the same answer.
    """
    single = one_or_lines(options, ("context", "arms", "baseline"))
    if single and options.context is None:
        raise ParameterError("context must be given with --id: a record such as '{\"age\": 31}', or vectors.")
    with opened(options) as trial:
        if not single:
            return answer_lines(partial(_decide, trial, options.now), DIALOGUE, options.input)
        arms = options.arms
        if arms is not None and len(arms) == 1 and arms[0][:1] in "[{":
            arms = json_option(arms[0])
        choice = trial.decide(options.context, arms, id=options.id, baseline=options.baseline, now=options.now)
    from rareswitch.report import as_text

    return Output(choice.as_dict(), as_text(choice, cli=True))


def _decide(trial: "Experiment", now: float | None, lines: Sequence[LineData]) -> "list[Choice]":
    """Decide requests of one kind and time together."""
    first = lines[0]
    return trial.decide_many(
        [line["context"] for line in lines],
        None if first.get("arms") is None else [_arms(line) for line in lines],
        ids=[line["id"] for line in lines],
        baseline=None if first.get("baseline") is None else [line["baseline"] for line in lines],
        now=now if first.get("time") is None else first["time"],
    )


def _arms(line: LineData) -> list[Any] | dict[str, Any]:
    """The arms of a line; a text must not be taken for several."""
    arms = line["arms"]
    if not isinstance(arms, (list, dict)) or not arms:
        raise ParameterError(
            f'arms must be at least one: ids, as ["a", "b"], or records by id, as {{"a": {{"price": 3}}}}; got '
            f"{arms!r:.60}."
        )
    return arms


def _kind(line: LineData) -> tuple[Any, ...]:
    context = line["context"]
    size = len(context) if isinstance(context, list) else None
    return line.get("time"), size, line.get("arms") is None, line.get("baseline") is None


DIALOGUE = Dialogue(
    fields=("id", "context", "arms", "baseline", "time"),
    needed=("id", "context"),
    alike=_kind,
    answer=lambda _, choice: choice.as_dict(),
)
