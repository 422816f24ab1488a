"""Simulation: one run, or a sweep of them."""

from rareswitch.sim.collaborate import Collaboration, Meeting, collaborate
from rareswitch.sim.contest import (
    CHALLENGERS,
    ENTRANTS,
    KINDS,
    RIVALS,
    SEEDS,
    UPDATES,
    Contest,
    Entrant,
    choose_entrants,
    contest,
    first_seed,
    plain_name,
)
from rareswitch.sim.learners import learner_for
from rareswitch.sim.progress import Progress
from rareswitch.sim.recorder import Recorder
from rareswitch.sim.results import add_runs, load_runs
from rareswitch.sim.rounds import check_length, check_rounds, chunk_size, unlearnable_regret
from rareswitch.sim.run import Run, checkpoints
from rareswitch.sim.simulate import simulate
from rareswitch.sim.suites import (
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
from rareswitch.sim.sweep import LearnerFactory, Sweep, WorldFactory, sweep
from rareswitch.sim.tradeoff import CappedFactory, Tradeoff, tradeoff

__all__ = ["ARMS", "CHALLENGERS", "DEVELOPMENT_TABLES", "DIM", "ENTRANTS", "FROM_FILES", "HALVES", "KINDS", "NOISE"]
__all__ += [
    "REPORTING_TABLES",
    "RIVALS",
    "SEEDS",
    "SUITES",
    "UPDATES",
    "CappedFactory",
    "Collaboration",
    "Contest",
    "Half",
    "Suite",
]
__all__ += ["Entrant", "LearnerFactory", "Meeting", "Progress", "Recorder", "Run", "Sweep", "Tradeoff", "WorldFactory"]
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
__all__ += ["learner_for", "load_runs", "plain_name", "simulate", "sweep", "tradeoff"]
