"""An evaluation as text: the words that a reader needs are there, and no line is wider than a terminal."""

import json
from dataclasses import replace

import pytest

from rareswitch.evaluation import Evaluation
from rareswitch.report import evaluation_text
from reference.evaluations import REFUSAL, USUAL, evaluation, interval, value

LONG = {f"candidates/a policy with a very long name, number {k}.policy": (0.1, 0.01) for k in range(30)}


def flat(text: str) -> str:
    """Without the breaks of lines."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    "shown",
    [
        evaluation(),
        evaluation(estimated="by a logistic model of the arms that were shown, in 5 folds", alarm=True),
        evaluation(LONG),
        evaluation({"none": None}, batches=1),
        evaluation({"revenue": (1234567.8, 345.6), "logged": (1234000.0, 123.0)}),
        evaluation({"clicks": (0.0046123, 0.000412), "none": None}),
        evaluation({"unbounded": (0.1, float("inf")), "exact": (0.1, 0.0)}),
    ],
)
def test_no_line_is_wider_than_a_terminal(shown: Evaluation) -> None:
    text = evaluation_text(shown, batches=True)
    assert max(map(len, text.splitlines())) <= 100
    assert str(shown) == evaluation_text(shown)


def test_the_lift_is_the_first_line_and_its_weeks_follow() -> None:
    first, second, *weeks = evaluation_text(evaluation()).split("\n\n")[0].splitlines()
    assert flat(f"{first} {second}") == (
        "Lift over the baseline so far: +8.2 % (+3.0 % to +13.4 %), +0.0123 per decision (95 %: +0.0045 to +0.0201)."
    )
    assert weeks[0].split() == ["week", "2026-11-02", "+0.011", "−0.009", "to", "+0.031", "3,002", "decisions"]
    assert weeks[2].split() == ["week", "2026-11-16", "not", "identifiable", "3,016", "decisions"]
    assert weeks[3] == "  - not identifiable: only 12 decisions of that week have a reward."


def test_a_lift_that_is_not_known_says_why() -> None:
    told = evaluation()
    assert evaluation_text(replace(told, lift=())).startswith("Earned:")
    refused = replace(told.lift[0], interval=None, refusals=("The baseline's arm was never shown.",))
    lines = evaluation_text(replace(told, lift=(refused,))).splitlines()
    assert lines[:2] == ["Lift over the baseline so far: not identifiable.", "  - The baseline's arm was never shown."]


def test_answers_and_refusals_have_a_row_each() -> None:
    text = evaluation_text(evaluation())
    rows = [line.split() for line in text.splitlines()]
    assert ["uniform", "0.1430", "0.1309", "to", "0.1551", "−0.0190", "−0.0311", "to", "−0.0069", "less"] in rows
    assert ["policy", "3", "0.1710", "0.1627", "to", "0.1793", "+0.0090", "+0.0007", "to", "+0.0173", "more"] in rows
    assert ["logged", "0.1620", "0.1552", "to", "0.1688"] in rows
    assert ["never", "not", "identifiable"] in rows
    assert ["never", "dr", "11,802", "12", "0.570", "412.2", "43", "%"] in rows
    assert f"Not identifiable, never: - {REFUSAL}" in flat(text)
    assert "nan" not in text


def test_a_gain_that_may_be_none_is_unclear() -> None:
    rows = [line.split() for line in evaluation_text(evaluation({"same": (0.163, 0.01)})).splitlines()]
    assert ["same", "0.163", "0.153", "to", "0.173", "+0.001", "−0.009", "to", "+0.011", "unclear"] in rows


def test_every_number_that_rests_on_estimated_propensities_is_marked() -> None:
    exact = evaluation_text(evaluation(), batches=True)
    marked = evaluation_text(evaluation(estimated="by a logistic model"), batches=True)
    assert "≈" not in exact
    assert "≈: rests on estimated propensities (by a logistic model)" in flat(marked)
    for line, other in zip(exact.splitlines(), marked.splitlines(), strict=False):
        name = line.split(" ", 1)[0]
        if name in USUAL and "0.1" in line and "dr" not in line:
            assert "≈0.1" in other
    assert marked.splitlines()[0].count("≈") == 2


def test_what_to_bear_in_mind_is_said_once_where_it_holds_for_all() -> None:
    told = evaluation()
    both = tuple(value(name, USUAL[name], cautions=("Rewards are missing.",)) for name in ("logged", "uniform"))
    assert flat(evaluation_text(replace(told, values=both))).count("Rewards are missing.") == 1
    one = (both[0], replace(both[1], cautions=("Rewards are missing.", "It moved.")))
    text = evaluation_text(replace(told, values=one))
    assert "  - Rewards are missing.\n  - uniform: It moved." in text


def test_an_alarm_names_the_arm_that_came_too_often() -> None:
    assert "Sample-ratio check passed (p = 0.34, 2 arms)." in evaluation_text(evaluation())
    text = flat(evaluation_text(evaluation(alarm=True)))
    assert "Sample-ratio check failed (p = 4e-06, 2 arms): red was shown 1,234 times" in text


def test_batches_are_told_on_request() -> None:
    text = evaluation_text(evaluation(), batches=True)
    rows = [line.split() for line in text.splitlines()]
    assert ["1", "03fa9c0e", "not", "identifiable", "1,900", "1.50", "0", "%"] in rows
    assert ["2", "13fa9c0e", "0.143", "0.119", "to", "0.167", "0.012", "1,901", "2.50", "0", "%"] in rows
    assert "by batch" not in evaluation_text(evaluation())
    assert "for comparison: ips 0.1620 (0.1552 to 0.1688); snips 0.1620" in flat(text)


def test_what_is_known_of_the_log_is_counted() -> None:
    told = evaluation()
    assert "12,345 decisions of 4 policies; rewards are known of 11,802." in flat(evaluation_text(told))
    sampled = replace(told, known=2469, rewarded=2400, earned=interval(0.16, 0.01))
    assert "all offered arms are known of 2,469, the reward of 2,400 of these." in flat(evaluation_text(sampled))
    assert "all rewards are known." in flat(evaluation_text(replace(told, rewarded=12345)))
    assert "Earned: not identifiable." in evaluation_text(replace(told, earned=None))


def test_a_value_of_a_part_of_the_traffic_says_so() -> None:
    told = evaluation({"one": (0.17, 0.01), "other": (0.17, 0.01)})
    part = replace(told.values[0], overlap=replace(told.values[0].overlap, decisions=1900))
    text = evaluation_text(replace(told, values=(part, told.values[1])))
    assert "values of a part of the traffic, without batches that cannot tell: one 25 %\n" in text


def test_what_has_to_be_taken_for_granted_is_said() -> None:
    told = evaluation({"one": (0.17, 0.01)})
    granted = "of batch 2 alone, assuming that other traffic is alike"
    lift, gain = (replace(one, assumes=granted) for one in (told.lift[0], told.gains[0]))
    text = flat(evaluation_text(replace(told, lift=(lift,), gains=(gain,))))
    assert f"+0.0201), {granted}." in text
    assert f"- its gain is {granted}." in text


def test_a_candidate_that_does_what_was_done_earns_the_same() -> None:
    told = evaluation({"one": (0.17, 0.01)})
    same = (replace(told.gains[0], interval=interval(-5e-6, 3e-7)),)
    rows = [line.split() for line in evaluation_text(replace(told, gains=same)).splitlines()]
    assert ["one", "0.170", "0.160", "to", "0.180", "0.0000", "0.0000", "to", "0.0000", "same"] in rows


def test_as_plain_data_it_is_json() -> None:
    told = evaluation({"one": (0.1, float("inf")), "none": None}, alarm=True).as_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["alarm"]
    assert told["values"][0]["interval"]["high"] is None
    assert told["values"][1]["interval"] is None
