"""``rareswitch experiment decide``, ``reward`` and ``activate``: one request, or JSON lines, one in and one out."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from rareswitch.cli.options import Json, add_options, json_option, with_option
from rareswitch.cli.output import Output
from rareswitch.cli.sources import opened
from rareswitch.errors import (
    ConflictError,
    FileFormatError,
    InputError,
    ParameterError,
    RareswitchError,
    did_you_mean,
    several,
)

if TYPE_CHECKING:
    from rareswitch.experiment import Choice, Experiment

#: Bytes that are read at once, and the longest line.
BLOCK = 1 << 20
LONGEST = 1 << 23
#: The object in a line.
LineData: TypeAlias = Mapping[str, Json]
#: Carries out the requests of lines, and returns a result for each.
Handler: TypeAlias = Callable[[Sequence[LineData]], Sequence[Json]]


def add_experiment_decide(parser: argparse.ArgumentParser) -> None:
    """Choose an arm for one request, or for each line of JSON.

    Without --id, each line of the standard input is a request, {"id": "r1", "context": {"age": 31}, "arms": ["a",
    "b"]}, and the answer is a line of JSON. A decision is durable when its answer is printed. The same id again gives
    the same answer.
    """
    parser.add_argument(
        "--context", type=json_option, metavar="JSON", help="record of the request, or vectors of its arms"
    )
    parser.add_argument(
        "--arms", nargs="+", metavar="ID", help="offered arms: ids, or one JSON object with their records"
    )
    parser.add_argument("--baseline", metavar="ID", help="the arm of the baseline: shown without this experiment")
    parser.add_argument("--deferred", action="store_true", help="count it only when it is activated")
    add_options(parser, id={}, input={}, now={})


def run_experiment_decide(options: argparse.Namespace) -> Output | int:
    """The choice, or a line for each request."""
    single = _is_single(options, ("context", "arms", "baseline"))
    if single and options.context is None:
        raise ParameterError("context must be given with --id: a record such as '{\"age\": 31}', or vectors.")
    with opened(options) as trial:
        if not single:
            return answer_lines(partial(_decide, trial, options), DECISIONS, options.input)
        arms = options.arms
        if arms is not None and len(arms) == 1 and arms[0][:1] in "[{":
            arms = json_option(arms[0])
        choice = trial.decide(
            options.context, arms, id=options.id, baseline=options.baseline, deferred=options.deferred, now=options.now
        )
    from rareswitch.report import as_text

    return Output(choice.as_dict(), as_text(choice, cli=True))


def _decide(trial: "Experiment", options: argparse.Namespace, lines: Sequence[LineData]) -> "list[Choice]":
    """Decide requests of one kind and time together."""
    first = lines[0]
    return trial.decide_many(
        [line["context"] for line in lines],
        None if first.get("arms") is None else [_arms(line) for line in lines],
        ids=[line["id"] for line in lines],
        baseline=None if first.get("baseline") is None else [line["baseline"] for line in lines],
        deferred=options.deferred,
        now=options.now if first.get("time") is None else first["time"],
    )


def _arms(line: LineData) -> list[Json] | dict[str, Json]:
    """The arms of a line; a text must not be taken for several."""
    arms = line["arms"]
    if not isinstance(arms, (list, dict)) or not arms:
        raise ParameterError(
            f'arms must be at least one: ids, as ["a", "b"], or records by id, as {{"a": {{"price": 3}}}}; got '
            f"{arms!r:.60}."
        )
    return arms


def _kind(line: LineData) -> tuple[Json, ...]:
    """Requests of one kind can be decided together."""
    context = line["context"]
    size = len(context) if isinstance(context, list) else None
    return line.get("time"), size, line.get("arms") is None, line.get("baseline") is None


def add_experiment_reward(parser: argparse.ArgumentParser) -> None:
    """Store the reward of one decision, or of each line of JSON.

    Without --id, each line of the standard input is a reward, {"id": "r1", "value": true}, and the answer is a line of
    JSON. A reward is durable when its answer is printed. The same reward again counts once; another value for the same
    decision is refused.

    With --by-entity, a table has the rewards: columns entity, time and value, and event where rewards are summed. Each
    is of the last decision for its entity, as OpenFeature asks for them (docs/how-to/service.md).
    """
    parser.add_argument("--by-entity", metavar="FILE", help="rewards by entity and time: .csv, .parquet, .json, .jsonl")
    parser.add_argument("--value", type=_reward_option, metavar="X", help="reward: a number, true or false")
    parser.add_argument("--event", metavar="TEXT", help="name of this reward, if the rewards of a decision are summed")
    parser.add_argument("--overwrite", action="store_true", help="replace the reward of the decision, if it has one")
    add_options(parser, id={}, input={}, now="time of the reward (default: now)")


def _reward_option(text: str) -> float | bool:
    """A number or a truth value, as JSON writes it."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, (int, float)):
        raise argparse.ArgumentTypeError(f"must be a number, true or false; got {text!r:.60}")
    return value


def run_experiment_reward(options: argparse.Namespace) -> Output | int:
    """The reward, or a line for each."""
    if options.by_entity is not None:
        return _reward_by_entity(options)
    single = _is_single(options, ("value", "event"))
    if single and options.value is None:
        raise ParameterError("value must be given with --id: a number, true or false.")
    with opened(options) as trial:
        if not single:
            return answer_lines(partial(_reward, trial, options), REWARDS, options.input)
        stored = trial.reward(
            options.id, options.value, event=options.event, overwrite=options.overwrite, now=options.now
        )
    value = float(options.value)
    facts = {"id": options.id, "value": value, "unmatched": bool(stored.unmatched)}
    later = f". There is no decision {options.id!r} yet: it is kept until there is" if stored.unmatched else ""
    return Output(facts, f"{options.id!r}: reward {value:g} stored{later}")


def _reward_by_entity(options: argparse.Namespace) -> Output:
    """Store the rewards of a table."""
    from rareswitch.core import read_records

    for name in ("id", "value", "event", "input", "now"):
        if getattr(options, name) is not None:
            raise ParameterError(f"by_entity is a table with its own values and times. Leave out --{name}.")
    table: Sequence[LineData] = read_records(options.by_entity)
    for name in ("entity", "time", "value"):
        if name not in table[0]:
            raise FileFormatError(
                f"{options.by_entity}: rewards by entity need the columns entity, time and value; there are "
                f"{', '.join(table[0])!s:.200}."
            )
    with opened(options) as trial:
        rewarded = trial.reward_by_entity(
            [str(row["entity"]) for row in table],
            [row["value"] for row in table],
            [row["time"] for row in table],
            events=[str(row["event"]) for row in table] if "event" in table[0] else None,
            overwrite=options.overwrite,
        )
    return Output(rewarded)


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


def add_experiment_activate(parser: argparse.ArgumentParser) -> None:
    """Count deferred decisions, whose arms were shown after all.

    Without --id, each line of the standard input is {"id": "r1"}, and the answer is the same line. Again changes
    nothing.
    """
    add_options(parser, id={}, input={}, now="time of the activation (default: now)")


def run_experiment_activate(options: argparse.Namespace) -> Output | int:
    """What became of the decision, or a line for each."""
    single = _is_single(options, ())
    with opened(options) as trial:
        if not single:
            return answer_lines(partial(_activate, trial, options.now), ACTIVATIONS, options.input)
        activated = trial.activate(options.id, now=options.now)
    return Output({"id": options.id} | activated.as_dict(), str(activated))


def _activate(trial: "Experiment", now: float | None, lines: Sequence[LineData]) -> list[None]:
    """Activate decisions of one time together."""
    first = lines[0]
    trial.activate(*(line["id"] for line in lines), now=now if first.get("time") is None else first["time"])
    return [None] * len(lines)


def _is_single(options: argparse.Namespace, names: Sequence[str]) -> bool:
    """Whether --id names one decision; its options without --id, and an input beside it, are errors."""
    if options.id is not None and options.input is not None:
        raise ParameterError("input has lines with ids of their own. Leave out --input or --id.")
    for name in names:
        if options.id is None and getattr(options, name) is not None:
            raise ParameterError(f"{name} is that of one decision: give its --id too, or JSON lines as input.")
    return options.id is not None


class Line(NamedTuple):
    """A line of the input."""

    #: From 1.
    number: int
    data: LineData
    #: Why it cannot be read; '' if it can.
    error: str = ""


class Dialogue(NamedTuple):
    """How lines are answered."""

    fields: Sequence[str]
    #: The fields that every line has.
    needed: Sequence[str]
    #: Lines that follow each other and have the same value of this are carried out in one call.
    alike: Callable[[LineData], Json]
    #: The answer to a line, made of the line and its result.
    answer: Callable[[LineData, Json], LineData]


DECISIONS = Dialogue(
    fields=("id", "context", "arms", "baseline", "time"),
    needed=("id", "context"),
    alike=_kind,
    answer=lambda _, choice: choice.as_dict(),
)
ACTIVATIONS = Dialogue(
    fields=("id", "time"),
    needed=("id",),
    alike=lambda line: line.get("time"),
    answer=lambda line, _: {"id": line["id"]},
)
REWARDS = Dialogue(
    fields=("id", "value", "event", "time"),
    needed=("id", "value"),
    alike=lambda line: (line.get("time"), "event" in line),
    answer=lambda line, _: {"id": line["id"], "value": float(line["value"])},
)


def answer_lines(call: Handler, dialogue: Dialogue, path: str | None) -> int:
    """Answer each line of a file, or of the standard input, and return the exit status: 1 where some were refused.

    Lines are answered together as far as they have come, so that a program can wait for each answer and a file is
    read fast. A line that is refused is answered by its number and the error, and the others go on.
    """
    refused = total = 0
    with _input(path) as stream:
        for lines in read_blocks(stream, dialogue):
            answers = list(_answers(call, lines, dialogue))
            refused += sum("error" in answer for answer in answers)
            total += len(lines)
            texts = (json.dumps(answer, allow_nan=False, ensure_ascii=False) for answer in answers)
            sys.stdout.write("".join(f"{text}\n" for text in texts))
            sys.stdout.flush()
    if refused:
        print(f"rareswitch: {refused:,} of {several(total, 'line')} refused: the answers say why.", file=sys.stderr)
    return 1 if refused else 0


def read_blocks(stream: BinaryIO, dialogue: Dialogue) -> Iterator[list[Line]]:
    r"""Lines as they arrive: all that are there, without waiting for more.

    >>> import io
    >>> dialogue = Dialogue(["id"], ["id"], alike=len, answer=dict)
    >>> [line.data for lines in read_blocks(io.BytesIO(b'{"id": 1}\n\n{"id": 2}'), dialogue) for line in lines]
    [{'id': 1}, {'id': 2}]
    """
    rest, number = b"", 0
    while data := stream.read1(BLOCK):  # type: ignore[attr-defined]
        *texts, rest = (rest + data).split(b"\n")
        if len(rest) > LONGEST:
            raise FileFormatError(f"line {number + len(texts) + 1} is longer than {LONGEST:,} bytes.")
        lines = [read_line(number + k, text, dialogue) for k, text in enumerate(texts, start=1) if text.strip()]
        number += len(texts)
        if lines:
            yield lines
    if rest.strip():
        yield [read_line(number + 1, rest, dialogue)]


def read_line(number: int, text: bytes, dialogue: Dialogue) -> Line:
    """A line with an object of these fields, or with its error."""
    fields = ", ".join(dialogue.fields)
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        return Line(number, {}, f"not JSON ({error})")
    if not isinstance(data, dict):
        return Line(number, {}, f"a line must be an object with {fields}; got {data!s:.60}")
    if unknown := [name for name in data if name not in dialogue.fields]:
        meant = did_you_mean(unknown[0], dialogue.fields)
        return Line(number, data, f"unknown field {unknown[0]!r:.60}; a line has {fields}.{meant}")
    if missing := [name for name in dialogue.needed if name not in data]:
        return Line(number, data, f"the field {missing[0]!r} is missing")
    return Line(number, data)


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object whose names all differ."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r:.60} is there twice")
    return dict(pairs)


def _input(path: str | None) -> AbstractContextManager[BinaryIO]:
    if path is None:
        if sys.stdin.isatty():
            print("rareswitch: reading lines of JSON from the terminal; Ctrl-D ends them.", file=sys.stderr)
        return nullcontext(sys.stdin.buffer)
    try:
        return open(path, "rb")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror}).") from error


def _answers(call: Handler, lines: Sequence[Line], dialogue: Dialogue) -> Iterator[LineData]:
    """For each line its answer, or why it is refused."""
    readable = [line.data for line in lines if not line.error]
    results = (result for _, group in groupby(readable, dialogue.alike) for result in _results(call, list(group)))
    for line in lines:
        result = line.error or next(results)
        if isinstance(result, (str, Exception)):
            name = {"id": line.data["id"]} if "id" in line.data else {}
            text = with_option(result, argparse.Namespace()) if isinstance(result, RareswitchError) else str(result)
            yield name | {"line": line.number, "error": text}
        else:
            yield dialogue.answer(line.data, result)


def _results(call: Handler, lines: Sequence[LineData]) -> list[Json]:
    """For each line the result of one call, or the error that refuses it; the others are not carried out again.

    Of lines that are refused before anything is stored, each half is tried.
    """
    try:
        return list(call(lines))
    except FileFormatError:  # the store's, not that of a line
        raise
    except ConflictError as error:
        return list(error.each) or [error]
    except InputError as error:
        if len(lines) == 1:
            return [error]
        half = len(lines) // 2
        return _results(call, lines[:half]) + _results(call, lines[half:])
