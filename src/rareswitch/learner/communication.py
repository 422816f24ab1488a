"""A batch shared by agents: what each plays, what it sends, and how the round ends.

Sums of floats depend on their order, so a batch is cut into cells that depend on its length alone, and their summaries
are added along one binary tree over these cells. Agents play whole cells and send the largest subtrees they hold. The
policy that is learned is then the same, bit for bit, however many agents there are and in whatever order they report.
"""

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np

from rareswitch.errors import BatchError, FileFormatError, ParameterError, UnsuitableError
from rareswitch.files import pack, unpack
from rareswitch.learner.feedback import Feedback, Summary
from rareswitch.learner.learner import Learner
from rareswitch.learner.summary_files import DAMAGE, decode, encode
from rareswitch.policy import Policy
from rareswitch.validation import whole

CELLS = 4096
"""A batch of fewer than twice as many decisions has cells of one; a longer one has so many cells to twice as many."""
SCHEMA = 1
DIGEST = 32
"""Bytes of a SHA-256."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """The summary of a subtree: of the cells from index·2^level on, 2^level of them if the batch has so many."""

    level: int
    index: int
    summary: Summary


class Subtrees:
    """Summaries of neighbouring cells, added as far as the tree allows."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, node: Node) -> None:
        """Take the next one to the right."""
        self.nodes.append(node)
        while len(self.nodes) > 1:
            left, right = self.nodes[-2:]
            if left.level != right.level or left.index % 2 or right.index != left.index + 1:
                break
            both = left.summary + right.summary
            self.nodes[-2:] = [Node(level=left.level + 1, index=left.index // 2, summary=both)]

    @staticmethod
    def cut(share: "Share") -> list[tuple[int, int]]:
        """Level and index of the largest subtrees of a share, from left to right."""
        first, stop = ((at - share.learner.start + share.cell - 1) // share.cell for at in (share.start, share.stop))
        found = []
        while first < stop:
            level = 0
            while first % (2 << level) == 0 and first + (2 << level) <= stop:
                level += 1
            found.append((level, first >> level))
            first += 1 << level
        return found

    def total(self) -> Summary:
        """All of them: where the batch ends, a node may have no right neighbour."""
        total = self.nodes[-1].summary
        for node in reversed(self.nodes[:-1]):
            total = node.summary + total
        return total


@dataclass(frozen=True, eq=False, kw_only=True)
class Report:
    """What an agent sends at the end of its share: sums and sampled context sets, no decisions."""

    agent: int
    nodes: tuple[Node, ...]

    def to_bytes(self) -> bytes:
        """What crosses the wire: the report, and the SHA-256 of it in front."""
        content = self._content()
        return hashlib.sha256(content).digest() + content

    def _content(self) -> bytes:
        meta, tensors = encode([node.summary for node in self.nodes])
        places = [[node.level, node.index] for node in self.nodes]
        return pack({"schema": SCHEMA, "agent": self.agent, "nodes": places, **meta}, tensors)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What was sent."""
        if hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
            raise FileFormatError("not an agent's report, or one that was damaged on the way: its hash is another.")
        try:
            meta, tensors = unpack(data[DIGEST:])
            if meta["schema"] != SCHEMA:
                raise FileFormatError(f"reports have schema {SCHEMA}; this one has {meta['schema']!r}.")
            nodes = tuple(
                Node(level=level, index=index, summary=summary)
                for (level, index), summary in zip(meta["nodes"], decode(meta, tensors), strict=True)
            )
            return cls(agent=meta["agent"], nodes=nodes)
        except FileFormatError:
            raise
        except DAMAGE as error:
            raise FileFormatError(f"not an agent's report, or a damaged one ({error}).") from error


class Share:
    """An agent's part of the current batch of a learner.

    Parameters
    ----------
    learner
        As it stands at the beginning of the batch; it is not changed.
    agent, agents
        Which of how many, counted from 0.
    """

    def __init__(self, learner: Learner, agent: int, agents: int) -> None:
        if not learner.fixed_ends:
            raise UnsuitableError(
                f"{learner.name} changes its policy when it has seen enough, not after a batch that could be shared "
                "beforehand. Let agents act together at each step instead: simulate(..., agents=A)."
            )
        self.learner = learner
        self.agent = whole("agent", agent, low=0)
        if agent >= whole("agents", agents):
            raise ParameterError(f"agents are numbered from 0 to {agents - 1}; got {agent}.")
        self.cell = cell_size(learner.start, learner.stop)
        cells = -(-(learner.stop - learner.start) // self.cell)
        self.start, self.stop = (
            min(learner.stop, learner.start + (i * cells // agents) * self.cell) for i in (agent, agent + 1)
        )
        """The decisions it plays: the number of its cells is its share of them, rounded down or up."""
        self._next = self.start
        self._trees = Subtrees()

    def add(self, feedback: Feedback) -> None:
        """Take the next decisions: whole cells, but for the last of the batch."""
        stop = feedback.first + len(feedback.arms)
        whole_cells = (stop - self.learner.start) % self.cell == 0 or stop == self.stop
        if feedback.first != self._next or stop > self.stop or not whole_cells:
            raise BatchError(
                f"agent {self.agent} plays the decisions {self.start} to {self.stop - 1} in order, in multiples of "
                f"{self.cell}; the next is {self._next}, got {feedback.first} to {stop - 1}."
            )
        for first in range(feedback.first, stop, self.cell):
            index = (first - self.learner.start) // self.cell
            part = feedback.between(first, min(stop, first + self.cell))
            self._trees.add(Node(level=0, index=index, summary=self.learner.summarize(part)))
        self._next = stop

    def report(self) -> Report:
        """What to send when all is played."""
        if self._next != self.stop:
            raise BatchError(
                f"agent {self.agent} plays the decisions {self.start} to {self.stop - 1}; it has played up to "
                f"{self._next - 1}."
            )
        return Report(agent=self.agent, nodes=tuple(self._trees.nodes))


class CommunicationRound:
    """Waits for the reports of all agents, in any order, and then lets the learner make its next policy.

    Examples
    --------
    >>> from rareswitch.distributions import Gaussian
    >>> from rareswitch.env import LinearWorld
    >>> from rareswitch.learner import BatchLinUCBKW
    >>> world = LinearWorld(source=Gaussian(dim=3, arms=5))
    >>> learner = BatchLinUCBKW(dim=3, arms=5, horizon=1000, noise=0.5)
    >>> meeting = CommunicationRound(learner, agents=2)
    >>> for agent in (1, 0):
    ...     share = Share(learner, agent, 2)
    ...     rounds = world.draw(share.stop - share.start, seed=1, first=share.start)
    ...     decisions = learner.policy.decide(rounds.contexts, seed=1, first=share.start)
    ...     means = rounds.means[range(len(rounds.means)), decisions.arms]
    ...     rewards = world.rewards(means, seed=1, first=share.start)
    ...     share.add(Feedback.of(rounds.contexts, decisions, rewards))
    ...     meeting.add(share.report())
    >>> meeting.waiting, meeting.finish() is learner.policy, learner.updates
    ((), True, 2)
    """

    def __init__(self, learner: Learner, agents: int) -> None:
        Share(learner, 0, agents)  # refuses learners whose batches cannot be shared
        if whole("agents", agents) > learner.horizon:
            raise ParameterError(
                f"there are {agents} agents for {learner.horizon} decisions, so some would never play. Use at most "
                f"{learner.horizon}."
            )
        self.learner, self.agents = learner, agents
        self._reports: dict[int, bytes] = {}

    @property
    def waiting(self) -> tuple[int, ...]:
        """Agents whose reports are not in."""
        return tuple(agent for agent in range(self.agents) if agent not in self._reports)

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return sum(map(len, self._reports.values()))

    def add(self, report: Report | bytes | bytearray) -> None:
        """Take a report, unless it is not of this round. The same one again changes nothing."""
        data = report.to_bytes() if isinstance(report, Report) else bytes(report)
        found = Report.from_bytes(data)
        self._check(found)
        if self._reports.setdefault(found.agent, data) != data:
            raise BatchError(f"agent {found.agent} has sent two reports of the same round that differ.")

    def _check(self, report: Report) -> None:
        """Refuse a report that is not what this agent has to say in this round."""
        learner, share = self.learner, Share(self.learner, report.agent, self.agents)
        told = f"the report of agent {report.agent} of {self.agents}"
        reached = share.start
        nothing = learner.statistics(np.empty(0, dtype=np.int64), np.empty((0, learner.dim)), np.empty(0))
        dims = [stats.dim for stats in nothing]
        if [(node.level, node.index) for node in report.nodes] != Subtrees.cut(share):
            raise BatchError(
                f"{told} is not about its share of this round, the {share.stop - share.start} decisions from "
                f"{share.start} on."
            )
        for node in report.nodes:
            summary = node.summary
            if summary.policy_id != learner.policy.id:
                raise BatchError(
                    f"{told} is of policy {summary.policy_id[:12]}…; this round is of {learner.policy.id[:12]}…."
                )
            stop = min(share.stop, learner.start + ((node.index + 1) << node.level) * share.cell)
            numbers = np.arange(reached, stop)
            sampled = 0 if summary.sample is None else len(summary.sample)
            fits = (summary.start, summary.stop) == (reached, stop) and [stats.dim for stats in summary.stats] == dims
            if not fits or any(stats.count > len(numbers) for stats in summary.stats):
                raise BatchError(f"{told} does not fit: its sums are not of the decisions {reached} to {stop - 1}.")
            if sampled != learner.sampled(numbers).sum():
                raise BatchError(
                    f"{told} has {sampled} context sets for the decisions {reached} to {stop - 1}, of which "
                    f"{learner.sampled(numbers).sum()} are sampled."
                )
            reached = stop

    def finish(self) -> Policy:
        """End the round: add up what came, in the order of the decisions, and make the next policy."""
        if self.waiting:
            raise BatchError(
                f"the round is not over: {len(self.waiting)} agents have not reported, {self.waiting[:5]} …"
            )
        trees = Subtrees()
        for agent in range(self.agents):
            for node in Report.from_bytes(self._reports[agent]).nodes:
                trees.add(node)
        return self.learner.next(trees.total())


def cell_size(start: int, stop: int) -> int:
    """Decisions in a cell of the batch from ``start`` to ``stop``.

    >>> cell_size(0, 8191), cell_size(0, 8192), cell_size(32_702, 100_000)
    (1, 2, 16)
    """
    return max(1, (stop - start) // CELLS)
