"""``rareswitch learners``: what there is to choose from."""

import argparse
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from rareswitch.cli.options import add_command, add_options, print_json

#: Widths of the columns, which make 80 together with the spaces between them.
NAME, POLICIES, REGRET = 25, 19, 32


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    add_options(add_command(commands, "learners", run), json="print a list of objects in place of the table")


def run(options: argparse.Namespace) -> int:
    """A paragraph for each learner."""
    from rareswitch.learner import all_learners

    if options.json:
        facts = (
            {"name": k, "text": e.text, "policies": e.adaptivity, "regret": e.regret} for k, e in all_learners().items()
        )
        print_json(list(facts))
        return 0
    print(_line("learner", "policies", "regret, up to logs; contexts"))
    print(_line(*("─" * width for width in (NAME, POLICIES, REGRET))))
    for name, entry in all_learners().items():
        cells = wrap(entry.adaptivity, POLICIES), wrap(entry.regret, REGRET)
        for policies, regret in zip_longest(*cells, fillvalue=""):
            print(_line(name, policies, regret))
            name = ""
        print(*wrap(entry.text, 76, initial_indent="    ", subsequent_indent="    "), sep="\n")
    return 0


def _line(name: str, policies: str, regret: str) -> str:
    return f"{name:{NAME}}  {policies:{POLICIES}}  {regret}".rstrip()
