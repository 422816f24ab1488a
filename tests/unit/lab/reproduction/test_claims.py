"""The frame: verdicts, the run that can be resumed, the exit status, the report."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rareswitch.cli import INTERRUPTED, main
from rareswitch.errors import FileFormatError, InputError, ParameterError
from rareswitch.lab.report.reproduction import reproduction_markdown
from rareswitch.lab.reproduction import reproduce as running
from rareswitch.lab.reproduction.claims import Claim, Condition, Effort, Finding, Measured, Series, judge_claim
from rareswitch.lab.reproduction.reproduce import reproduce
from rareswitch.report import as_html, as_text
from reference.commands import printed
from reference.refusals import raises

UNMET = Condition(theorem="Theorem 9", quantity="ln T", needed=960, run=13.8)


def claim_of(number: int, value: float, **settings: object) -> Claim:
    """A claim that passes if the value is at most 2."""

    def measure(effort: Effort) -> Measured:
        effort.map(abs, range(3))
        finding = Finding(what="largest, 3 sets", value=value, relation="≤", limit=2)
        points = ((1.0, value), (10.0, 0.5), (100.0, math.nan))
        return Measured(findings=(finding,), seeds=3, series=(Series(name="line", points=points),), axes=("x", "y"))

    facts = {"claim": f"claim {number}", "theorem": "Theorem 1", "criterion": "at most 2"}
    return Claim(number=number, measure=measure, **facts, **settings)  # type: ignore[arg-type]


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    """Claims of a run, one of which is a known failure, and another not testable as it is printed."""
    made = [claim_of(1, 1.0), claim_of(2, 3.0, known_failure="the slip is known"), claim_of(3, 2, conditions=(UNMET,))]
    monkeypatch.setattr(running, "CLAIMS", made)
    return made


@pytest.mark.parametrize(("relation", "holds"), [("=", "2"), ("≤", "12"), ("<", "1"), ("≥", "23"), (">", "3")], ids=str)
def test_a_finding_holds_by_its_relation(relation: str, holds: str) -> None:
    for value in (1.0, 2.0, 3.0):
        finding = Finding(what="v", value=value, relation=relation, limit=2)  # type: ignore[arg-type]
        assert finding.holds == (f"{value:.0f}" in holds)
    for value in (math.nan, math.inf, -math.inf):
        finding = Finding(what="v", value=value, relation=relation, limit=2)  # type: ignore[arg-type]
        assert finding.value is None
        assert not finding.holds


def test_verdicts_follow_from_findings_and_conditions_alone() -> None:
    effort = Effort(size="small")
    assert judge_claim(claim_of(1, 2.0), effort).verdict == "PASS"
    assert judge_claim(claim_of(1, 2.1), effort).verdict == "FAIL"
    assert judge_claim(claim_of(1, math.nan), effort).verdict == "FAIL"
    known = judge_claim(claim_of(1, 2.1, known_failure="as printed"), effort)
    assert (known.verdict, known.reason) == ("KNOWN FAILURE", "as printed")
    assert judge_claim(claim_of(1, 1.0, known_failure="as printed"), effort).verdict == "PASS"
    for largest, verdict in ((1.0, "PASS"), (3.0, "FAIL")):  # what cannot be tested hides no failure
        outcome = judge_claim(claim_of(1, largest, conditions=(UNMET,)), effort)
        assert outcome.verdict == verdict
        assert [condition.verdict for condition in outcome.untestable] == ["NOT TESTABLE"]
    met = Condition(theorem="Theorem 9", quantity="ln T", needed=10, run=13.8)
    assert judge_claim(claim_of(1, 1.0, conditions=(met,)), effort).untestable == ()


def test_what_breaks_off_or_finds_nothing_fails() -> None:
    def broken(effort: Effort) -> Measured:
        raise ZeroDivisionError("no set is left")

    facts = {"number": 1, "claim": "c", "theorem": "t", "criterion": "p"}
    outcome = judge_claim(Claim(measure=broken, **facts), Effort())  # type: ignore[arg-type]
    assert outcome.verdict == "FAIL"
    assert "ZeroDivisionError: no set is left" in outcome.measured.remark
    empty = Claim(measure=lambda _: Measured(findings=(), seeds=0), **facts)  # type: ignore[arg-type]
    assert judge_claim(empty, Effort()).verdict == "FAIL"


def test_the_run_says_how_far_it_is(claims: Sequence[Claim]) -> None:
    seen: list[tuple[int, int, str]] = []
    result = reproduce(items=[1, 3], progress=lambda *told: seen.append(told))
    assert [outcome.number for outcome in result.outcomes] == [1, 3]
    assert seen[0] == (0, 2, "1: 0 of 3")
    assert seen[-1] == (1, 2, "3: 3 of 3")
    assert result.seed == 0
    assert result.size == "whole"


def test_finished_items_are_not_run_again(claims: list[Claim], tmp_path: Path) -> None:
    keep = tmp_path / "kept.json"
    first = reproduce(items=[1, 2], keep=keep)

    def stop(effort: Effort) -> Measured:
        raise KeyboardInterrupt

    claims[0] = claim_of(1, 99.0)
    claims[2] = Claim(number=3, claim="c", theorem="t", criterion="p", measure=stop)
    stopped = reproduce(keep=keep)
    assert stopped.interrupted
    assert stopped.outcomes == first.outcomes  # of the old claim 1, to the second
    claims[2] = claim_of(3, 1.0)
    done = reproduce(keep=keep)
    assert not done.interrupted
    assert [outcome.verdict for outcome in done.outcomes] == ["PASS", "KNOWN FAILURE", "PASS"]
    assert len(json.loads(keep.read_text())["outcomes"]) == 3


def test_a_file_of_another_run_is_refused(
    claims: Sequence[Claim], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tmp_path / "kept.json"
    reproduce(keep=keep)
    raises(FileFormatError, "holds claims of seed 0, and this is seed 1", reproduce, keep=keep, seed=1)
    raises(FileFormatError, "holds claims of size whole, and this is size quick", reproduce, keep=keep, quick=True)
    monkeypatch.setattr(running, "__version__", "9.9")
    raises(FileFormatError, r"holds claims of version .*, and this is version 9\.9", reproduce, keep=keep)
    for content in ("{}", "", "[1]", '{"version": 1'):
        keep.write_text(content)
        raises(FileFormatError, "not a file of finished claims", reproduce, keep=keep)
    raises(FileFormatError, "there is no folder", reproduce, keep=tmp_path / "none" / "kept.json")


def test_bad_input_is_refused(claims: Sequence[Claim], tmp_path: Path) -> None:
    raises(ParameterError, "items must be numbers of claims, 1 to 3; got 4", reproduce, items=[1, 4])
    raises(InputError, "items must name at least one claim", reproduce, items=[])
    raises(ParameterError, "seed", reproduce, seed=-1)


def test_the_exit_status_and_what_is_written(
    claims: list[Claim], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.md"
    assert main(["reproduce", "--quiet", "--out", str(page)]) == 0  # a known failure, and none besides
    text = capsys.readouterr().out
    assert "2 PASS, 1 KNOWN FAILURE; 1 theorem as printed NOT TESTABLE" in text
    assert "Known failure: the slip is known" in text
    assert "Theorem 9 as printed: NOT TESTABLE: it needs ln T ≥ 960; the run had 13.8." in text
    assert "| 2 | claim 2 | KNOWN FAILURE | 3 |" in page.read_text()
    claims.append(claim_of(4, 5.0))
    (outcome,) = json.loads(printed(capsys, "reproduce", "--quiet", "--json", "--items", "4", status=1))["outcomes"]
    assert outcome["verdict"] == "FAIL"
    assert outcome["measured"]["findings"][0]["value"] == 5.0

    def stop(effort: Effort) -> Measured:
        raise KeyboardInterrupt

    claims[1] = Claim(number=2, claim="c", theorem="t", criterion="p", measure=stop)
    assert main(["reproduce", "--quiet"]) == INTERRUPTED
    caught = capsys.readouterr()
    assert "stopped after 1 finished items" in caught.err
    assert "claim 1" in caught.out
    for name in ("report.pdf", "none/report.md"):
        assert main(["reproduce", "--quiet", "--out", str(tmp_path / name)]) == 2


def test_the_page_needs_no_other_file(claims: Sequence[Claim]) -> None:
    result = reproduce()
    page = as_html(result)
    assert page.count("<svg") == 3
    assert "claim 2" in page
    assert not [word for word in ("src=", 'href="http', "@import", "<script", "<link") if word in page]
    picture = page[page.index("<svg") : page.index("</svg>") + 6]
    assert ET.fromstring(picture).tag.endswith("svg")
    assert "nan" not in reproduction_markdown(result)
    assert as_text(result).count("PASS") >= 4


def test_the_page_of_the_documents_is_of_these_claims() -> None:
    page = (Path(__file__).parents[4] / "docs" / "evidence" / "reproduction.md").read_text()
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["Verdicts", *(f"{claim.number}. {claim.claim}" for claim in running.CLAIMS)]
    verdicts = [line for line in page.splitlines() if re.match(r"\| [0-9]+ \|", line)]
    assert len(verdicts) == len(running.CLAIMS)
    assert not [line for line in verdicts if "| FAIL" in line]
