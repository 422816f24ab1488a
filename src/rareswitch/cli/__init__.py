"""The command line: ``rareswitch COMMAND``."""

import sys

INTERRUPTED = 130


def main(arguments: list[str] | tuple[str, ...] | None = None) -> int:
    """Run a command and return its exit status: 0, 1 where a design failed, 2 for bad input, 130 after Ctrl-C."""
    stops: list[int] = []
    try:
        # all else is imported in here, so that Ctrl-C can come at any time
        from rareswitch.cli.running import noting_stops, run_command

        with noting_stops(stops):
            return run_command(sys.argv[1:] if arguments is None else arguments)
    except (KeyboardInterrupt, Exception) as error:
        if not stops and not isinstance(error, KeyboardInterrupt):
            raise
        print("rareswitch: stopped.", file=sys.stderr)
        return INTERRUPTED
