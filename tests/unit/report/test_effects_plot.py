"""What pictures of effects show: rows in order, what is clear, and what has not identifiable."""

from typing import Any

import numpy as np

from rareswitch.decisions import DecisionLog
from rareswitch.evaluation import effects
from rareswitch.report import draw_effects


def log_of(pays: list[float], **more: Any) -> DecisionLog:
    count, rng = 3000, np.random.default_rng(1)
    places = rng.integers(len(pays), size=count)
    facts: dict[str, Any] = {
        "arm_indices": places,
        "propensities": np.full(count, 1.0 / len(pays)),
        "rewards": np.array(pays)[places] + rng.normal(size=count),
        "arms": [f"arm {k}" for k in range(len(pays))],
    }
    return DecisionLog(**facts | more)


def names(made: Any) -> list[str]:
    return [tick.get_text() for tick in made.axes[0].get_yticklabels()]


def test_every_arm_is_a_row_the_best_on_top() -> None:
    made = draw_effects(effects(log_of([0.0, 1.0, 0.5])))
    assert names(made) == ["arm 1", "arm 2", "arm 0"]
    low, high = made.axes[0].get_ylim()
    assert low > high  # the first is on top
    assert "arm 1 is better than the others" in made.get_suptitle()


def test_groups_stand_below_all() -> None:
    kind = np.where(np.arange(3000) % 2, "new", "old")
    found = effects(log_of([0.0, 1.0]), "arm 1", "arm 0", by=kind)
    made = draw_effects(found)
    assert names(made) == ["all", "new", "old"]
    assert "between groups" in made.axes[0].get_xlabel()
    assert made.get_suptitle() == "arm 1 is better than arm 0"


def test_what_has_no_answer_says_why() -> None:
    found = effects(log_of([0.0, 0.0]).select(slice(40)), "arm 1", "arm 0")
    made = draw_effects(found)
    assert made.get_suptitle() == "no effect is identifiable from this log"
    assert any("not identifiable" in text.get_text() for text in made.axes[0].texts)


def test_estimated_propensities_are_marked() -> None:
    made = draw_effects(effects(log_of([0.0, 1.0], estimated="frequencies"), "arm 1"))
    assert "estimated" in made.axes[0].get_xlabel()
    assert any(text.get_text().startswith("≈") for text in made.axes[0].texts)
