"""Small tables with the names of those of the field."""

from pathlib import Path


def write_tables(folder: Path) -> Path:
    """A small table of each name: two classes that no number parts, and four choices between two brands."""
    for name in ("segment", "phishing", "banana", "diamonds"):
        rows = [f"{k / 10},{k % 3},{int(3 <= k < 7)}" for k in range(10)]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    choices = [f"{k},{brand},{k + (brand == 'x')},{int(brand == 'x')}" for k in range(4) for brand in "xy"]
    (folder / "cracker.csv").write_text("\n".join(["set,arm,price,reward", *choices]) + "\n")
    return folder
