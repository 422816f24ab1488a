"""A batch shared by agents: what each plays, what it sends, and how the round ends.

Sums of floats depend on their order, so a batch is cut into cells that depend on its length alone, and their summaries
are added along one binary tree over these cells. Agents play equally many decisions, give or take one, and send the
largest subtrees they hold; a cell that several agents play is summed where they meet, so of it they send the rows. The
policy that is learned is then the same, bit for bit, however many agents there are and in whatever order they report;
and A agents take ⌈n/A⌉ decisions for a batch of n, so that a run of T decisions and M batches takes at most T/A + M.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rareswitch import codec
from rareswitch.errors import BatchError, ParameterError, RareswitchError, UnsuitableError
from rareswitch.ids import id_keys
from rareswitch.learner.learner import Learner
from rareswitch.learner.rows import Rows
from rareswitch.learner.state import State, Summary, sampled
from rareswitch.validation import Sets, whole

#: A batch of fewer than twice as many decisions has cells of one; a longer one has so many cells to twice as many.
CELLS = 4096


@codec.kind("node")
@dataclass(frozen=True, kw_only=True)
class Node:
    """The summary of a subtree: of the cells from index·2^level on, 2^level of them if the batch has so many."""

    level: int
    index: int
    summary: Summary


@dataclass(frozen=True)
class Cells:
    """Where the cells of the batch from ``start`` to ``stop`` are; its last one may be shorter.

    >>> [Cells(0, 8191).size, Cells(0, 8192).size, Cells(32_702, 100_000).size]
    [1, 2, 16]
    >>> cells = Cells(5, 8205)
    >>> cells.after(5), cells.ends(6), cells.whole(6, 12)
    (7, False, (1, 3))
    """

    start: int
    stop: int

    @property
    def size(self) -> int:
        """Decisions in a cell."""
        return max(1, (self.stop - self.start) // CELLS)

    def after(self, number: int) -> int:
        """Where the cell of a decision ends."""
        return min(self.stop, self.start + ((number - self.start) // self.size + 1) * self.size)

    def ends(self, number: int) -> bool:
        """Whether a cell ends, and the next one begins, at a decision."""
        return (number - self.start) % self.size == 0 or number == self.stop

    def whole(self, start: int, stop: int) -> tuple[int, int]:
        """The first of the whole cells among some decisions, and the one after the last."""
        first = -(-(start - self.start) // self.size)
        last = (stop - self.start) // self.size if stop < self.stop else -(-(stop - self.start) // self.size)
        return first, max(first, last)

    def leaf(self, learner: Learner, state: State, rows: Rows) -> Node:
        """The sums of a cell, of its rows."""
        index = (first_of(rows) - self.start) // self.size
        return Node(level=0, index=index, summary=learner.summarize(state, rows, part=True))


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
    def cut(first: int, stop: int) -> list[tuple[int, int]]:
        """Level and index of the largest subtrees of the cells from ``first`` to before ``stop``.

        >>> Subtrees.cut(3, 7)
        [(0, 3), (1, 2), (0, 6)]
        """
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


@codec.kind("report")
@dataclass(frozen=True, eq=False, kw_only=True)
class Report:
    """What an agent sends at the end of its share: sums and sampled context sets, and the rows of two cells at most."""

    agent: int
    nodes: tuple[Node, ...]
    #: The decisions of cells of which others play the rest: those where its share begins, and where it ends.
    pieces: tuple[Rows, ...] = ()

    def to_bytes(self) -> bytes:
        """What crosses the wire, with its hash."""
        return codec.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What was sent."""
        return codec.from_bytes(cls, data)[0]


def first_of(rows: Rows) -> int:
    """The number of the first decision."""
    return int(rows.ids[0, 0])


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
        if learner.clock.uses_features:
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
        length = state.stop - state.start
        #: The decisions it plays: its share of them, rounded down or up.
        self.start, self.stop = (state.start + i * length // agents for i in (agent, agent + 1))
        self.cells = Cells(state.start, state.stop)
        wanted = learner.sample_size(state)
        #: Of the context sets, by hash: all agents together send about twice those that are wanted, hardly ever fewer.
        self.share = 2.0 * (wanted + 6.0 * math.sqrt(wanted) + 30.0) / state.batch_sizes[0] if wanted else 0.0
        self._next = self.start
        self._trees = Subtrees()
        self._pieces: list[Rows] = []
        #: Of the cell that is being played.
        self._held: list[Rows] = []

    def layout(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """What it reports: level and index of subtrees, and from where to where rows of cells that others play too."""
        first, last = self.cells.whole(self.start, self.stop)
        begin, end = (min(self.stop, self.state.start + at * self.cells.size) for at in (first, last))
        pieces = [(a, b) for a, b in ((self.start, begin), (end, self.stop)) if a < b]
        return Subtrees.cut(first, last), pieces

    def add(self, rows: Rows) -> None:
        """Take the next decisions, in order and with their rewards."""
        first, stop = self._next, self._next + len(rows)
        if not np.array_equal(rows.ids, id_keys(range(first, stop))) or stop > self.stop:
            raise BatchError(
                f"agent {self.agent} plays the decisions {self.start} to {self.stop - 1} in order; the next is "
                f"{first}, got {len(rows)} rows, the first of id {rows.ids[0, 0]}."
            )
        if rows.sets is not None and rows.places is not None:
            self.learner.check(Sets(rows.sets.contexts, rows.sets.available, False))
            few = np.flatnonzero(sampled(rows.ids[rows.places], self.share))
            sets, places = (rows.sets[few], rows.places[few]) if len(few) else (None, None)
            rows = replace(rows, sets=sets, places=places)
        while self._next < stop:
            end = min(stop, self.cells.after(self._next))
            self._held.append(rows[self._next - first : end - first])
            self._next = end
            if self.cells.ends(end) or end == self.stop:
                self._close()

    def _close(self) -> None:
        """Sum the cell that was played, or keep its rows if others play the rest of it."""
        rows, self._held = Rows.concatenate(self._held) if len(self._held) > 1 else self._held[0], []
        if self.cells.ends(first_of(rows)) and self.cells.ends(self._next):
            self._trees.add(self.cells.leaf(self.learner, self.state, rows))
        else:
            self._pieces.append(rows)

    def report(self) -> Report:
        """What to send when all is played."""
        if self._next != self.stop:
            raise BatchError(
                f"agent {self.agent} plays the decisions {self.start} to {self.stop - 1}; it has played up to "
                f"{self._next - 1}."
            )
        return Report(agent=self.agent, nodes=tuple(self._trees.nodes), pieces=tuple(self._pieces))


class CommunicationRound:
    """Waits for the reports of all agents, in any order, and then makes the next state.

    Examples
    --------
    >>> from rareswitch.distributions import Gaussian
    >>> from rareswitch.lab.worlds import LinearWorld
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
    >>> meeting.waiting, meeting.finish().policies
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
        dims = [stats.dim for stats in state.sums]
        size = learner.sample_size(state)
        spans = [(first_of(rows), first_of(rows) + len(rows)) for rows in report.pieces]
        if ([(node.level, node.index) for node in report.nodes], spans) != share.layout():
            raise BatchError(
                f"{told} is not about its share of this round, the {share.stop - share.start} decisions from "
                f"{share.start} on."
            )
        for policy_id in (
            *(node.summary.policy_id for node in report.nodes),
            *(rows.policy_id for rows in report.pieces),
        ):
            if policy_id != state.policy.id:
                raise BatchError(f"{told} is of policy {policy_id[:12]}…; this round is of {state.policy.id[:12]}….")
        for node in report.nodes:
            summary = node.summary
            first, stop = (
                min(state.stop, state.start + (at << node.level) * share.cells.size)
                for at in (node.index, node.index + 1)
            )
            decided = stop - first
            fits = summary.decided == decided and [stats.dim for stats in summary.stats] == dims
            if not fits or any(stats.count > decided for stats in summary.stats):
                raise BatchError(f"{told} does not fit: its sums are not of the decisions {first} to {stop - 1}.")
            if summary.sample is not None:
                numbers, beyond = summary.sample.keys[:, 0], summary.sample.keys[:, 1]
                if summary.sample.size != size or beyond.any() or (numbers < first).any() or (numbers >= stop).any():
                    raise BatchError(f"{told} has context sets that are not sampled from {first} to {stop - 1}.")
        for rows in report.pieces:
            try:
                learner.check_chosen(rows.features)
                if rows.sets is not None:
                    learner.check(Sets(rows.sets.contexts, rows.sets.available, False))
            except RareswitchError as error:
                raise BatchError(f"{told} does not fit: {error}") from error

    def finish(self) -> State:
        """End the round: add up what came, in the order of the decisions, and make the next state."""
        if self.waiting:
            raise BatchError(
                f"the round is not over: {len(self.waiting)} agents have not reported, {self.waiting[:5]} …"
            )
        trees, cells = Subtrees(), Cells(self.state.start, self.state.stop)
        held: list[Rows] = []
        for agent in range(self.agents):
            report = Report.from_bytes(self._reports[agent])
            left = [rows for rows in report.pieces if not cells.ends(first_of(rows))]
            parts: list[Node | Rows] = [*left, *report.nodes, *report.pieces[len(left) :]]
            for part in parts:
                if isinstance(part, Node):
                    trees.add(part)
                    continue
                held.append(part)
                if cells.ends(first_of(part) + len(part)):
                    trees.add(cells.leaf(self.learner, self.state, Rows.concatenate(held)))
                    held = []
        return self.learner.next(self.state, trees.total())
