"""JSON lines: one request a line in, one answer a line out."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

from rareswitch.errors import ConflictError, FileFormatError, InputError, ParameterError, did_you_mean, several

#: Bytes that are read at once, and the longest line.
BLOCK = 1 << 20
LONGEST = 1 << 23
#: The object in a line.
LineData = Mapping[str, Any]
#: Carries out what lines ask for, and returns a result for each.
Call = Callable[[Sequence[LineData]], Sequence[Any]]


class Line(NamedTuple):
    """A line of the input."""

    #: From 1.
    number: int
    data: LineData
    #: What is wrong with it; '' where it can be read.
    error: str = ""


class Dialogue(NamedTuple):
    """How lines are answered."""

    fields: Sequence[str]
    #: The fields that every line has.
    needed: Sequence[str]
    #: Lines that follow each other and have the same value of this are carried out in one call.
    alike: Callable[[LineData], Any]
    #: The answer to a line, made of the line and its result.
    answer: Callable[[LineData, Any], LineData]


def one_or_lines(options: argparse.Namespace, names: Sequence[str]) -> bool:
    """Whether one decision is named by --id; its options without --id, and an input beside it, are errors."""
    if options.id is not None and options.input is not None:
        raise ParameterError("input has lines with ids of their own; leave it out, or --id.")
    for name in names:
        if options.id is None and getattr(options, name) is not None:
            raise ParameterError(f"{name} is that of one decision: give its --id too, or lines of JSON as input.")
    return options.id is not None


def answer_lines(call: Call, dialogue: Dialogue, path: str | None) -> int:
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
    r"""Lines as they come: all that are there, never waiting for more.

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
    """A line with an object of these fields, or what is wrong with it."""
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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


def _answers(call: Call, lines: Sequence[Line], dialogue: Dialogue) -> Iterator[LineData]:
    """For each line its answer, or why it is refused."""
    readable = [line.data for line in lines if not line.error]
    results = (result for _, group in groupby(readable, dialogue.alike) for result in _results(call, list(group)))
    for line in lines:
        result = line.error or next(results)
        if isinstance(result, (str, Exception)):
            name = {"id": line.data["id"]} if "id" in line.data else {}
            yield name | {"line": line.number, "error": str(result)}
        else:
            yield dialogue.answer(line.data, result)


def _results(call: Call, lines: Sequence[LineData]) -> list[Any]:
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
