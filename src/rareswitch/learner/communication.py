"""A batch shared by agents: what each plays, what it sends, and how the round ends.

Sums of floats depend on their order, so a batch is cut into cells that depend on its length alone, and their summaries
are added along one binary tree over these cells. Agents play whole cells and send the largest subtrees they hold. The
policy that is learned is then the same, bit for bit, however many agents there are and in whatever order they report.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rareswitch.errors import BatchError, FileFormatError, ParameterError, UnsuitableError
from rareswitch.files import decoding, pack, unpack
from rareswitch.ids import id_keys
from rareswitch.learner.encoding import check_schema, decode, encode
from rareswitch.learner.learner import Learner
from rareswitch.learner.rows import Rows
from rareswitch.learner.state import State
from rareswitch.learner.summary import Summary, sampled
from rareswitch.validation import Sets, whole

#: A batch of fewer than twice as many decisions has cells of one; a longer one has so many cells to twice as many.
CELLS = 4096
SCHEMA = 3
#: Bytes of a SHA-256.
DIGEST = 32


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
        first, stop = ((at - share.state.start + share.cell - 1) // share.cell for at in (share.start, share.stop))
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
        meta, tensors = encode([node.summary for node in self.nodes])
        places = [[node.level, node.index] for node in self.nodes]
        content = pack({"schema": SCHEMA, "agent": self.agent, "nodes": places, **meta}, tensors)
        return hashlib.sha256(content).digest() + content

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What was sent."""
        if hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
            raise FileFormatError("not an agent's report, or one that was damaged on the way: its hash is another.")
        with decoding("an agent's report"):
            meta, tensors = unpack(data[DIGEST:])
            check_schema("reports", meta, SCHEMA)
            pairs = zip(meta["nodes"], decode(meta, tensors), strict=True)
            nodes = tuple(Node(level=level, index=index, summary=summary) for (level, index), summary in pairs)
            return cls(agent=meta["agent"], nodes=nodes)


class Share:
    """An agent's part of the current batch of a run, whose decisions have consecutive numbers as ids.

    Parameters
    ----------
    learner, state
        As they are at the beginning of the batch.
    agent, agents
        Which of how many, counted from 0.
    """

    def __init__(self, learner: Learner, state: State, agent: int, agents: int) -> None:
        if learner.clock.looks:
            raise UnsuitableError(
                f"{learner.name} changes its policy when it has seen enough, not after a batch that could be shared "
                "beforehand. Let agents act together at each step instead: simulate(..., agents=A)."
            )
        if state.done:
            raise BatchError("this run is over: its last batch has been learned from. Begin a new one.")
        self.learner, self.state = learner, state
        self.agent = whole("agent", agent, low=0)
        if agent >= whole("agents", agents):
            raise ParameterError(f"agents are numbered from 0 to {agents - 1}; got {agent}.")
        self.cell = cell_size(state.start, state.stop)
        cells = -(-(state.stop - state.start) // self.cell)
        #: The decisions it plays: the number of its cells is its share of them, rounded down or up.
        self.start, self.stop = (
            min(state.stop, state.start + (i * cells // agents) * self.cell) for i in (agent, agent + 1)
        )
        wanted = learner.sample_size(state)
        #: Of the context sets, by hash: all agents together send about twice those that are wanted, hardly ever fewer.
        self.share = 2.0 * (wanted + 6.0 * math.sqrt(wanted) + 30.0) / state.ahead[0] if wanted else 0.0
        self._next = self.start
        self._trees = Subtrees()

    def add(self, rows: Rows) -> None:
        """Take the next decisions, in order and with their rewards: whole cells, but for the last of the batch."""
        stop = self._next + len(rows)
        whole_cells = (stop - self.state.start) % self.cell == 0 or stop == self.stop
        in_order = np.array_equal(rows.ids, id_keys(range(self._next, stop)))
        if not in_order or stop > self.stop or not whole_cells:
            raise BatchError(
                f"agent {self.agent} plays the decisions {self.start} to {self.stop - 1} in order, in multiples of "
                f"{self.cell}; the next is {self._next}, got {len(rows)} rows, the first of id {rows.ids[0, 0]}."
            )
        if rows.sets is not None and rows.places is not None:
            self.learner.check(Sets(rows.sets.contexts, rows.sets.alive, False))
            few = np.flatnonzero(sampled(rows.ids[rows.places], self.share))
            sets, places = (rows.sets[few], rows.places[few]) if len(few) else (None, None)
            rows = replace(rows, sets=sets, places=places)
        for first in range(self._next, stop, self.cell):
            index = (first - self.state.start) // self.cell
            part = rows[first - self._next : min(stop, first + self.cell) - self._next]
            self._trees.add(Node(level=0, index=index, summary=self.learner.summarize(self.state, part)))
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
    """Waits for the reports of all agents, in any order, and then makes the next state.

    Examples
    --------
    >>> from rareswitch.distributions import Gaussian
    >>> from rareswitch.env import LinearWorld
    >>> from rareswitch.learner import BatchLinUCBKW
    >>> world = LinearWorld(source=Gaussian(dim=3, arms=5))
    >>> learner = BatchLinUCBKW(dim=3, arms=5, horizon=1000, noise=0.5)
    >>> state = learner.begin()
    >>> meeting = CommunicationRound(learner, state, agents=2)
    >>> for agent in (1, 0):
    ...     share = Share(learner, state, agent, 2)
    ...     rounds = world.draw(share.stop - share.start, seed=1, first=share.start)
    ...     decisions = state.policy.decide(rounds.contexts, seed=1, ids=range(share.start, share.stop))
    ...     means = rounds.means[range(len(rounds.means)), decisions.arms]
    ...     rewards = world.rewards(means, seed=1, first=share.start)
    ...     share.add(Rows.of(rounds.contexts, decisions, rewards))
    ...     meeting.add(share.report())
    >>> meeting.waiting, meeting.finish().updates
    ((), 2)
    """

    def __init__(self, learner: Learner, state: State, agents: int) -> None:
        Share(learner, state, 0, agents)  # refuses learners whose batches cannot be shared
        if whole("agents", agents) > state.horizon:
            raise ParameterError(
                f"there are {agents} agents for {state.horizon} decisions, so some would never play. Use at most "
                f"{state.horizon}."
            )
        self.learner, self.state, self.agents = learner, state, agents
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
        learner, state = self.learner, self.state
        share = Share(learner, state, report.agent, self.agents)
        told = f"the report of agent {report.agent} of {self.agents}"
        reached = share.start
        dims = [stats.dim for stats in state.sums]
        size = learner.sample_size(state)
        if [(node.level, node.index) for node in report.nodes] != Subtrees.cut(share):
            raise BatchError(
                f"{told} is not about its share of this round, the {share.stop - share.start} decisions from "
                f"{share.start} on."
            )
        for node in report.nodes:
            summary = node.summary
            if summary.policy_id != state.policy.id:
                raise BatchError(
                    f"{told} is of policy {summary.policy_id[:12]}…; this round is of {state.policy.id[:12]}…."
                )
            stop = min(share.stop, state.start + ((node.index + 1) << node.level) * share.cell)
            decided = stop - reached
            fits = summary.decided == decided and [stats.dim for stats in summary.stats] == dims
            if not fits or any(stats.count > decided for stats in summary.stats):
                raise BatchError(f"{told} does not fit: its sums are not of the decisions {reached} to {stop - 1}.")
            if summary.sample is not None:
                numbers, beyond = summary.sample.keys[:, 0], summary.sample.keys[:, 1]
                if summary.sample.size != size or beyond.any() or (numbers < reached).any() or (numbers >= stop).any():
                    raise BatchError(f"{told} has context sets that are not sampled from {reached} to {stop - 1}.")
            reached = stop

    def finish(self) -> State:
        """End the round: add up what came, in the order of the decisions, and make the next state."""
        if self.waiting:
            raise BatchError(
                f"the round is not over: {len(self.waiting)} agents have not reported, {self.waiting[:5]} …"
            )
        trees = Subtrees()
        for agent in range(self.agents):
            for node in Report.from_bytes(self._reports[agent]).nodes:
                trees.add(node)
        return self.learner.next(self.state, trees.total())


def cell_size(start: int, stop: int) -> int:
    """Decisions in a cell of the batch from ``start`` to ``stop``.

    >>> cell_size(0, 8191), cell_size(0, 8192), cell_size(32_702, 100_000)
    (1, 2, 16)
    """
    return max(1, (stop - start) // CELLS)
