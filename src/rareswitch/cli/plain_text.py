"""What is printed where the terminal, or a file, cannot take all characters: λ as lambda, √T as sqrt(T)."""

import codecs
import io
import os
import re
import sys
import unicodedata

_PLAIN = {"·": "*", "×": "x", "±": "+-", "−": "-", "→": "->", "≤": "<=", "≥": ">=", "≈": "~", "∞": "inf", "‖": "|"}
_PLAIN |= {"⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", "⁄": "/", "─": "-", "━": "=", "╌": "-", "–": "-"}


def print_plainly() -> None:
    """Let both streams replace what they cannot encode, or what was not asked for."""
    codecs.register_error("plain", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="ascii" if _ascii_wanted() else None, errors="plain")


def _ascii_wanted() -> bool:
    """Whether the locale is C by name. Python prints UTF-8 there all the same, and sets LC_CTYPE to say so."""
    told = os.environ.get
    if told("PYTHONIOENCODING") or told("PYTHONUTF8") == "1":
        return False
    kind = told("LC_CTYPE")
    return (told("LC_ALL") or (kind if kind != "C.UTF-8" else None) or told("LANG")) in ("C", "POSIX")


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
    """ASCII for one character: from the table, its Greek name, an exponent, its bare letter, or its number.

    >>> [plain_character(c) for c in "σΛ²é½…"]
    ['sigma', 'Lambda', '^2', 'e', '1/2', '...']
    """
    greek = re.match(r"GREEK (SMALL|CAPITAL) LETTER (\w+)$", unicodedata.name(character, ""))
    if greek:
        name = greek[2].replace("LAMDA", "LAMBDA")
        return name.lower() if greek[1] == "SMALL" else name.capitalize()
    parts = unicodedata.normalize("NFKD", character)
    plain = "".join(_PLAIN.get(part, part) for part in parts).encode("ascii", "ignore").decode()
    if not plain:
        return character.encode("ascii", "backslashreplace").decode()  # a name that was given stays recognisable
    return f"^{plain}" if "<super>" in unicodedata.decomposition(character) else plain
