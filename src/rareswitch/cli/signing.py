"""How commands take a key: from a file, or from the environment; never on the command line, where others can see it."""

import argparse
import os
import re
from typing import TYPE_CHECKING

from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from rareswitch.policy import Key

#: A longer text that no variable is called by is taken for a key.
_LONGEST_NAME = 31


def add_key(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the two options, of which one may be given."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--key-file", metavar="FILE", help=f"{purpose}; see rareswitch key")
    group.add_argument("--key", metavar="NAME", help="the same key in an environment variable of this name")


def given_key(options: argparse.Namespace) -> "Key | None":
    """The key that was given, if one was."""
    from rareswitch.policy import key_from_text, load_key

    if options.key_file is not None:
        return load_key(options.key_file)
    if options.key is None:
        return None
    text = os.environ.get(options.key)
    if text is not None:
        return key_from_text(text.encode(errors="replace"), f"the environment variable {options.key}")
    if not re.fullmatch(rf"[A-Za-z_]\w{{0,{_LONGEST_NAME - 1}}}", options.key, re.ASCII):
        raise ParameterError(
            "--key takes the name of an environment variable, never the key itself, and what was given cannot be one. "
            "If it was a key, others may have seen it on the command line: make a new one, and pass it with "
            "--key-file FILE or in a variable."
        )
    raise ParameterError(
        f"--key takes the name of an environment variable that holds the key; there is no variable {options.key}. Set "
        "it, or pass a file: --key-file FILE."
    )
