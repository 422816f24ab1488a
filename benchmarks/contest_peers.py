"""The contest against other libraries: the same worlds, seeds, contexts and noise, judged by the same yardstick.

The yardstick is the best single fully adaptive entry of our own (LinUCB or Thompson sampling with a new policy at every
step). Peers play as benchmarks/peer_learners.py says, with every setting listed there, once learning after every step
and once in 8 batches on the geometric grid, their models frozen in between. The best setting of a peer is chosen
afterwards, by the very numbers that are shown: that favours the peers. ``foresight`` has one setting. Which settings of
Vowpal Wabbit are tried at all was found on other seeds (100 and 101, T = 3000, four worlds: learning rates 0.1, 0.5 and
2, mellowness down to 0.0001, --coin, --power_t 0).

Peers run all at once, chunk by chunk, so that contexts are drawn and written as text once; a peer's seconds are its
own calls only. One thread, or one for each process of ``--engine``. ``--runs`` keeps runs in a folder as they are made:
a contest that was stopped goes on from there.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from itertools import product
from pathlib import Path

import numpy as np

from measure import machine
from peer_learners import BayesianBandits, CannotExpressError, Chunk, ContextualBandits, MABWiser, Maker, VowpalWabbit
from rareswitch.executors import make_executor, run_shards
from rareswitch.lab import ARMS, DIM, NOISE, SUITES, UPDATES, Recorder, Run, choose_entrants, chunk_size, contest
from rareswitch.lab.report.resampling import HEADER, OFFSET, resolution
from rareswitch.lab.report.verdict import Standing, Verdict, judge
from rareswitch.lab.results import add_runs, load_runs
from rareswitch.lab.rounds import Drawn, regrets
from rareswitch.lab.sweep import fingerprint
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import geometric_grid
from rareswitch.rng import uniforms
from rareswitch.tables import table

TEN = SUITES["ten"].worlds
LIBRARIES = ("vowpalwabbit", "mabwiser", "bayesianbandits", "contextualbandits")
BATCHED: tuple[Maker, ...] = (
    *(VowpalWabbit(algorithm="squarecb", setting=scale) for scale in (10.0, 100.0, 1000.0)),
    VowpalWabbit(algorithm="squarecb", setting=1000.0, rate=2.0),
    *(VowpalWabbit(algorithm="regcb", setting=mellowness) for mellowness in (0.01, 0.001, 0.0001)),
    *(VowpalWabbit(algorithm="regcbopt", setting=mellowness) for mellowness in (0.1, 0.01, 0.001)),
    VowpalWabbit(algorithm="regcbopt", setting=0.01, rate=2.0),
    *(BayesianBandits(policy="thompson", setting=scale) for scale in (0.5, 1.0)),
    BayesianBandits(policy="ucb", setting=0.84),
    BayesianBandits(policy="empirical"),
    *(MABWiser(policy="UCB1", setting=alpha) for alpha in (0.25, 0.5, 1.0)),
    MABWiser(policy="LinUCB", setting=0.5),
    ContextualBandits(setting=0.5),
)
"""Who plays in 8 batches."""
SLOW = ("bayesianbandits empirical", "MABWiser LinUCB")
EVERY_STEP = tuple(maker for maker in BATCHED if not maker.label.startswith(SLOW))
"""Who plays with a new model at every step: all but two that take most of a millisecond, or several, to learn one."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A peer as it enters: its settings, and how often it may learn."""

    maker: Maker
    batches: int | None
    """None for every step."""

    @property
    def label(self) -> str:
        return f"{self.maker.label}, {'every step' if self.batches is None else f'{self.batches} batches'}"


ENTRIES = {
    entry.label: entry
    for makers, batches in ((EVERY_STEP, None), (BATCHED, UPDATES))
    for entry in (Entry(maker=maker, batches=batches) for maker in makers)
}

NOTES = f"""\
- *Every step* learns after each reward. *{UPDATES} batches* learns at the ends of a geometric grid from √T and is
  frozen in between; `foresight` has {UPDATES} policies too, on a grid of its own.
- **Vowpal Wabbit** (`--cb_explore_adf`; squarecb by γ-scale, regcb and regcbopt by mellowness; learning rate 0.5 unless
  named) gets each arm's features, costs = -reward and their range, but not σ or the horizon. A batch is one pass in
  order.
- **bayesianbandits** (`LipschitzContextualAgent` with a featurizer that picks the arm's own features) is told σ and the
  prior as our own learners are; `empirical` is told neither. At every step its Thompson sampling is ours but for the
  random numbers. `ucb` takes its quantile from 100 draws; the default of 1000 is slower.
- **MABWiser** and **contextualbandits** have arms without features, which share one context and have parameters of
  their own. They can play where the set of arms never changes (fixed, end-of-optimism), one mean for each arm, and
  where a round's features are common to all arms (digits). Elsewhere they *cannot express* the task (–).
  contextualbandits documents rewards as 0 or 1; its LinUCB was given real ones.
- The best setting of a library was chosen afterwards, on the runs shown, which favours it. Which ones of Vowpal Wabbit
  were tried was found on other seeds (T = 3000, four worlds, learning rates 0.1 to 2). `foresight` has one setting and
  is told the horizon, not σ.
- Not run at every step, as too slow: {" and ".join(SLOW)}.
"""


@dataclass(frozen=True, kw_only=True)
class Match:
    """The peers that play in one world with one seed, side by side; this travels to the process that runs it."""

    place: str
    world: str
    """What :func:`make_world` takes."""
    horizon: int
    seed: int
    labels: tuple[str, ...]

    def made(self) -> World:
        return _made(self.world, self.horizon)

    @property
    def keys(self) -> dict[str, str]:
        """By label what tells a run from all others, the world's rounds and the version of the library included."""
        here = (self.place, str(self.horizon), str(self.seed), fingerprint(self.made(), self.horizon, self.seed))
        return {
            label: " | ".join((label, metadata.version(ENTRIES[label].maker.package), *here)) for label in self.labels
        }


@lru_cache(maxsize=2)
def _made(name: str, horizon: int) -> World:
    return make_world(name, dim=DIM, arms=ARMS, noise=NOISE, horizon=horizon)


def play(match: Match) -> list[Run]:
    """The runs of all peers that can play in this world, side by side."""
    warnings.simplefilter("ignore")  # of the peers
    horizon, seed = match.horizon, match.seed
    world = match.made()
    entries = {label: ENTRIES[label] for label in match.labels}
    players, recorders = {}, {}
    for label, entry in entries.items():
        try:
            players[label] = entry.maker.make(world, seed)
        except CannotExpressError:
            continue
        recorders[label] = Recorder(horizon)
    if not players:
        return []
    ends = {n: set(geometric_grid(horizon, n).ends) for n in {e.batches for e in entries.values()} if n is not None}
    seconds = dict.fromkeys(players, 0.0)
    size = chunk_size(world.arms, world.dim)
    for first in range(0, horizon, size):
        chunk = _chunk(world, min(size, horizon - first), seed, first)
        for label, player in players.items():
            due = None if (n := entries[label].batches) is None else ends[n]
            arms = np.empty(len(chunk), dtype=np.int64)
            began = time.perf_counter()
            for i in range(len(chunk)):
                arms[i] = arm = player.decide(chunk, i)
                player.tell(chunk, i, arm, float(chunk.rewards[i, arm]))
                if due is None or first + i + 1 in due:
                    player.learn()
            seconds[label] += time.perf_counter() - began
            recorders[label].add(regrets(chunk.rounds.means, chunk.alive, arms), None)
    runs = []
    for label, recorder in recorders.items():
        n = entries[label].batches
        recorder.retired(None if n is None else np.array(sorted(ends[n])))
        updates = horizon if n is None else len(ends[n])
        runs.append(recorder.run(label, match.place, seed=seed, updates=updates, seconds=seconds[label]))
    return runs


def _chunk(world: World, count: int, seed: int, first: int) -> Chunk:
    drawn = Drawn.of(world, count, seed=seed, first=first)
    rewards = drawn.potential_rewards()
    chunk = Chunk(
        first=first, rounds=drawn.rounds, rewards=rewards, uniforms=uniforms(seed, "peers", first, count)[:, 0]
    )
    _ = chunk.texts  # made here, so that no player is charged for it
    return chunk


def best_settings(verdict: Verdict, entries: Mapping[str, Entry]) -> list[Standing]:
    """Of each library that played everywhere, in each of the two ways: the setting of the least geometric mean."""
    best: dict[tuple[str, int | None], Standing] = {}
    for standing in verdict.standings:  # from small to large
        entry = entries.get(standing.entry)
        if entry is not None and standing.complete:
            best.setdefault((entry.maker.family, entry.batches), standing)
    return list(best.values())


def ratio_table(verdict: Verdict, standings: Iterable[Standing]) -> tuple[list[str], list[list[str]]]:
    header = ["entry", "kind", "geometric mean", HEADER[1], *verdict.worlds, "seconds a run"]
    rows = []
    for s in standings:
        mean = ["cannot express", ""] if s.mean is None else [s.mean.cells[0], s.mean.interval]
        cells = [s.ratios[world].marked if world in s.ratios else "–" for world in verdict.worlds]
        seconds = np.mean([cell.seconds for cell in s.cells.values()])
        rows.append([_name(verdict, s), s.kind, *mean, *cells, f"{seconds:.1f}"])
    return header, rows


def regret_table(verdict: Verdict) -> tuple[list[str], list[list[str]]]:
    header = ["entry", *verdict.worlds]
    return header, [
        [_name(verdict, s), *(f"{s.cells[w].regret:,.0f}" if w in s.cells else "–" for w in verdict.worlds)]
        for s in verdict.standings
    ]


def _resolution(verdict: Verdict) -> str:
    return resolution(r for s in verdict.standings if s.entry != verdict.yardstick for r in s.ratios.values())


def _name(verdict: Verdict, standing: Standing) -> str:
    return standing.entry + (" (yardstick)" if standing.entry == verdict.yardstick else "")


def as_markdown(title: str, text: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    marks = [":--" if k < left else "--:" for k in range(len(header))]
    return "\n".join([f"## {title}", "", text, "", *(f"| {' | '.join(row)} |" for row in (header, marks, *rows))])


def report(verdict: Verdict, entries: Mapping[str, Entry], command: str, minutes: float) -> str:
    ours = [s for s in verdict.standings if s.entry not in entries]
    chosen = sorted([*ours, *best_settings(verdict, entries)], key=lambda s: s.geometric_mean)
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    ratios = f"(regret + {OFFSET:g})/(that of {verdict.yardstick} + {OFFSET:g})"
    sizes = f"T = {verdict.horizon:,}, {verdict.seeds} seeds, {len(verdict.worlds)} worlds"
    missing = [place for place in TEN if place not in verdict.worlds]
    left_out = f" Left out: {', '.join(missing)}." if missing else ""
    head = f"""# The contest against other libraries

{sizes}; d = {DIM}, {ARMS} arms and σ = {NOISE:g} where the world lets one choose.
Every learner, ours and theirs, meets the same contexts and the same noise. Ratios are
{ratios}; {verdict.yardstick} is the best single fully adaptive entry of our own on
these runs. Smaller is better. Intervals of 90 % are over the seeds, by resampling. {_resolution(verdict)}{left_out}

{NOTES}"""
    parts = [
        head,
        as_markdown("The best setting of each library", "With all of ours.", *ratio_table(verdict, chosen), left=2),
        "",
        as_markdown("All settings", f"Ratios {ratios}.", *ratio_table(verdict, verdict.standings), left=2),
        "",
        as_markdown("Regret", "Means over the seeds.", *regret_table(verdict), left=1),
        f"\n`{command}`: {minutes:.0f} minutes. {machine()}; {versions}.\n",
    ]
    return "\n".join(parts)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0; intervals need 5, and most worlds more")
    parser.add_argument("--envs", nargs="+", metavar="WORLD", help=f"of {', '.join(TEN)}; all by default")
    parser.add_argument("--data", type=Path, help="the folder of ratings for movielens, which is left out without it")
    parser.add_argument("--peers", nargs="+", metavar="START", help="only those whose label starts so")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="keep runs there and make only those it lacks")
    parser.add_argument("--engine", default="serial", help="serial or processes:N; serial by default")
    parser.add_argument("--out", type=Path, help="write the tables there as Markdown")
    options = parser.parse_args()
    missing = [name for name in LIBRARIES if not _installed(name)]
    if missing:
        parser.error(f"{', '.join(missing)} not installed: pip install -r benchmarks/peers-requirements.txt")
    began = time.perf_counter()
    places = options.envs or [place for place in TEN if place != "movielens" or options.data is not None]
    entries = {k: e for k, e in ENTRIES.items() if options.peers is None or k.startswith(tuple(options.peers))}
    seeds = range(options.seeds)
    with make_executor(options.engine) as engine:
        found = contest(
            choose_entrants(["foresight", "linucb", "thompson"]),
            places=places,
            data=options.data,
            horizons=[options.horizon],
            seeds=seeds,
            path=options.runs,
            executor=engine,
            quiet=True,
        )
        runs = found.runs
        print(f"ours: {len(runs)} runs in {time.perf_counter() - began:.0f} s", flush=True)
        file = None if options.runs is None else options.runs / "peers.parquet"
        kept = load_runs(file) if file is not None and file.exists() else {}
        matches = []
        for place, seed in product(places, seeds):  # a world is made once
            world = f"movielens:{options.data}" if place == "movielens" else place
            whole = Match(place=place, world=world, horizon=options.horizon, seed=seed, labels=tuple(entries))
            keys = whole.keys
            runs += [kept[key] for key in keys.values() if key in kept]
            matches.append(replace(whole, labels=tuple(label for label, key in keys.items() if key not in kept)))
        matches.sort(key=lambda match: match.seed)  # who stops it has some seeds of all worlds
        for match, made in zip(matches, run_shards(play, matches, engine, label="match"), strict=True):
            runs += made
            if file is not None and made:
                keys = match.keys
                add_runs({keys[run.learner]: run for run in made}, file)
            clock = time.perf_counter() - began
            print(f"{match.place}, seed {match.seed}: {len(made)} runs; {clock:.0f} s so far", flush=True)
    kinds: dict[str, str] = {label: e.kind for label, e in found.entrants.items()}
    kinds |= dict.fromkeys(entries, "peer")
    (verdict,) = judge(runs, kinds)
    header, rows = ratio_table(verdict, verdict.standings)
    print(f"\nYardstick: {verdict.yardstick}\n\n{table(header, rows, left=2)}\n\n{_resolution(verdict)}\n")
    print(table(*regret_table(verdict)))
    for standing in best_settings(verdict, entries):
        print(f"best of {entries[standing.entry].maker.family}: {standing.entry}, {standing.geometric_mean:.2f}")
    minutes = (time.perf_counter() - began) / 60.0
    print(f"\n{minutes:.1f} minutes. {machine()}")
    if options.out:
        command = "python benchmarks/contest_peers.py " + " ".join(a for a in sys.argv[1:])
        options.out.write_text(report(verdict, entries, command, minutes))
    return 0


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
