"""What every store of experiments offers: few verbs, append-only, durable when a call returns."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rareswitch.errors import ExistsError


class DecisionRow(NamedTuple):
    """A decision as it is kept."""

    #: Of its id, 16 bytes: :func:`rareswitch.ids.key_bytes`.
    key: bytes
    #: The id as JSON: ``"request-41c9"`` with its quotes, or ``17``.
    id: str
    #: Number of the policy that decided, from 1.
    version: int
    #: The id of the arm that was chosen; its place as text where arms have no ids.
    arm: str
    #: Where it stands among the available arms, from 0.
    place: int
    propensity: float
    #: The vector of the chosen arm, float64, little-endian.
    features: bytes
    #: 16 bytes over arm ids, vectors and baseline: two requests are the same if these are.
    digest: bytes
    #: Seconds since 1970.
    time: float
    #: By which samples of context sets are taken, :func:`rareswitch.learner.sample_order`.
    rank: float
    #: The place of the arm that the caller would have shown, if it was said.
    baseline: int | None = None
    #: The vectors of all available arms, one after the other, float64; None where they are not kept.
    contexts: bytes | None = None
    #: The ids of these arms as a JSON list; None where they are not kept, or arms have no ids.
    names: str | None = None
    #: What was not as described in its records, a JSON list of [field, what]; None where all was. Stores count it, and
    #: databases keep no more than the counts.
    cautions: str | None = None


class RewardRow(NamedTuple):
    """A reward as it is kept; several of a decision differ by their events."""

    #: Of its decision, which may come later.
    key: bytes
    #: Of its decision, as JSON.
    id: str
    #: '' where a decision has one reward; where rewards are summed, the caller's name of this one.
    event: str
    value: float
    #: Seconds since 1970.
    time: float


class Marks(NamedTuple):
    """Up to where an update looks: sequence numbers of decisions and of rewards."""

    decisions: int
    rewards: int


class VersionRow(NamedTuple):
    """A policy that was published, with all that the next one needs."""

    #: From 1.
    number: int
    #: The content of its policy file.
    policy: bytes
    #: That of the learner's state.
    state: bytes
    #: What it was learned from; empty for the first.
    summaries: bytes
    #: JSON: what was frozen when its update started, and what came of it.
    report: str
    #: JSON; of an experiment that is not signed, a hash.
    signature: str
    #: Seconds since 1970.
    time: float


class Counts(NamedTuple):
    """What a store holds of the decisions of one policy."""

    version: int
    decisions: int
    #: Decisions with a reward at least.
    rewarded: int
    #: Seconds since 1970, of the first and of the last decision.
    first_time: float
    last_time: float


class Totals(NamedTuple):
    """What a store has seen besides."""

    #: Rewards in force.
    rewards: int
    #: Those whose decision has not come.
    unmatched: int
    #: Rewards that came again with the same value.
    repeated_rewards: int
    #: Rewards that took the place of others.
    overwritten: int
    #: Decisions that were asked for again.
    repeated_decisions: int


def counter_names(cautions: str | None) -> list[str]:
    """Under which the cautions of a decision are counted; other counters have no brackets.

    >>> counter_names('[["devce", "extra"]]')
    ['["devce", "extra"]']
    """
    return [] if cautions is None else [json.dumps(caution) for caution in json.loads(cautions)]


def exists(name: str, url: str) -> ExistsError:
    """An experiment cannot be created where there is one."""
    return ExistsError(
        f"there is an experiment '{name}' in {url} already. Open it (rareswitch.open, rareswitch experiment status), "
        "or choose another name."
    )


def parentless(number: int, head: int) -> str:
    """What is wrong with a version whose parent is not there."""
    return f"version {number} needs version {number - 1}; the head is {head}."


class Slice(Protocol):
    """Some decisions of one version, in the order in which they came; small, and can be sent to where it is read."""

    def read(self) -> Any:
        """An Arrow table, a row a decision.

        Columns: ``key`` (fixed_size_binary[16]), ``features`` (fixed_size_binary[8d]), ``reward`` (double, null where
        none came up to the mark; a sum where rewards are summed), and where there is a window ``time`` and
        ``reward_time`` (double, seconds; of several rewards the last). Where it was asked for, ``propensity`` and
        ``time`` (double).
        """


class Store(Protocol):
    """Where one experiment is kept. All methods may be called from several threads.

    Whatever a call was given is durable when it returns. Stores know nothing of learners: policies, states and
    descriptions are text and bytes.
    """

    #: As it was opened: ``memory:``, ``sqlite:///spring.db``, ``postgresql://…``.
    url: str
    name: str

    def create(self, description: str, first: VersionRow) -> None:
        """Begin the experiment; an error if it is there already."""

    def description(self) -> str:
        """What it was created with."""

    def head(self) -> int:
        """The number of the newest version; cheap."""

    def versions(self, after: int = 0) -> list[VersionRow]:
        """Those after the given one, the oldest first."""

    def add_decisions(self, rows: Sequence[DecisionRow]) -> list[DecisionRow]:
        """Keep decisions, and return what is kept of each id: the row itself, or one that was there before."""

    def add_rewards(self, rows: Sequence[RewardRow], *, overwrite: bool = False) -> list[RewardRow | None]:
        """Keep rewards, and return for each the row that was there before, if there was one.

        One that is there stays, unless ``overwrite``: then the new value takes its place.
        """

    def find(self, keys: Sequence[bytes]) -> list[tuple[DecisionRow, list[RewardRow]] | None]:
        """What is kept of these decisions, with the rewards in force."""

    def counts(self, upto: Marks | None = None) -> list[Counts]:
        """By version, those with a decision at least; up to these marks."""

    def totals(self) -> Totals:
        """What has been seen besides."""

    def cautions(self) -> dict[tuple[str, str], int]:
        """Decisions by field and by what was not as described of it."""

    def younger(self, moment: float) -> int:
        """Decisions that were made after a moment, in seconds since 1970."""

    def marks(self) -> Marks:
        """Those of now."""

    def started(self, parent: int) -> bool:
        """Whether an update of this version was begun, and has not ended."""

    def start_update(self, parent: int, plan: str) -> tuple[str, Marks] | None:
        """Freeze what the update of a version looks at: the plan, JSON, and the marks of now.

        The first call for a parent decides; later ones get what it froze. None where the parent is not the head.
        """

    def abandon_update(self, parent: int) -> None:
        """Forget what was frozen, where nothing could be learned."""

    def refuse_update(self, parent: int, number: int, report: str) -> None:
        """Forget what was frozen, and keep why the policy that was learned is not published, at once.

        Refusals of a parent are numbered from 1. Nothing is changed where this number is not the next one, or the
        parent is not the head: of several who learned the same, one is heard, and once.
        """

    def refusals(self, parent: int) -> list[str]:
        """The reports of updates of a version that were refused, the first first."""

    def publish(self, version: VersionRow) -> VersionRow:
        """Make it the head, in one transaction, if its parent, the number before, is the head now.

        Otherwise nothing is changed, and the version that has this number is returned; an error where none has.
        """

    def slices(
        self, version: int, upto: Marks, *, sums: bool, window: float | None = None, propensities: bool = False
    ) -> Sequence[Slice]:
        """The decisions of a version up to the marks, 65,536 a slice, and the rest in the last.

        Where rewards are summed, those that came later than ``window`` seconds after their decision are left out of
        the sum; where all of them did, all are in it.
        """

    def sample(self, version: int, upto: Marks) -> Iterator[tuple[bytes, bytes]]:
        """Keys and contexts of decisions whose sets were kept, by rank; read as far as one likes."""

    def rows(self, after: int, upto: Marks) -> Iterator[tuple[int, list[tuple[DecisionRow, list[RewardRow]]]]]:
        """All decisions after a sequence number, some at a time, with the number of the last of them: for exports."""

    def faults(self) -> list[str]:
        """What is damaged in the files of the store, as far as their structure tells; all of it is read."""

    def backup(self, path: str | Path) -> None:
        """Write a copy of the whole store, as of one moment, while it is used: a new file that can be opened."""

    def close(self) -> None:
        """Let go of files and connections; what was acknowledged stays."""
