"""The plan of the house: who may import whom, and what the front doors offer."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_imports_point_downwards() -> None:
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


@pytest.mark.parametrize(
    "name",
    [
        "rareswitch",
        "rareswitch.design",
        "rareswitch.engine",
        "rareswitch.env",
        "rareswitch.learner",
        "rareswitch.log",
        "rareswitch.policy",
        "rareswitch.sim",
    ],
)
def test_all_that_is_offered_can_be_imported(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    for entry in module.__all__:
        assert getattr(module, entry) is not None


def test_optional_dependencies_are_imported_where_they_are_used() -> None:
    script = (
        "import sys, rareswitch.cli; "
        "heavy = ('matplotlib', 'pyarrow', 'mpmath', 'sklearn', 'cryptography'); "
        "sys.exit(str([m for m in heavy if m in sys.modules] or '') or 0)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_version_is_that_of_the_changelog() -> None:
    import rareswitch

    assert f"## {rareswitch.__version__}" in (ROOT / "CHANGELOG.md").read_text()
