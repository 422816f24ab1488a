"""Simulation: one run, or a sweep of them."""

from rareswitch.sim.collaborate import Collaboration, Meeting, collaborate
from rareswitch.sim.contest import Contest, Entrant, choose_entrants, contest
from rareswitch.sim.results import load_runs, save_runs
from rareswitch.sim.run import Run
from rareswitch.sim.simulate import simulate
from rareswitch.sim.sweep import LearnerFactory, Sweep, WorldFactory, sweep
from rareswitch.sim.tradeoff import CappedFactory, Tradeoff, tradeoff

__all__ = [
    "CappedFactory",
    "Collaboration",
    "Contest",
    "Entrant",
    "LearnerFactory",
    "Meeting",
    "Run",
    "Sweep",
    "Tradeoff",
    "WorldFactory",
    "choose_entrants",
    "collaborate",
    "contest",
    "load_runs",
    "save_runs",
    "simulate",
    "sweep",
    "tradeoff",
]
