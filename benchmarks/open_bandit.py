"""A real log, that of a shop: what uniformly random play would have earned, from the log of Thompson sampling.

Both logs of the Open Bandit Dataset's men's campaign are read from CSV. What random play earned is known from its own
log; the value of the candidate "uniform" on the other log, overall and by position, is put beside it, and beside obp's
estimates of the same rows. DR of both libraries uses the predictions of obp's regression; beside it stands our DR with
the model that is learned from the log itself, which is the default.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rareswitch
from measure import FloatArray, Row, arguments, report
from obp_equality import ours
from obp_peer import estimates
from rareswitch.evaluation import Evaluation, Interval
from rareswitch.log import read_csv
from rareswitch.log import DecisionLog

MOST = 1e-10
COLUMNS: dict[str, Any] = {
    "arm": "item_id",
    "reward": "click",
    "propensity": "propensity_score",
    "time": "timestamp",
}
POSITIONS = ("all", "1", "2", "3")
COMPARED = ("ips", "snips", "dr")


def logs(data: Path, name: str) -> dict[str, DecisionLog]:
    """A log, whole and by position."""
    path = data / f"{name}.csv.gz"
    return {
        which: read_csv(path, where=None if which == "all" else {"position": which}, **COLUMNS) for which in POSITIONS
    }


def predictions(folder: Path, data: Path) -> dict[str, FloatArray]:
    """What obp predicts (n, arms) of the rows in the order of the file, whole and by position."""
    with np.load(folder / "obd.npz") as held:
        order, position = held["rows"], held["position"]
    model = np.load(folder / "obd.npy")
    found, where = np.empty(model.shape[:2]), np.empty(len(order), dtype=np.int64)
    found[order], where[order] = model[np.arange(len(order)), :, position], position
    return {which: found if which == "all" else found[where == int(which) - 1] for which in POSITIONS}


def in_percent(interval: Interval | None) -> str:
    if interval is None:
        return "refused"
    low, high = (f"{100 * end:.3f}" for end in (interval.low, interval.high))
    return f"{100 * interval.value:.3f} % ({low} to {high})"


def agrees(interval: Interval, rate: Interval) -> bool:
    """Whether two intervals of independent logs are for one value: their half-widths add as errors do."""
    halves = (max(interval.value - interval.low, interval.high - interval.value), (rate.high - rate.low) / 2.0)
    return abs(interval.value - rate.value) <= math.hypot(*halves)


def compared(which: str, found: Evaluation, log: DecisionLog, model: FloatArray, theirs: dict[str, float]) -> Row:
    uniform = np.full(log.available.shape, 1.0 / log.available.shape[1])
    mine, _ = ours(log, uniform, model)
    worst = max(abs(mine[name] - theirs[name]) for name in COMPARED)
    values = ", ".join(f"{name} {100 * theirs[name]:.4f} %" for name in COMPARED)
    return Row(
        what=f"{scope(which)}, {len(log)} rows: IPS, SNIPS and DR of rareswitch against obp's ({values})",
        measured=f"largest difference {worst:.1e}",
        needed=f"at most {MOST:g}",
        holds=worst <= MOST,
    )


def beside(which: str, found: Evaluation, given: Evaluation, rate: Interval) -> Iterator[Row]:
    """Our intervals beside what random play earned itself."""
    value = found["uniform"]
    if not value.answered:
        yield Row(
            what=f"{scope(which)}: what uniform play earns; its own log says {in_percent(rate)}",
            measured=f"refused: {value.refusals[0]}",
            needed="an interval that contains the rate",
            holds=False,
        )
        return
    told = {name: value.others[name] for name in COMPARED} | {"dr with obp's model": given["uniform"].others["dr"]}
    for name, interval in told.items():
        inside = interval.low <= rate.value <= interval.high
        yield Row(
            what=f"{scope(which)}: what uniform play earns, by {name}; its own log says {in_percent(rate)}",
            measured=f"{in_percent(interval)}; {'contains' if inside else 'does not contain'} the rate",
            needed="contains the rate, or as near as the rate's own error allows",
            holds=inside or agrees(interval, rate),
        )


def scope(which: str) -> str:
    return "all positions" if which == "all" else f"position {which}"


def calibrated(name: str, found: Evaluation) -> Row:
    told = found.calibration
    assert told is not None
    worst = max(told.arms, key=lambda arm: abs(arm.deviation))
    return Row(
        what=f"propensities of the {name} log against how often its {len(told.arms)} arms came",
        measured=f"p = {told.p_value:.2g}, {'ALARM' if told.alarm else 'no alarm'}; the farthest is item {worst.arm}, "
        f"which came {worst.came} times where {worst.expected:.0f} were expected ({worst.deviation:+.1f} σ)",
    )


def rows(data: Path) -> Iterator[Row]:
    thompson, random = logs(data, "bts"), logs(data, "random")
    for name, log in (("Thompson", thompson["all"]), ("random", random["all"])):
        yield Row(
            what=f"the {name} log, read from CSV",
            measured=f"{len(log):,} decisions, {len(log.arms or ())} arms, {100 * log.rewards.mean():.2f} % clicks, "
            f"propensities {log.propensities.min():.2g} to {log.propensities.max():.2g}",
        )
    with tempfile.TemporaryDirectory() as name:
        theirs = estimates(Path(name), "--data", str(data))["obd"]
        models = predictions(Path(name), data)
    for which in POSITIONS:
        log = thompson[which]
        found = rareswitch.evaluate(log, "uniform")
        given = rareswitch.evaluate(log, "uniform", model=models[which])
        yield compared(which, found, log, models[which], theirs[which])
        on_policy = rareswitch.evaluate(random[which], "logged").earned
        assert on_policy is not None
        yield from beside(which, found, given, on_policy)
    yield calibrated("Thompson", rareswitch.evaluate(thompson["all"], "uniform"))
    yield calibrated("random", rareswitch.evaluate(random["all"], "uniform"))


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the Open Bandit Dataset's men's campaign")
    options = parser.parse_args()
    if options.data is None or not (options.data / "bts.csv.gz").exists():
        print(f"the real log is not there ({options.data}): name its folder with --data", file=sys.stderr)
        return 0
    return report("A real log: the Open Bandit Dataset", rows(options.data), options.out)


if __name__ == "__main__":
    sys.exit(main())
