"""The laboratory: simulated worlds, runs, sweeps, contests, and learners to compare with."""

from rareswitch.lab.collaborate import collaborate
from rareswitch.lab.contest import ENTRANTS, FROM_FILES, SUITES, choose_entrants, contest, left_out, world_at
from rareswitch.lab.simulate import Run, checkpoints, simulate
from rareswitch.lab.sweep import budgeted, learner_for, load_runs, sweep, tradeoff
from rareswitch.lab.traffic import Traffic, play
from rareswitch.lab.worlds import make_world

__all__ = ["ENTRANTS", "FROM_FILES", "SUITES", "Run", "Traffic", "budgeted", "checkpoints"]
__all__ += ["choose_entrants", "collaborate", "contest", "learner_for", "left_out", "load_runs", "make_world"]
__all__ += ["play", "simulate", "sweep", "tradeoff", "world_at"]
