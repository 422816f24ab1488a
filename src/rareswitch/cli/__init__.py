"""The command line: ``rareswitch COMMAND``."""

import sys

INTERRUPTED = 130


def main(arguments: list[str] | tuple[str, ...] | None = None) -> int:
    """Run a command and return its exit status: 0, 1 where a design failed, 2 for bad input, 130 after Ctrl-C."""
    try:
        # imported in here, and everything else by it, so that Ctrl-C can come at any time
        from rareswitch.cli.running import run_command

        return run_command(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        print("rareswitch: stopped.", file=sys.stderr)
        return INTERRUPTED
