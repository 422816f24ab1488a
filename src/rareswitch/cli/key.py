"""``rareswitch key``: a key to sign policies and experiments with."""

import argparse
from typing import Any

from rareswitch.cli.options import add_command


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(
        commands,
        "key",
        run,
        description=(
            "Make a key and write it to a file that only you can read. With hmac, all who sign or verify share the "
            "secret; with ed25519 the file signs, and FILE.pub, which may be given to anyone, verifies."
        ),
    )
    parser.add_argument(
        "--scheme", required=True, choices=("hmac", "ed25519"), help="ed25519 needs the extra rareswitch[sign]"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="a fresh file for the key")


def run(options: argparse.Namespace) -> int:
    """Write the key and say who may have it."""
    from rareswitch.policy import new_key, save_key

    secret, *public = save_key(new_key(options.scheme), options.out)
    print(f"{secret}: signs and verifies; keep it secret")
    for path in public:
        print(f"{path}: verifies; give it to all who take policies")
    return 0
