"""What counts as the reward of a decision."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rareswitch.errors import ParameterError
from rareswitch.learner import clip_bounds
from rareswitch.plan import duration_of
from rareswitch.structs import as_text
from rareswitch.validation import LARGEST_SCALE, number


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """How rewards that come late, several times or never are counted.

    Examples
    --------
    Clicks, of which only those within a day are heard of; no click is a reward of 0:

    >>> from datetime import timedelta
    >>> Rewards(window=timedelta(days=1), default=0)
    Rewards(window=86400.0, default=0.0, several='one', kind=None, clip=None)

    Amounts of which a few may be very large: what is learned from lies between 0 and 200.

    >>> print(Rewards(clip=(0, 200)))
    Rewards: one per decision, clipped at 0 and 200, missing = not learned from.
    """

    durations: ClassVar[tuple[str, ...]] = ("window",)
    #: An attribution window, such as "2d" or a timedelta; kept in seconds. A decision younger than that waits, even if
    #: its reward is known, and a reward that comes later does not count, so that fast rewards are not over-represented.
    #: None: all count.
    window: Any = None
    #: What a decision earned whose reward did not come within the window; None: such decisions are not learned from.
    default: Any = None
    #: "one" reward a decision, or the "sum" of several, each told apart by its event.
    several: Literal["one", "sum"] = "one"
    #: What the learner is to take them for, "binary" or "linear", where it can be told; by default it looks. Others
    #: than 0 and 1 are refused when they come if they are to be binary: no update could learn from them.
    kind: Literal["binary", "linear"] | None = None
    #: The least and the largest reward to learn from, or one number c for (-c, c). Others are stored as they came,
    #: learned from as if they were these bounds, and counted. The sum is clipped where several rewards are summed.
    clip: Any = None

    def __post_init__(self) -> None:
        if self.window is not None:
            object.__setattr__(self, "window", duration_of("window", self.window))
        if self.default is not None:
            given = float(self.default) if isinstance(self.default, bool) else self.default
            object.__setattr__(self, "default", number("default", given, low=-LARGEST_SCALE, high=LARGEST_SCALE))
        if self.several not in ("one", "sum"):
            raise ParameterError(f"several must be 'one' or 'sum'; got {self.several!r:.60}.")
        if self.kind not in (None, "binary", "linear"):
            raise ParameterError(f"kind must be 'binary' or 'linear'; got {self.kind!r:.60}.")
        if self.kind == "binary" and (self.sums or self.default not in (None, 0.0, 1.0)):
            given = 'several="sum"' if self.sums else f"default={self.default:g}"
            raise ParameterError(f'kind="binary" is for rewards of 0 and 1, and others come of {given}. Leave one out.')
        if self.clip is not None:
            low, high = clip_bounds(self.clip)
            if self.kind == "binary":
                raise ParameterError('kind="binary" is for rewards of 0 and 1, which need no clip. Leave one out.')
            if self.default is not None and not low <= self.default <= high:
                raise ParameterError(f"default={self.default:g} is outside of clip, {low:g} to {high:g}. Widen clip.")
            object.__setattr__(self, "clip", (low, high))

    @property
    def sums(self) -> bool:
        """Whether several rewards of a decision are added up."""
        return self.several == "sum"

    def __str__(self) -> str:
        return as_text(self)
