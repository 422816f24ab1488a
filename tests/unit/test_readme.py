"""Every command of the README prints what the README says it prints. Its Python runs as a doctest."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_console_blocks_print_what_they_show(tmp_path: Path) -> None:
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": programs, "PYTHONUTF8": "1"}  # whatever the language here, as on most terminals
    assert blocks
    for block in blocks:
        commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        shown = "\n".join(line for line in block.splitlines() if not line.startswith("$ "))
        done = subprocess.run(
            ["bash", "-ec", "\n".join(commands)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert done.stdout.strip() == shown.strip()


def test_what_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert "docs/demo.png" in links
    assert [link for link in links if not (README.parent / link).exists()] == []
