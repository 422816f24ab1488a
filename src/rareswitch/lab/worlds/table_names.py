"""Worlds of tables by name: a file, and options after commas."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rareswitch.errors import InputError
from rareswitch.lab.worlds.choices import ChoiceWorld
from rareswitch.lab.worlds.table import table_world
from rareswitch.lab.worlds.world import World

#: Kinds of tables and what makes worlds of them, whose keywords are the options.
TABLES: dict[str, Callable[..., World]] = {"table": table_world, "choices": ChoiceWorld.from_file}


def world_of_file(kind: str, text: str) -> World:
    r"""The world of a table of a kind, named as ``FILE,option=value,…``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "leaves.csv")
    >>> _ = path.write_text("width,kind\n1.5,oak\n2.5,elm\n1.6,oak\n")
    >>> world_of_file("table", f"{path},label=kind,components=1")
    ClassificationWorld(leaves.csv: 3 examples, 2 classes, d = 4)
    """
    make = TABLES[kind]
    known = {
        name: keyword.annotation in (int, int | None)  # whether it is a whole number
        for name, keyword in inspect.signature(make).parameters.items()
        if keyword.kind is keyword.KEYWORD_ONLY
    }
    path, options = text, dict[str, Any]()
    while not Path(path).is_file() and (found := re.fullmatch(r"(.*),(\w+)=([^,]*)", path, re.DOTALL)):
        path, option, value = found.groups()
        if option not in known or option in options:
            raise InputError(f"{kind}:FILE takes each of the options {', '.join(known)} once; got '{option}={value}'.")
        if known[option] and not (value.isdecimal() and len(value) <= 9):
            raise InputError(f"{option} of {kind}:FILE must be a whole number; got '{value}'.")
        options[option] = int(value) if known[option] else value
    if not path:
        raise InputError(f"the world '{kind}' is made from a table in a file. Name it: {kind}:path/to/file.csv.")
    return make(path, **options)
