"""The commands: in which module each one is, and what it is for in one line.

Only the module of the command that is asked for is imported.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """A command in the list of them."""

    #: In ``rareswitch.cli``.
    module: str
    help: str


COMMANDS = {
    "demo": Entry("demo", "show what rareswitch does, on built-in defaults"),
    "learners": Entry("learners", "list the learners, their adaptivity and their regret bounds"),
    "recommend": Entry("recommend", "which learner to take, how many policies it needs, and what is proved"),
    "simulate": Entry("simulate", "run one learner in a simulated world"),
    "compare": Entry("simulate", "run several learners in simulated worlds"),
    "agents": Entry("agents", "one learner with many agents, in a simulated world"),
    "tradeoff": Entry("tradeoff", "what is lost with fewer policies: regret under a cap on their number"),
    "contest": Entry("contest", "every learner in a fixed suite of worlds, against the best fully adaptive one"),
    "begin": Entry("begin", "begin a deployment: a folder with the first policy, for logs to be learned from"),
    "play": Entry("play", "let a deployed policy make its decisions in a simulated world, and write the log"),
    "update": Entry("update", "learn the next policy of a deployment from the log of the current one"),
    "verify": Entry("verify", "learn all policies of a deployment again from its summaries, and compare"),
    "key": Entry("key", "make a key to sign policies and deployments with"),
    "design": Entry("design", "certified optimal designs of context sets"),
}
