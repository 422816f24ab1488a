"""Descriptions as TOML and JSON, and those that claim too much."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import FileFormatError, InputError, ParameterError
from rareswitch.features import Category, Features
from reference.hostile import JUNK
from reference.records import AFFINITIES, MIXED, SHARED, TRANSFORMED
from reference.refusals import raises

BY_HAND = """
crossings = [["device", "price"]]
extra = "error"

[arms]
ids = ["spring", "summer"]
spare_arms = 1

[[fields]]
name = "device"
kind = "category"
levels = ["ios", "web"]

[[fields]]
name = "price"
kind = "number"
of = "arm"
mean = 20
scale = 5
missing = "error"
"""


@pytest.mark.parametrize("features", [MIXED, AFFINITIES, SHARED, TRANSFORMED], ids=repr)
@pytest.mark.parametrize("ending", ["toml", "json"])
def test_files_are_read_as_they_were_written(features: Features, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"f.{ending}"
    features.save(path)
    assert Features.load(path) == features
    assert Features.from_plain(features.to_plain()) == features


def test_any_text_can_be_a_level(tmp_path: Path) -> None:
    levels = ['"', "\\", "\n\t", "ü", "😀", "\x7f", "\x00", "'", "a = 1", "\u2028", "[x]"]
    features = Features(fields=[Category("f", of="arm", levels=levels)])
    for ending in ("toml", "json"):
        features.save(tmp_path / f"f.{ending}")
        assert Features.load(tmp_path / f"f.{ending}") == features


def test_what_is_left_out_by_hand_has_its_default(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(BY_HAND)
    features = Features.load(tmp_path / "f.toml")
    assert features.dim == 4 + 1 + 4 + 3
    assert (features.extra, features.absent, features.key) == ("error", "missing", "id")


def test_the_example_of_the_documentation_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "features.md").read_text(encoding="utf-8")
    (tmp_path / "f.toml").write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    features = Features.load(tmp_path / "f.toml")
    assert features.dim == 1 + 4 + 2 + 4 * 2 + 4 + 4 * 2


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("levels =", "level =", r"the category 'device' has no setting 'level'.*Did you mean 'levels'\?"),
        ("spare_arms = 1", "spare_arm = 1", r"arms has no setting 'spare_arm'.*Did you mean 'spare_arms'\?"),
        ("extra =", "extras =", r"features has no setting 'extras'.*Did you mean 'extra'\?"),
        ('kind = "number"', 'kind = "numbers"', r"there is no kind 'numbers'\. Did you mean 'number'\?"),
        ('levels = ["ios", "web"]', "", "the category 'device' needs the setting 'levels'"),
        ('name = "price"', "", "needs the setting 'name'"),
        ("scale = 5", "scale = nan", "scale of the field 'price'"),
        ("mean = 20", 'mean = "20"', "the number 'price': Expected float, got str at mean"),
        ("spare_arms = 1", "spare_arms = 1000000000", "spare_arms of the arms must be"),
        ("[[fields]]", "[fields]", "f.toml"),
        ("[arms]", "[arms", "not a description of features in TOML"),
        ("crossings", "schema = 2\ncrossings", "schema must be 1; got 2"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(old: str, new: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(BY_HAND.replace(old, new))
    raises(FileFormatError, error, Features.load, tmp_path / "f.toml")


def test_a_file_says_by_its_ending_what_is_in_it(tmp_path: Path) -> None:
    raises(ParameterError, r"must end in \.toml or \.json", MIXED.save, tmp_path / "f.yaml")
    raises(FileFormatError, "cannot be read", Features.load, tmp_path / "none.json")
    (tmp_path / "f.json").write_text("[" * 100_000)
    raises(FileFormatError, None, Features.load, tmp_path / "f.json")


def places(value: Any) -> list[tuple[Any, Any]]:
    found = []
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            found += places(value[key])
    return found


@pytest.mark.parametrize("described", [MIXED, TRANSFORMED], ids=repr)
def test_descriptions_that_claim_anything_are_refused_or_are_what_they_say(described: Features) -> None:
    """Every value of a description replaced by every kind of junk: an error of input, or features of that content."""
    accepted = 0
    for at in range(len(places(described.to_plain()))):
        for junk in JUNK:
            data = copy.deepcopy(described.to_plain())
            held, key = places(data)[at]
            held[key] = copy.deepcopy(junk)
            try:
                features = Features.from_plain(data)
            except InputError:
                continue
            accepted += 1
            assert features.dim <= 4096
            assert json.dumps(features.to_plain())
            try:
                vectors = features.encode({"at": "2026-03-02T09:30"}, ["x"]).vectors
            except InputError:
                continue
            assert np.linalg.norm(vectors) <= 1 + 1e-12
    assert accepted > 0
