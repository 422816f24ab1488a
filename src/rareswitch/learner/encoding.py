"""Summaries and states as bytes: files in one canonical form, without pickle."""

from collections.abc import Sequence
from dataclasses import dataclass

from rareswitch import codec
from rareswitch.contexts import ContextSets
from rareswitch.learner.rows import Rows
from rareswitch.learner.state import Batch, Sample, State, Summary
from rareswitch.stats import Expansion, Stats


@dataclass(frozen=True, eq=False)
class Summaries:
    """Several summaries of one learner: that of a batch, and those of earlier ones that were given with it."""

    parts: tuple[Summary, ...]


for _name, _kind in {
    "stats": Stats,
    "expansion": Expansion,
    "context-sets": ContextSets,
    "sample": Sample,
    "summary": Summary,
    "summaries": Summaries,
    "rows": Rows,
    "batch": Batch,
    "state": State,
}.items():
    codec.kind(_name)(_kind)


def summaries_to_bytes(summaries: Sequence[Summary]) -> bytes:
    """The content of a file of summaries; equal ones give equal bytes.

    >>> whole = Summary(policy_id="a", decided=2, rewarded=1, stats=(Stats.of([[1.0]], [2.0]),))
    >>> summaries_from_bytes(summaries_to_bytes([whole]))[0].stats[0].moment.tolist()
    [2.0]
    """
    return codec.to_bytes(Summaries(tuple(summaries)))


def summaries_from_bytes(data: bytes) -> list[Summary]:
    """The summaries in such a content."""
    return list(codec.from_bytes(Summaries, data)[0].parts)


def state_to_bytes(state: State) -> bytes:
    """The content of a state file; equal states give equal bytes."""
    return codec.to_bytes(state)


def state_from_bytes(data: bytes) -> State:
    """The state in such a content. Nothing is learned again.

    >>> from rareswitch.learner import OFUL
    >>> state = OFUL(dim=2, arms=3, horizon=100).begin()
    >>> state_from_bytes(state_to_bytes(state)).policy.id == state.policy.id
    True
    """
    return codec.from_bytes(State, data)[0]
