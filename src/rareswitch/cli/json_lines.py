"""JSON lines: one request a line in, one answer a line out."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, BinaryIO, NamedTuple, TypeVar

from rareswitch.cli.options import in_options
from rareswitch.errors import ConflictError, FileFormatError, InputError, ParameterError, did_you_mean, several

#: Bytes that are read at once, and the longest line.
BLOCK = 1 << 20
LONGEST = 1 << 23
#: Answers some requests, in their order, each with an object or with the error that refuses it.
Answer = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any] | Exception]]
T = TypeVar("T")


class Line(NamedTuple):
    """A line of the input."""

    #: From 1.
    number: int
    data: dict[str, Any]
    #: What is wrong with it; '' where it can be read.
    error: str = ""


def one_or_lines(options: Any, names: Sequence[str]) -> bool:
    """Whether one decision is named by --id; an error where what belongs to one is mixed with lines."""
    if options.id is not None and options.input is not None:
        raise ParameterError("input has lines with ids of their own; leave it out, or --id.")
    for name in names:
        if options.id is None and getattr(options, name) is not None:
            raise ParameterError(f"{name} is that of one decision: give its --id too, or lines of JSON as input.")
    return options.id is not None


def answer_lines(answer: Answer, fields: Sequence[str], needed: Sequence[str], options: argparse.Namespace) -> int:
    """Answer each line of a file, or of the standard input, and return the exit status: 1 where some were refused.

    Lines are answered together as far as they have come, so that a program can wait for each answer and a file is
    read fast. One that is refused gets an answer with its number and the error, and the others go on.
    """
    refused = total = 0
    with _opened(options.input) as stream:
        for block in blocks(stream, fields, needed):
            answers = list(_answered(answer, block, options))
            refused += sum("error" in one for one in answers)
            total += len(block)
            sys.stdout.write("".join(f"{json.dumps(one, allow_nan=False, ensure_ascii=False)}\n" for one in answers))
            sys.stdout.flush()
    if refused:
        print(f"rareswitch: {refused:,} of {several(total, 'line')} refused: the answers say why.", file=sys.stderr)
    return 1 if refused else 0


def blocks(stream: BinaryIO, fields: Sequence[str], needed: Sequence[str] = ()) -> Iterator[list[Line]]:
    r"""Lines as they come: all that are there, never waiting for more.

    >>> import io
    >>> [line.data for block in blocks(io.BytesIO(b'{"id": 1}\n\n{"id": 2}'), ["id"]) for line in block]
    [{'id': 1}, {'id': 2}]
    """
    rest, number = b"", 0
    while data := stream.read1(BLOCK):  # type: ignore[attr-defined]
        *whole, rest = (rest + data).split(b"\n")
        if len(rest) > LONGEST:
            raise FileFormatError(f"line {number + len(whole) + 1} is longer than {LONGEST:,} bytes.")
        lines = [read_line(number + k, text, fields, needed) for k, text in enumerate(whole, start=1) if text.strip()]
        number += len(whole)
        if lines:
            yield lines
    if rest.strip():
        yield [read_line(number + 1, rest, fields, needed)]


def together(
    call: Callable[[Sequence[Mapping[str, Any]]], Sequence[T]], lines: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """What a call with some lines gives for each, or the error that refuses it; the others are not asked again.

    Of lines that are refused before anything is kept, each half is tried.
    """
    try:
        return list(call(lines))
    except FileFormatError:  # the store's, not that of a line
        raise
    except ConflictError as error:
        return list(error.each) if error.each else [error]
    except InputError as error:
        if len(lines) == 1:
            return [error]
        half = len(lines) // 2
        return together(call, lines[:half]) + together(call, lines[half:])


def read_line(number: int, text: bytes, fields: Sequence[str], needed: Sequence[str] = ()) -> Line:
    """A line with an object of these fields, or what is wrong with it."""
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        return Line(number, {}, f"not JSON ({error})")
    if not isinstance(data, dict):
        return Line(number, {}, f"a line must be an object with {', '.join(fields)}; got {data!s:.60}")
    if unknown := [name for name in data if name not in fields]:
        meant = did_you_mean(unknown[0], fields)
        return Line(number, data, f"unknown field {unknown[0]!r:.60}; a line has {', '.join(fields)}.{meant}")
    if missing := [name for name in needed if name not in data]:
        return Line(number, data, f"the field {missing[0]!r} is missing")
    return Line(number, data)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names all differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r:.60} is there twice")
    return found


def _opened(path: str | None) -> Any:
    if path is None:
        if sys.stdin.isatty():
            print("rareswitch: reading lines of JSON from the terminal; Ctrl-D ends them.", file=sys.stderr)
        return nullcontext(sys.stdin.buffer)
    try:
        return open(path, "rb")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror}).") from error


def _answered(answer: Answer, block: Sequence[Line], options: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    good = [line for line in block if not line.error]
    found = dict(zip((line.number for line in good), answer([line.data for line in good]), strict=True))
    for line in block:
        given = found.get(line.number, line.error)
        yield given if isinstance(given, Mapping) else _refusal(line, in_options(given, options))


def _refusal(line: Line, error: str) -> dict[str, Any]:
    return ({"id": line.data["id"]} if "id" in line.data else {}) | {"line": line.number, "error": error}
