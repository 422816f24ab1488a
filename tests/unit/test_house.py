"""Who may import whom, what packages offer, and the map of them; run this file to write it into CONTRIBUTING.md."""

import ast
import importlib
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "rareswitch"
ROOMS = {folder.name for folder in HOUSE.iterdir() if (folder / "__init__.py").exists()}
#: Names that say nothing of what a variable holds, and the packages that still have some.
SAYS_NOTHING = {"came", "found", "given", "here", "how", "kept", "made", "one", "some", "such", "told"}
UNREAD = ("log/", "learner/rows.py")
GUIDE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- map: python tests/unit/test_house.py writes it -->\n", "<!-- end of the map -->\n"


def package_map() -> str:
    """The layers of the import contract from the top, each package with the first line of its docstring."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    lines = ["| layer | package | |", "|---|---|---|"]
    for layer, names in enumerate(contract["contracts"][0]["layers"], 1):
        for name in names.split(" | "):
            path = HOUSE / name / "__init__.py" if name in ROOMS else HOUSE / f"{name}.py"
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            lines.append(f"| {layer} | `{name}` | {text.partition(chr(10))[0].replace('``', '`')} |")
    return "\n".join(lines) + "\n"


def test_the_map_is_that_of_the_import_contract() -> None:
    written = GUIDE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert written == package_map(), f"run python tests/unit/test_house.py, or paste:\n{package_map()}"


def test_imports_point_downwards() -> None:
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """What a file imports of this house, by line: modules, and names with the module they are taken from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written in full"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def past_the_door(name: str, room: str) -> bool:
    """Whether this reaches into another room, where it should ask at its door."""
    house, *way = name.split(".")
    if house != "rareswitch" or len(way) < 2 or way[0] not in ROOMS or way[0] == room:
        return False
    if (room, way[0]) == ("lab", "cli"):  # the commands of the laboratory are written like those of the product
        return False
    module = HOUSE / way[0] / f"{way[1]}.py"
    return len(way) > 2 or (module.exists() and way[1] not in offered(way[0]))


@cache
def offered(room: str) -> set[str]:
    """What a package offers: the names that its modules list, and the modules that it imports itself."""
    names = {alias for _, alias in imported(HOUSE / room / "__init__.py")}
    lists = [vars(importlib.import_module(name.removesuffix(".*")))["__all__"] for name in names if name.endswith(".*")]
    return {name.rpartition(".")[2] for name in names}.union(*lists)


def test_rooms_are_entered_by_their_doors() -> None:
    """Nobody imports ``rareswitch.ROOM.module`` from outside of ROOM: what others may use, its ``__init__`` offers."""
    assert {"cli", "design", "lab", "learner", "log", "policy", "report"} <= ROOMS
    offenders = []
    for path in sorted(HOUSE.rglob("*.py")):
        inside = path.relative_to(HOUSE).parts
        room = inside[0] if len(inside) > 1 else ""
        offenders += [
            f"{'/'.join(inside)}:{line} imports {name}" for line, name in imported(path) if past_the_door(name, room)
        ]
    assert not offenders, "\n".join(offenders)


def bound_names(path: Path) -> Iterator[tuple[int, str]]:
    """What a file calls its variables, arguments, functions and attributes, by line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg | ast.FunctionDef):
            yield node.lineno, node.arg if isinstance(node, ast.arg) else node.name


def test_variables_are_named_after_what_they_hold() -> None:
    """The exceptions are public: what an error was given, and whether ``advance()`` made a policy."""
    public = {("errors.py", "given"), ("experiment/results.py", "made"), ("service/messages.py", "given")}
    offenders = [
        f"{inside}:{line} {name}"
        for path in sorted(HOUSE.rglob("*.py"))
        if not (inside := path.relative_to(HOUSE).as_posix()).startswith(UNREAD)
        for line, name in bound_names(path)
        if name in SAYS_NOTHING and (inside, name) not in public
    ]
    assert not offenders, "\n".join(offenders)


def test_a_public_name_exists_once() -> None:
    house = runpy.run_path(str(ROOT / "benchmarks" / "house.py"))
    names = Counter(name for _, _, tree in house["modules"](HOUSE) for name in house["public_names"](tree))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_public_api_holds_imports_alone() -> None:
    import rareswitch

    docstring, *imports = ast.parse((HOUSE / "api.py").read_text(encoding="utf-8")).body
    names = [alias.asname for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert isinstance(docstring, ast.Expr)
    assert sorted(rareswitch.__all__) == sorted(name or "" for name in names)


@pytest.mark.parametrize("room", sorted(ROOMS - {"cli"}))
def test_doors_import_what_modules_offer_and_hold_nothing_else(room: str) -> None:
    """A name that others may use is listed once: in ``__all__`` of the module that defines it."""
    docstring, *imports = ast.parse((HOUSE / room / "__init__.py").read_text(encoding="utf-8")).body
    assert isinstance(docstring, ast.Expr)
    for node in imports:
        assert isinstance(node, ast.ImportFrom)
        assert node.module
        if [alias.name for alias in node.names] != ["*"]:  # a module, or a name of another package
            assert all(alias.asname == alias.name for alias in node.names)
            continue
        module = importlib.import_module(node.module)
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        own = {entry.name for entry in tree.body if isinstance(entry, (ast.ClassDef, ast.FunctionDef))}
        names = (name for entry in tree.body for name in ast.walk(entry) if isinstance(name, ast.Name))
        own |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
        assert len(set(module.__all__)) == len(module.__all__)
        assert set(module.__all__) <= own
        assert all(getattr(module, entry) is not None for entry in module.__all__)


def test_the_library_is_loaded_when_it_is_used() -> None:
    """All names and rooms are there, as ever; what is heavy is loaded by who needs it."""
    script = """
import sys, rareswitch
assert "rareswitch.api" not in sys.modules and "numpy" not in sys.modules
assert {"Foresight", "__version__", "simulate"} <= set(dir(rareswitch)) and not hasattr(rareswitch, "nothing")
from rareswitch import *
assert Foresight is rareswitch.Foresight is rareswitch.learner.Foresight and callable(simulate)
import rareswitch.lab.commands.simulate
heavy = ("numba", "llvmlite", "scipy", "matplotlib", "pyarrow", "mpmath", "sklearn", "cryptography")
sys.exit(", ".join(m for m in heavy if m in sys.modules) or 0)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_version_is_that_of_the_changelog() -> None:
    import rareswitch

    assert f"## {rareswitch.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


if __name__ == "__main__":
    head, _, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    GUIDE.write_text(f"{head}{BEGIN}{package_map()}{END}{rest.partition(END)[2]}", encoding="utf-8")
