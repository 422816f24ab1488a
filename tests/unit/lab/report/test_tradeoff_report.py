import numpy as np
import pytest

from rareswitch.lab import tradeoff
from rareswitch.lab.report.plots import draw_tradeoff, tradeoff_table
from rareswitch.lab.sweep import Tradeoff
from rareswitch.lab.worlds import LowerBoundWorld, World, make_world, switch_lower_bound
from rareswitch.learner import OFUL, Learner

WORLD = LowerBoundWorld(horizon=1000, stages=3, dim=2)


def make(cap: int | None, world: World, horizon: int, seed: int) -> Learner:
    return OFUL(dim=world.dim, arms=world.arms, horizon=horizon)


@pytest.fixture(scope="module")
def found() -> Tradeoff:
    return tradeoff({"oful": make}, WORLD, horizon=1000, caps=[4, 1, 4], seeds=range(3))


def test_the_theorem_is_drawn_at_the_scale_of_the_instance(found: Tradeoff) -> None:
    (panel,) = draw_tradeoff(found, WORLD).axes
    (line,) = [line for line in panel.lines if str(line.get_label()).startswith("formula")]
    scale = WORLD.context_scale * WORLD.theta_scale
    assert scale < 0.9
    for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
        assert y == pytest.approx(scale * switch_lower_bound(horizon=1000, dim=2, switches=x))
    assert panel.get_legend() is None
    texts = [text.get_text() for text in panel.texts]
    assert any("a theorem for no number of policies at this T" in text for text in texts)
    assert any("3 stages" in text for text in texts)
    assert "lower-bound instances: T = 1,000, d = 2, K = 2" in panel.get_title(loc="left")


def test_other_worlds_have_no_theorem(found: Tradeoff) -> None:
    (panel,) = draw_tradeoff(found, make_world("gaussian", dim=2, arms=2, noise=1.0)).axes
    assert not [line for line in panel.lines if str(line.get_label()).startswith("formula")]
    assert "world: T = 1,000, d = 2, K = 2, 3 seeds" in panel.get_title(loc="left")


def test_the_table_has_a_row_for_each_cap(found: Tradeoff) -> None:
    rows = tradeoff_table(found).splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["1", "4", "no"]
    mean = np.mean([run.regret for run in found.runs[4]])
    assert f"{mean:,.0f} ±" in rows[1]
    assert rows[1].endswith("(4)")
