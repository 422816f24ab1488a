"""What is printed where the terminal, or a file, cannot take all characters: λ as lambda, √T as sqrt(T)."""

import codecs
import io
import re
import sys
import unicodedata

_PLAIN = {"·": "*", "×": "x", "±": "+-", "→": "->", "≤": "<=", "≥": ">=", "⌈": "ceil(", "⌉": ")", "ω": "omega"}
_PLAIN |= {"─": "-", "━": "=", "╌": "-", "–": "-", "—": "-", "λ": "lambda", "‖": "|", "Σ": "sum ", "∞": "inf"}
_PLAIN |= dict.fromkeys("“”", '"') | dict.fromkeys("‘’", "'")


def print_plainly() -> None:
    """Let both streams replace what they cannot encode."""
    codecs.register_error("plain", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def shown(text: str) -> str:
    """The text as standard output will show it; for tables, whose columns are as wide as what is shown."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "plain").decode(encoding)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text, at = error.object, error.start
    if text[at] == "√":
        times = "*" if text[at - 1 : at].isalnum() else ""
        one = re.compile(r"\w(?!\w)", re.ASCII).match(text, at + 1)
        return (f"{times}sqrt({one[0]})", at + 2) if one else (f"{times}sqrt", at + 1)
    return plain_character(text[at]), at + 1


def plain_character(character: str) -> str:
    """ASCII for one character: from the table, by its Greek name, as an exponent, without its accents, or ?.

    >>> [plain_character(c) for c in "σ²é…☃"]
    ['sigma', '^2', 'e', '...', '?']
    """
    if character in _PLAIN:
        return _PLAIN[character]
    name = unicodedata.name(character, "")
    if name.startswith("GREEK SMALL LETTER "):
        return name.split()[3].lower()
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return ("^" if "<super>" in unicodedata.decomposition(character) else "") + plain or "?"
