"""``rareswitch reproduce``: the paper shown claim by claim."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from rareswitch.cli import INTERRUPTED
from rareswitch.cli.output import print_json
from rareswitch.core import make_executor, write_whole
from rareswitch.lab.report.reproduction import reproduction_markdown
from rareswitch.lab.reproduction.reproduce import Reproduction, reproduce
from rareswitch.report import ProgressBar, as_html, as_text, check_file_name, check_target

#: What a report can be written as.
FORMATS: dict[str, Callable[[Reproduction], str]] = {".md": reproduction_markdown, ".txt": as_text, ".html": as_html}


def run_reproduce(options: argparse.Namespace) -> int:
    """Verdicts, as text or JSON, and as a file."""
    target = None if options.out is None else _target(Path(options.out))
    with make_executor(options.engine) as executor, ProgressBar("claims", quiet=options.quiet) as progress:
        result = reproduce(
            quick=options.quick,
            seed=options.seed,
            items=options.items,
            executor=executor,
            keep=options.keep,
            progress=progress,
        )
    if options.json:
        print_json(result)
    elif result.outcomes:
        print(as_text(result, cli=True))
    if target is not None and result.outcomes:
        write_whole(f"{FORMATS[target.suffix.lower()](result).rstrip()}\n".encode(), target)
        if not options.json:
            print(f"\nreport written to {target}")
    if result.interrupted:
        where = f"; they are in {options.keep}" if options.keep else ""
        print(f"rareswitch: stopped after {len(result.outcomes)} finished items{where}.", file=sys.stderr)
        return INTERRUPTED
    return 1 if result.failed else 0


def _target(path: Path) -> Path:
    """Refuse, before any work is done, what could not be written."""
    check_file_name(path, f"a report's name must end in {', '.join(FORMATS)}", tuple(FORMATS))
    if path.suffix.lower() == ".html":
        check_target(path.with_suffix(".svg"))  # its pictures need Matplotlib
    return path
