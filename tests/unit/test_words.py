"""What a person reads says things in the field's words: tests/words.txt has those that are not used any more."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "tests" / "words.txt").read_text(encoding="utf-8").splitlines()
WORDS = [line for line in LINES if line and not line.startswith("#")]


def pattern(word: str) -> str:
    """A phrase as whole words, over the ends of lines; a name in backticks with whatever it is set to."""
    if word.startswith("`"):
        return re.escape(word[:-1]) + ("[^`]*`" if word.endswith("=`") else "`")
    return r"\b" + r"\s+".join(map(re.escape, word.split())) + r"\b"


RETIRED = re.compile("|".join(map(pattern, WORDS)), flags=re.IGNORECASE)
NAMES = re.compile("|".join(pattern(word) for word in WORDS if word.startswith("`")))


def hits(text: str) -> list[str]:
    """The retired phrases in any case, and the retired names as they were written."""
    return [hit[0] for hit in RETIRED.finditer(text) if not hit[0].startswith("`") or NAMES.fullmatch(hit[0])]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file that a person may meet, by line: a page, or docstrings, help, errors and reports in code."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value.replace("``", "`")


@pytest.mark.parametrize("folder", ["README.md", "docs", "src/rareswitch"])
def test_texts_say_things_in_the_fields_words(folder: str) -> None:
    start = ROOT / folder
    files = (
        [start]
        if start.is_file()
        else sorted(path for end in ("md", "ipynb", "html", "py") for path in start.rglob(f"*.{end}"))
    )
    assert files
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {hit!r}"
        for path in files
        for line, text in texts(path)
        for hit in hits(text)
    ]
    assert not offenders, "\n".join(offenders)


def test_retired_words_are_noticed() -> None:
    assert hits("It costs as\nmany as `keep=0.1` did, and `Every` time.") == ["as\nmany", "`keep=0.1`", "`Every`"]
    assert hits("Every place to keep: `keep_records=True`, `every`.") == []
