"""The policies of an experiment: how each is kept, signed and checked."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from rareswitch.errors import FileFormatError
from rareswitch.experiment.results import UpdatePlan, UpdateReport
from rareswitch.files import canonical_json
from rareswitch.learner import State, Summary, state_from_bytes, state_to_bytes, summaries_from_bytes
from rareswitch.policy import Key, Policy, policy_from_bytes, policy_to_bytes, sign, verify_signature
from rareswitch.store import VersionRow

#: The scheme of a version that is not signed.
UNSIGNED = "sha256"


@dataclass(frozen=True, eq=False)
class Version:
    """A policy that was published, read when it is asked for, and checked then."""

    row: VersionRow
    #: Digest of the description of its experiment.
    experiment: str
    #: To check it with; None: only its content is checked.
    key: Key | None

    @property
    def number(self) -> int:
        """From 1."""
        return self.row.number

    @cached_property
    def policy(self) -> Policy:
        """The frozen policy; an error where it is not what was published."""
        try:
            policy = policy_from_bytes(self.row.policy, key=self.key)
            self._check_signature()
        except (FileFormatError, ValueError) as error:
            raise FileFormatError(
                f"policy {self.number} of this experiment is not what was published: {error} It was damaged or edited; "
                "restore the store from a copy."
            ) from error
        return policy

    def _check_signature(self) -> None:
        """Refuse what was not published so; without a key, changes by hand or accident alone are noticed."""
        changed = (
            "its policy, state, summaries or report, or the description of the experiment, do not have the hash that "
            "they were published with."
        )
        _check_signed(signed_text(self.experiment, self.row), json.loads(self.row.signature), self.key, changed)

    @cached_property
    def state(self) -> State:
        """What the learner knew when it made the policy."""
        try:
            state = state_from_bytes(self.row.state)
        except FileFormatError as error:
            raise FileFormatError(f"the state of policy {self.number} cannot be read: {error}") from error
        if not state.done and state.policy.id != self.policy.id:
            raise FileFormatError(
                f"the state kept with policy {self.number} is that of another policy: it was changed or taken from "
                "elsewhere; restore the store from a copy."
            )
        return state

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """What it was learned from: the batch before it, then earlier batches that were given again."""
        return tuple(summaries_from_bytes(self.row.summaries)) if self.row.summaries else ()

    @cached_property
    def report(self) -> UpdateReport:
        """What was frozen when its update started, and what came of it."""
        try:
            return msgspec.json.decode(self.row.report, type=UpdateReport)
        except msgspec.MsgspecError as error:
            raise FileFormatError(f"the report of policy {self.number} cannot be read: {error}.") from error


def version_row(
    number: int,
    state: State,
    *,
    experiment: str,
    summaries: bytes,
    report: str,
    time: float,
    key: Key | None,
) -> VersionRow:
    """A version as it is kept, signed where there is a key, and with its hash where there is none."""
    row = VersionRow(
        number=number,
        policy=policy_to_bytes(state.policy, key=key),
        state=state_to_bytes(state),
        summaries=summaries,
        report=report,
        signature="",
        time=time,
    )
    text = signed_text(experiment, row)
    return row._replace(signature=canonical_json(_signature(text, key)).decode())


def signed_text(experiment: str, row: VersionRow) -> str:
    """What is signed of a version; no policy's signature is over such a text."""
    parts = {name: digest(getattr(row, name)) for name in ("policy", "state", "summaries")}
    content = {"experiment": experiment, "number": row.number, "report": row.report, **parts}
    return f"version/{canonical_json(content).decode()}"


class _FrozenPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    plan: UpdatePlan
    signature: dict[str, str]


def plan_to_text(plan: UpdatePlan, parent: int, *, experiment: str, key: Key | None) -> str:
    """The plan of the update after policy ``parent``, as it is frozen: signed, or with its hash if there is no key."""
    signature = _signature(_plan_text(plan, parent, experiment), key)
    return msgspec.json.encode(_FrozenPlan(plan=plan, signature=signature)).decode()


def plan_from_text(text: str, parent: int, *, experiment: str, key: Key | None) -> UpdatePlan:
    """The plan in what :func:`plan_to_text` gave for the same update; an error where it is anything else."""
    try:
        frozen = msgspec.json.decode(text, type=_FrozenPlan)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise FileFormatError(f"it is no plan of an update: {text!r:.60}.") from None
    changed = "its content does not have the hash that was kept with it."
    _check_signed(_plan_text(frozen.plan, parent, experiment), frozen.signature, key, changed)
    return frozen.plan


def _plan_text(plan: UpdatePlan, parent: int, experiment: str) -> str:
    return f"plan/{experiment}/{parent}/{msgspec.json.encode(plan).decode()}"


def _signature(text: str, key: Key | None) -> dict[str, str]:
    return checksum(text) if key is None else sign(key, text)


def _check_signed(text: str, signature: Any, key: Key | None, changed: str) -> None:
    """Refuse a text that was not signed so; without a key, changes by hand or accident alone are noticed."""
    unsigned = not isinstance(signature, dict) or signature.get("scheme") == UNSIGNED
    if key is not None:
        if unsigned:
            raise FileFormatError("it is not signed, and a key was given to check it with.")
        verify_signature(key, text, signature)
    elif unsigned and signature != checksum(text):
        raise FileFormatError(changed)


def checksum(text: str) -> dict[str, str]:
    """What stands where a signature would, if there is no key."""
    return {"scheme": UNSIGNED, "value": digest(text)}


def digest(data: bytes | str) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
