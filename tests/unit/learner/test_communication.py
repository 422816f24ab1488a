"""Shares, reports and rounds: the same sums however a batch is shared."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import BatchError, FileFormatError, ParameterError, UnsuitableError
from rareswitch.ids import id_keys
from rareswitch.lab.worlds import make_world
from rareswitch.learner import (
    OFUL,
    BatchLinUCBKW,
    CommunicationRound,
    Foresight,
    Learner,
    LinUCB,
    Report,
    Rows,
    Sample,
    Share,
    State,
    StaticGrid,
    Summary,
    SupLinUCB,
    communication,
    geometric_grid,
    make_learner,
)
from rareswitch.learner.communication import Cells, Node, Subtrees
from rareswitch.stats import Stats
from reference.loop import rows_of

WORLD = make_world("gaussian", dim=3, arms=5, noise=0.5)


def fresh(**settings: Any) -> Foresight:
    told: dict[str, Any] = {"dim": 3, "horizon": 3000} | settings
    return Foresight(**{"grid": geometric_grid(told["horizon"], 3, first=12)} | told)


def rows(state: State, first: int, stop: int) -> Rows:
    return rows_of(state, WORLD, 1, first=first, count=stop - first)


def report(learner: Learner, state: State, agent: int, agents: int, step: int = 10**6) -> Report:
    share = Share(learner, state, agent, agents)
    for first in range(share.start, share.stop, step):
        share.add(rows(state, first, min(share.stop, first + step)))
    return share.report()


def learn(agents: int, order: list[int] | None = None, step: int = 10**6, **settings: Any) -> list[str]:
    learner = fresh(**settings)
    state, ids = learner.begin(), []
    while not state.done:
        meeting = CommunicationRound(learner, state, agents)
        for agent in order or range(agents):
            meeting.add(report(learner, state, agent, agents, step).to_bytes())
        state = meeting.finish()
        ids.append(state.policy.id)
    return ids


def begun(start: int, length: int) -> tuple[Learner, State]:
    """A learner, and a state with a batch of that length after ``start`` decisions."""
    learner = BatchLinUCBKW(dim=3, arms=5, horizon=start + length, grid=StaticGrid(ends=(start, start + length)))
    return learner, replace(learner.begin(), start=start, batch_sizes=(length,), policies=2)


@pytest.mark.parametrize("length", [1, 40, 4096, 8191, 8192, 67_298, 10**6])
@pytest.mark.parametrize("agents", [1, 3, 64, 1000, 10_000])
def test_shares_cover_the_batch_evenly(length: int, agents: int) -> None:
    """However many agents there are, the longest share has ⌈n/A⌉ decisions: a run takes at most T/A + M."""
    learner, state = begun(17, length)
    shares = [Share(learner, state, agent, agents) for agent in range(agents)]
    assert shares[0].start == 17
    assert shares[-1].stop == 17 + length
    assert all(a.stop == b.start for a, b in pairwise(shares))
    assert {share.stop - share.start for share in shares} <= {length // agents, -(-length // agents)}
    size = Cells(17, 17 + length).size
    assert size == 1 or length // size >= 4096


def test_policies_do_not_depend_on_the_agents_nor_on_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with cells of several decisions, which several agents play, and with shares that are played in pieces."""
    for cells in (4096, 100, 3):
        monkeypatch.setattr(communication, "CELLS", cells)
        one = learn(1, horizon=800)
        assert learn(2, [1, 0], horizon=800) == one
        assert learn(7, step=40, horizon=800) == one
        assert learn(5, [3, 0, 4, 1, 2], horizon=800) == one
    assert learn(800, horizon=800) == one


@pytest.mark.parametrize(
    "name", ["batch-linucb-dg-certified", "batch-linucb-kw", "thompson-grid", "fixed-set-elimination"]
)
def test_every_learner_with_known_ends_can_share(name: str) -> None:
    world = make_world("fixed", dim=3, arms=5, noise=0.5)
    ids = []
    for agents in (1, 6):
        learner = make_learner(name, dim=3, arms=5, horizon=600, policies=3)
        state = learner.begin()
        meeting = CommunicationRound(learner, state, agents)
        for agent in range(agents):
            share = Share(learner, state, agent, agents)
            if share.stop > share.start:
                share.add(rows_of(state, world, 1, first=share.start, count=share.stop - share.start))
            meeting.add(share.report())
        ids.append(meeting.finish().policy.id)
    assert ids[0] == ids[1]


def test_a_tree_adds_siblings_only() -> None:
    learner = fresh()
    state = learner.begin()
    parts = [learner.summarize(state, rows(state, k, k + 1)) for k in range(7)]
    trees = Subtrees()
    for k in range(3, 7):
        trees.add(Node(level=0, index=k, summary=parts[k]))
    assert [(node.level, node.index) for node in trees.nodes] == [(0, 3), (1, 2), (0, 6)]
    total = parts[3] + ((parts[4] + parts[5]) + parts[6])
    np.testing.assert_array_equal(trees.total().stats[0].gram, total.stats[0].gram)


def test_a_report_survives_the_wire() -> None:
    learner = fresh()
    sent = report(learner, learner.begin(), 1, 2)
    assert len(sent.nodes) > 1
    found = Report.from_bytes(sent.to_bytes())
    assert found.to_bytes() == sent.to_bytes()
    for one, other in zip(sent.nodes, found.nodes, strict=True):
        np.testing.assert_array_equal(one.summary.stats[0].gram, other.summary.stats[0].gram)
        assert one.summary.stats[0].square_sum == other.summary.stats[0].square_sum
        assert (one.summary.decided, one.summary.rewarded) == (other.summary.decided, other.summary.rewarded)


@pytest.mark.parametrize("cut", [0, 4, 100, -8])
def test_a_truncated_report_is_refused(cut: int) -> None:
    with pytest.raises(FileFormatError, match="report"):
        Report.from_bytes(report(fresh(), fresh().begin(), 0, 2).to_bytes()[:cut])


def test_a_round_waits_for_all() -> None:
    learner = fresh()
    state = learner.begin()
    meeting = CommunicationRound(learner, state, 3)
    meeting.add(report(learner, state, 2, 3))
    assert meeting.waiting == (0, 1)
    with pytest.raises(BatchError, match="2 agents have not reported"):
        meeting.finish()


def test_a_report_that_comes_twice_counts_once() -> None:
    learner = fresh()
    state = learner.begin()
    meeting = CommunicationRound(learner, state, 2)
    for agent in (0, 1, 1, 0):
        meeting.add(report(learner, state, agent, 2))
    assert meeting.finish().policy.id == learn(1)[0]


def test_rewards_that_are_not_known_yet_are_counted() -> None:
    learner = fresh()
    state = learner.begin()
    meeting = CommunicationRound(learner, state, 2)
    for agent in (0, 1):
        share = Share(learner, state, agent, 2)
        given = rows(state, share.start, share.stop)
        unknown = np.where(np.arange(len(given)) % 2 == 0, np.nan, given.rewards)
        share.add(replace(given, rewards=unknown))
        meeting.add(share.report())
    found = meeting.finish().past[0]
    assert found.decided == state.batch_sizes[0]
    assert found.rewarded == sum(
        len(range(1, n, 2)) for n in (state.batch_sizes[0] // 2, -(-state.batch_sizes[0] // 2))
    )


def changed(node: Node, **facts: Any) -> Node:
    own = {name: facts.pop(name) for name in ("level", "index") if name in facts}
    return replace(node, summary=replace(node.summary, **facts), **own)


def strangers(node: Node, name: int | str) -> Sample:
    """The sample with the decision of another id."""
    sample = node.summary.sample
    assert sample is not None
    return Sample.of(sample.size, id_keys([name]), sample.sets[:1])


def test_reports_that_do_not_fit_are_refused() -> None:
    """Each before it is taken, so that the right one can still come."""
    learner = fresh()
    state = learner.begin()
    meeting = CommunicationRound(learner, state, 2)
    right = report(learner, state, 0, 2)
    *others, last = right.nodes
    shown = last.summary.sample
    assert shown is not None
    for nodes, words in (
        ([changed(node, policy_id="f" * 64) for node in right.nodes], "is of policy ffffffffffff…; this round is of"),
        ([*others, changed(last, level=last.level + 1)], "is not about its share of this round"),
        ([*others, changed(last, index=last.index + 1)], "is not about its share of this round"),
        (others, "is not about its share of this round"),
        ([*others, changed(last, decided=last.summary.decided + 1)], "its sums are not of the decisions"),
        ([changed(node, stats=(Stats.zero(3),)) for node in right.nodes], "its sums are not of the decisions"),
        ([*others, changed(last, sample=replace(shown, size=5))], "that are not sampled from"),
        ([*others, changed(last, sample=strangers(last, state.stop))], "that are not sampled from"),
        ([*others, changed(last, sample=strangers(last, "a name"))], "that are not sampled from"),
    ):
        with pytest.raises(BatchError, match=words):
            meeting.add(Report(agent=0, nodes=tuple(nodes)))
    with pytest.raises(BatchError, match="agent 1 of 2 is not about its share"):
        meeting.add(Report(agent=1, nodes=right.nodes))
    with pytest.raises(ParameterError, match="numbered from 0 to 1; got 2"):
        meeting.add(Report(agent=2, nodes=right.nodes))
    assert meeting.waiting == (0, 1)
    meeting.add(bytearray(right.to_bytes()))
    (sums,) = last.summary.stats
    louder = replace(sums, moment=2.0 * sums.moment, square_sum=4.0 * sums.square_sum)
    with pytest.raises(BatchError, match="two reports of the same round that differ"):
        meeting.add(Report(agent=0, nodes=(*others, changed(last, stats=(louder,)))))
    meeting.add(report(learner, state, 1, 2))
    assert meeting.finish().policy.id == learn(1)[0]


def test_no_flipped_bit_gets_through() -> None:
    data = report(fresh(), fresh().begin(), 0, 2).to_bytes()
    rng = np.random.default_rng(3)
    for at in rng.integers(0, len(data), 40):
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(FileFormatError, match=r"damaged|changed"):
            Report.from_bytes(bytes(flipped))


@pytest.mark.parametrize(("agents", "length"), [(1, 7), (3, 100), (5, 64), (64, 1000), (7, 20_000), (9000, 20_000)])
def test_shares_are_cut_as_they_are_sent(agents: int, length: int) -> None:
    """Whole cells in the largest subtrees, and the rows of cells that others play too: all of the batch, once."""
    learner, state = begun(5, length)
    nothing, reached = Summary(policy_id="", decided=0, rewarded=0, stats=()), 5
    for agent in range(agents):
        share, trees, pieces = Share(learner, state, agent, agents), Subtrees(), []
        while reached < share.stop:
            end = min(share.stop, share.cells.after(reached))
            if share.cells.ends(reached) and share.cells.ends(end):
                trees.add(Node(level=0, index=(reached - 5) // share.cells.size, summary=nothing))
            else:
                pieces.append((reached, end))
            reached = end
        assert share.layout() == ([(node.level, node.index) for node in trees.nodes], pieces)
        assert len(pieces) <= 2
    assert reached == 5 + length


def test_an_agent_plays_its_share_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communication, "CELLS", 10)
    learner = BatchLinUCBKW(dim=3, arms=5, horizon=3000, noise=0.5)
    state = learner.begin()
    share = Share(learner, state, 0, 2)
    for first, stop in ((1, 3), (0, share.stop + 1)):
        words = f"in order; the next is 0, got {stop - first} rows, the first of id {first}"
        with pytest.raises(BatchError, match=words):
            share.add(rows(state, first, stop))
    share.add(rows(state, 0, 7))
    with pytest.raises(BatchError, match="it has played up to 6"):
        share.report()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> tuple[Learner, State, Report]:
    """A learner with cells of two decisions, its first state, and a report that ends in the middle of one."""
    monkeypatch.setattr(communication, "CELLS", 5)
    learner = fresh()
    state = learner.begin()
    found = report(learner, state, 0, 4)
    assert (state.batch_sizes[0], found.pieces[0].ids[0, 0], len(found.pieces), len(found.nodes)) == (12, 2, 1, 1)
    return learner, state, found


def test_rows_of_a_cell_survive_the_wire(shared: tuple[Learner, State, Report]) -> None:
    """With the sampled sets among them, and rewards that are not known yet."""
    sent = shared[2]
    (piece,) = sent.pieces
    assert piece.sets is not None
    unknown = replace(piece, rewards=[np.nan] * len(piece))
    found = Report.from_bytes(replace(sent, pieces=(unknown,)).to_bytes())
    assert found.to_bytes() == replace(sent, pieces=(unknown,)).to_bytes()
    assert np.isnan(found.pieces[0].rewards).all()
    np.testing.assert_array_equal(found.pieces[0].ids, piece.ids)
    np.testing.assert_array_equal(found.pieces[0].features, piece.features)
    assert found.pieces[0].sets is not None
    np.testing.assert_array_equal(found.pieces[0].sets.contexts, piece.sets.contexts)


def test_rows_that_do_not_fit_are_refused(shared: tuple[Learner, State, Report]) -> None:
    learner, state, right = shared
    (piece,) = right.pieces
    bare = replace(piece, sets=None, places=None)
    wide = replace(bare, features=np.column_stack([piece.features, piece.features]))
    for pieces, words in (
        ((), "is not about its share of this round"),
        ((rows(state, 3, 4),), "is not about its share of this round"),
        ((piece, rows(state, 3, 4)), "is not about its share of this round"),
        ((replace(piece, policy_id="f" * 64),), "is of policy ffffffffffff…; this round is of"),
        ((wide,), "does not fit: this learner is for 3 features; got 6"),
    ):
        meeting = CommunicationRound(learner, state, 4)
        with pytest.raises(BatchError, match=words):
            meeting.add(replace(right, pieces=pieces))


def test_who_cannot_share() -> None:
    for learner in (OFUL(dim=3, arms=5, horizon=100), SupLinUCB(dim=3, arms=5, horizon=100)):
        with pytest.raises(UnsuitableError, match="when it has seen enough"):
            CommunicationRound(learner, learner.begin(), 2)
        with pytest.raises(UnsuitableError, match="when it has seen enough"):
            Share(learner, learner.begin(), 0, 2)
    state = fresh().begin()
    with pytest.raises(ParameterError, match="agents must be at least 1"):
        CommunicationRound(fresh(), state, 0)
    with pytest.raises(ParameterError, match="3001 agents for 3000 decisions"):
        CommunicationRound(fresh(), state, 3001)
    with pytest.raises(BatchError, match="this run is over"):
        CommunicationRound(fresh(), replace(state, batch_sizes=()), 2)
    every_step = LinUCB(dim=3, arms=5, horizon=100)
    assert Share(every_step, every_step.begin(), 0, 1).stop == 1


def test_agents_send_few_of_the_sets_and_all_that_are_needed() -> None:
    """About twice those that are wanted, all agents together: those with the smallest hashes are among them."""
    learner = fresh(grid=[20_000, 30_000], horizon=30_000)
    state = learner.begin()
    size = learner.sample_size(state)
    sent = [node.summary.sample for agent in range(4) for node in report(learner, state, agent, 4).nodes]
    keys = {tuple(key) for sample in sent if sample is not None for key in sample.keys.tolist()}
    whole = learner.summarize(state, rows(state, 0, 20_000)).sample
    assert whole is not None
    assert {tuple(key) for key in whole.keys.tolist()} <= keys
    assert size < len(keys) < 4 * size
