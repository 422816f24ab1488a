"""The laboratory: simulated worlds, runs, sweeps, contests, and learners to compare with."""

from rareswitch.lab.collaborate import Collaboration, Meeting, collaborate
from rareswitch.lab.contest import (
    CHALLENGERS,
    ENTRANTS,
    KINDS,
    POLICIES,
    RIVALS,
    SEEDS,
    Contest,
    Entrant,
    choose_entrants,
    contest,
    first_seed,
    plain_name,
)
from rareswitch.lab.learners import budgeted, learner_for
from rareswitch.lab.results import add_runs, load_runs
from rareswitch.lab.rounds import check_length, check_rounds, chunk_size, unlearnable_regret
from rareswitch.lab.run import Recorder, Run, checkpoints
from rareswitch.lab.simulate import simulate
from rareswitch.lab.suites import (
    ARMS,
    DEVELOPMENT_TABLES,
    DIM,
    FROM_FILES,
    HALVES,
    NOISE,
    REPORTING_TABLES,
    SUITES,
    Half,
    Suite,
    find_suite,
    left_out,
    world_at,
)
from rareswitch.lab.sweep import LearnerFactory, Sweep, WorldFactory, sweep
from rareswitch.lab.tradeoff import CappedFactory, Tradeoff, tradeoff
from rareswitch.lab.traffic import Played, Traffic, play
from rareswitch.lab.worlds import make_world

__all__ = ["ARMS", "CHALLENGERS", "DEVELOPMENT_TABLES", "DIM", "ENTRANTS", "FROM_FILES", "HALVES", "KINDS", "NOISE"]
__all__ += [
    "POLICIES",
    "REPORTING_TABLES",
    "RIVALS",
    "SEEDS",
    "SUITES",
    "CappedFactory",
    "Collaboration",
    "Contest",
    "Half",
    "Suite",
]
__all__ += ["Entrant", "LearnerFactory", "Meeting", "Recorder", "Run", "Sweep", "Tradeoff", "WorldFactory"]
__all__ += [
    "add_runs",
    "check_length",
    "check_rounds",
    "checkpoints",
    "choose_entrants",
    "chunk_size",
    "collaborate",
    "contest",
]
__all__ += ["find_suite", "first_seed", "left_out", "unlearnable_regret", "world_at"]
__all__ += ["budgeted", "learner_for", "load_runs", "plain_name", "simulate", "sweep", "tradeoff"]
__all__ += ["Played", "Traffic", "play"]
__all__ += ["make_world"]
