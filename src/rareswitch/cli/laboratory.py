"""The options of the laboratory's commands: ``rareswitch.lab`` runs them, and takes long to load."""

import argparse

from rareswitch.cli.options import (
    SEEDS_HELP,
    OptionKind,
    add_key_options,
    add_options,
    add_settings,
    count_option,
    duration_option,
    moment_option,
)
from rareswitch.cli.sources import ENDINGS

#: The learners of ``compare`` by default.
COMPARED = [
    *("foresight", "batch-linucb-kw", "batch-linucb-dg-certified", "rarely-switch-suplinucb"),
    *("oful", "linucb", "thompson"),
]
#: Settings of learners that follow from the world and the run.
OWN = ("dim", "arms", "horizon", "noise", "seed")
#: How the policy of ``design --distributional`` is learned; the first is the default.
METHODS = ("certified", "mixed-argmax", "mixed-softmax", "core")
#: Sizes of the sets that ``design`` draws from a world by default.
DRAWN = {"sets": 1000, "dim": 10, "arms": 20}
#: Days of the demo, and its seed.
DAYS, SEED = 56, 3
WORLD: OptionKind = {"default": "gaussian", "help": "see rareswitch worlds (default gaussian)"}
LEARNER: OptionKind = {"default": "foresight", "help": "see rareswitch learners (default foresight)"}


def add_worlds(parser: argparse.ArgumentParser) -> None:
    """List the simulated worlds."""


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """Run a learner in a simulated world, and show its regret. Status 130 after Ctrl-C."""
    add_options(parser, learner=LEARNER, world=WORLD, horizon={})
    _add_runs(parser, seeds=4)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Run learners in simulated worlds, and compare their regret. Status 130 after Ctrl-C."""
    learners: OptionKind = {"default": COMPARED, "help": f"names, or 'all' (default {' '.join(COMPARED)})"}
    worlds: OptionKind = {"default": ["gaussian"], "help": "see rareswitch worlds (default gaussian)"}
    add_options(parser, learners=learners, worlds=worlds)
    add_options(parser, horizons={"default": [100_000], "help": "decisions (default 100000)"})
    _add_runs(parser, seeds={"default": 8, "help": f"{SEEDS_HELP} (default 8)"})


def _add_runs(parser: argparse.ArgumentParser, seeds: int | OptionKind) -> None:
    """Add sizes, settings of learners, and what is done with the runs."""
    noise = "standard deviation of rewards, in worlds that let one choose (default 0.5)"
    add_options(parser, dim=10, arms=20, seeds=seeds, first_seed=0, noise={"default": 0.5, "help": noise})
    tol = "slack of G-optimal designs (1 is the paper's factor 2)"
    parser.add_argument("--design-tol", type=float, metavar="X", help=tol)
    add_settings(parser, without=OWN)
    cap = "the most policies of a run; the last one stays to the end"
    parser.add_argument("--cap", type=int, metavar="M", help=cap)
    add_options(parser, engine={}, out={}, plot={}, quiet={})


def add_agents(parser: argparse.ArgumentParser) -> None:
    """Run many agents that decide with the same frozen policies.

    Where batches end after known numbers of decisions, the agents share each batch and meet at its end (collaborative
    learning). Where a policy changes when the data have grown enough, they act together at each step (concurrent
    learning).
    """
    add_options(parser, learner=LEARNER)
    parser.add_argument(
        "--agents", nargs="+", type=count_option, default=[1, 8, 64], metavar="A", help="default 1 8 64"
    )
    add_options(parser, world=WORLD, horizon="decisions of all agents together (default 100000)", dim=10, arms=20)
    add_options(parser, noise=0.5, seed={}, engine={}, quiet={})


def add_contest(parser: argparse.ArgumentParser) -> None:
    """Run a fixed suite of worlds and learners.

    Each entry is compared with the yardstick: the single fully adaptive entry with the smallest geometric mean of
    regret + 10 over the worlds. Ratios have confidence intervals over the seeds; those wider than a factor 1.5 are
    marked as not resolved. Status 130 after Ctrl-C.
    """
    parser.add_argument("--list", action="store_true", help="list the entries and the suites, and run nothing")
    parser.add_argument("--suite", default="ten", metavar="NAME", help="ten, field or changing (default ten)")
    halves = "of the suite field, the tables and seeds of one half: development (seeds from 1000 on) or reporting"
    parser.add_argument("--half", metavar="HALF", help=halves)
    parser.add_argument("--data", metavar="FOLDER", help="MovieLens ratings; the world movielens needs them")
    tables = "segment.csv, phishing.csv, banana.csv, diamonds.csv, cracker.csv; their worlds need them"
    parser.add_argument("--tables", metavar="FOLDER", help=tables)
    add_options(
        parser, learners="entries, learners or kinds (default: those of the suite; in ten without the slow ones)"
    )
    parser.add_argument("--slow", action="store_true", help="also entries that are left out because they are slow")
    add_options(parser, worlds="some worlds of the suite, or others (default: all of the suite)")
    add_options(parser, horizons="decisions (default 1e4 1e5 in ten, otherwise 3e4)")
    first = "the first of the seeds (default 0, or 1000 with --half development)"
    add_options(parser, seeds={"default": 20, "help": f"{SEEDS_HELP} (default 20)"})
    add_options(parser, first_seed={"default": None, "help": first})
    folder = "folder of runs as Parquet; finished ones are read from it, new ones are added"
    add_options(parser, engine={}, out={"metavar": "FOLDER", "help": folder})
    parser.add_argument("--plots", metavar="FOLDER", help="write a picture for each world and one for all")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables, with links to the pictures")
    add_options(parser, quiet={})


def add_reproduce(parser: argparse.ArgumentParser) -> None:
    """Measure what the paper claims, item by item, each with its criterion and its verdict.

    Status 1 if a claim fails for no known reason, 130 after Ctrl-C. A theorem whose own condition nothing that can be
    run would meet is not testable, and the condition is printed.
    """
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs")
    items = "numbers of the items (default: all)"
    parser.add_argument("--items", nargs="+", type=count_option, metavar="N", help=items)
    out = "write the report: .md, .html (one file, with pictures) or .txt"
    add_options(parser, out={"metavar": "FILE", "help": out})
    keep = "file of finished items (JSON); they are read from it, and new ones are added"
    parser.add_argument("--keep", metavar="FILE", help=keep)
    add_options(parser, engine={}, seed="the first seed (default 0)", quiet={})


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Run eight weeks of an experiment with eight campaigns and simulated users, and show its regret.

    Clicks are late or lost, and seven updates are made. The regret is compared with that of full adaptivity and that of
    never updating.
    """
    add_options(parser, plot={}, quiet={}, seed={"default": SEED, "help": f"of the visitors (default {SEED})"})
    parser.add_argument("--days", type=int, default=DAYS, help=argparse.SUPPRESS)


def add_experiment_simulate(parser: argparse.ArgumentParser) -> None:
    """Run simulated users for some days of simulated time: they send requests, and rewards late, twice or never.

    Updates are made when they are due. For rehearsals, in an experiment of its own.
    """
    parser.add_argument("--days", type=float, default=7.0, metavar="N", help="simulated days (default 7)")
    parser.add_argument("--rate", type=float, default=200.0, metavar="N", help="decisions per day (default 200)")
    start = "begin at this time (default: after the last decision)"
    parser.add_argument("--start", type=moment_option, metavar="TIME", help=start)
    delay = "mean delay of rewards, such as 6h (default 0)"
    parser.add_argument("--delay", type=duration_option, default=0.0, metavar="TIME", help=delay)
    for name, kind in (("missing", "missing rewards"), ("repeated", "rewards that are sent twice")):
        parser.add_argument(f"--{name}", type=float, default=0.0, metavar="SHARE", help=f"share of {kind} (default 0)")
    parser.add_argument("--no-advance", action="store_true", help="make no updates, even when they are due")
    add_options(parser, seed="of the world and the delays (default 0)")
    users = parser.add_argument_group("users of an experiment with features")
    users.add_argument("--sample", metavar="FILE", help=f"contexts from which users are drawn: {ENDINGS}")
    arms = "ids of the offered arms, or a file with their records; if requests are vectors, the number of arms"
    users.add_argument("--arms", nargs="+", metavar="ID", help=arms)
    users.add_argument("--click-rate", type=float, metavar="X", help="click rate of an average arm (default 0.1)")
    plain = parser.add_argument_group("users of an experiment with vectors")
    plain.add_argument("--world", default="gaussian", metavar="WORLD", help=WORLD["help"])
    plain.add_argument(
        "--noise", type=float, default=0.5, metavar="SIGMA", help="standard deviation of rewards (default 0.5)"
    )
    add_options(parser, quiet={})


def add_design(parser: argparse.ArgumentParser) -> None:
    """Find weights on the arms of each context set such that no leverage exceeds (1 + tol) times the set's rank.

    Each design has a certificate. With --distributional, learn one sampling policy for all sets, evaluated on held-out
    sets. Status 1 if a certificate was not reached.
    """
    kinds = "one set (arms × features) or many (sets × arms × features, or with a set-id column)"
    parser.add_argument(
        "file", metavar="FILE", help=f".npy, .npz, .csv or .parquet: {kinds}; or a world, from which sets are drawn"
    )
    for name, text in (("sets", "sets to draw from a world"), ("dim", "its features"), ("arms", "arms in its sets")):
        parser.add_argument(f"--{name}", type=count_option, metavar="N", help=f"{text} (default {DRAWN[name]})")
    tol = "slack of the certificate (default 0.05; 1 is a factor of 2)"
    parser.add_argument("--tol", type=float, default=0.05, metavar="X", help=tol)
    parser.add_argument("--set-column", default="set", metavar="NAME", help="column of set ids (default: set)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads that share the sets (default 1)")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="sets to print in full (default 5)")
    add_options(parser, plot={})
    parser.add_argument("--plot-set", metavar="NAME", help="the set to draw (default: the first)")
    group = parser.add_argument_group("distributional design")
    group.add_argument("--distributional", action="store_true", help="learn one sampling policy for all sets")
    methods = (
        "certified: Frank-Wolfe, with a certificate on the training sets (default); mixed-argmax, mixed-softmax: the "
        "paper's Algorithm 2; core: its Algorithms 3 and 4. The paper's are for arms of length at most 1"
    )
    group.add_argument("--method", choices=METHODS, help=methods)
    share = "certified: minimum share of the G-optimal design (default 0.2)"
    group.add_argument("--g-optimal-share", type=float, metavar="X", help=share)
    power = "core: leave out sets that the others explore worse than d^C (default 6: none are)"
    group.add_argument("--power", type=float, metavar="C", help=power)
    lam = "λ (default: 1 / number of training sets)"
    group.add_argument("--regularization", type=float, metavar="LAMBDA", help=lam)
    group.add_argument("--seed", type=int, default=0, help="of the split into halves, and of drawn sets (default 0)")
    group.add_argument("--out", metavar="FILE", help="a new file for the policy")
    add_key_options(parser, "key file: sign the policy file")


def add_warm_up(parser: argparse.ArgumentParser) -> None:
    """Compile all kernels and store their machine code, when a container image is built.

    Processes then start without compiling. Numba stores it beside the installed files, or in NUMBA_CACHE_DIR.
    """
