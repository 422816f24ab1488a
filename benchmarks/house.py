"""Measure the source itself: its size by package, its names and types, and how far four calls reach into it.

A walk counts the files and the calls (Python frames of the package in all threads, without those of comprehensions) of
the second call of its kind. ``--source FOLDER`` measures another checkout.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Packages that belong to the laboratory.
LABORATORY = {"lab"}
SMALL = 25
#: Every command has these.
COMMAND_VERBS = {"add_arguments", "run"}

#: Prints the files and the calls of four walks, as lines of JSON.
WALKS = """
import json, os, sys, tempfile, threading, warnings
warnings.simplefilter("ignore")
package, calls = sys.argv[1], []
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package) and code.co_name not in COMPREHENSIONS:
        calls.append(code.co_filename)

threading.setprofile(note)
sys.setprofile(note)
import numpy as np
import rareswitch
from rareswitch.cli import main

def tell(walk):
    print(json.dumps([walk, len(set(calls)), len(calls)]), file=sys.__stdout__, flush=True)

rng = np.random.default_rng(1)
numbers = [dict(zip("abcdef", row)) for row in rng.normal(size=(3000, 6)).tolist()]
visitors = [record | {"device": ("ios", "web")[k % 2]} for k, record in enumerate(numbers)]
arms = {f"arm-{k}": {"price": float(k)} for k in range(5)}
with tempfile.TemporaryDirectory() as folder:
    features = rareswitch.Features.fit(visitors, arms)
    with rareswitch.create(f"sqlite:///{folder}/walk.db", "walk", features=features, horizon=2000) as trial:
        trial.decide(visitors[0], arms, id=0)
        calls.clear()
        trial.decide(visitors[1], arms, id=1)
        tell("decide")
        decided = updates = 2
        while updates < 4:
            ids = range(decided, decided + 20)
            trial.decide_many(visitors[decided : decided + 20], arms, ids=ids)
            trial.reward_many(ids, rng.integers(0, 2, 20).astype(float))
            decided += 20
            calls.clear()
            updates += trial.advance().made
        tell("advance")
        rareswitch.evaluate(trial, "uniform")
        calls.clear()
        rareswitch.evaluate(trial, "uniform")
        tell("evaluate")
sys.stdout = open(os.devnull, "w")
for _ in range(2):
    calls.clear()
    main(["simulate", "--learner", "batch-linucb-dg", "--horizon", "2000", "--seeds", "1", "--quiet"])
tell("simulate")
"""


def code_lines(text: str) -> int:
    """Lines that are code: not blank, no comments, no docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = (line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in docstrings)
    return sum(1 for line in lines if line and not line.startswith("#"))


def modules(source: Path) -> Iterator[tuple[str, str, ast.Module]]:
    """The package, the text and the tree of every file."""
    for path in sorted(source.rglob("*.py")):
        inside, text = path.relative_to(source).parts, path.read_text(encoding="utf-8")
        yield (inside[0] if len(inside) > 1 else "top level"), text, ast.parse(text)


def annotations(tree: ast.Module) -> Iterator[ast.AST]:
    """All parts of all annotations."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield from ast.walk(node.returns)
        elif isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield from ast.walk(node.annotation)


def import_lines(tree: ast.Module) -> int:
    """Lines of import statements."""
    statements = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in statements)


def public_names(tree: ast.Module) -> set[str]:
    """Classes, functions and aliases of types that a module defines, without private ones."""
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in tree.body if isinstance(node, named)} - COMMAND_VERBS
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    names |= {target.id for target in targets if isinstance(target, ast.Name) and not target.id.isupper()}
    return {name for name in names if not name.startswith("_")}


def sizes(source: Path) -> Iterator[tuple[str, str]]:
    """What can be counted without running anything."""
    lines: Counter[str] = Counter()
    names: Counter[str] = Counter()
    untyped = objects = ignores = imports = files = small = 0
    for package, text, tree in modules(source):
        lines[package] += code_lines(text)
        names.update(public_names(tree))
        untyped += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
        objects += sum(isinstance(node, ast.Name) and node.id == "object" for node in annotations(tree))
        ignores += len(re.findall(r"# type: ignore", text))
        imports += import_lines(tree)
    for path in source.rglob("*.py"):
        files += 1
        small += path.name != "__init__.py" and code_lines(path.read_text(encoding="utf-8")) < SMALL
    laboratory = sum(lines[package] for package in LABORATORY)
    product = lines.total() - laboratory
    twice = sorted(name for name, count in names.items() if count > 1)
    yield "code lines of the product", f"{product:,}"
    yield "code lines of the laboratory", f"{laboratory:,}"
    yield "by package", ", ".join(f"{package} {count:,}" for package, count in lines.most_common())
    yield f"files; under {SMALL} code lines", f"{files}; {small}"
    yield "Any; object in annotations; type: ignore", f"{untyped:,}; {objects:,}; {ignores:,}"
    yield "public names that exist twice", f"{len(twice)}: {', '.join(twice)}"
    yield "share of imports in code", f"{imports / lines.total():.1%}"


def tests_and_benchmarks(root: Path) -> Iterator[tuple[str, str]]:
    """Lines as they are in the files, blank ones too."""
    for folder in ("tests", "benchmarks"):
        paths = list((root / folder).rglob("*.py"))
        total = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        yield f"lines of {folder}; scripts", f"{total:,}; {len(paths)}"


def walks(root: Path) -> Iterator[tuple[str, str]]:
    """Files and calls, measured in a process of its own."""
    own = os.environ | {"PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-c", WALKS, str(root / "src" / "rareswitch")]
    for _ in range(2):  # the first compiles kernels, once on a machine, which is not counted
        output = subprocess.run(command, env=own, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in output.splitlines():
        walk, files, calls = json.loads(line)
        yield f"files; calls of {walk}", f"{files}; {calls:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT, help="a checkout; this one by default")
    parser.add_argument("--no-walks", action="store_true", help="count lines and names only")
    options = parser.parse_args()
    root = options.source.resolve()
    rows = [*sizes(root / "src" / "rareswitch"), *tests_and_benchmarks(root)]
    for what, value in rows if options.no_walks else [*rows, *walks(root)]:
        print(f"{what}: {value}")


if __name__ == "__main__":
    main()
