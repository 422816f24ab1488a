"""An experiment through the command line: created, asked, rewarded, updated, audited."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.decisions import DecisionLog
from rareswitch.experiment import open_experiment
from rareswitch.features import Features
from rareswitch.learner import LEARNERS, BatchLinUCBKW, Foresight, settings_of, takes
from rareswitch.log import write
from reference.commands import done, refused, said
from reference.refusals import raises

HERE = ("spring.db", "banner")
CREATE = (
    *("experiment", "create", *HERE, "--dim", "3", "--horizon", "250", "--policies", "4", "--seed", "1"),
    *("--now", "2026-03-02"),
)
SET = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, *lines: Any) -> None:
    """Let these be the standard input."""
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def requests(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"r{k}", "context": SET, "arms": ["a", "b", "c"]} | more for k in range(count)]


def test_a_sample_without_columns_that_are_no_features_and_meetings(capsys: pytest.CaptureFixture[str]) -> None:
    """Its arms are counted for learners that ask how many there are; all planned dates are said."""
    Path("seen.csv").write_text("age,click\n31,0\n42,1\n29,0\n55,1\n")
    mondays = "best:policies=4,rate=200,end=2026-06-01,on=monday 10:00"
    fitted = ("--fit", "seen.csv", "--drop", "click", "--arms", "a", "b", "c", "--now", "2026-03-02")
    out = done(capsys, "experiment", "create", *HERE, *fitted, "--schedule", mondays)
    assert "left out: click: as was asked" in out
    assert [line.count("Mon ") for line in out.splitlines()[-2:]] == [1, 2]
    grid = ("--learner", "linucb-grid", "--horizon", "300")
    done(capsys, "experiment", "create", HERE[0], "counted", *fitted, *grid)
    with open_experiment(f"sqlite:///{HERE[0]}", "counted") as trial:
        assert trial.description.learner.arms == 3
    assert "--drop is for features" in refused(capsys, "experiment", "create", *HERE, "--dim", "3", "--drop", "click")


def test_the_whole_job_of_an_experiment(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = done(capsys, *CREATE)
    assert "banner begins in sqlite:///spring.db." in out
    assert "Next update: after 12 more decisions" in out
    assert "Next update: no decisions yet." in done(capsys, "experiment", "advance", *HERE, "--preview", status=3)
    typed(monkeypatch, *requests(12))
    answers = [json.loads(line) for line in done(capsys, "experiment", "decide", *HERE).splitlines()]
    assert [answer["id"] for answer in answers] == [f"r{k}" for k in range(12)]
    assert {answer["arm"] for answer in answers} <= {"a", "b", "c"}
    fields = {"id", "arm", "propensity", "policy_id", "version", "repeated", "deferred", "cohort", "cautions"}
    assert set(answers[0]) == fields
    one = ("experiment", "decide", *HERE, "--id", "r3", "--context", json.dumps(SET), "--arms", "a", "b", "c")
    assert f"{answers[3]['arm']} (propensity 0.333333, policy 1, " in (text := done(capsys, *one))
    assert "requested before" in text
    assert json.loads(done(capsys, *one, "--json"))["repeated"] is True
    assert "No update: policy 1" in done(capsys, "experiment", "advance", *HERE, status=3)
    typed(monkeypatch, *({"id": f"r{k}", "value": k % 2 == 0} for k in range(1, 12)))
    kept = [json.loads(line) for line in done(capsys, "experiment", "reward", *HERE).splitlines()]
    assert kept[:2] == [{"id": "r1", "value": 0.0}, {"id": "r2", "value": 1.0}]
    assert "'r0': reward 0.5 stored" in done(capsys, "experiment", "reward", *HERE, "--id", "r0", "--value", "0.5")
    preview = done(capsys, "experiment", "advance", *HERE, "--preview")
    assert [line.partition(":")[0] for line in preview.splitlines()] == ["Seen", "Changes", "Expected", "Watch"]
    assert "Exploration scale: " in preview
    found = json.loads(done(capsys, "experiment", "advance", *HERE, "--json"))
    assert (found["made"], found["version"], found["decided"], found["rewarded"]) == (True, 2, 12, 12)
    assert found["policy_id"][:12] in preview
    status = json.loads(done(capsys, "experiment", "status", *HERE, "--json"))
    assert (status["decisions"], status["repeated_decisions"], status["signature"]) == (12, 2, "none")
    assert "Matches: the frozen policy gives the same arm" in done(capsys, "experiment", "audit", *HERE, "r3")
    (audit,) = json.loads(done(capsys, "experiment", "audit", *HERE, '"r3"', "--json"))
    assert (audit["matches"], audit["arm"]) == (True, answers[3]["arm"])


def test_a_report_is_text_json_or_one_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    done(capsys, *CREATE)
    typed(monkeypatch, *requests(12))
    done(capsys, "experiment", "decide", *HERE)
    report = ("experiment", "report", *HERE, "--now", "2026-03-09")
    assert "policy  published (UTC)   decisions  rewarded" in done(capsys, *report)
    facts = json.loads(done(capsys, *report, "--no-values", "--json"))
    assert (facts["decisions"], facts["history"]["decisions"], facts["values"]) == (12, 12, None)
    assert done(capsys, *report, "--html", "out.html") == "report written to out.html\n"
    assert "<h1>banner</h1>" in (here / "out.html").read_text()


def test_deferred_decisions_are_activated(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done(capsys, *CREATE)
    typed(monkeypatch, *requests(3))
    done(capsys, "experiment", "decide", *HERE, "--deferred")
    assert "3 decisions deferred and not activated" in done(capsys, "experiment", "status", *HERE)
    assert done(capsys, "experiment", "activate", *HERE, "--id", "r0") == "1 decision counts.\n"
    typed(monkeypatch, {"id": "r0"}, {"id": "r1"})
    answers = [json.loads(line) for line in done(capsys, "experiment", "activate", *HERE).splitlines()]
    assert answers == [{"id": "r0"}, {"id": "r1"}]
    status = json.loads(done(capsys, "experiment", "status", *HERE, "--json"))
    assert (status["decisions"], status["deferred"]) == (2, 1)


def test_a_line_that_is_refused_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done(capsys, *CREATE)
    first, second = requests(2)
    other = first | {"context": SET[::-1]}
    last = second | {"time": 1.8e9}
    typed(monkeypatch, first, other, "nonsense", "", {"id": "x", "contxt": 1}, {"id": "y"}, "[1]", last)
    assert main(("experiment", "decide", *HERE)) == 1
    captured = capsys.readouterr()
    answers = [json.loads(line) for line in captured.out.splitlines()]
    assert [answer["id"] for answer in (answers[0], answers[-1])] == ["r0", "r1"]
    words = ("was used before, for another request", "not JSON", "unknown field 'contxt'", "'context' is missing")
    for answer, text, line in zip(answers[1:5], words, (2, 3, 5, 6), strict=True):
        assert text in answer["error"]
        assert answer["line"] == line
    assert "a line must be an object with id, context" in answers[5]["error"]
    assert said(captured.err) == ["rareswitch: 5 of 7 lines refused: the answers say why."]
    typed(monkeypatch, {"id": "r0", "value": 1}, {"id": "r0", "value": 0}, {"id": "r1", "value": "much"})
    assert main(("experiment", "reward", *HERE)) == 1
    kept, clash, wrong = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert kept == {"id": "r0", "value": 1.0}
    assert "has the reward 1 already, and 0 was given" in clash["error"]
    assert "value must be a number" in wrong["error"]
    status = json.loads(done(capsys, "experiment", "status", *HERE, "--json"))
    assert (status["decisions"], status["repeated_decisions"], status["repeated_rewards"]) == (2, 1, 0)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"id": "x", "id": "y", "context": {"age": 1}, "arms": ["a"]}', "the field 'id' is there twice"),
        ('{"id": "x", "context": {"age": 1, "age": 2}, "arms": ["a"]}', "the field 'age' is there twice"),
        ('{"id": "x", "context": {"age": 1}, "arms": "a"}', "arms must be at least one: ids, as"),
        ('{"id": "x", "context": {"age": 1}, "arms": []}', "arms must be at least one: ids, as"),
        ('{"id": "x", "context": {"age": 1}, "arms": ["a", "\\ud800"]}', "id of an arm must be valid Unicode"),
    ],
)
def test_a_line_is_not_taken_for_another_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, error: str
) -> None:
    Features.fit([{"age": k % 7} for k in range(50)], ["a", "b"]).save("features.toml")
    done(capsys, "experiment", "create", *HERE, "--features", "features.toml", "--horizon", "1e3")
    typed(monkeypatch, line, line)
    assert main(("experiment", "decide", *HERE)) == 1
    answers = [json.loads(answer) for answer in capsys.readouterr().out.splitlines()]
    assert all(error in answer["error"] for answer in answers)
    assert len(answers) == 2


def test_transforms_of_features_are_asked_for_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["price,at", *(f"{1.5 ** (k % 20)},2026-03-{1 + k % 28:02}T{k % 24:02}:30" for k in range(60))]
    Path("sample.csv").write_text("\n".join(lines))
    fit = ("experiment", "create", *HERE, "--fit", "sample.csv", "--arms", "a", "b", "--kinds")
    assert "--kinds must be NAME=KIND" in refused(capsys, *fit, "price")
    assert "'logs' for 'price'" in refused(capsys, *fit, "price=logs")
    assert "time of day on a circle" in done(capsys, *fit, "price=log", "at=hour+weekday", "--save-features", "f.toml")
    assert [field.kind for field in Features.load("f.toml").fields] == ["log", "hour", "weekday"]
    request = '{"price": 0, "at": "2026-03-02T09:30Z"}'
    answer = done(capsys, "experiment", "decide", *HERE, "--id", "r", "--context", request)
    assert "'price' beyond its range" in answer


def test_answers_come_before_the_next_request_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, *CREATE)
    command = [sys.executable, "-m", "rareswitch", "experiment", "decide", *HERE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for request in requests(3):
            process.stdin.write(f"{json.dumps(request)}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == request["id"]
        process.stdin.close()
        assert process.wait(60) == 0


def test_requests_of_different_times_and_sizes_are_read_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, *CREATE)
    lines = [
        {"id": 1, "context": SET, "time": 1772409600},
        {"id": 2, "context": SET[:2], "time": 1772409600},
        {"id": 3, "context": SET, "arms": ["a", "b", "c"], "time": 1772413200.5},
    ]
    Path("requests.jsonl").write_text("\n".join(map(json.dumps, lines)))
    answers = done(capsys, "experiment", "decide", *HERE, "--input", "requests.jsonl").splitlines()
    assert [type(json.loads(answer)["arm"]) for answer in answers] == [int, int, str]
    with open_experiment(*HERE) as trial:
        assert [trial.audit(k).time for k in (1, 2, 3)] == [1772409600.0, 1772409600.0, 1772413200.5]


def test_windows_defaults_and_late_rewards(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done(capsys, *CREATE, "--window", "5m", "--default", "0", "--schedule", "by hand")
    start = 1772409600.0
    typed(monkeypatch, *(request | {"time": start + 3600 * k} for k, request in enumerate(requests(9))))
    done(capsys, "experiment", "decide", *HERE)
    typed(monkeypatch, *({"id": f"r{k}", "value": 1, "time": start + 3660 * k} for k in range(9)))
    done(capsys, "experiment", "reward", *HERE)
    advance = ("experiment", "advance", *HERE, "--force")
    found = json.loads(done(capsys, *advance, "--json", "--preview", "--now", "2026-03-02T06:02:00"))
    assert (found["learned"], found["waiting"]) == (6, 3)
    found = json.loads(done(capsys, *advance, "--json", "--now", "2026-03-02T12:00:00"))
    assert (found["learned"], found["waiting"], found["decided"]) == (9, 0, 9)  # late ones count as 0
    raises(SystemExit, None, main, (*advance, "--now", "monday"))
    assert "--now: must be a date, as in '2026-03-02'" in capsys.readouterr().err
    raises(SystemExit, None, main, (*CREATE, "--window", "fortnight"))
    assert "--window: must be a duration such as '2d'" in capsys.readouterr().err
    raises(SystemExit, None, main, (*CREATE, "--window", "2"))
    assert "--window: must be a duration with a unit, such as '2d', '2h'; got '2'." in capsys.readouterr().err


def test_sums_need_events_and_overwriting_must_be_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done(capsys, *CREATE, "--sum")
    typed(monkeypatch, *requests(1))
    done(capsys, "experiment", "decide", *HERE)
    reward = ("experiment", "reward", *HERE, "--id", "r0", "--value")
    assert "--event must be given: rewards of this experiment are summed" in refused(capsys, *reward, "3")
    done(capsys, *reward, "3", "--event", "order-1")
    done(capsys, *reward, "4", "--event", "order-2")
    assert "Give --overwrite to replace them" in refused(capsys, *reward, "5", "--event", "order-1")
    typed(monkeypatch, {"id": "r0", "value": 5, "event": "order-1"})
    assert main(("experiment", "reward", *HERE)) == 1
    assert json.loads(capsys.readouterr().out)["error"].endswith("Give --overwrite to replace them.")
    done(capsys, *reward, "5", "--event", "order-1", "--overwrite")
    with open_experiment(*HERE) as trial:
        assert trial.audit("r0").rewards == {"order-1": 5.0, "order-2": 4.0}


def test_a_level_that_the_features_do_not_explain_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done(capsys, *CREATE, "--no-intercept")
    contexts = np.random.default_rng(1).standard_normal((60, 3, 3)).round(3)
    typed(monkeypatch, *({"id": k, "context": one.tolist()} for k, one in enumerate(contexts)))
    answers = [json.loads(line) for line in done(capsys, "experiment", "decide", *HERE).splitlines()]
    values = [1000.0 + contexts[k, answer["arm"], 0] for k, answer in enumerate(answers)]
    typed(monkeypatch, *({"id": k, "value": value} for k, value in enumerate(values)))
    done(capsys, "experiment", "reward", *HERE)
    assert "Mean reward, not explained by the features: 1e+03" in done(capsys, "experiment", "advance", *HERE)


class Full(io.StringIO):
    """A disk without space."""

    def flush(self) -> None:
        if self.getvalue():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_where_a_report_cannot_be_shown_the_work_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ("--id", "r0", "--context", json.dumps(SET))
    for arguments in (
        CREATE,
        ("experiment", "decide", *HERE, *one),
        ("experiment", "reward", *HERE, "--id", "r0", "--value", "1"),
        ("experiment", "simulate", *HERE, "--days", "0.1", "--no-advance", "--quiet"),
        ("experiment", "advance", *HERE, "--quiet"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Full())
            assert main(arguments) == 2
        (line,) = said(capsys.readouterr().err)
        reason = "the output could not be written (No space left on device), but the command has done its work."
        assert line == f"rareswitch: error: {reason}"
    with open_experiment(*HERE) as trial:
        assert (len(trial.policies), trial.status().decisions) == (2, 21)


def test_simulated_users_come_late_twice_and_never(capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, *CREATE)
    play = ("experiment", "simulate", *HERE, "--days", "2", "--rate", "100", "--arms", "5", "--quiet")
    late = ("--delay", "3h", "--missing", "0.2", "--repeated", "0.3")
    found = json.loads(done(capsys, *play, *late, "--json"))
    assert found["decisions"] == 200
    assert found["missing"] > 0
    assert found["repeated"] > 0
    assert found["rewards"] - found["repeated"] <= 200 - found["missing"]
    assert len(found["updates"]) >= 2
    out = done(capsys, *play, "--no-advance")
    assert "200 decisions; 200 rewards" in out
    assert "Updates: none." in out
    status = json.loads(done(capsys, "experiment", "status", *HERE, "--json"))
    assert (status["decisions"], status["repeated_rewards"]) == (400, found["repeated"])


def test_a_run_comes_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    learner = ("--learner", "batch-linucb-kw", "--dim", "2", "--arms", "3", "--horizon", "60", "--grid", "30", "60")
    given = ("--noise", "0.5", "--delta", "0.1", "--confidence", "1", "--now", "2026-03-02")
    done(capsys, "experiment", "create", *HERE, *learner, *given)
    with open_experiment(*HERE) as trial:
        made = trial.description.learner
    assert isinstance(made, BatchLinUCBKW)
    assert (made.arms, made.pace().ends, made.noise, made.confidence) == (3, (30, 60), 0.5, 1.0)
    found = json.loads(
        done(capsys, "experiment", "simulate", *HERE, "--days", "3", "--rate", "20", "--quiet", "--json")
    )
    assert found["updates"] == [30]
    assert "No update: policy 2" in done(capsys, "experiment", "advance", *HERE, status=3)


def test_settings_of_foresight(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("--dim", "3", "--intercept", "--design-share", "0.01", "--context-sample-rate", "0.5")
    out = done(capsys, "experiment", "create", *HERE, *settings, "--rewards", "binary")
    assert "Rewards: one per decision, 0 or 1" in out
    with open_experiment(*HERE) as trial:
        assert trial.description.learner == Foresight(dim=3, intercept=True, design_share=0.01, rewards="binary")
        assert trial.description.context_sample_rate == 0.5


def test_a_floor_under_arms(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    create = ("experiment", "create", *HERE, "--dim", "3")
    assert "--min-propensity must be a finite number above 0" in refused(capsys, *create, "--min-propensity", "0")
    assert "--min-propensity-arms restricts a minimum propensity" in refused(
        capsys, *create, "--min-propensity-arms", "a"
    )
    told = ("--schedule", "100*10", "--min-propensity", "0.1", "--min-propensity-arms", "b", "a")
    out = done(capsys, *create, *told)
    assert "Minimum propensity: 0.1 for a, b, 20 % of decisions (2 arms per set). Expected cost: 200 exploring" in out
    typed(monkeypatch, *requests(1))
    done(capsys, "experiment", "decide", *HERE)
    assert "same arm and propensity." in done(capsys, "experiment", "audit", *HERE, "r0")
    status = json.loads(done(capsys, "experiment", "status", *HERE, "--json"))
    assert (status["min_propensity"]["least"], status["min_propensity"]["only"]) == (0.1, ["a", "b"])
    assert status["schema_version"] == 1


def test_a_start_from_a_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x, arms = rng.standard_normal((200, 4, 3)), rng.integers(0, 4, 200)
    rewards = x[np.arange(200), arms] @ [1.0, 0.0, -1.0] + rng.standard_normal(200)
    columns: dict[str, Any] = {"arm_indices": arms, "propensities": [0.25] * 200, "rewards": rewards, "contexts": x}
    write("log.parquet", DecisionLog(**columns, estimated="arm frequencies"))
    create = ("experiment", "create", *HERE, "--horizon", "1e3", "--seed", "1", "--warm-start", "log.parquet")
    assert "the vectors of the log have 3 features" in refused(capsys, *create, "--dim", "5")
    own = ("--learner", "batch-linucb-kw", "--arms", "4")
    assert "--warm-start: batch-linucb-kw cannot warm-start" in refused(capsys, *create, "--dim", "3", *own)
    assert "no.csv" in refused(capsys, *create[:-1], "no.csv", "--dim", "3")
    out = done(capsys, *create, "--dim", "3")
    assert "Warm start: 200 decisions, 200 rewarded; estimated propensities" in out
    typed(monkeypatch, *requests(20))
    done(capsys, "experiment", "decide", *HERE)
    typed(monkeypatch, *({"id": f"r{k}", "value": 1.0 + k % 2} for k in range(20)))
    done(capsys, "experiment", "reward", *HERE)
    done(capsys, "experiment", "advance", *HERE, "--force")
    with open_experiment("spring.db", "banner") as trial:
        assert trial.verify().holds
    again = ("experiment", "create", "spring.db", "again", "--dim", "3", "--warm-start", *HERE)
    assert "Warm start: 20 decisions, 20 rewarded." in done(capsys, *again)
    assert "nobody" in refused(capsys, *again[:-1], "nobody")


def test_every_setting_that_is_a_number_or_a_text_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    raises(SystemExit, None, main, ("experiment", "create", "--help", "--learner", *LEARNERS))
    out = capsys.readouterr().out
    for kind in LEARNERS.values():
        for entry in settings_of(kind):
            assert (f"--{entry.name.replace('_', '-')} " in out) == (entry.name not in ("designer", "g_optimal"))
    assert "seed" in takes("foresight")


def test_engines_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, *CREATE)
    done(capsys, "experiment", "simulate", *HERE, "--days", "0.1", "--no-advance", "--quiet")
    advance = ("experiment", "advance", *HERE, "--json", "--engine")
    assert "no engine is called 'spark'" in done(capsys, *advance, "spark", status=2)
    previews = [json.loads(done(capsys, *advance, engine, "--preview")) for engine in ("serial", "processes:1")]
    assert previews[0]["policy_id"] == previews[1]["policy_id"]


def test_bad_input_gives_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, *CREATE)
    before = Path("spring.db").stat().st_mtime_ns
    other = ("experiment", "create", "other.db", "x")
    for arguments, words in (
        (CREATE, "banner"),
        (("experiment", "status", "nowhere.db", "x"), "nowhere.db"),
        (("experiment", "status", "spring.db", "x"), "'x'"),
        (("experiment", "status", "ftp://somewhere", "x"), "STORE must be"),
        (("experiment", "create", "other.db", ".x", "--dim", "3"), "NAME must be"),
        ((*other, "--learner", "oful", "--dim", "3"), "oful decides by looking at each"),
        ((*other, "--learner", "batch-linucb-kw", "--dim", "3", "--horizon", "9"), "batch-linucb-kw needs arms"),
        ((*other, "--dim", "0"), "--dim must be at least 1"),
        (
            (*other, "--dim", "3", "--noise", "1"),
            "--noise is no setting of foresight. Leave it out, or take batch-linucb,",
        ),
        ((*other, "--dim", "3", "--arms", "a", "b"), "--arms must be a number where requests are vectors"),
        (other, "--dim must be given"),
        ((*other, "--dim", "3", "--context-sample-rate", "2"), "--context-sample-rate must be"),
        ((*other, "--dim", "3", "--spare-arms", "2"), "--spare-arms is for features that are proposed from a sample"),
        ((*other, "--dim", "3", "--kinds", "price=log"), "--kinds is for features that are proposed from a sample"),
        ((*other, "--features", "nowhere.toml"), "nowhere.toml"),
        ((*other, "--fit", "sample.xls"), "sample.xls: the name of a file of records must end in .csv"),
        (("experiment", "decide", *HERE, "--id", "r"), "--context must be given with --id"),
        (("experiment", "decide", *HERE, "--context", "[]"), "--context is that of one decision: give its --id too"),
        (("experiment", "decide", *HERE, "--input", "nowhere"), "nowhere: cannot be read"),
        (("experiment", "reward", *HERE, "--id", "r"), "--value must be given with --id"),
        (("experiment", "audit", *HERE, "nobody"), "there is none of 'nobody'"),
        (("experiment", "simulate", *HERE, "--world", "mars"), "there is no world 'mars'"),
        (("experiment", "simulate", *HERE, "--missing", "2"), "--missing must be"),
        (("experiment", "simulate", *HERE, "--arms", "a", "b"), "--arms must be a number where requests are vectors"),
        (("experiment", "simulate", *HERE, "--sample", "s.csv"), "--sample is for experiments with features"),
    ):
        assert words in refused(capsys, *arguments), arguments
    assert not Path("other.db").exists()
    assert Path("spring.db").stat().st_mtime_ns == before


def test_a_gate_refuses_with_a_status_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done(capsys, *CREATE)
    typed(monkeypatch, *requests(40))
    done(capsys, "experiment", "decide", *HERE)
    typed(monkeypatch, *({"id": f"r{k}", "value": k % 2 == 0} for k in range(40)))
    done(capsys, "experiment", "reward", *HERE)
    advance = ("experiment", "advance", *HERE, "--now", "2026-03-09")
    out = done(capsys, *advance, "--gate", "--gate-holdout", "0.5", "--preview", status=4)
    assert "Preview, nothing was changed." in out
    assert "Gate: not promoted, not identifiable: " in out
    found = json.loads(done(capsys, *advance, "--gate", "0.1", "--gate-loss", "0.2", "--json", status=4))
    assert (found["made"], found["gate"]["promoted"], found["gate"]["loss"]) == (False, False, 0.2)
    assert "Gate: not promoted" in done(capsys, "experiment", "status", *HERE)
    assert "more decisions (the gate rejected a policy after 40" in done(capsys, *advance, "--gate", status=3)
    assert "policy 2" in done(capsys, *advance)
    assert "--gate-loss is a setting of the gate" in refused(capsys, *advance, "--gate-loss", "1")
    assert "level of a gate" in refused(capsys, *advance, "--gate", "2")
