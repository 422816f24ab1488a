import json
import math

import numpy as np
import pytest

from rareswitch.lab import Run
from rareswitch.lab.report.contest import (
    ContestVerdict,
    contest_markdown,
    contest_text,
    draw_standings,
    draw_world,
    judge_contest,
)
from reference.runs import run_of

KINDS = {"sure": "adaptive", "bold": "adaptive", "even": "adaptive", "lazy": "rare", "odd": "other", "part": "rare"}
# mean regrets in worlds u and v; "bold" is best in u, "sure" in v, and "even" over both: 20·40 < 15·90, 90·10
MEANS = {"sure": (80, 0), "bold": (5, 80), "even": (10, 30), "lazy": (30, 150), "odd": (30, 30)}


def run(learner: str, world: str, seed: int, regret: float, horizon: int = 100, unlearnable: float = 0.0) -> Run:
    policies = 3 if world == "u" else 5
    return run_of(learner, world, seed, regret, horizon, unlearnable=unlearnable, policies=policies, seconds=0.25)


def runs(horizon: int = 100) -> list[Run]:
    """Two seeds, 4 to either side of the mean in u and none in v; "part" ran in u alone."""
    found = []
    for learner, (u, v) in MEANS.items():
        found += [run(learner, "u", seed, u + (4 if seed else -4), horizon) for seed in (0, 1)]
        found += [run(learner, "v", seed, v, horizon) for seed in (0, 1)]
    return found + [run("part", "u", seed, 0.0, horizon) for seed in (0, 1)]


def verdict() -> ContestVerdict:
    (found,) = judge_contest(runs(), KINDS)
    return found


def test_the_yardstick_is_the_best_single_adaptive_entry_over_all_worlds() -> None:
    """(80+10)·(0+10) = 900, (5+10)·(80+10) = 1350, (10+10)·(30+10) = 800; without + 10, sure would have 0."""
    found = verdict()
    assert found.yardstick == "even"
    assert (found.horizon, found.seeds, found.worlds, found.unfinished) == (100, 2, ("u", "v"), ())
    assert {s.entry: s.kind for s in found.standings} == KINDS
    cheap = [run("lazy", world, seed, 0.0) for world in "uv" for seed in (0, 1)]
    (again,) = judge_contest([r for r in runs() if r.learner != "lazy"] + cheap, KINDS)
    assert again.yardstick == "even"  # however good a rare one is


def test_the_worst_seeds_are_held_against_the_yardsticks_mean() -> None:
    by_entry = {s.entry: s for s in verdict().standings}
    assert by_entry["odd"].tail_ratios == pytest.approx({"u": 44 / 20, "v": 40 / 40})
    assert by_entry["odd"].worst_tail[0] == "u"
    assert by_entry["odd"].worst_tail[1] == pytest.approx(2.2)
    assert by_entry["even"].worst_tail[1] == pytest.approx(24 / 20)


def test_standings_are_sorted_and_incomplete_entries_have_no_mean() -> None:
    found = verdict()
    assert [s.entry for s in found.standings] == ["even", "sure", "bold", "odd", "lazy", "part"]
    part = found.standings[-1]
    assert not part.complete
    assert math.isnan(part.geometric_mean)
    assert part.mean is None
    assert {world: ratio.value for world, ratio in part.ratios.items()} == pytest.approx({"u": 0.5})
    assert [s.entry for s in found.ranked("u")][:2] == ["part", "bold"]
    assert "part" not in [s.entry for s in found.ranked("v")]


def test_worlds_that_were_cut_short_are_not_judged() -> None:
    cut = [r for r in runs() if not (r.learner == "bold" and r.world == "v" and r.seed == 1)]
    (found,) = judge_contest(cut, KINDS)
    assert (found.worlds, found.unfinished, found.yardstick) == (("u",), ("v",), "bold")
    assert "Not judged, as unfinished: v." in contest_text([found])
    cut = [r for r in runs() if not (r.learner == "lazy" and r.world == "v" and r.seed == 1)]
    (found,) = judge_contest(cut, KINDS)
    assert (found.worlds, found.yardstick) == (("u", "v"), "even")
    assert not next(s for s in found.standings if s.entry == "lazy").complete


def test_horizons_are_judged_apart() -> None:
    longer = [run(r.learner, r.world, r.seed, 0.0 if r.learner == "sure" else r.regret, 200) for r in runs()]
    assert [(v.horizon, v.yardstick) for v in judge_contest([*runs(), *longer], KINDS)] == [
        (100, "even"),
        (200, "sure"),
    ]
    assert judge_contest([], KINDS) == []


def test_without_an_adaptive_entry_there_is_no_yardstick() -> None:
    kinds = {entry: kind for entry, kind in KINDS.items() if kind != "adaptive"}
    (found,) = judge_contest([r for r in runs() if r.learner in kinds], kinds)
    assert (found.yardstick, found.worlds) == (None, ("u", "v"))
    assert all(math.isnan(s.geometric_mean) and not s.ratios for s in found.standings)
    text = contest_text([found])
    assert "There is no yardstick: no fully adaptive entry was run." in text
    assert "Ratios by world" not in text
    assert json.loads(json.dumps(found.summary(), allow_nan=False))["entries"][0]["geometric_mean"] is None
    draw_world([found], "u")


def test_an_adaptive_entry_that_has_not_run_leaves_every_world_unfinished() -> None:
    (found,) = judge_contest([r for r in runs() if r.learner != "even"], KINDS)
    assert (found.worlds, found.unfinished) == ((), ("u", "v"))
    assert found.yardstick is None


def test_the_tables_say_all_of_it() -> None:
    lines = [line.split() for line in contest_text([verdict()]).splitlines()]
    assert ["lazy", "rare", "3", "30.0", "4.0", "34.0", "2.00", "?", "2.04", "0.25"] in lines  # of 36/16 and 44/24
    assert ["even", "(yardstick)", "adaptive", "3", "10.0", "4.0", "14.0", "1.00", "1.00", "0.25"] in lines
    assert ["lazy", "rare", "3", "to", "5", "2.83", "2", "of", "2", "v", "4.00", "v", "4.00"] in lines
    assert ["lazy", "2.00?", "4.00?"] in lines
    assert ["part", "0.50?"] in lines
    assert ["u", "bold", "part", "10.0", "5.0", "0.75?", "0.0", "0.50?"] in lines
    assert ["v", "sure", "lazy", "30.0", "0.0", "0.25?", "150.0", "4.00?"] in lines
    assert "intervals need at least 5 seeds, and there are 2." in contest_text([verdict()])


def test_markdown_has_the_same_tables_and_each_picture_once() -> None:
    found = judge_contest([*runs(), *runs(200)], KINDS)
    text = contest_markdown(found, {"u": "p/u.png", "v": "p/v.png", "": "p/all.png"})
    for picture in ("![u](p/u.png)", "![v](p/v.png)", "![summary](p/all.png)"):
        assert text.count(picture) == 1
    assert text.index("Standings at T = 200") < text.index("## u, T = 100")
    assert "| lazy | rare | 3 to 5 | 2.83 |  | 2 of 2 | v | 4.00 | v | 4.00 |" in text
    assert text.count("| :-- | --: | --: |\n") == 2
    assert "](" not in contest_markdown(found)


def test_pictures_rank_the_entries_and_mark_the_yardstick() -> None:
    found = judge_contest([*runs(), *runs(200)], KINDS)
    made = draw_world(found, "v")
    assert len(made.axes) == 2
    panel = made.axes[0]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["sure", "even", "odd", "bold", "lazy"]
    bold = [label.get_text() for label in panel.get_yticklabels() if label.get_fontweight() == "bold"]
    assert bold == ["even"]
    assert panel.get_xscale() == "log"
    dashed = [line for line in panel.lines if line.get_linestyle() == "--"]
    assert [np.asarray(line.get_xdata())[0] for line in dashed] == [40.0]
    summary = draw_standings(found).axes[0]
    assert [label.get_text() for label in summary.get_yticklabels()] == ["even", "sure", "bold", "odd", "lazy"]
    diamonds = [np.asarray(line.get_xdata())[0] for line in summary.lines if line.get_marker() == "D"]
    assert diamonds == pytest.approx([1.0, math.sqrt(900 / 800), math.sqrt(1350 / 800), math.sqrt(2), math.sqrt(8)])


def many_runs() -> list[Run]:
    """Forty seeds in three worlds; in "risky" the yardstick fails in one run of ten, elsewhere all are steady."""
    rng = np.random.default_rng(5)
    found = []
    for world in ("calm", "easy", "risky"):
        for seed in range(40):
            failed = 600.0 if world == "risky" and seed % 10 == 3 else 0.0
            found.append(run("even", world, seed, 40.0 + 4.0 * rng.standard_normal() + failed))
            found.append(run("lazy", world, seed, 65.0 + 4.0 * rng.standard_normal()))
    return found


def test_a_world_that_few_runs_decide_is_marked_everywhere() -> None:
    """One failed run of the yardstick in ten: the ratio of means is 75/110, and 40 seeds leave it within a factor 2."""
    (found,) = judge_contest(many_runs(), {"even": "adaptive", "lazy": "rare"})
    lazy = found.standings[0] if found.standings[0].entry == "lazy" else found.standings[1]
    risky, calm = lazy.ratios["risky"], lazy.ratios["calm"]
    assert risky.value == pytest.approx(75 / 110, rel=0.05)
    assert risky.median == pytest.approx(75 / 50, rel=0.1)
    assert risky.low < risky.value < risky.high
    assert (risky.resolved, calm.resolved, lazy.unresolved) == (False, True, ["risky"])
    assert risky.seeds_needed > 40
    lines = contest_text([found])
    assert f"{risky.value:.2f}?" in lines
    assert f"{calm.value:.2f}?" not in lines
    assert "1 of 3" in lines
    summary = found.summary()
    entry = next(e for e in summary["entries"] if e["entry"] == "lazy")
    assert entry["unresolved"] == ["risky"]
    assert [entry["worlds"][w]["resolved"] for w in ("calm", "risky")] == [True, False]
    low, high = entry["interval"]
    assert low < entry["geometric_mean"] < high
    hollow = {"calm": 0, "risky": 1}
    for world, count in hollow.items():
        dots = [line for line in draw_world([found], world).axes[0].lines if line.get_marker() == "o"]
        assert sum(line.get_markerfacecolor() == "white" for line in dots) == count
    dots = [line for line in draw_standings([found]).axes[0].lines if line.get_marker() == "o"]
    assert sum(line.get_markerfacecolor() == "white" for line in dots) == 1


def linear_runs() -> list[Run]:
    """Nobody can avoid 8 of the regret in u; in v all of it is a learner's own."""
    return [run(r.learner, r.world, r.seed, r.regret, unlearnable=8.0 if r.world == "u" else 0.0) for r in runs()]


def test_what_nobody_can_learn_is_no_loss_against_the_best_linear_policy() -> None:
    """In u regrets are 72, -3, 2 and 22: (72+10)·10 = 820, (0+10)·90 = 900 and 12·40 = 480 of the adaptive ones."""
    found = linear_runs()
    (whole,) = judge_contest(found, KINDS)
    (linear,) = judge_contest(found, KINDS, against="best linear policy")
    assert (whole.against, linear.against) == ("best arm", "best linear policy")
    assert whole.yardstick == linear.yardstick == "even"
    lazy, bold = ({s.entry: s for s in linear.standings}[entry] for entry in ("lazy", "bold"))
    assert lazy.cells["u"].regret == pytest.approx(22.0)
    assert {world: ratio.value for world, ratio in lazy.ratios.items()} == pytest.approx({"u": 32 / 12, "v": 160 / 40})
    assert bold.cells["u"].regret == pytest.approx(-3.0)
    assert bold.ratios["u"].value == pytest.approx(10 / 12)  # who beats the policy loses nothing
    assert bold.tail_ratios["u"] == pytest.approx((1 + 10) / 12)
    assert {s.entry: s for s in whole.standings}["bold"].cells["u"].linear_regret == pytest.approx(-3.0)
    assert json.loads(json.dumps(linear.summary(), allow_nan=False))["against"] == "best linear policy"
    text = contest_text([whole, linear])
    assert "Standings at T = 100, 2 worlds, 2 seeds, against the best linear policy" in text
    assert "against the best linear policy in hindsight; an entry that beats it loses nothing." in text
    assert text.count("\nu, T = 100") + text.startswith("u, T = 100") == 1  # one table for a world, with both
    lines = [line.split() for line in text.splitlines()]
    assert ["lazy", "rare", "3", "30.0", "4.0", "22.0", "34.0", "2.00", "?", "2.04", "0.25"] in lines
    assert ["lazy", "rare", "5", "150.0", "0.0", "150.0", "4.00", "?", "4.00", "0.25"] in lines  # in v there is one


def test_challengers_are_held_against_the_best_rival_of_each_world() -> None:
    """Of bold and odd, the best is bold in u (5) and odd in v (30); lazy pays 30 and 150."""
    (found,) = judge_contest(runs(), KINDS, rivals=["bold", "odd"], challengers=["lazy", "part"])
    assert {world: cell.learner for world, cell in found.rivals.items()} == {"u": "bold", "v": "odd"}
    lazy, part = found.challengers
    assert {world: ratio.value for world, ratio in lazy.ratios.items()} == pytest.approx({"u": 40 / 15, "v": 160 / 40})
    assert lazy.mean.value == pytest.approx(math.sqrt(40 / 15 * 4))
    assert (list(part.ratios), part.mean) == (["u"], None)  # it did not run in v
    text = contest_text([found])
    assert "Against the best rival of each world at T = 100" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["u", "bold", "5.0", "2.67?", "0.67?"] in lines
    assert ["v", "odd", "30.0", "4.00?"] in lines
    assert ["geometric", "mean", "3.27?"] in lines
    summary = json.loads(json.dumps(found.summary(), allow_nan=False))["rivals"]
    assert summary["best"] == {"u": "bold", "v": "odd"}
    assert summary["geometric_means"]["lazy"]["ratio"] == pytest.approx(math.sqrt(40 / 15 * 4))


def test_without_rivals_or_challengers_nothing_is_said_of_them() -> None:
    groups: list[tuple[list[str], list[str]]] = [(["bold"], []), ([], ["lazy"]), (["nobody"], ["lazy"])]
    for rivals, challengers in groups:
        (found,) = judge_contest(runs(), KINDS, rivals=rivals, challengers=challengers)
        assert (found.rivals, found.challengers) == ({}, ())
        assert found.summary()["rivals"] is None
        assert "rival" not in contest_text([found])
