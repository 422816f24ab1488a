"""Runs the notebooks of docs, renders each as a page and lists all pages: ``python tests/reference/notebooks.py``.

A notebook is kept with its outputs. Its cells run in one namespace, without Jupyter; what a cell prints, and what its
last expression shows by ``_repr_html_``, as a Matplotlib figure or by ``repr``, become its outputs.
"""

import ast
import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
#: One output of a cell, as notebooks keep it.
Output = dict[str, Any]


def notebooks() -> list[Path]:
    """All of docs."""
    return sorted(DOCS.rglob("*.ipynb"))


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run in an empty folder."""
    before, namespace, cells, count = Path.cwd(), {"__name__": "__main__"}, [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, cell in enumerate(notebook["cells"]):
                new = {"cell_type": cell["cell_type"], "id": f"cell-{number}", "metadata": {}, "source": cell["source"]}
                if cell["cell_type"] == "code":
                    count += 1
                    outputs = [*outputs_of("".join(cell["source"]), namespace, count)]
                    new |= {"execution_count": count, "outputs": outputs}
                cells.append(new)
        finally:
            os.chdir(before)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def outputs_of(source: str, namespace: dict[str, Any], count: int) -> Iterator[Output]:
    """What a cell prints and shows."""
    *body, last = ast.parse(source).body
    show = isinstance(last, ast.Expr) and not source.rstrip().endswith(";")
    body = body if show else [*body, last]
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
        if show:
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    if text := printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "savefig"):
            data["image/png"] = picture(value)
        elif hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        yield {"output_type": "execute_result", "data": data, "execution_count": count, "metadata": {}}


def picture(figure: Any) -> Any:
    """A Matplotlib figure as notebooks keep it."""
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=80)
    return base64.b64encode(image.getvalue()).decode()


def pages(path: Path, notebook: dict[str, Any]) -> dict[Path, bytes]:
    """The page of a notebook, and its pictures beside it."""
    parts, pictures = list[str](), dict[Path, bytes]()
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                image = path.with_name(f"{path.stem}-{len(pictures) + 1}.png")
                pictures[image] = base64.b64decode(data["image/png"])
                title = re.search(r"#+ (.*)\n", "\n\n".join(reversed(parts))) or re.search("(.*)", "")
                parts.append(f"![{title[1] if title else ''}]({image.name})")
            elif "text/html" in data:  # an empty line would end it
                parts.append("".join(data["text/html"]).replace("\n\n", "\n&nbsp;\n"))
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip("\n")
                parts.append(f"```text\n{text}\n```")
    parts.insert(1, f"*This page is [a notebook]({path.name}), with what its cells print.*")
    return {path.with_suffix(".md"): ("\n\n".join(parts) + "\n").encode()} | pictures


def listed() -> str:
    """llms.txt: the pages by their parts."""
    lines = ["# rareswitch", "", "> Contextual bandits that need only a handful of policy updates."]
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    for part, page in re.findall(r"(?m)^  - ([A-Z][\w ]*):$|^      - (\S+\.md)$", navigation):
        if part:
            lines += ["", f"## {part}", ""]
            continue
        title = (DOCS / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({page.replace('.md', '.html')})")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run them, and write outputs, pages and the list."""
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else notebooks():
        notebook = executed(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        for page, content in pages(path.resolve(), notebook).items():
            page.write_bytes(content)
    (DOCS / "llms.txt").write_text(listed(), encoding="utf-8")


if __name__ == "__main__":
    main()
