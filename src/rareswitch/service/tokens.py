"""Tokens: who may do what with which experiments; kept as hashes in a file that only its owner can read."""

import base64
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, get_args

import msgspec

from rareswitch.core import lock, number, read_whole, replacing
from rareswitch.errors import FileFormatError, ParameterError, did_you_mean, several

__all__ = ["SCOPES", "Token", "Tokens"]

Scope = Literal["read", "decide", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
#: What tokens begin with, so that scanners of code find those that leaked.
PREFIX = "rareswitch_"
#: Seconds for which a browser is known.
SESSION = 12 * 3600.0
#: Seconds for which the link to the page can be opened.
LINK = 600.0


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a token: its hash, never itself."""

    name: str
    hash: str
    scopes: tuple[Scope, ...]
    #: The experiments it is for; empty: all.
    experiments: tuple[str, ...] = ()
    #: In seconds since 1970; None: never.
    expires: float | None = None

    def allows(self, scope: Scope, experiment: str | None) -> bool:
        """Whether it is good for that, with an experiment or, for None, with some; an admin may do everything."""
        within = experiment is None or not self.experiments or experiment in self.experiments
        return within and (scope in self.scopes or "admin" in self.scopes)


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema_version: int = 1
    #: Signs the sessions of browsers.
    secret: str
    tokens: tuple[Token, ...] = ()
    #: Hashes of links that were opened, and when each would expire.
    opened: dict[str, float] = {}


class Tokens:
    """The tokens of a service, in a file that is read again when it has changed; without a path in memory.

    Examples
    --------
    >>> tokens = Tokens()
    >>> text = tokens.add("shop", ["decide"], experiments=["spring"])
    >>> token = tokens.find(text)
    >>> token.allows("decide", "spring"), token.allows("decide", "autumn"), token.allows("read", "spring")
    (True, False, False)
    >>> tokens.remove("shop"), tokens.find(text)
    (None, None)
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._name, self._stamp = str(path), (0, 0)
        self._kept = _Kept(secret=secrets.token_hex(32))
        if self.path is not None and not self.path.exists():
            self._write(self._kept)

    def _read(self) -> _Kept:
        if self.path is None:
            return self._kept
        try:
            status = os.stat(self._name)
            if (status.st_mtime_ns, status.st_ino) != self._stamp:
                self._kept = msgspec.json.decode(read_whole(self.path), type=_Kept)
                self._stamp = (status.st_mtime_ns, status.st_ino)
        except (OSError, msgspec.MsgspecError) as error:
            raise FileFormatError(f"{self.path}: is no file of tokens that can be read ({error}).") from error
        return self._kept

    def _write(self, contents: _Kept) -> None:
        self._kept = contents
        if self.path is not None:
            with replacing(self.path) as temporary:
                temporary.chmod(0o600)
                temporary.write_bytes(msgspec.json.format(msgspec.json.encode(contents)) + b"\n")

    @contextmanager
    def _alone(self) -> Iterator[_Kept]:
        """What is kept, to be changed while no other process does so."""
        with ExitStack() as held:
            if self.path is not None:
                handle = os.open(self.path.parent, os.O_RDONLY)
                held.callback(os.close, handle)
                with suppress(OSError):  # where there are no locks
                    lock(handle)
            yield self._read()

    def all(self) -> tuple[Token, ...]:
        """The newest last."""
        return self._read().tokens

    def add(
        self, name: str, scopes: Iterable[str], *, experiments: Sequence[str] = (), days: float | None = None
    ) -> str:
        """A new token, whose text is shown this once."""
        names, chosen = [token.name for token in self.all()], [*dict.fromkeys(scopes)]
        for scope in chosen:
            if scope not in SCOPES:
                raise ParameterError(
                    f"scopes must be of {', '.join(SCOPES)}; got {scope!r:.60}.{did_you_mean(scope, SCOPES)}"
                )
        if not chosen:
            raise ParameterError(f"scopes must name one of {', '.join(SCOPES)} at least; got none.")
        if not name or len(name) > 100 or not name.isprintable() or name in names:
            raise ParameterError(
                f"name must be 1 to 100 printable characters that no other token has; got {name!r:.60}."
            )
        if days is not None:
            number("days", days, low=0.0, high=36500.0, open_low=True)
        text = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            name=name,
            hash=_hash(text),
            scopes=tuple(scope for scope in SCOPES if scope in chosen),
            experiments=tuple(experiments),
            expires=None if days is None else time.time() + 86400.0 * days,
        )
        with self._alone() as contents:
            self._write(msgspec.structs.replace(contents, tokens=(*contents.tokens, token)))
        return text

    def remove(self, name: str) -> None:
        """Make a token invalid."""
        with self._alone() as contents:
            left = tuple(token for token in contents.tokens if token.name != name)
            if len(left) == len(contents.tokens):
                names = [token.name for token in contents.tokens]
                raise ParameterError(
                    f"name must be that of a token; there is none of {name!r:.60} among "
                    f"{several(len(names), 'token')}.{did_you_mean(name, names)}"
                )
            self._write(msgspec.structs.replace(contents, tokens=left))

    def find(self, text: str) -> Token | None:
        """The token of that text, if there is one that has not expired. Takes equally long for all texts."""
        wanted, match = _hash(text), None
        for token in self.all():
            if hmac.compare_digest(token.hash, wanted):
                match = token
        return match if match is not None and (match.expires is None or match.expires > time.time()) else None

    def link(self) -> str:
        """A code that opens a session, once."""
        return self.signed("link", LINK)

    def open_session(self, code: str) -> str | None:
        """A session for the code of a link, if that was not used before, in this process or in another one."""
        if self.payload(code) != "link":
            return None
        # of what it says: other texts, with characters that are skipped, say the same
        used, now = _hash(base64.urlsafe_b64decode(code.encode()).decode()), time.time()
        with self._alone() as contents:
            if used in contents.opened:
                return None
            opened = {name: expires for name, expires in contents.opened.items() if expires > now}
            with suppress(FileFormatError):  # a file that cannot be written: this process alone remembers it
                self._write(msgspec.structs.replace(contents, opened=opened | {used: now + LINK}))
        return self.signed(f"session {secrets.token_hex(8)}", SESSION)

    def form(self, session: str) -> str:
        """By which a form shows that it was made for this session."""
        return self._mac(f"form|{session}")

    def signed(self, payload: str, seconds: float) -> str:
        """A text that comes back as it was, or not at all, until it expires."""
        content = f"{payload}|{secrets.token_hex(8)}|{time.time() + seconds:.0f}"
        return base64.urlsafe_b64encode(f"{content}|{self._mac(content)}".encode()).decode()

    def payload(self, signed: str) -> str | None:
        """What was signed, if it was and has not expired."""
        try:
            content, _, mac = base64.urlsafe_b64decode(signed.encode()).decode().rpartition("|")
            payload, _, expires = content.split("|")
        except ValueError:
            return None
        sound = hmac.compare_digest(mac.encode(), self._mac(content).encode())
        return payload if sound and float(expires) > time.time() else None

    def _mac(self, content: str) -> str:
        return hmac.new(bytes.fromhex(self._read().secret), content.encode(), hashlib.sha256).hexdigest()


def _hash(text: str) -> str:
    """Of a text of 256 random bits, which needs no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()
