"""Measure what each setting of foresight costs in all worlds of the three suites, against linear foresight.

``--keep FILE`` keeps the regrets, one line a run, and does not run again what it holds. ``--before FILE`` compares the
regrets of the setting "as it comes" with those that another version kept in that file, seed by seed.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from measure import FloatArray, Row, arguments, report
from rareswitch import Foresight, simulate
from rareswitch.errors import RareswitchError
from rareswitch.lab.suites import SUITES, left_out, world_at

HORIZON = 10_000
AS_IT_COMES, LINEAR = "as it comes", "linear"
#: By name; all with eight policies but for those that say otherwise.
SETTINGS: dict[str, dict[str, Any]] = {
    AS_IT_COMES: {},
    LINEAR: {"rewards": "linear"},
    "4 policies": {"updates": 4},
    "4 policies, linear": {"updates": 4, "rewards": "linear"},
    "16 policies": {"updates": 16},
    "16 policies, linear": {"updates": 16, "rewards": "linear"},
    "no level": {"intercept": False},
    "no level, logistic": {"intercept": False, "rewards": "binary"},
    "logistic": {"rewards": "binary"},
    "no design play": {"floor": 0.0},
    "0.3 % design play": {"floor": 0.003},
    "3 % design play": {"floor": 0.03},
    "2 in reserve": {"reserve": 2},
    "discount 0.9": {"forget": 0.9},
}
#: No setting may cost more than so many times linear foresight on as many batches.
BAR = 2.0


class Runs:
    """Regrets by world, schedule, setting and seed, kept in a file."""

    def __init__(self, path: str | None, folders: dict[str, str | None], seeds: range, horizon: int) -> None:
        self.path, self.folders, self.seeds, self.horizon = path, folders, seeds, horizon
        self.known = kept(path)

    def regrets(self, place: str, setting: str, batches: str) -> FloatArray | None:
        """(n,) seed by seed; None where the world's rewards are not for the setting."""
        found = []
        for seed in self.seeds:
            key = (place, setting, batches, seed, self.horizon)
            if key not in self.known:
                self.known[key] = self._run(place, setting, batches, seed)
                if self.path is not None:
                    with Path(self.path).open("a", encoding="utf-8") as file:
                        file.write(json.dumps([*key, self.known[key]]) + "\n")
            if self.known[key] is None:
                return None
            found.append(self.known[key])
        return np.array(found, dtype=np.float64)

    def _run(self, place: str, setting: str, batches: str, seed: int) -> float | None:
        world = world_at(place, self.folders)(self.horizon)
        settings = dict(SETTINGS[setting])
        if batches == "equal":
            count = settings.pop("updates", 8)
            settings["grid"] = [round(self.horizon * (k + 1) / count) for k in range(count)]
        try:
            learner = Foresight(dim=world.dim, horizon=self.horizon, seed=seed, **settings)
            return float(simulate(learner, world, seed=seed).regret)
        except RareswitchError:
            return None


def kept(path: str | None) -> dict[tuple[Any, ...], float | None]:
    """The regrets in a file, if there is one."""
    if path is None or not Path(path).exists():
        return {}
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {tuple(key): regret for *key, regret in map(json.loads, lines)}


def against_linear(runs: Runs, worlds: list[str], settings: list[str], schedules: list[str]) -> Iterator[Row]:
    """A row for each setting and schedule."""
    for setting in settings:
        for batches in schedules:
            ratios: dict[str, float] = {}
            for place in worlds:
                same = f"{setting}, linear"  # with as many policies
                base = runs.regrets(place, same if same in SETTINGS else LINEAR, batches)
                own = runs.regrets(place, setting, batches)
                if base is not None and own is not None:
                    ratios[place] = float(own.mean() / base.mean())
            if not ratios:
                continue
            mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
            worst = max(ratios, key=ratios.__getitem__)
            above = [f"{place} {ratio:.1f}" for place, ratio in sorted(ratios.items()) if ratio > BAR]
            yield Row(
                what=f"{setting}, {batches}",
                measured=f"geometric mean {mean:.2f}, worst {ratios[worst]:.2f} ({worst}); {len(ratios)} worlds"
                + (f"; above {BAR:g}: {', '.join(above)}" if above else ""),
                ratio=f"{ratios[worst]:.2f}×",
                needed=f"none above {BAR:g}×",
                holds=not above,
            )


def against_before(runs: Runs, worlds: list[str], path: str) -> Iterator[Row]:
    """A row for each world, and one for all."""
    before, ratios = kept(path), []
    for place in worlds:
        now = runs.regrets(place, AS_IT_COMES, "geometric")
        then = [before.get((place, AS_IT_COMES, "geometric", seed, runs.horizon)) for seed in runs.seeds]
        if now is None or None in then:
            continue
        base = np.array(then, dtype=np.float64)
        ratios.append(float(now.mean() / base.mean()))
        yield Row(
            what=place,
            measured=f"regret {now.mean():,.1f}, before {base.mean():,.1f}; {len(base)} seeds",
            ratio=f"{ratios[-1]:.2f}×",
            needed="at most 1.10×",
            holds=ratios[-1] <= 1.10,
        )
    mean = float(np.exp(np.mean(np.log(ratios))))
    yield Row(what="all", measured=f"{len(ratios)} worlds", ratio=f"{mean:.3f}×", needed="1.02×", holds=mean <= 1.02)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", help="folder of MovieLens")
    parser.add_argument("--tables", help="folder of tables")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0; 3 by default")
    parser.add_argument("--worlds", nargs="*", help="which; all by default")
    usual = [name for name in SETTINGS if "linear" not in name]
    parser.add_argument("--settings", nargs="*", default=usual, choices=list(SETTINGS), help="which")
    parser.add_argument("--schedules", nargs="*", default=["geometric", "equal"], help="geometric, equal or both")
    parser.add_argument("--keep", help="file that keeps the regrets")
    parser.add_argument("--before", help="file that another version kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folders = {"data": options.data, "tables": options.tables}
    every = [place for suite in SUITES.values() for place in suite.worlds]
    worlds = [place for place in dict.fromkeys(options.worlds or every) if not left_out([place], folders)]
    runs = Runs(options.keep, folders, range(1 if options.quick else options.seeds), 1000 if options.quick else HORIZON)
    if options.before is not None:
        rows = against_before(runs, worlds, options.before)
        return report("Foresight as it comes, against before", rows, options.out)
    rows = against_linear(runs, worlds, options.settings, options.schedules)
    return report("Settings of foresight, against linear foresight", rows, options.out)


if __name__ == "__main__":
    sys.exit(main())
