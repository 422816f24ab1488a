"""``rareswitch serve`` and ``rareswitch token``."""

import argparse
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rareswitch.cli.options import add_key_options
from rareswitch.cli.output import Output
from rareswitch.errors import MissingExtraError, ParameterError, several

if TYPE_CHECKING:
    from rareswitch.service import ServerSettings

#: Read where no other file is named.
CONFIG = "rareswitch.toml"


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Serve the experiments of a store over HTTP (docs/how-to/service.md).

    Settings are options, variables such as RARESWITCH_PORT, or entries of rareswitch.toml, in this order.
    """
    parser.add_argument(
        "url", metavar="STORE", nargs="?", help="a file such as spring.db, or a URL such as postgresql://…"
    )
    parser.add_argument("--demo", action="store_true", help="show the page over simulated experiments, without a store")
    parser.add_argument("--policy", metavar="FILE", help="decide by a policy file, without a store")
    parser.add_argument("--name", help="with --policy: name of the experiment in paths (default policy)")
    parser.add_argument("--logs", metavar="FOLDER", help="with --policy: folder of decisions, for experiment import")
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=int, help="port to listen on (default 8700)")
    parser.add_argument("--tokens", metavar="FILE", help="file of tokens (default: STORE.tokens.json)")
    parser.add_argument("--allow-host", nargs="+", metavar="NAME", help="host names under which it may be addressed")
    parser.add_argument("--certificate", metavar="FILE", help="certificate for TLS, as PEM")
    parser.add_argument("--private-key", metavar="FILE", help="private key of the certificate, as PEM")
    parser.add_argument("--workers", type=int, metavar="N", help="processes, on PostgreSQL (default 1)")
    header = "header in which a proxy on this machine names the user who is signed in; they may read"
    parser.add_argument("--user-header", metavar="NAME", help=header)
    parser.add_argument("--max-body", type=int, metavar="BYTES", help="largest body of a request (default 4 MiB)")
    parser.add_argument("--max-arms", type=int, metavar="N", help="most arms of a request (default 1000)")
    parser.add_argument("--config", metavar="FILE", help=f"settings as TOML (default: {CONFIG}, if there is one)")
    add_key_options(parser, "key file: verify experiments, and sign their policies")


def run_serve(options: argparse.Namespace) -> int:
    """Serve until it is stopped."""
    if options.demo:  # its visitors are of the laboratory, which is loaded by its name, like its commands
        _needed()
        return int(import_module("rareswitch.lab.commands.living").run_serve_demo(options))
    settings = _settings(options)
    from rareswitch.service import Tokens, application, login_path, serve, service_of, tokens_path

    tokens = Tokens(tokens_path(settings))
    if not tokens.all():
        print(f"token (shown this once, scope admin): {tokens.add('first', ['admin'])}")
    source, address = settings.policy or settings.url, settings.address
    print(f"rareswitch serves {source} at {address}, described at {address}/docs", flush=True)
    if settings.policy is None:
        print(f"Its page opens once, within ten minutes, by {address}{login_path(tokens.link())}", flush=True)
    if settings.host not in ("127.0.0.1", "localhost", "::1") and settings.certificate is None:
        print(
            "rareswitch: warning: it listens beyond this machine without TLS, so that tokens can be read on the way. "
            "Put a proxy with TLS before it, or give --certificate and --private-key.",
            file=sys.stderr,
        )
    serve(settings, application(service_of(settings)) if settings.workers == 1 else None)
    return 0


def _needed() -> None:
    try:
        import_module("rareswitch.service")
    except ImportError as error:
        raise MissingExtraError(
            f"the service needs {error.name}. Install it with: pip install 'rareswitch[serve]'"
        ) from error


def _settings(options: argparse.Namespace) -> "ServerSettings":
    _needed()
    from rareswitch.service import read_settings

    path = Path(options.config) if options.config is not None else Path(CONFIG) if Path(CONFIG).exists() else None
    return read_settings(path, os.environ, vars(options))


def add_token(parser: argparse.ArgumentParser) -> None:
    """Make, list or revoke tokens of a service. A running service heeds changes at once."""
    parser.add_argument("url", metavar="STORE", help="the store that is served")
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of a new token; without it, tokens are listed")
    parser.add_argument("--scopes", nargs="+", metavar="SCOPE", help="read, decide, admin (which includes the others)")
    parser.add_argument("--experiments", nargs="+", metavar="NAME", default=[], help="what it is for (default: all)")
    parser.add_argument("--days", type=float, metavar="N", help="days after which it expires (default: never)")
    parser.add_argument("--link", action="store_true", help="print a link that opens the page, once")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--revoke", action="store_true", help="revoke the token of this name")
    parser.add_argument("--tokens", metavar="FILE", help="file of tokens (default: STORE.tokens.json)")


def run_token(options: argparse.Namespace) -> Output:
    """The new token, or the tokens there are."""
    options.config = None
    settings = _settings(options)
    from rareswitch.service import Tokens, login_path, tokens_path

    served = options.url.removeprefix("sqlite:///")
    if "://" not in served and not Path(served).is_file():
        raise ParameterError(f"STORE must be a store or policy file that is there; got {served!r:.100}.")
    tokens = Tokens(tokens_path(settings))
    if options.link:
        link = f"{settings.address}{login_path(tokens.link())}"
        return Output({"link": link}, link)
    if options.revoke:
        if options.name is None:
            raise ParameterError("name must be given with --revoke: that of the token.")
        tokens.remove(options.name)
        return Output({"revoked": options.name}, f"token {options.name} is revoked.")
    if options.name is not None:
        text = tokens.add(options.name, options.scopes or [], experiments=options.experiments, days=options.days)
        return Output({"name": options.name, "token": text}, text)
    if options.scopes:
        raise ParameterError("name must be given with --scopes: what the new token is called.")
    rows = [
        {"name": token.name, "scopes": token.scopes, "experiments": token.experiments, "expires": token.expires}
        for token in tokens.all()
    ]
    lines = [
        f"{token.name}: {', '.join(token.scopes)}; {', '.join(token.experiments) or 'all experiments'}"
        + ("" if token.expires is None else f"; until {time.strftime('%Y-%m-%d', time.gmtime(token.expires))}")
        for token in tokens.all()
    ]
    return Output({"tokens": rows}, "\n".join([several(len(rows), "token") + ("." if not rows else ":"), *lines]))
