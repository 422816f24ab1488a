"""``python -m rareswitch`` is the command line."""

import sys

from rareswitch.cli import main

if __name__ == "__main__":
    sys.exit(main())
