"""What counts as the reward of a decision."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from rareswitch.errors import ParameterError
from rareswitch.experiment.durations import duration_of, duration_text
from rareswitch.validation import LARGEST_SCALE, number


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """How rewards that come late, several times or never are counted.

    Examples
    --------
    Clicks, of which only those within a day are heard of; no click is a reward of 0:

    >>> from datetime import timedelta
    >>> Rewards(window=timedelta(days=1), default=0)
    Rewards(window=86400.0, default=0.0, several='one')
    """

    #: An attribution window: seconds, or a timedelta. A decision younger than that waits, even if its reward is known,
    #: and a reward that comes later does not count, so that fast rewards are not over-represented. None: all count.
    window: Any = None
    #: What a decision earned whose reward did not come within the window; None: such decisions are not learned from.
    default: Any = None
    #: "one" reward a decision, or the "sum" of several, each told apart by its event.
    several: Literal["one", "sum"] = "one"

    def __post_init__(self) -> None:
        if self.window is not None:
            object.__setattr__(self, "window", duration_of("window", self.window))
        if self.default is not None:
            given = float(self.default) if isinstance(self.default, bool) else self.default
            object.__setattr__(self, "default", number("default", given, low=-LARGEST_SCALE, high=LARGEST_SCALE))
        if self.several not in ("one", "sum"):
            raise ParameterError(f"several must be 'one' or 'sum'; got {self.several!r:.60}.")

    @property
    def sums(self) -> bool:
        """Whether several rewards of a decision are added up."""
        return self.several == "sum"

    def to_plain(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {"window": self.window, "default": self.default, "several": self.several}

    @classmethod
    def from_plain(cls, data: Any) -> Self:
        """What :meth:`to_plain` was given."""
        return cls(**data)

    def __str__(self) -> str:
        kind = "the sum of all that come" if self.sums else "one a decision"
        window = "" if self.window is None else f", within {duration_text(self.window)} of it"
        default = "not learned from" if self.default is None else f"counted as {self.default:g}"
        return f"{kind}{window}; decisions without one are {default}"
