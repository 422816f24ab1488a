"""``rareswitch experiment decide``: an arm for a request, or for each line of the input."""

import argparse
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rareswitch.cli.experiment import add_now, add_verb, id_option, json_option, opened
from rareswitch.cli.json_lines import answer_lines, one_or_lines, together
from rareswitch.cli.options import print_json, report_done
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.experiment import Choice, Experiment

NEEDED = ("id", "context")
FIELDS = ("id", "context", "arms", "baseline", "time")


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_verb(
        commands,
        "decide",
        run,
        key="check the experiment with the key in this file",
        description=(
            "Choose an arm. Without --id, each line of the standard input is a request, "
            '{"id": "r1", "context": {"age": 31}, "arms": ["a", "b"]}, and its answer a line of JSON, durable when it '
            "is printed. The same id again gives the same answer."
        ),
    )
    parser.add_argument("--id", type=id_option, help="of one decision")
    parser.add_argument("--context", type=json_option, metavar="JSON", help="its record, or the vectors of its arms")
    parser.add_argument("--arms", nargs="+", metavar="ID", help="its arms, or one JSON text with their records")
    parser.add_argument("--baseline", metavar="ID", help="the arm that would have been shown")
    parser.add_argument("--input", metavar="FILE", help="read lines from a file (default: the standard input)")
    add_now(parser)
    parser.add_argument("--json", action="store_true", help="print an object in place of a sentence")


def run(options: argparse.Namespace) -> int:
    """Decide."""
    if not one_or_lines(options, ("context", "arms", "baseline")):
        with opened(options) as trial:
            return answer_lines(lambda lines: _answers(trial, lines, options.now), FIELDS, NEEDED, options)
    from rareswitch.report import caution_text

    if options.context is None:
        raise ParameterError("context must be given with --id: a record such as '{\"age\": 31}', or vectors.")
    with opened(options) as trial:
        told: Any = {"id": options.id, "baseline": options.baseline, "now": options.now}
        choice = trial.decide(options.context, _arms(options.arms), **told)
    if options.json:
        print_json(choice.as_dict())
        return 0
    again = "; it was asked for before" if choice.repeated else ""
    text = (
        f"{choice.arm} (probability {choice.propensity:.6g}, policy {choice.version}, {choice.policy_id[:12]}…{again})"
    )
    text = "\n".join([text, *(f"  {caution_text(*caution)}" for caution in choice.cautions)])
    report_done(text, f"the decision {choice.id!r} is kept")
    return 0


def _arms(given: list[str] | None) -> Any:
    """Ids, or what one JSON text says."""
    if given is not None and len(given) == 1 and given[0][:1] in "[{":
        return json_option(given[0])
    return given


def _answers(
    trial: "Experiment", lines: Sequence[Mapping[str, Any]], now: float | None
) -> list[dict[str, Any] | Exception]:
    """Answers to lines; those of one kind and time that follow each other are decided together."""

    def decided(some: Sequence[Mapping[str, Any]]) -> "list[Choice]":
        moment = some[0].get("time")
        told: dict[str, Any] = {"ids": [line["id"] for line in some], "now": now if moment is None else moment}
        if some[0].get("baseline") is not None:
            told["baseline"] = [line["baseline"] for line in some]
        arms = None if some[0].get("arms") is None else [_offered(line["arms"]) for line in some]
        return trial.decide_many([line["context"] for line in some], arms, **told)

    found = [one for _, group in groupby(lines, _kind) for one in together(decided, list(group))]
    return [one if isinstance(one, Exception) else one.as_dict() for one in found]


def _offered(arms: Any) -> Any:
    """The arms of a line; what is none must not be taken for one of several."""
    if not isinstance(arms, (list, dict)) or not arms:
        raise ParameterError(
            f'arms must be at least one: ids, as ["a", "b"], or records by id, as {{"a": {{"price": 3}}}}; got '
            f"{arms!r:.60}."
        )
    return arms


def _kind(line: Mapping[str, Any]) -> tuple[Any, ...]:
    context = line["context"]
    size = len(context) if isinstance(context, list) else None
    return line.get("time"), size, line.get("arms") is None, line.get("baseline") is None
