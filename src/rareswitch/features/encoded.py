"""What features make of records."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rareswitch.contexts import ContextSets
from rareswitch.validation import FloatArray, Sets

#: How often what happened, by what and field.
Details = Counter[tuple[str, str]]
#: What was not as described in one request: (field, what) pairs; spare blocks are those of the field "arms".
Cautions = tuple[tuple[str, str], ...]
#: Fields that a description does not know, of which so many are named in a request.
MOST_EXTRA = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoded:
    """Vectors of one request or of many, and what was not as described."""

    #: Ids of the arms in the order of the vectors: a tuple, or of many requests a list of tuples.
    names: Any
    #: (n, K, d) with their mask; n is 1 for one request.
    checked: Sets
    #: How often what happened, by what and field.
    details: Details
    #: Of each request, what was not as described.
    cautions: tuple[Cautions, ...]

    @property
    def vectors(self) -> FloatArray:
        """(K, d) of one request, (n, K, d) of many."""
        return self.checked.contexts[0] if self.checked.single else self.checked.contexts

    @property
    def sets(self) -> ContextSets:
        """All of them as context sets."""
        return ContextSets.checked(self.checked)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often what happened: clipped, missing, unknown, absent, extra, spare, shared.

        *Clipped* are numbers and vectors beyond their range, *missing* None and NaN, *unknown* values that are none of
        the levels; *absent* are fields that a record lacks (they count as missing too), *extra* those that the
        description does not know; *spare* arms that took a block kept for later ones, and *shared* such arms that met
        another one in the same request.
        """
        found: Counter[str] = Counter()
        for (what, _), times in self.details.items():
            found[what] += times
        return found


def cautions_of(happened: Iterable[tuple[str, str]]) -> Cautions:
    """What happened in one request, (what, field) pairs, by field. What is absent is missing too, and is left out.

    >>> cautions_of([("absent", "device"), ("missing", "device"), ("extra", "devce")])
    (('devce', 'extra'), ('device', 'missing'))
    """
    pairs = sorted((_shown(field), what) for what, field in happened if what != "absent")
    extra = [pair for pair in pairs if pair[1] == "extra"]
    return tuple(pair for pair in pairs if pair[1] != "extra" or pair in extra[:MOST_EXTRA])


def _shown(field: Any) -> str:
    """A name that every store can keep."""
    return str(field)[:100].encode(errors="replace").decode() or "arms"
