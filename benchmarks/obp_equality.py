"""IPS, SNIPS, DR and switch-DR against obp 0.4.1, on the same logs, candidates and predictions.

The logs are made up by obp itself, and with `--data` the Thompson log of the Open Bandit Dataset is read by obp and by
us. The model's predictions are those of obp's regression. Where `rareswitch.evaluate` refuses to answer, its estimators
are compared all the same, without the rest.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rareswitch
from measure import FloatArray, Row, arguments, report
from obp_peer import estimates
from rareswitch.evaluation.estimators import ESTIMATORS, Columns, estimate
from rareswitch.log import from_obp, read, to_obp, write
from rareswitch.log import DecisionLog

MOST = 1e-10


def ours(log: DecisionLog, candidate: FloatArray, model: FloatArray) -> tuple[dict[str, float], bool]:
    """The three estimates, and whether the evaluation gave them."""
    found = rareswitch.evaluate(log, {"candidate": candidate}, model=model)["candidate"]
    if found.answered:
        return {name: interval.value for name, interval in found.others.items()}, True
    rows = np.arange(len(log))
    columns = Columns(
        log.rewards,
        candidate[rows, log.arm_indices] / log.propensities,
        model[rows, log.arm_indices],
        np.einsum("nk,nk->n", candidate, model),
    )
    return {name: estimate(name, columns).value for name in ESTIMATORS}, False


def apart(one: dict[str, float], other: dict[str, float]) -> float:
    return max(abs(one[name] - other[name]) for name in ESTIMATORS)


def loaded(path: Path) -> tuple[dict[str, Any], FloatArray, FloatArray]:
    """A log of obp's, the candidate (n, arms, positions), and the model's predictions of the same shape."""
    with np.load(path) as held:
        arrays = dict(held)
    feedback = {name: arrays.get(name) for name in ("context", "action", "reward", "pscore", "position")}
    feedback |= {"n_rounds": len(arrays["action"]), "n_actions": int(arrays["n_actions"])}
    return feedback, arrays["action_dist"], np.load(path.with_suffix(".npy"))


def rows(quick: bool, data: Path | None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = ["--synthetic", "2" if quick else "20", "--rounds", "2000" if quick else "10000"]
        theirs = estimates(folder, *told, *(["--data", str(data)] if data else []))
        yield from made_up(folder, theirs)
        if data is not None:
            yield from real(folder, theirs["obd"])


def made_up(folder: Path, theirs: dict[str, Any]) -> Iterator[Row]:
    for candidate in ("uniform", "softmax", "best-arm"):
        names = [name for name in theirs if name.endswith(candidate)]
        worst, trips, answered = 0.0, 0.0, 0
        for name in names:
            feedback, probabilities, model = loaded(folder / f"{name}.npz")
            log = from_obp(feedback)
            mine, given = ours(log, probabilities[:, :, 0], model[:, :, 0])
            worst, answered = max(worst, apart(mine, theirs[name]["all"])), answered + given
            again = from_obp(to_obp(log))
            write(folder / f"{name}.dsjson.gz", again)
            there, _ = ours(read(folder / f"{name}.dsjson.gz"), probabilities[:, :, 0], model[:, :, 0])  # type: ignore[arg-type]
            trips = max(trips, apart(mine, there))
        yield Row(
            what=f"{len(names)} logs of {len(feedback['action'])} rounds and 10 actions that obp made up, candidate "
            f"{candidate.replace('-', ' ')}: all three estimates, the largest difference",
            measured=f"{worst:.1e}; {answered} answered, {len(names) - answered} refused by evaluate",
            needed=f"at most {MOST:g}",
            holds=worst <= MOST,
        )
        yield Row(
            what="the same after a way through obp's dictionary and dsjson",
            measured=f"{trips:.1e}",
            needed="0",
            holds=trips == 0.0,
        )


def real(folder: Path, theirs: dict[str, Any]) -> Iterator[Row]:
    feedback, probabilities, model = loaded(folder / "obd.npz")
    for which, expected in theirs.items():
        position = None if which == "all" else int(which) - 1
        log = from_obp(feedback, position=position)
        kept = slice(None) if position is None else feedback["position"] == position
        at = feedback["position"][kept]
        count = np.arange(len(at))
        mine, answered = ours(log, probabilities[kept][count, :, at], model[kept][count, :, at])
        worst = apart(mine, expected)
        yield Row(
            what=f"Open Bandit Dataset, men, Thompson log, uniform play, {len(log)} rows of "
            f"{'all positions' if position is None else f'position {which}'}: all three estimates",
            measured=f"{worst:.1e}" + ("" if answered else "; refused by evaluate"),
            needed=f"at most {MOST:g}",
            holds=worst <= MOST,
        )


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the Open Bandit Dataset's men's campaign")
    options = parser.parse_args()
    return report("Estimates against obp", rows(options.quick, options.data), options.out)


if __name__ == "__main__":
    sys.exit(main())
