"""``rareswitch learners``: what there is to choose from."""

import argparse
from itertools import zip_longest
from textwrap import wrap

from rareswitch.cli.output import Output

#: Widths of the columns, which make 80 together with the spaces between them.
NAME, POLICIES, REGRET = 25, 19, 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has no options of its own."""


def run(options: argparse.Namespace) -> Output:
    """List the learners: what each one does, how many policies it needs, and its regret bound."""
    from rareswitch.learner import all_learners

    lines = [_line("learner", "policies", "regret, up to logs; contexts")]
    lines.append(_line(*("─" * width for width in (NAME, POLICIES, REGRET))))
    facts = []
    for name, entry in all_learners().items():
        facts.append({"name": name, "text": entry.text, "policies": entry.adaptivity, "regret": entry.regret})
        cells = wrap(entry.adaptivity, POLICIES), wrap(entry.regret, REGRET)
        for row, (policies, regret) in enumerate(zip_longest(*cells, fillvalue="")):
            lines.append(_line("" if row else name, policies, regret))
        lines += wrap(entry.text, 76, initial_indent="    ", subsequent_indent="    ")
    return Output(facts, "\n".join(lines))


def _line(name: str, policies: str, regret: str) -> str:
    return f"{name:{NAME}}  {policies:{POLICIES}}  {regret}".rstrip()
