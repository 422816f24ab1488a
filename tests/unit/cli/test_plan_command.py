import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch import create
from rareswitch.cli import main
from rareswitch.cli import plan as plan_command
from rareswitch.planning import CONTEXTS, plan
from rareswitch.report import as_html
from reference.commands import printed
from reference.refusals import raises

SIZES = ["--dim", "4", "--arms", "5", "--quiet"]


def test_kinds_of_contexts_are_those_of_the_library() -> None:
    assert plan_command.CONTEXTS == CONTEXTS  # written again there, as the library loads NumPy


@pytest.mark.parametrize(
    "options",
    [
        ["--decisions", "20000", "--min-propensity", "0.02"],
        ["--decisions", "2e4", "--policies", "3", "--click-rate", "0.05", "--lift", "0.3", "--contexts", "adversarial"],
        ["--rate", "400", "--start", "2026-03-02", "--end", "2026-05-11", "--on", "monday 10:00", "--delay", "1d"],
        ["--decisions", "2"],
        ["--decisions", "1e12", "--contexts", "fixed", "--mean", "-20", "--spread", "3"],
    ],
)
def test_a_plan_fits_a_wide_terminal_and_begins_with_its_answer(options: list[str], capsys: Any) -> None:
    out = printed(capsys, "plan", *options, *SIZES)
    assert max(map(len, out.splitlines())) <= 100
    first = " ".join(out.partition("\n\n")[0].split())
    assert re.match(
        r"\d+ polic(y|ies) .*what updating after every decision loses; .*never .* ×\. Recommended: \d", first
    )
    for words in (
        "Simulated on",
        "Minimum propensity",
        "against a holdout of 5 %",
        "Learner: ",
        "Table 1",
        "--plan FILE",
    ):
        assert words in " ".join(out.split())


def test_bounds_that_say_nothing_are_called_vacuous(capsys: Any) -> None:
    assert main(["plan", "--decisions", "20", "--dim", "20", "--arms", "50", "--quiet"]) == 0
    assert "All bounds are vacuous here" in " ".join(capsys.readouterr().out.split())


def test_an_experiment_follows_the_json_of_a_plan(tmp_path: Path, capsys: Any) -> None:
    file, store = tmp_path / "plan.json", str(tmp_path / "x.db")
    text = printed(capsys, "plan", "--decisions", "20000", "--policies", "6", *SIZES, "--json")
    facts = json.loads(text)
    assert facts["schema_version"] == 1
    file.write_text(text)
    assert main(["experiment", "create", store, "x", "--plan", str(file)]) == 0
    best = next(option for option in facts["options"] if option["policies"] == facts["recommended"])
    assert f"Expected regret: {best['ratio']:.1f} × full adaptivity" in capsys.readouterr().out
    assert main(["experiment", "create", store, "y", "--plan", str(file), "--schedule", "week*8"]) == 2
    assert "--plan has a schedule: give --plan or --schedule, not both." in capsys.readouterr().err
    file.write_text("[1]")
    assert main(["experiment", "create", store, "y", "--plan", str(file)]) == 2
    assert "no plan. Write one with rareswitch plan" in capsys.readouterr().err


def test_samples_and_logs_are_read_from_files(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(1)
    vectors, records, store = tmp_path / "sets.npy", tmp_path / "sample.csv", f"sqlite:///{tmp_path}/x.db"
    np.save(vectors, rng.standard_normal((50, 3, 2)))
    records.write_text("age,device\n" + "".join(f"{20 + k},{('ios', 'web')[k % 2]}\n" for k in range(40)))
    told = ["--decisions", "500", "--quiet", "--json"]
    assert json.loads(printed(capsys, "plan", "--sample", str(vectors), *told))["dim"] == 2
    assert json.loads(printed(capsys, "plan", "--sample", str(records), "--arms", "a", "b", *told))["arms"] == 2
    with create(store, "x", dim=2, seed=1) as trial:
        decided = trial.decide_many(rng.standard_normal((60, 3, 2)), ids=range(60))
        trial.reward_many(range(60), rng.standard_normal(60).tolist())
        assert len(decided) == 60
    assert json.loads(printed(capsys, "plan", "--log", f"{tmp_path}/x.db", "x", *told))["source"] == "log"
    for wrong, words in (
        (["--sample", str(records)], "--arms must be given with a sample"),
        (["--sample", str(tmp_path / "none.npy")], "no array of context sets"),
        (["--columns", "arm=a"], "--columns are those of a log"),
        (["--dim", "2", "--arms", "a", "b"], "--arms must be a number where there is no sample"),
    ):
        assert main(["plan", *wrong, *told]) == 2
        assert words in "".join(capsys.readouterr())


def test_a_page_needs_nothing_else(tmp_path: Path) -> None:
    page, picture = tmp_path / "plan.html", tmp_path / "plan.svg"
    assert main(["plan", "--decisions", "5000", *SIZES, "--html", str(page), "--plot", str(picture)]) == 0
    text = page.read_text()
    assert "<svg" in text
    assert "full adaptivity" in text
    loaded = re.findall(r"""(?:src|href)=["']([^"']+)""", text)
    assert all(target.startswith("#") for target in loaded)  # within the page
    assert not re.search(r"url\((?!#)|@import|<script|<link", text)
    assert picture.stat().st_size > 1000
    assert main(["plan", "--decisions", "5000", *SIZES, "--html", str(tmp_path / "none" / "plan.html")]) == 2


def test_names_are_not_taken_for_markup() -> None:
    assert "<b>" not in as_html(plan(500, dim=2, arms=2)).replace("<body>", "")


def test_progress_is_reported_and_can_stop_it() -> None:
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 3:
            raise KeyboardInterrupt

    raises(KeyboardInterrupt, None, plan, 5000, dim=3, arms=3, progress=stop)
    assert [done for done, _ in told] == [1, 2, 3]
