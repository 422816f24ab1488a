"""Parameters of their own for each arm: disjoint blocks, with room for arms that come later."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rareswitch.errors import ParameterError, RecordError
from rareswitch.features.categories import checked_levels, level_text, text_hash
from rareswitch.features.field import MOST_COLUMNS, Coder, Layout
from rareswitch.validation import count_of


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Which arms have parameters of their own, and for what.

    Arms are known by the text of their ids: 3 and "3" are the same arm. An arm that is not named takes one of the
    ``room`` spare blocks, by a hash of its id: always the same one. Two such arms may meet in a block, and then share
    its parameters: of m arms that come later, each meets another with probability 1 − (1 − 1/room)^(m−1). That arms
    took spare blocks is counted as *spare*, and arms that met in one request as *shared*. With no room, an arm that is
    not named is an error.
    """

    ids: Sequence[Any]
    #: Spare blocks.
    room: int = 0
    #: Fields for which each arm has parameters of its own.
    own: Sequence[str] = ()
    #: Whether each arm has a level of its own.
    level: bool = True

    def __post_init__(self) -> None:
        ids = checked_levels("ids of the arms", self.ids)
        room = count_of("room of the arms", self.room, low=0, high=MOST_COLUMNS)
        if isinstance(self.own, str) or not isinstance(self.own, Sequence):
            raise ParameterError(f"own of the arms must be a list of names of fields; got {self.own!r:.60}.")
        if type(self.level) is not bool:
            raise ParameterError(f"level of the arms must be true or false; got {self.level!r:.60}.")
        if not self.level and not self.own:
            raise ParameterError("own of the arms must name a field where level is false: they have nothing otherwise.")
        vars(self).update(ids=ids, room=room, own=tuple(self.own))

    @property
    def layout(self) -> Layout:
        """What the kernels need to know."""
        return Layout(1, 1, len(self.ids) + self.room, len(self.ids), -1)

    @property
    def column_names(self) -> tuple[str, ...]:
        """What each block is of."""
        return (*(f"arm {id}" for id in self.ids), *(f"spare {k}" for k in range(self.room)))  # noqa: A001

    def coder(self) -> Coder:
        """A function from ids to blocks."""
        places = {id: float(k) for k, id in enumerate(self.ids)}  # noqa: A001

        def block(id: Any) -> float:  # noqa: A002
            try:
                text = level_text(id)
            except TypeError:
                raise RecordError("a number as the id of an arm must have at most 300 digits. Give a text.") from None
            assert text is not None, "ids of arms are checked before"
            if text in places:
                return places[text]
            if not self.room:
                raise RecordError(
                    f"the arm {id!r:.60} has no parameters: the {len(places)} arms with parameters of their own are "
                    f"{', '.join(self.ids)!s:.100}, and there is no room for others. Describe features with room=…."
                )
            return float(len(places) + text_hash(text) % self.room)

        def codes(ids: Sequence[Any]) -> list[float]:
            return [places[id] if id in places else block(id) for id in ids]  # noqa: A001

        return codes
