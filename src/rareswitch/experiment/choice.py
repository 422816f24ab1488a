"""What is answered to a request."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The arm to show, and all that is worth writing down with it."""

    #: Of the decision, as it was given.
    id: int | str
    #: The id of the chosen arm; its place among the vectors that were given where arms have no ids.
    arm: Any
    #: The exact probability with which the policy chooses this arm.
    propensity: float
    policy_id: str
    #: Number of the policy, from 1.
    version: int
    #: Whether this id was asked for before: then it is the answer of then.
    repeated: bool = False
    #: What was not as the features describe it: (field, what), where what is missing, extra (a field that is not
    #: described, and not used), unknown, clipped, or of the arms spare or shared.
    cautions: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)
