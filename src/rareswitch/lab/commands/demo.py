"""``rareswitch demo``: eight weeks of an experiment in a minute."""

import argparse
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rareswitch.cli.options import add_options
from rareswitch.cli.output import print_json, save_picture
from rareswitch.core import table, whole
from rareswitch.experiment import create
from rareswitch.features import Features
from rareswitch.lab.simulate import simulate
from rareswitch.lab.traffic import Traffic, TrafficResult, play
from rareswitch.lab.worlds import RecordWorld
from rareswitch.learner import make_learner
from rareswitch.report import ProgressBar, as_text, check_target, draw_experiment

CAMPAIGNS = ("boots", "camping", "climbing", "cycling", "fishing", "hiking", "running", "skiing")
DAYS, RATE, POLICIES, SEED = 56, 180, 8, 3
START = datetime(2026, 3, 2, tzinfo=UTC)
#: How long a reward takes on average, the share that never comes, and the share that comes twice.
DELAY, MISSING, REPEATED = timedelta(hours=12), 0.05, 0.05
BEST, WEEKLY, ADAPTIVE, NEVER = "best times", "every week", "every click at once", "never"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser, plot={}, quiet={})
    parser.add_argument("--days", type=int, default=DAYS, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Run eight weeks of an experiment with eight campaigns and simulated users, and show its regret.

    Clicks are late or lost, and seven updates are made. The regret is compared with that of full adaptivity and that of
    never updating.
    """
    check_target(options.plot)
    whole("days", options.days, high=DAYS)
    began, world = time.monotonic(), _world()
    if not options.json:
        print(
            f"{options.days} days, {RATE} visitors a day, one of {len(CAMPAIGNS)} campaigns for each. A visitor is a "
            "record: age, device, new or not;\nclicks come half a day late on average, 5 % never, 5 % twice. "
            f"Experiments in SQLite make the decisions, with {POLICIES} policies:\nat the best times, and once more "
            "with an update every week. This takes about a minute.\n",
            flush=True,
        )
    end = f"{START + timedelta(days=options.days):%Y-%m-%d}"
    schedules = {BEST: f"best: policies={POLICIES}, rate={RATE}, end={end}", WEEKLY: f"7d*{POLICIES}"}
    played = {name: _experiment(world, schedule, name, options) for name, schedule in schedules.items()}
    lost = {name: one.regrets for name, one in played.items()} | _compared(world, options.days * RATE)
    updates = {name: [count for count, _ in one.updates] for name, one in played.items()}
    policies = {ADAPTIVE: options.days * RATE, NEVER: 1} | {name: 1 + len(ends) for name, ends in updates.items()}
    totals = {name: float(lost[name].sum()) for name in (ADAPTIVE, BEST, WEEKLY, NEVER)}
    unit = totals[ADAPTIVE]
    if options.json:
        print_json([{"updates": name, "policies": policies[name], "regret": total} for name, total in totals.items()])
    else:
        rows = [
            [name, f"{policies[name]:,}", f"{total:,.0f}", f"{total / unit:.1f} ×"] for name, total in totals.items()
        ]
        print(table(["updates", "policies", "clicks lost", "against every click"], rows))
        print(
            "\nclicks lost: those expected of the best campaign for each visitor, less those expected of the one that "
            "was shown.\nevery click at once: Thompson sampling with a new policy for each visitor, which knows all "
            f"clicks at once.\nOne run of each; other seeds give other ratios. {time.monotonic() - began:.0f} s"
        )
    if options.plot is not None:
        few, none = (f"{totals[name] / unit:.2g} times" for name in (BEST, NEVER))
        title = f"{POLICIES} policies lose {few} what full adaptivity loses, a single one {none}"
        told = {"adaptive": ADAPTIVE, "never": NEVER, "title": title}
        save_picture(draw_experiment(lost, updates, **told), options)
    return 0


def _world() -> RecordWorld:
    """Visitors who like what suits their age and device, and whether they are new."""
    rng = random.Random(SEED)
    sample: list[dict[str, Any]] = [
        {"age": rng.randint(18, 80), "device": rng.choice(("android", "ios")), "new": rng.random() < 0.3}
        for _ in range(2000)
    ]
    features = Features.fit(sample, list(CAMPAIGNS), spare_arms=0)
    return RecordWorld(features=features, sample=sample, offers=dict.fromkeys(CAMPAIGNS), gain=1.5)


def _experiment(world: RecordWorld, schedule: str, name: str, options: argparse.Namespace) -> TrafficResult:
    """One experiment, in a file of its own."""
    traffic = Traffic(rate=RATE, delay=DELAY, missing=MISSING, repeated=REPEATED)
    told: dict[str, Any] = {"policies": POLICIES, "schedule": schedule, "seed": SEED, "now": START}
    with (
        TemporaryDirectory() as folder,
        create(f"sqlite:///{Path(folder) / 'demo.db'}", "demo", features=world.features, **told) as trial,
        ProgressBar(name, quiet=options.quiet) as bar,
    ):
        found = play(trial, world, traffic, days=options.days, seed=SEED, step=timedelta(hours=6), progress=bar)
        status = trial.status(now=found.stop)
    if name == BEST and not options.json:
        print(f"{as_text(status, cli=True)}\n", flush=True)
    return found


def _compared(world: RecordWorld, total: int) -> dict[str, Any]:
    """What each decision loses where every click is known at once, and where the policy never changes."""
    sizes: dict[str, Any] = {"dim": world.dim, "arms": world.arms, "horizon": total, "noise": 0.3, "scale": 0.5}
    adaptive = simulate(make_learner("thompson", **sizes), world, seed=SEED)
    total_lost = np.interp(np.arange(total + 1), [0, *adaptive.times], [0.0, *adaptive.regrets])
    means = world.draw(total, seed=SEED).means
    return {ADAPTIVE: np.diff(total_lost), NEVER: means.max(axis=1) - means.mean(axis=1)}
