"""What a claim of the paper is, how it is measured, and how its verdict follows from what was measured."""

import math
import operator
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from msgspec.structs import force_setattr

from rareswitch.core import Result, run_shards

S = TypeVar("S")
R = TypeVar("R")
Relation = Literal["=", "≤", "<", "≥", ">"]
RELATIONS = {"=": operator.eq, "≤": operator.le, "<": operator.lt, "≥": operator.ge, ">": operator.gt}
#: ``small`` is for tests: seconds for an item.
Size = Literal["whole", "quick", "small"]
SIZES: tuple[Size, ...] = get_args(Size)
ClaimVerdict = Literal["PASS", "FAIL", "KNOWN FAILURE", "NOT TESTABLE"]


class Finding(Result, frozen=True, kw_only=True):
    """A number that was measured, and the limit of the claim for it.

    >>> Finding(what="largest leverage / d, 500 sets", value=1.05, relation="≤", limit=2.0).holds
    True
    """

    #: With the sizes at which it was measured.
    what: str
    #: None where it is no finite number, which holds for no limit.
    value: float | None
    relation: Relation
    limit: float
    #: Follows from the others.
    holds: bool = False

    def __post_init__(self) -> None:
        value = math.nan if self.value is None else float(self.value)
        finite = math.isfinite(value)
        force_setattr(self, "value", value if finite else None)
        force_setattr(self, "limit", float(self.limit))
        force_setattr(self, "holds", finite and bool(RELATIONS[self.relation](value, self.limit)))


class Series(Result, frozen=True, kw_only=True):
    """A line of the picture; points that are not finite are left out."""

    name: str
    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        points = ((float(x), float(y)) for x, y in self.points)
        force_setattr(self, "points", tuple(point for point in points if all(map(math.isfinite, point))))


class Measured(Result, frozen=True, kw_only=True):
    """What was measured of a claim."""

    findings: tuple[Finding, ...]
    #: Runs, or problems that were drawn, each with a seed of its own or of its kind.
    seeds: int
    #: What a reader must know besides.
    remark: str = ""
    series: tuple[Series, ...] = ()
    #: Names of the axes of the picture, and whether both are logarithmic.
    axes: tuple[str, str] = ("", "")
    log: bool = True


class Condition(Result, frozen=True, kw_only=True):
    """What a theorem, as it is printed, needs beyond what can be run.

    Where it is not met, the theorem as printed is NOT TESTABLE, whatever was measured.

    >>> Condition(theorem="Theorem 8", quantity="ln T", needed=960, run=13.8).verdict
    'NOT TESTABLE'
    """

    theorem: str
    quantity: str
    #: The least that the theorem needs of the quantity, and what the largest run had.
    needed: float
    run: float
    #: Follows from these: NOT TESTABLE, or none.
    verdict: ClaimVerdict | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "verdict", None if self.run >= self.needed else "NOT TESTABLE")


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is run, with which seeds and where; it is given to what measures a claim."""

    size: Size = "whole"
    #: The first seed.
    seed: int = 0
    executor: Executor | None = None
    #: Called with what is done and the total, and what it is part of.
    progress: Callable[[int, int], None] = lambda done, total: None

    def of(self, *, whole: S, quick: S, small: S) -> S:
        """The size for this effort.

        >>> Effort(size="quick").of(whole=500, quick=100, small=20)
        100
        """
        return {"whole": whole, "quick": quick, "small": small}[self.size]

    def seeds(self, *, whole: int, quick: int, small: int) -> range:
        """Seeds from the first one on."""
        return range(self.seed, self.seed + self.of(whole=whole, quick=quick, small=small))

    def map(self, function: Callable[[S], R], shards: Iterable[S]) -> list[R]:
        """Results in the order of the shards; processes need a function of the top level of a module."""
        shards, results = [*shards], list[R]()
        self.progress(0, len(shards))
        for result in run_shards(function, shards, self.executor):
            results.append(result)
            self.progress(len(results), len(shards))
        return results


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper."""

    #: Its place in the report.
    number: int
    claim: str
    #: Where it stands in the paper.
    theorem: str
    #: When it passes.
    criterion: str
    measure: Callable[[Effort], Measured]
    conditions: tuple[Condition, ...] = ()
    #: Why it fails, where that is known; the exit status stays 0.
    known_failure: str = ""


class Outcome(Result, frozen=True, kw_only=True):
    """A claim with what was measured, and the verdict."""

    number: int
    claim: str
    theorem: str
    criterion: str
    measured: Measured
    conditions: tuple[Condition, ...]
    verdict: ClaimVerdict
    #: Of a known failure.
    reason: str
    seconds: float

    @property
    def untestable(self) -> tuple[Condition, ...]:
        """Conditions of theorems that nothing that can be run would meet."""
        return tuple(condition for condition in self.conditions if condition.verdict)


def judge_claim(claim: Claim, effort: Effort) -> Outcome:
    """Measure a claim. It passes if all findings hold; what breaks off, or finds nothing, fails."""
    began = time.perf_counter()
    try:
        measured = claim.measure(effort)
    except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
        measured = Measured(findings=(), seeds=0, remark=f"It broke off by {type(error).__name__}: {error!s:.300}")
    verdict: ClaimVerdict = "PASS"
    if not measured.findings or not all(finding.holds for finding in measured.findings):
        verdict = "KNOWN FAILURE" if claim.known_failure else "FAIL"
    return Outcome(
        number=claim.number,
        claim=claim.claim,
        theorem=claim.theorem,
        criterion=claim.criterion,
        measured=measured,
        conditions=claim.conditions,
        verdict=verdict,
        reason=claim.known_failure if verdict == "KNOWN FAILURE" else "",
        seconds=round(time.perf_counter() - began, 2),
    )


def at_most(what: str, value: float, limit: float) -> Finding:
    """A value with an upper limit."""
    return Finding(what=what, value=value, relation="≤", limit=limit)


def at_least(what: str, value: float, limit: float) -> Finding:
    """A value with a lower limit."""
    return Finding(what=what, value=value, relation="≥", limit=limit)


def exactly(what: str, value: float, limit: float = 0.0) -> Finding:
    """A count that must be that, none by default."""
    return Finding(what=what, value=value, relation="=", limit=limit)
