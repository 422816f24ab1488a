"""Every exception and warning that rareswitch raises.

Input errors are also :class:`ValueError`, so code that guards against bad values in general keeps working. Messages say
what is wrong, the rule, what was given and the remedy.
"""

from collections.abc import Iterable, Sequence
from typing import Any


class RareswitchError(Exception):
    """Base of all errors of this library. Those about one parameter tell which, and what was given for it."""

    def __init__(self, *texts: str, parameter: str | None = None, given: Any = None) -> None:
        super().__init__(*texts)
        #: The name by which the caller knows what is wrong.
        self.parameter = parameter
        #: A number or a text as it was given, of all else the beginning of how Python shows it; None if it is not said.
        self.given = given if given is None or isinstance(given, (bool, int, float, str)) else f"{given!r:.60}"


class InputError(RareswitchError, ValueError):
    """Something handed to the library breaks a rule."""


class ShapeError(InputError):
    """An array has the wrong number of dimensions, the wrong size or the wrong kind of entries."""


class NonFiniteError(InputError):
    """An array holds NaN or infinity."""


class EmptySetError(InputError):
    """A context set offers no arm: it has none, or its mask kills them all."""


class ContextNormError(InputError):
    """A context vector is longer than 1 where the algorithm needs the unit ball."""


class ParameterError(InputError):
    """A scalar parameter is out of range. Where it is about one, its message begins with the parameter's name."""

    def __init__(self, *texts: str, parameter: str | None = None, given: Any = None) -> None:
        name = parameter or "".join(texts[:1])
        super().__init__(*texts, parameter=name.partition(" ")[0].rstrip(",:"), given=given)


class RecordError(InputError):
    """A record does not fit the description by which it shall become a vector."""


class UnsuitableError(InputError):
    """A learner was put into a world it is not made for, such as one for plain arms among changing contexts."""


class FileFormatError(InputError):
    """A file is missing, truncated, of a foreign format or holds something else than expected."""


class BatchError(RareswitchError, ValueError):
    """A batch was fed twice, out of order, short, or to a learner it does not belong to."""


class StoreError(RareswitchError):
    """A store cannot be reached, is full, is damaged, or does not hold what was asked for."""


class ExistsError(StoreError):
    """There is an experiment of this name in the store already."""


class DeletedError(StoreError):
    """The experiment was deleted, by this process or another one."""


class UnreachableError(StoreError):
    """A store was locked or gone for longer than is waited for; the same call may be made again."""


class ConflictError(RareswitchError, ValueError):
    """An id was used before, for another request or with another reward."""

    #: Of a call with many: for each what was kept of it, or an error of its own.
    each: Sequence[Any] = ()


class CertificateError(RareswitchError, ArithmeticError):
    """A design could not be brought to the accuracy asked for."""


class CertificateWarning(UserWarning):
    """Some designs of a batch could not be brought to the accuracy asked for; they are named and hold NaN."""


class LevelWarning(UserWarning):
    """Rewards have a level that the features do not explain, and the learner has no intercept."""


class OutlierWarning(UserWarning):
    """Single rewards lie so far from the others that a few of them decide what is learned."""


class ColumnWarning(UserWarning):
    """A column of a log is not used, and its name is close to one that would be."""


class MissingExtraError(RareswitchError, ImportError):
    """An optional dependency is needed and not installed."""


class EngineError(RareswitchError, RuntimeError):
    """Shards of work could not be carried out where they were sent."""


class MissingEngineError(EngineError, MissingExtraError):
    """A cluster needs an optional dependency that is not installed."""


def several(count: int, noun: str) -> str:
    """A count and what is counted, in the singular or the plural.

    >>> several(1, "decision"), several(2000, "more decision"), several(3, "policy"), several(0, "day")
    ('1 decision', '2,000 more decisions', '3 policies', '0 days')
    """
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and not noun.endswith("ay"):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """The end of a message about an unknown name: the known name most like it, if there is one.

    >>> did_you_mean("forsight", ["oful", "foresight"]), did_you_mean("x", ["oful", "foresight"])
    (" Did you mean 'foresight'?", '')
    """
    from difflib import get_close_matches

    close = get_close_matches(str(name)[:100], [*map(str, known)], n=1)
    return f" Did you mean {close[0]!r:.60}?" if close else ""
