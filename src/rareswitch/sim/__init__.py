"""Simulation: one run, or a sweep of them."""

from rareswitch.sim.collaborate import Collaboration, Meeting, collaborate
from rareswitch.sim.contest import (
    ENTRANTS,
    HORIZONS,
    KINDS,
    SEEDS,
    SUITE,
    UPDATES,
    Contest,
    Entrant,
    choose_entrants,
    contest,
    plain_name,
)
from rareswitch.sim.learners import learner_for
from rareswitch.sim.progress import Progress
from rareswitch.sim.recorder import Recorder
from rareswitch.sim.results import add_runs, load_runs
from rareswitch.sim.rounds import check_length, check_rounds, chunk_size
from rareswitch.sim.run import Run, checkpoints
from rareswitch.sim.simulate import simulate
from rareswitch.sim.sweep import LearnerFactory, Sweep, WorldFactory, sweep
from rareswitch.sim.tradeoff import CappedFactory, Tradeoff, tradeoff

__all__ = ["ENTRANTS", "HORIZONS", "KINDS", "SEEDS", "SUITE", "UPDATES", "CappedFactory", "Collaboration", "Contest"]
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
__all__ += ["learner_for", "load_runs", "plain_name", "simulate", "sweep", "tradeoff"]
