"""``rareswitch demo``: eight weeks of an experiment in a minute."""

import argparse
import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rareswitch.cli.options import add_command, add_options, save_picture

if TYPE_CHECKING:
    from rareswitch.env import RecordWorld
    from rareswitch.experiment import Played

CAMPAIGNS = ("boots", "camping", "climbing", "cycling", "fishing", "hiking", "running", "skiing")
DAYS, RATE, POLICIES, SEED = 56, 180, 8, 1
#: Mean seconds that a reward takes, the share that never comes, and the share that comes twice.
DELAY, MISSING, REPEATED = 12 * 3600.0, 0.05, 0.05
ADAPTIVE, NEVER = "Thompson, every click at once", "never updated"


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = add_command(
        commands,
        "demo",
        run,
        description=(
            f"Create an experiment with {len(CAMPAIGNS)} campaigns, let simulated users come for eight weeks, with "
            f"clicks that are late or lost, and update it {POLICIES - 1} times."
        ),
    )
    add_options(parser, plot={}, quiet={})
    parser.add_argument("--days", type=int, default=DAYS, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Play, and show what was lost against full adaptivity and against never updating."""
    from rareswitch.learner import make_learner
    from rareswitch.report import check_target, draw_experiment, table
    from rareswitch.sim import simulate

    check_target(options.plot)
    began, world = time.monotonic(), _world()
    total = options.days * RATE
    print(
        f"{options.days} days, {RATE} visitors a day, {len(CAMPAIGNS)} campaigns, one to show to each. A visitor is a "
        "record with age, device and\ncountry; clicks come half a day late on average, 5 % never, 5 % twice. An "
        f"experiment in SQLite makes the decisions, with\n{POLICIES} policies: at the best times, and then once more with "
        "an update every week. This takes about a minute.\n",
        flush=True,
    )
    end = "1970-01-01" if options.days < 1 else _date(options.days)
    schedules = {
        "updates at the best times": f"best: updates={POLICIES}, rate={RATE}, end={end}",
        "updates every week": f"7d*{POLICIES}",
    }
    played = {name: _experiment(world, schedule, name, options) for name, schedule in schedules.items()}
    rounds = world.draw(total, seed=SEED)
    best = rounds.means.max(axis=1)
    sizes: Any = {"dim": world.dim, "arms": world.arms, "horizon": total, "noise": 0.3, "scale": 0.5}
    adaptive = simulate(make_learner("thompson", **sizes), world, seed=SEED)
    regrets = {name: one.regrets for name, one in played.items()}
    regrets[NEVER] = best - rounds.means.mean(axis=1)
    rows = [
        [ADAPTIVE, f"{total:,}", f"{best.sum() - adaptive.regret:,.0f}", f"{adaptive.regret:,.0f}", "1.0"],
        *(
            [name, str(count), f"{best.sum() - lost:,.0f}", f"{lost:,.0f}", f"{lost / adaptive.regret:.1f}"]
            for name, lost, count in (
                *((name, one.regrets.sum(), 1 + len(one.updates)) for name, one in played.items()),
                (NEVER, regrets[NEVER].sum(), 1),
            )
        ),
    ]
    print(table(["", "policies", "expected clicks", "lost", "against every click"], rows))
    ratio = regrets["updates at the best times"].sum() / adaptive.regret
    print(
        f"\nlost: expected clicks of the best campaign for each visitor, less those of what was shown. {time.monotonic() - began:.0f} s."
    )
    if options.plot is not None:
        import numpy as np

        curve = np.diff(np.interp(np.arange(total + 1), adaptive.times, adaptive.regrets, left=0.0))
        made = draw_experiment(
            regrets | {ADAPTIVE: curve},
            {name: [count for count, _ in one.updates] for name, one in played.items()},
            adaptive=ADAPTIVE,
            never=NEVER,
            title=f"{POLICIES} policies at the best times lose {ratio:.1f} times what full adaptivity loses",
        )
        save_picture(made, options)
    return 0


def _date(days: int) -> str:
    from datetime import UTC, datetime, timedelta

    return f"{datetime(2026, 3, 2, tzinfo=UTC) + timedelta(days=days):%Y-%m-%d}"


def _world() -> "RecordWorld":
    """Visitors who like what suits their age, device and country."""
    from rareswitch.env import RecordWorld
    from rareswitch.features import Features

    rng = random.Random(SEED)
    devices, countries = ("android", "ios", "web"), ("de", "fr", "it")
    sample: list[dict[str, Any]] = [
        {"age": rng.randint(18, 80), "device": rng.choice(devices), "country": rng.choice(countries)}
        for _ in range(2000)
    ]
    features = Features.fit(sample, list(CAMPAIGNS))
    return RecordWorld(features=features, sample=sample, offers=dict.fromkeys(CAMPAIGNS))


def _experiment(world: "RecordWorld", schedule: str, name: str, options: argparse.Namespace) -> "Played":
    """One experiment, in a file of its own."""
    from rareswitch.experiment import Traffic, create, play
    from rareswitch.sim import Progress

    traffic = Traffic(rate=RATE, delay=DELAY, missing=MISSING, repeated=REPEATED)
    total = options.days * RATE
    with (
        TemporaryDirectory() as folder,
        create(
            f"sqlite:///{Path(folder) / 'demo.db'}",
            "demo",
            features=world.features,
            schedule=schedule,
            updates=POLICIES,
            seed=SEED,
            now=_start(),
        ) as trial,
        Progress(total, name, quiet=options.quiet) as bar,
    ):
        found = play(
            trial,
            world,
            traffic,
            days=options.days,
            seed=SEED,
            step=6 * 3600.0,
            progress=lambda done, _: bar.update(done),
        )
        if name == "updates at the best times":
            print(f"{trial.status(now=found.stop)}\n", flush=True)
    return found


def _start() -> float:
    from datetime import UTC, datetime

    return datetime(2026, 3, 2, tzinfo=UTC).timestamp()
