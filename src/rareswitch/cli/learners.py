"""``rareswitch learners``: what there is, how many policies each needs, and its regret bound."""

import argparse
from itertools import zip_longest
from textwrap import wrap

from rareswitch.cli.output import Output

#: Widths of the columns, which make 80 together with the spaces between them.
NAME, POLICIES, REGRET = 25, 19, 32


def add_learners(parser: argparse.ArgumentParser) -> None:
    """List the learners: a description, the number of policies, and the regret bound."""


def run_learners(options: argparse.Namespace) -> Output:
    """A table with a line of text for each learner."""
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
