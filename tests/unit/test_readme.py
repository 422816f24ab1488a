"""What the README and the pages show is what happens. Examples with ``>>>`` run as doctests beside these tests."""

import contextlib
import io
import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rareswitch
from rareswitch.cli import main
from rareswitch.cli.running import _parser
from rareswitch.service import ALL_ROUTES
from reference.commands import printed
from reference.notebooks import executed, listed, notebooks, pages

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
PARTS = {"start", "how-to", "understand", "reference", "evidence"}


def title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readmes_program_runs_twice_and_says_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks(README, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    monkeypatch.chdir(tmp_path)
    shown = []
    for _ in range(2):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "README.md", "exec"), {})
        shown.append(out.getvalue())
    policies = re.findall(r"(?m)^policy (\d) after [\d,]+ decisions$", shown[0])
    assert policies == [str(number) for number in range(2, 9)]
    assert shown[0].endswith(shown[1])  # the same answers, without an update
    answer = re.search(r"\nuniform +(0\.\d+) +(0\.\d+) to (0\.\d+) ", shown[1])
    truth = (0.5 * 0.4 + 0.5 * 0.1 + 0.1 + 0.1) / 3.0  # half of the visitors are on ios
    assert float(answer[2]) < truth < float(answer[3])
    with rareswitch.open("sqlite:///shop.db", "banner") as trial:
        assert trial.status().decisions == 2000
        assert trial.audit("request-1000").matches
        first, last = ([trial.audit(f"request-{k}").arm for k in range(n, n + 50)] for n in (0, 1950))
        assert last.count("summer") > first.count("summer")


def test_the_readmes_table_command_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = re.findall(r"`rareswitch (simulate [^`]*)`", README.read_text(encoding="utf-8"))
    (tmp_path / "own.csv").write_text("age,device,bought\n" + "31,ios,a\n62,web,b\n25,web,a\n" * 40)
    monkeypatch.chdir(tmp_path)
    arguments = command.replace("FILE", "own.csv").replace("COLUMN", "bought").split()
    assert "\nforesight " in printed(capsys, *arguments, "--horizon", "500", "--seeds", "1", "--quiet")


def test_the_readme_is_one_screen_and_a_half() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 75


def test_the_readmes_figures_are_those_that_were_measured() -> None:
    """They are those of a file that the benchmark writes and the demo reads; pages that say them say the same."""
    harness = runpy.run_path(str(ROOT / "benchmarks" / "harness.py"))
    text = Path(harness["HEADLINE"]).read_text(encoding="utf-8")
    assert text == harness["headline"](), "python benchmarks/harness.py"
    facts = json.loads(text)
    measured = (ROOT / "docs" / "evidence" / "regret.md").read_text(encoding="utf-8")
    for name in ("best", "weekly", "never"):
        row = re.search(rf"(?m)^\| {name} \(ends [^|]*\|[^|]*\| ([\d.]+)×", measured)
        assert abs(float(row[1]) - facts[name]) <= 0.05 + 1e-9
    said = re.findall(r"([\d.]+) times", README.read_text(encoding="utf-8"))
    assert said == [f"{facts['best']}", f"{facts['weekly']}"]
    page = (ROOT / "docs" / "understand" / "policies.md").read_text(encoding="utf-8")
    assert re.findall(r"measured ([\d.]+) times", page) == [f"{facts['best']}"]


def words(page: Path) -> int:
    """Written words: those outside of code and what it prints and shows."""
    written = "".join(page.read_text(encoding="utf-8").split("```")[::2])
    return len(re.sub('(?s)<div class="rareswitch">.*?</div>', "", written).split())


def test_pages_are_short() -> None:
    """Those that are read, not looked up."""
    read = [page for page in PAGES if page.parent.name in ("docs", "start", "how-to", "understand")]
    assert [f"{title(page)}: {words(page)}" for page in read if words(page) > 1200] == []
    assert sum(map(words, read)) <= 20_000


@pytest.mark.parametrize("path", notebooks(), ids=title)
def test_a_notebook_shows_what_its_cells_print(path: Path) -> None:
    """Ids of policies that were learned, times and drawings differ in their last digits between processors."""

    def shown(notebook: dict[str, Any]) -> list[list[str]]:
        cells = [cell.get("outputs", []) for cell in notebook["cells"]]
        texts = [
            json.dumps([out.get("text") or [*out["data"].values()][-1] for out in outputs], ensure_ascii=False)
            for outputs in cells
        ]
        return [re.split(r"<svg.*?</svg>|[0-9a-f]{12}…|\d+\.\d+</td>|iVBOR.*", text) for text in texts]

    before = json.loads(path.read_text(encoding="utf-8"))
    for page, content in pages(path, before).items():
        assert page.read_bytes() == content, "python tests/reference/notebooks.py"
    assert shown(executed(before)) == shown(before)


def test_every_page_is_linked_from_another() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text(encoding="utf-8"))
        if (page.parent / target).resolve() != page
    }
    assert [title(page) for page in PAGES[1:] if page not in linked] == []


def test_every_page_is_in_one_of_five_parts_and_in_the_navigation() -> None:
    files = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]}
    assert {file.rpartition("/")[0] for file in files} == PARTS | {""}
    assert {file for file in files if "/" not in file} == {"index.md"}
    assert set(re.findall(r"(?m)^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))) == files


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_examples_are_in_fences(page: Path) -> None:
    parts = page.read_text(encoding="utf-8").split("```")
    outside = "".join(parts[::2])
    assert len(parts) % 2 == 1
    assert not re.findall(r"(?m)^(>>> .*|\$ .*)$", outside)


@pytest.mark.parametrize("page", [page for page in PAGES if "rareswitch " in "".join(blocks(page, "sh"))], ids=title)
def test_commands_that_are_not_run_here_have_these_options(page: Path) -> None:
    """Those with a learner of one's own have its settings, too, which only its file knows."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    commands = [words[1:] for line in lines if (words := shlex.split(line, comments=True))[:1] == ["rareswitch"]]
    assert commands
    for command in commands:
        if not any(".py:" in word for word in command):
            assert callable(_parser(command).parse_args(command).run)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=title)
def test_console_blocks_print_what_they_show(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "console"):
        printed = "".join(typed(line[2:], monkeypatch) for line in block.splitlines() if line.startswith("$ "))
        shown = "\n".join(line for line in block.splitlines() if not line.startswith("$ "))
        assert matches(printed.strip(), shown.strip()), printed


def typed(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a line prints; the command in it is run in this process, what is before and after it by the shell."""
    parts = re.fullmatch(r"(?:(.*) \| )?rareswitch ((?:'[^']*'|[^'|<>])*)(?:< (\S+) ?)?(.*)", line)
    if parts is None:
        return in_shell(line)
    before, command, file, after = parts.groups()
    text = in_shell(before) if before else Path(file).read_text(encoding="utf-8") if file else ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = main(shlex.split(command))
    return in_shell(f"{{ cat; (exit {status}); }} {after}", out.getvalue())


def in_shell(script: str, text: str = "") -> str:
    command = ["bash", "-ec", script]
    return subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=True).stdout


def matches(said: str, shown: str) -> bool:
    """Whether it is what is shown, in which … stands for anything."""
    return re.fullmatch(".*?".join(map(re.escape, shown.split("..."))), said, flags=re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_what_a_page_links_to_exists(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
    assert page != README or {"docs/evidence/schedules.png", "docs/index.md"} <= set(links)


def test_every_name_of_the_library_is_on_the_page_of_names() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in rareswitch.__all__ if f"`{name}`" not in page and not name.startswith("__")] == []


def test_every_route_and_error_is_in_the_reference() -> None:
    folder = ROOT / "docs" / "reference"
    http, errors = ((folder / name).read_text(encoding="utf-8") for name in ("http.md", "errors.md"))
    for route in (route for route in ALL_ROUTES if "multislot" not in route.path):
        path = route.path.replace("/v1/experiments/{name}", "…")
        assert f"| `{route.method} {path}` | {route.scope or 'none'} |" in http
    kinds = {name for name, kind in vars(rareswitch.errors).items() if isinstance(kind, type)}
    assert {name for name in kinds if f"`{name}`" not in errors} == {"Any", "Iterable", "Sequence"} & kinds
    docstrings = (folder / "api.md").read_text(encoding="utf-8")
    shown = {name.rpartition(".")[2] for name in re.findall(r"(?m)^::: (\S+)$", docstrings)} | {"open"}
    assert {name for name in rareswitch.__all__ if not name.endswith(("Error", "__"))} <= shown


def test_the_list_of_pages_is_theirs() -> None:
    assert (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8") == listed(), "python tests/reference/notebooks.py"


def test_pages_of_evidence_are_rendered_from_their_data() -> None:
    harness = runpy.run_path(str(ROOT / "benchmarks" / "harness.py"))
    for name, text in harness["pages"]().items():
        page = ROOT / "docs" / "evidence" / name
        assert page.read_text(encoding="utf-8") == text, "python benchmarks/harness.py"
