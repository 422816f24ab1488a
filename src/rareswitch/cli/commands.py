"""The commands: in which module each one is, and what it is for in one line.

Only the module of the command that is asked for is imported.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """A command in the list of them."""

    #: Below ``rareswitch``; it has ``add_arguments`` and ``run``, whose docstring ``--help`` shows. Empty for a family.
    module: str
    help: str


#: What follows ``rareswitch experiment``.
EXPERIMENT = {
    "create": Entry("cli.experiment.create", "begin an experiment: a store holds it from then on"),
    "decide": Entry("cli.experiment.decide", "choose an arm for a request, or for each line of the input"),
    "reward": Entry("cli.experiment.reward", "say what a decision earned, or those of each line of the input"),
    "status": Entry("cli.experiment.status", "where it stands, and what its next update waits for"),
    "advance": Entry("cli.experiment.advance", "learn the next policy, if it is due"),
    "audit": Entry("cli.experiment.audit", "decide again, or learn all policies again, and compare"),
    "export": Entry("cli.experiment.export", "write decisions and rewards as Parquet, and the policy as a file"),
    "backup": Entry("cli.experiment.backup", "copy an SQLite store to a new file, while it is used"),
    "import": Entry("cli.experiment.import_log", "take over decisions and rewards from Parquet"),
    "simulate": Entry("lab.commands.simulate_experiment", "let simulated users ask it and reward it, late or never"),
}
COMMANDS = {
    "experiment": Entry("", "create an experiment, decide, reward, update; see experiment --help"),
    "demo": Entry("lab.commands.demo", "eight weeks of an experiment in a minute, with a table and a picture"),
    "evaluate": Entry("cli.evaluate", "what another policy would have earned, or why a log cannot tell"),
    "effects": Entry("cli.effects", "is one arm better than another, for whom, and by how much"),
    "recommend": Entry("cli.recommend", "which learner to take, how many policies it needs, and what is proved"),
    "learners": Entry("cli.learners", "list the learners, their adaptivity and their regret bounds"),
    "simulate": Entry("lab.commands.simulate", "run one learner in a simulated world"),
    "compare": Entry("lab.commands.simulate", "run several learners in simulated worlds"),
    "agents": Entry("lab.commands.agents", "one learner with many agents, in a simulated world"),
    "tradeoff": Entry("lab.commands.tradeoff", "what is lost with fewer policies: regret under a cap on their number"),
    "contest": Entry("lab.commands.contest", "every learner in a suite of worlds, against the best fully adaptive one"),
    "convert": Entry("cli.convert", "a log from one format to another: Parquet, CSV, dsjson of Vowpal Wabbit"),
    "key": Entry("cli.key", "make a key to sign policies and experiments with"),
    "warm-up": Entry("lab.commands.warm_up", "compile all kernels beforehand, for the image of a container"),
    "design": Entry("lab.commands.design", "certified optimal designs of context sets"),
}
