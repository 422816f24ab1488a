"""Eight weeks as they come: long and short, rewards late or never, rows shuffled and copied, against prompt rewards.

A plan of 1,000 decisions a week; 500 to 1,700 come. Of the rewards, 5 % never come and 20 % come a week late. What is
learned from the log is compared, policy by policy, with the same data in order in memory; and the regret with that of
the same weeks with every reward in time. Also: how long it takes to open an experiment after seven updates.
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from measure import FloatArray, Row, arguments, report, timed
from rareswitch.experiment import create, open_experiment
from rareswitch.experiment.versions import Version
from rareswitch.lab.report import regret_ratio
from rareswitch.lab.rounds import Drawn, Played
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import Rows, State, sampled
from rareswitch.log import LogReport, write_part
from rareswitch.rng import uniforms_at

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference.logs import Run, update
from reference.trials import advance_batch

DIM, ARMS, PLAN = 10, 20, 1000
LENGTHS = (500, 1700, 1000, 640, 1337, 900, 1210, 713)
NEVER, LATE = 0.05, 0.20


def begun() -> Run:
    return Run.begin("foresight", dim=DIM, grid=[PLAN * k for k in range(1, len(LENGTHS) + 1)])


def week_of(state: State, world: World, count: int, seed: int) -> Played:
    return Drawn.of(world, count, seed=seed, first=state.start).play(state.policy, 0, count)


def rewards_of(week: Played, *, age: int) -> FloatArray:
    """What is known of a week's rewards so many weeks later."""
    fate = uniforms_at(week.seed, "fate", week.rows.ids)
    return np.where(fate < NEVER + (LATE if age == 0 else 0.0), np.nan, week.rewards)


def written(folder: Path, weeks: list[Played]) -> None:
    """The log as it is after the last of these weeks: its rows, and those of the week before whose rewards came."""
    number, draw = len(weeks), random.Random(len(weeks))
    for age, week in enumerate(reversed(weeks[-2:])):
        rewards, rows = rewards_of(week, age=age), week.rows
        fresh = np.arange(len(rows)) if age == 0 else np.flatnonzero(np.isnan(rewards_of(week, age=0)))
        places = fresh.tolist() + (draw.choices(fresh.tolist(), k=50) * 2 if age == 0 else [])
        draw.shuffle(places)
        kept = sampled(rows.ids, 400 / len(rows)) if age == 0 else np.zeros(len(rows), dtype=np.bool_)
        for part, some in enumerate(np.array_split(np.array(places), 3)):
            write_part(
                folder / f"week-{number}-{age}-{part}.parquet",
                policy_id=week.decisions.policy_id,
                ids=week.first + some,
                features=rows.features[some],
                propensities=week.decisions.propensities[some],
                rewards=rewards[some],
                contexts={week.first + at: week.sets.contexts[at] for at in some[kept[some]].tolist()},
            )


def in_memory(here: Run, weeks: list[Played]) -> str:
    """The policy that the same data teach in order."""
    summaries = []
    for age, week in enumerate(reversed(weeks)):
        rows = Rows.of(week.sets, week.decisions, rewards_of(week, age=age))
        summaries.append(here.learner.summarize(here.state, rows))
    return here.advance(summaries[0], late=summaries[:0:-1]).policy.id


def accounted(found: LogReport) -> bool:
    names = ("used", "unrewarded", "waiting", "expired", "copies", "conflicting_rows", "late_used", "late_unused")
    return bool(found.rows == sum(getattr(found, name) for name in names) + sum(found.foreign.values()))


def lived(folder: Path, seed: int, table: bool) -> tuple[Run, float, int]:
    """Live through the weeks: the run, its regret, and how many policies were those of the data in order."""
    world = make_world("gaussian", dim=DIM, arms=ARMS, noise=0.5, horizon=10 * PLAN)
    here, weeks, regret, same = begun(), list[Played](), 0.0, 0
    for count in LENGTHS:
        weeks.append(week_of(here.state, world, count, seed))
        regret += float(weeks[-1].regrets.sum())
        written(folder, weeks)
        done = update(here, [folder / "*.parquet"])
        same += done.run.policy.id == in_memory(here, weeks) and accounted(done.report)
        found = done.report
        if table:
            print(
                f"week {len(weeks)}: planned {found.planned:,}, came {found.decided:,}; rows {found.rows:,} = used "
                f"{found.used:,} + no reward yet {found.unrewarded:,} + copies {found.copies:,} + of earlier weeks "
                f"{found.late_used:,} ({sum(entry.new for entry in found.earlier.values()):,} new rewards)",
                file=sys.stderr,
            )
        here = done.run
    return here, regret, same


def prompt(seed: int) -> float:
    """The regret of the same weeks with every reward in time."""
    world = make_world("gaussian", dim=DIM, arms=ARMS, noise=0.5, horizon=10 * PLAN)
    here, regret = begun(), 0.0
    for count in LENGTHS:
        week = week_of(here.state, world, count, seed)
        regret += float(week.regrets.sum())
        here = here.advance(here.learner.summarize(here.state, week.rows))
    return regret


def loading(folder: Path) -> Iterator[Row]:
    url = f"sqlite:///{folder}/weeks.db"
    trial = create(url, "weeks", dim=DIM, horizon=100_000, seed=1, now=0.0)
    for _ in range(7):
        advance_batch(trial)
    versions = trial.store.versions()

    def read() -> list[str]:
        every = [Version(row, "", None) for row in versions]
        return [every[-1].state.policy.id, *(version.policy.id for version in every)]

    seconds = float(np.median([timed(read) for _ in range(11)]))
    whole = timed(lambda: open_experiment(url, "weeks").policy)
    again = timed(lambda: open_experiment(url, "weeks").verify())
    yield Row(
        what=f"read policies and state of an experiment after 7 updates, d = {DIM}, against learning again (verify)",
        measured=f"{1e3 * seconds:.0f} ms against {1e3 * again:.0f} ms; the file, with its "
        f"{sum(one.decisions for one in trial.store.counts()):,} decisions, opens in {1e3 * whole:.0f} ms",
        ratio=f"{again / seconds:.0f}×",
        needed="at most 50 ms",
        holds=seconds <= 0.05,
    )


def rows(quick: bool) -> Iterator[Row]:
    seeds, ours, theirs, same = range(3 if quick else 10), [], [], 0
    for seed in seeds:
        with tempfile.TemporaryDirectory() as name:
            here, regret, alike = lived(Path(name), seed, table=seed == 0)
            same += alike
            ours.append(regret)
            theirs.append(prompt(seed))
    assert here.state.done
    updates = len(seeds) * len(LENGTHS)
    yield Row(
        what=f"{len(LENGTHS)} weeks of {min(LENGTHS)} to {max(LENGTHS):,} decisions against a plan of {PLAN:,}, "
        f"{NEVER:.0%} of the rewards never, {LATE:.0%} a week late, shuffled, with copies: updates in which every row "
        "is accounted for and the policy is that of the same data in order",
        measured=f"{same} of {updates}",
        needed="all",
        holds=same == updates,
    )
    ratio = regret_ratio(np.array(ours), np.array(theirs))
    yield Row(
        what=f"regret of these weeks against the same weeks with prompt rewards, {len(seeds)} seeds",
        measured=f"{np.mean(ours):.0f} against {np.mean(theirs):.0f}",
        ratio=f"{ratio.value:.2f}× (90 %: {ratio.interval or 'too few seeds'}; median {ratio.median:.2f})",
    )
    with tempfile.TemporaryDirectory() as name:
        yield from loading(Path(name))


def main() -> int:
    options = arguments(__doc__).parse_args()
    return report("Weeks as they come", rows(options.quick), options.out)


if __name__ == "__main__":
    sys.exit(main())
