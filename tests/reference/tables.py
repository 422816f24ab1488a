"""Small worlds of tables."""

import tempfile
from pathlib import Path

import numpy as np

from rareswitch.lab.worlds import World, make_world

#: Sets of one to three arms that pay what they like; ``age`` is the same for all arms of a set.
CHOICES = "set,arm,age,price,colour,reward\n" + "".join(
    f"{s},{arm},{20 + s % 7},{(7 * s + 3 * k) % 11}.5,{'red' if (s + k) % 3 else 'blue'},{((s + 2 * k) % 5) / 5}\n"
    for s in range(40)
    for k, arm in enumerate("abc"[: 1 + s % 3])
)


def labelled(rows: int = 60) -> str:
    """A table in CSV of numbers, categories, flags and missing values, with three kinds of rows."""
    rng = np.random.default_rng(0)
    lines = ["width,colour,fresh,kind"]
    for row in range(rows):
        width = "" if row % 13 == 5 else f"{rng.normal(row % 3, 0.5):.3f}"
        lines.append(f"{width},{('red', 'blue', 'grey')[row % 5 % 3]},{('true', 'false')[row % 2]},{'xyz'[row % 3]}")
    return "\n".join(lines) + "\n"


def small_tables() -> dict[str, World]:
    """A world of each kind that is made of a table."""
    with tempfile.TemporaryDirectory() as folder:
        rows, sets = Path(folder, "rows.csv"), Path(folder, "sets.csv")
        rows.write_text(labelled())
        sets.write_text(CHOICES)
        return {
            "table, disjoint": make_world(f"table:{rows},label=kind,components=3"),
            "table, shared": make_world(f"table:{rows},label=kind,features=shared"),
            "choices": make_world(f"choices:{sets}"),
        }


def write_tables(folder: Path) -> Path:
    """A small table for each name of the field: two classes that no number parts, or choices between two brands."""
    for name in ("segment", "phishing", "banana", "diamonds"):
        rows = [f"{k / 10},{k % 3},{int(3 <= k < 7)}" for k in range(10)]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    choices = [f"{k},{brand},{k + (brand == 'x')},{int(brand == 'x')}" for k in range(4) for brand in "xy"]
    (folder / "cracker.csv").write_text("\n".join(["set,arm,price,reward", *choices]) + "\n")
    return folder
