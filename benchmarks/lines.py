"""Count the code lines of the source, by room: no blank lines, no comments, no docstrings."""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "rareswitch"


def code_lines(path: Path) -> int:
    """Lines of a file that are code."""
    text = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = (line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in docstrings)
    return sum(1 for line in lines if line and not line.startswith("#"))


def main() -> None:
    rooms: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE).parts
        rooms[inside[0] if len(inside) > 1 else "other files"] += code_lines(path)
    for room, lines in rooms.most_common():
        print(f"{lines:6,}  {room}")
    print(f"{rooms.total():6,}  in all")


if __name__ == "__main__":
    main()
