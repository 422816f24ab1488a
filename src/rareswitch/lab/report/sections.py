"""Tables with their headings, for the terminal and as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rareswitch.core import table


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table with its heading."""

    title: str
    text: str = ""
    #: Empty where there is no table.
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    #: How many columns are words.
    left: int = 2
    #: Where the section is about one world.
    world: str = ""


def sections_text(sections: Iterable[Section]) -> str:
    """For the terminal."""
    heads = ((s, "\n".join(filter(None, (s.title, s.text)))) for s in sections)
    return "\n\n\n".join(f"{head}\n\n{table(s.header, s.rows, left=s.left)}" if s.rows else head for s, head in heads)


def sections_markdown(title: str, sections: Iterable[Section], pictures: Mapping[str, str] | None = None) -> str:
    """A page of Markdown, with the pictures of worlds.

    A picture shows all horizons and comes once, with the first table that it belongs to.
    """
    left = dict(pictures or {})
    lines = [f"# {title}"]
    for s in sections:
        lines += ["", f"## {s.title}", *(["", s.text] if s.text else [])]
        if s.world in left:
            lines += ["", f"![{s.world or 'summary'}]({left.pop(s.world)})"]
        if s.rows:
            lines += ["", _row(s.header), _row([":--" if k < s.left else "--:" for k in range(len(s.header))])]
            lines += [_row(row) for row in s.rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
