"""``rareswitch demo`` and ``rareswitch experiment simulate``: simulated users ask an experiment, and reward it."""

import argparse
import json
import random
import shutil
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rareswitch.cli.laboratory import DAYS, SEED
from rareswitch.cli.options import Arguments
from rareswitch.cli.output import Output, print_json, save_picture
from rareswitch.cli.sources import RecordData, arm_count, given_arms, opened
from rareswitch.core import FloatArray, number, read_records, table, whole
from rareswitch.errors import ParameterError, several
from rareswitch.experiment import Experiment, create
from rareswitch.features import Features
from rareswitch.lab.simulate import simulate
from rareswitch.lab.traffic import Traffic, TrafficResult, play
from rareswitch.lab.worlds import RecordWorld, World, make_world
from rareswitch.learner import make_learner
from rareswitch.report import ProgressBar, as_text, check_target, draw_experiment

CAMPAIGNS = ("boots", "camping", "climbing", "cycling", "fishing", "hiking", "running", "skiing")
RATE, POLICIES = 180, 8
START = datetime(2026, 3, 2, tzinfo=UTC)
#: How long a reward takes on average, the share that never comes, and the share that comes twice.
DELAY, MISSING, REPEATED = timedelta(hours=12), 0.05, 0.05
#: What was measured over worlds and seeds, which the README says too.
HEADLINE = Path(__file__).parents[1] / "headline.json"
BEST, WEEKLY, ADAPTIVE, NEVER = "best times", "every week", "every click at once", "never"
#: Arms of a simulated experiment with vectors by default, and its most days.
ARMS = 20
MOST_DAYS = 1e5


def run_demo(options: argparse.Namespace) -> int:
    """Eight weeks of experiments, and their regret."""
    check_target(options.plot)
    whole("days", options.days, high=DAYS)
    whole("seed", options.seed, low=0)
    began, world = time.monotonic(), demo_world(seed=options.seed)
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
    played = {name: _demo_experiment(world, schedule, name, options) for name, schedule in schedules.items()}
    lost = {name: result.regrets for name, result in played.items()}
    lost |= _compared(world, options.days * RATE, options.seed)
    updates = {name: [count for count, _ in result.updates] for name, result in played.items()}
    policies = {ADAPTIVE: options.days * RATE, NEVER: 1} | {name: 1 + len(ends) for name, ends in updates.items()}
    totals = {name: float(lost[name].sum()) for name in (ADAPTIVE, BEST, WEEKLY, NEVER)}
    if options.json:
        print_json([{"updates": name, "policies": policies[name], "regret": total} for name, total in totals.items()])
    else:
        rows = [[name, f"{policies[name]:,}", f"{total:,.0f}"] for name, total in totals.items()]
        print(table(["updates", "policies", "clicks lost"], rows))
        print(
            "\nclicks lost: expected clicks of the best campaign for each visitor, less those of the shown one.\n"
            "every click at once: Thompson sampling with a new policy for each visitor and no delay of clicks.\n"
            f"One run of each, with seed {options.seed}, in {time.monotonic() - began:.0f} s.\n\n{_headline()}"
        )
    if options.plot is not None:
        title = f"The same {POLICIES} policies lose less at the best times than every week"
        save_picture(draw_experiment(lost, updates, adaptive=ADAPTIVE, never=NEVER, title=title), options)
    if not options.json:
        command = "rareswitch" if shutil.which("rareswitch") else sys.argv[0]
        print(f"\nNext, how many policies you need: {command} plan --decisions 20000 --dim 5 --arms {len(CAMPAIGNS)}")
    return 0


def _headline() -> str:
    """What the README says, of more than one run."""
    facts = json.loads(HEADLINE.read_text(encoding="utf-8"))
    return (
        f"Over {facts['worlds']} worlds with {facts['seeds']} seeds each, clicks known at once, {POLICIES} policies at "
        f"the best times lose {facts['best']} times\nwhat an update after every decision loses, "
        f"{facts['weekly']} times every week, and {facts['never']:.0f} times where the policy never changes."
    )


def demo_world(*, baseline: str | None = None, seed: int = SEED) -> RecordWorld:
    """Visitors who like what suits their age and device, and whether they are new.

    With ``baseline`` their records have a field of this name, with the campaign that they would have been shown.
    """
    rng = random.Random(seed)
    sample: list[RecordData] = [
        {"age": rng.randint(18, 80), "device": rng.choice(("android", "ios")), "new": rng.random() < 0.3}
        for _ in range(2000)
    ]
    features = Features.fit(sample, list(CAMPAIGNS), spare_arms=0, missing="error")  # none is missing
    if baseline is not None:
        sample = [{**record, baseline: CAMPAIGNS[k % 3]} for k, record in enumerate(sample)]
    return RecordWorld(features=features, sample=sample, offers=dict.fromkeys(CAMPAIGNS), gain=1.5)


def _demo_experiment(world: RecordWorld, schedule: str, name: str, options: argparse.Namespace) -> TrafficResult:
    """One experiment, in a file of its own."""
    traffic = Traffic(rate=RATE, delay=DELAY, missing=MISSING, repeated=REPEATED)
    settings: Arguments = {"policies": POLICIES, "schedule": schedule, "seed": options.seed, "now": START}
    with (
        TemporaryDirectory() as folder,
        create(f"sqlite:///{Path(folder) / 'demo.db'}", "demo", features=world.features, **settings) as trial,
        ProgressBar(name, quiet=options.quiet) as bar,
    ):
        result = play(
            trial, world, traffic, days=options.days, seed=options.seed, step=timedelta(hours=6), progress=bar
        )
        status = trial.status(now=result.stop)
    if name == BEST and not options.json:
        print(f"{as_text(status, cli=True)}\n", flush=True)
    return result


def _compared(world: RecordWorld, total: int, seed: int) -> dict[str, FloatArray]:
    """What each decision loses where every click is known at once, and where the policy never changes."""
    sizes: Arguments = {"dim": world.dim, "arms": world.arms, "horizon": total, "noise": 0.3, "scale": 0.5}
    adaptive = simulate(make_learner("thompson", **sizes), world, seed=seed)
    total_lost = np.interp(np.arange(total + 1), [0, *adaptive.times], [0.0, *adaptive.regrets])
    means = world.draw(total, seed=seed).means
    return {ADAPTIVE: np.diff(total_lost), NEVER: means.max(axis=1) - means.mean(axis=1)}


def run_experiment_simulate(options: argparse.Namespace) -> Output:
    """Counts of the simulated traffic, and the status of the experiment afterwards."""
    traffic = Traffic(**{name: getattr(options, name) for name in ("rate", "delay", "missing", "repeated")})
    number("days", options.days, low=0.0, high=MOST_DAYS)
    with opened(options) as trial, ProgressBar("simulating", quiet=options.quiet) as bar:
        result = play(
            trial,
            _world(trial, options),
            traffic,
            days=options.days,
            seed=options.seed,
            start=options.start,
            advance=not options.no_advance,
            progress=bar,
        )
        status = trial.status(now=result.stop)
    facts = {name: getattr(result, name) for name in ("decisions", "rewards", "repeated", "missing", "pending")}
    regret = float(result.regrets.sum())
    facts |= {"updates": [count for count, _ in result.updates], "regret": regret, "earned": result.earned}
    counts = (
        f"{several(result.decisions, 'decision')}; {several(result.rewards, 'reward')}, {result.repeated:,} of them "
        f"sent twice; {result.missing:,} missing, {result.pending:,} still to come."
    )
    updates = ", ".join(f"after {several(count, 'decision')}" for count, _ in result.updates) or "none"
    sums = f"Expected reward: {result.earned:,.1f}. Regret: {regret:,.1f}, against the best arm of each request."
    text = f"{counts}\nUpdates: {updates}.\n{sums}\n\n{as_text(status, cli=True)}"
    return Output(facts, text)


def _world(trial: Experiment, options: argparse.Namespace) -> World:
    """Where users come from: records for an experiment with features, otherwise a world of vectors."""
    learner, features = trial.description.learner, trial.description.features
    if features is None:
        for name in ("sample", "click_rate"):
            if getattr(options, name) is not None:
                raise ParameterError(
                    f"{name} is for experiments with features, and {trial.name} has none. Use --world."
                )
        count = (learner.arms or ARMS) if options.arms is None else arm_count(options.arms)
        horizon = int(options.days * options.rate) + trial.status().decisions
        sizes: Arguments = {"dim": learner.dim, "arms": count, "noise": options.noise, "horizon": max(2, horizon)}
        return make_world(options.world, **sizes)
    if options.sample is None:
        raise ParameterError(
            f"sample must be given, a file of contexts from which users are drawn, as {trial.name} has features."
        )
    arms = given_arms(options.arms)
    if arms is None:
        if features.arms is None:
            raise ParameterError("arms must be given: ids, or a file with their records.")
        arms = [*map(str, features.arms.ids)]
    offers = {arm[features.key]: arm for arm in arms} if isinstance(arms[0], dict) else dict.fromkeys(arms)
    rate: Arguments = {} if options.click_rate is None else {"click_rate": options.click_rate}
    return RecordWorld(features=features, sample=read_records(options.sample), offers=offers, **rate)
