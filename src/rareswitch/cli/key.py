"""``rareswitch key``: a key to sign policies and experiments with."""

import argparse

from rareswitch.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--scheme", required=True, choices=("hmac", "ed25519"), help="ed25519 needs the extra rareswitch[sign]"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="a fresh file for the key")


def run(options: argparse.Namespace) -> Output:
    """Make a key and write it to a file that only you can read.

    With hmac, all who sign or verify share the secret; with ed25519 the file signs, and FILE.pub, which may be given to
    anyone, verifies.
    """
    from rareswitch.policy import new_key, save_key

    secret, *public = map(str, save_key(new_key(options.scheme), options.out))
    lines = [f"{secret}: signs and verifies; keep it secret"]
    lines += [f"{path}: verifies; give it to all who take policies" for path in public]
    return Output(
        {"scheme": options.scheme, "secret": secret, "public": public[0] if public else None}, "\n".join(lines)
    )
