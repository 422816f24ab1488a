"""Charts as SVG: what they draw is what they were given."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise

import pytest

from rareswitch.evaluation import Interval
from rareswitch.report import Mark, Segment, bar_mark, interval_mark, line_chart, stacked_chart, timeline_chart

HOSTILE = "<script>\"&'"
DAY = 86_400.0


def interval(value: float, margin: float = 0.1) -> Interval:
    return Interval(value=value, low=value - margin, high=value + margin, level=0.95, kind="by batch")


def tags(svg: str, name: str, kind: str = "") -> list[ET.Element]:
    """The elements of a kind, in a drawing that is well-formed XML."""
    elements = ET.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{name}")
    return [element for element in elements if not kind or kind in (element.get("class") or "").split()]


CHARTS: list[Callable[[], str]] = [
    lambda: stacked_chart(
        {HOSTILE: [1, 2], "b": [3, 0]}, start=0.0, step=DAY, marks=[Mark(DAY, HOSTILE)], width=880, label=HOSTILE
    ),
    lambda: timeline_chart([Segment(HOSTILE, 0.0, 9 * DAY, "running")], 4 * DAY, dates=True, width=358, label=HOSTILE),
    lambda: line_chart([(0.0, interval(0.5)), (DAY, interval(-0.2))], width=880, label=HOSTILE),
    lambda: line_chart([(0.0, interval(0.0, 0.0))], width=358, label=HOSTILE),
    lambda: interval_mark(interval(0.3), 0.0, 1.0, reference=0.25),
    lambda: bar_mark(0.4, before=0.6),
]


@pytest.mark.parametrize("chart", CHARTS)
def test_charts_are_well_formed_quiet_and_inside(chart: Callable[[], str]) -> None:
    svg = chart()
    root = ET.fromstring(svg)
    assert (root.get("aria-label") == HOSTILE and root.get("role") == "img") or root.get("aria-hidden") == "true"
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    for element in root.iter():
        assert element.tag.endswith(("svg", "rect", "path", "line", "circle", "text"))
        assert "style" not in element.attrib
        for name, most in (("x", width), ("x1", width), ("cx", width), ("y", height), ("cy", height)):
            assert -0.1 <= float(element.get(name, "0")) <= most + 0.1
    assert "nan" not in svg
    assert "inf" not in svg.replace("information", "")


def test_stacked_shares_fill_the_height_and_the_rest_is_added_up() -> None:
    counts = {f"arm {k}": [20 - k, 0, 3] for k in range(12)}
    svg = stacked_chart(
        counts, start=0.0, step=DAY, marks=[Mark(DAY, "2"), Mark(99 * DAY, "out")], width=880, label="x"
    )
    paths = tags(svg, "path")
    assert [path.get("class") for path in paths] == [*(f"s{k}" for k in range(7)), "others"]
    first = re.findall(r"M0\.0 ([\d.]+)H[\d.]+V([\d.]+)", "".join(path.get("d") or "" for path in paths))
    heights = [float(bottom) - float(top) for bottom, top in first]
    total = sum(values[0] for values in counts.values())
    assert sum(heights) == pytest.approx(280 - 26 - 12, abs=1.0)
    assert heights[0] / sum(heights) == pytest.approx(20 / total, abs=0.005)
    assert len(tags(svg, "line", "update")) == 1
    labels = [element.text or "" for element in tags(svg, "text", "label")]
    assert any(label.startswith("5 others") for label in labels)
    at = sorted(float(element.get("y") or 0) for element in tags(svg, "text", "label"))
    assert all(b - a >= 15.9 for a, b in pairwise(at))


def test_an_interval_says_whether_it_is_clear() -> None:
    for value, kind in ((0.3, "unclear"), (0.9, "clear")):
        assert tags(interval_mark(interval(value), 0.0, 1.0, reference=0.25), "circle", kind)


def test_a_timeline_shows_policies_in_their_states() -> None:
    segments = [Segment("1", 0, 100, "done"), Segment("2", 100, 300, "running"), Segment("3", 300, 600, "due")]
    svg = timeline_chart(segments, 150.0, dates=False, width=880, label="x")
    widths = [float(tags(svg, "rect", state)[0].get("width") or 0) for state in ("done", "running", "due")]
    assert [round((width + 2) / 880, 2) for width in widths] == [0.17, 0.33, 0.5]
    (now,) = tags(svg, "line", "now")
    assert float(now.get("x1") or 0) == pytest.approx(220.0)


def test_the_number_of_a_policy_is_beside_the_line_of_the_current_time() -> None:
    for now in (400.0, 450.0, 500.0):
        svg = timeline_chart([Segment("8", 300.0, 600.0, "running")], now, dates=False, width=880, label="x")
        (line,), (number,) = tags(svg, "line", "now"), tags(svg, "text", "in-running")
        assert abs(float(line.get("x1") or 0) - float(number.get("x") or 0)) >= 8.0
