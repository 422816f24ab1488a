"""The commands: where each one is, and its purpose in one line.

Only the options of the command that is asked for are loaded, and what it needs to run only when it runs.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """A command in the list of them."""

    #: The module below ``rareswitch`` with ``add_COMMAND``, whose docstring ``--help`` shows. Empty for a family.
    options: str
    help: str
    #: The module with ``run_COMMAND``, where that is another one because it takes long to load.
    run: str = ""


_LAB = "cli.laboratory"
#: What follows ``rareswitch experiment``.
EXPERIMENT = {
    "list": Entry("cli.experiment", "the experiments of a store"),
    "create": Entry("cli.create", "begin an experiment in a store"),
    "decide": Entry("cli.requests", "choose an arm for one request, or for each line of JSON"),
    "reward": Entry("cli.requests", "store the reward of one decision, or of each line of JSON"),
    "activate": Entry("cli.requests", "count deferred decisions whose arms were shown"),
    "status": Entry("cli.experiment", "decisions and rewards by policy, and the next update"),
    "report": Entry("cli.experiment", "all that is known, as text or as one HTML file"),
    "advance": Entry("cli.experiment", "learn and publish the next policy, if it is due"),
    "approve": Entry("cli.experiment", "publish the policy that waits for approval"),
    "reject": Entry("cli.experiment", "drop the policy that waits for approval"),
    "audit": Entry("cli.experiment", "recompute decisions, or all policies, and compare"),
    "export": Entry("cli.experiment", "write decisions and rewards as Parquet, and the policy as a file"),
    "backup": Entry("cli.experiment", "copy an SQLite store to a new file, while it is in use"),
    "end": Entry("cli.experiment", "take no more decisions; rewards and evaluations go on"),
    "delete": Entry("cli.experiment", "delete an experiment with all that is stored of it"),
    "import": Entry("cli.experiment", "import decisions and rewards from Parquet or CSV"),
    "simulate": Entry(
        _LAB, "simulated users send requests, and rewards that are late or missing", "lab.commands.users"
    ),
}
COMMANDS = {
    "experiment": Entry("", "create an experiment, decide, reward, update; see experiment --help"),
    "serve": Entry("cli.service", "serve the experiments of a store over HTTP"),
    "token": Entry("cli.service", "make, list or revoke tokens of a service"),
    "demo": Entry(_LAB, "eight weeks of an experiment in a minute, with a table and a picture", "lab.commands.users"),
    "evaluate": Entry("cli.logs", "estimate the value of other policies from a log, with confidence intervals"),
    "effects": Entry("cli.logs", "estimate the effect of one arm against another, overall or by group"),
    "convert": Entry("cli.logs", "convert a log: Parquet, CSV, dsjson of Vowpal Wabbit"),
    "plan": Entry("cli.plan", "how many policies, when, and what fewer lose"),
    "learners": Entry("cli.learners", "list the learners, their adaptivity and their regret bounds"),
    "worlds": Entry(_LAB, "list the simulated worlds", "lab.commands.simulate"),
    "simulate": Entry(_LAB, "run one learner in a simulated world", "lab.commands.simulate"),
    "compare": Entry(_LAB, "run several learners in simulated worlds", "lab.commands.simulate"),
    "agents": Entry(_LAB, "run one learner with many agents in a simulated world", "lab.commands.simulate"),
    "contest": Entry(_LAB, "compare learners in a suite of worlds with a fully adaptive one", "lab.commands.contest"),
    "reproduce": Entry(_LAB, "the paper claim by claim: measured, with verdicts", "lab.commands.reproduce"),
    "design": Entry(_LAB, "certified optimal designs of context sets", "lab.commands.design"),
    "key": Entry("cli.experiment", "make a key to sign policies and experiments"),
    "warm-up": Entry(_LAB, "compile all kernels, when a container image is built", "lab.commands.warm_up"),
}
