"""The picture of an evaluation: each candidate has its row, whatever is known of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rareswitch.evaluation import Evaluation
from rareswitch.report import draw_evaluation, save
from reference.evaluations import evaluation

LONG = {
    f"candidates/a policy with a long name {k}.policy": (0.1 + 0.004 * k, 0.02) if k % 4 else None for k in range(12)
}


def texts(panel: Any) -> str:
    return " ".join(text.get_text() for text in panel.texts).replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")


def without_counts(told: Evaluation) -> Evaluation:
    values = tuple(replace(one, overlap=replace(one.overlap, weights=())) for one in told.values)
    return replace(told, values=values)


@pytest.mark.parametrize(
    "shown",
    [
        evaluation(),
        evaluation({"none": None, "neither": None}),
        evaluation({"one": (0.1, 0.01)}, batches=1),
        evaluation({"none": None}, batches=0),
        evaluation(LONG, batches=30, estimated="by a model"),
        without_counts(evaluation()),
        replace(evaluation({"none": None}), earned=None, gains=(), lift=(), calibration=None),
        evaluation({"exact": (0.1, 0.0), "unbounded": (0.1, float("inf"))}),
    ],
)
def test_it_draws_whatever_is_known(shown: Evaluation, tmp_path: Path) -> None:
    made = draw_evaluation(shown)
    save(made, tmp_path / "picture.png", "rareswitch evaluate")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    assert len(made.axes[0].get_yticklabels()) == len(shown.values)
    for one in shown.values:
        assert (one.interval is None) == (
            f"not identifiable: {one.refusals[0][:20]}" in texts(made.axes[0]) if one.refusals else False
        )


def test_its_title_says_who_would_have_earned_more() -> None:
    assert draw_evaluation(evaluation()).get_suptitle() == "policy 3 would have earned more than was earned"
    same = draw_evaluation(evaluation({"same": (0.163, 0.01)}))
    assert same.get_suptitle() == "no candidate is known to earn more than was earned"
    assert draw_evaluation(evaluation({"none": None})).get_suptitle() == "the log cannot answer for any candidate"


def test_values_that_rest_on_estimated_propensities_are_marked() -> None:
    panel = draw_evaluation(evaluation({"one": (0.1, 0.01)}, estimated="by a model")).axes[0]
    assert "≈0.100" in texts(panel)
    assert "≈" not in texts(draw_evaluation(evaluation({"one": (0.1, 0.01)})).axes[0])


def test_what_was_never_shown_is_in_the_row_of_the_candidate() -> None:
    assert "43 % unsupported" in texts(draw_evaluation(evaluation({"none": None})).axes[-1])
    assert "never shown" not in texts(draw_evaluation(evaluation({"one": (0.1, 0.01)})).axes[-1])
