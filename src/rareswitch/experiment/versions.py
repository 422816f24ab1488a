"""The policies of an experiment: how each is published, signed and checked."""

import hashlib
import json
import threading
import time
from dataclasses import dataclass
from functools import cached_property

import msgspec

from rareswitch.core import canonical_json
from rareswitch.errors import FileFormatError, StoreError
from rareswitch.experiment.results import UpdateReport
from rareswitch.learner import State, Summary, state_from_bytes, state_to_bytes, summaries_from_bytes
from rareswitch.policy import Key, Policy, check_signature, policy_from_bytes, policy_to_bytes, sign, verify_signature
from rareswitch.store import Store, VersionRow

#: The scheme of what is not signed: a hash stands in place of a signature.
UNSIGNED = "sha256"
#: Seconds for which a process goes on without looking whether another one published a policy.
REFRESH = 1.0
Signature = dict[str, str]


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
        changed = (
            "its policy, state, summaries or report, or the description of the experiment, do not have the hash that "
            "they were published with."
        )
        try:
            policy = policy_from_bytes(self.row.policy, key=self.key)
            verify_text(signed_text(self.experiment, self.row), json.loads(self.row.signature), self.key, changed)
        except (FileFormatError, ValueError) as error:
            raise FileFormatError(
                f"policy {self.number} of this experiment is not what was published: {error} It was damaged or edited; "
                "restore the store from a copy."
            ) from error
        return policy

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
        """What was frozen when its update started, and what was learned."""
        try:
            return msgspec.json.decode(self.row.report, type=UpdateReport)
        except msgspec.MsgspecError as error:
            raise FileFormatError(f"the report of policy {self.number} cannot be read: {error}.") from error


class Versions:
    """The published policies of an experiment; several threads and processes may publish."""

    def __init__(self, store: Store, experiment: str, key: Key | None) -> None:
        self.store, self.experiment, self.key = store, experiment, key
        #: Replaced as a whole: whoever has it sees the same versions throughout.
        self.known: tuple[Version, ...] = ()
        #: When it was looked up last, by the monotonic clock.
        self.checked = 0.0
        #: When the experiment was ended, in seconds since 1970; None while it goes on.
        self.ended: float | None = None
        self._lock = threading.RLock()
        self.refresh()

    def refresh(self) -> tuple[Version, ...]:
        """All versions that the store has now."""
        moment = time.monotonic()
        head = self.store.head()  # before the lock, which a thread may hold that did not come along in a fork
        with self._lock:
            if head > len(self.known):
                rows = self.store.versions(len(self.known))
                self.known += tuple(Version(row, self.experiment, self.key) for row in rows)
            self.ended, self.checked = self.store.ended(), moment
        return self.known

    def numbered(self, number: int) -> Version:
        """The version with this number, from 1."""
        if number > len(self.known) and number > len(self.refresh()):
            raise StoreError(
                f"policy {number} is not in {self.store.url}, which has {len(self.known)}: it was taken back to an "
                "older state. Restore the newest copy, and open the experiment again."
            )
        return self.known[number - 1]

    def row(self, number: int, state: State, summaries: bytes, report: UpdateReport, time: float) -> VersionRow:
        """The policy of a state as it is kept, signed where there is a key."""
        return version_row(
            number,
            state,
            experiment=self.experiment,
            summaries=summaries,
            report=msgspec.json.encode(report).decode(),
            time=time,
            key=self.key,
        )

    def proposal(self) -> Version | None:
        """The version that waits for approval; it need not be signed yet."""
        row = self.store.proposal()
        if row is None:
            return None
        unsigned = json.loads(row.signature).get("scheme") == UNSIGNED
        return Version(row, self.experiment, None if unsigned else self.key)

    def publish(self, number: int, state: State, summaries: bytes, report: UpdateReport, time: float) -> Version | None:
        """Publish the policy of a state under the next number; None if another process was faster."""
        row = self.row(number, state, summaries, report, time)
        if self.store.publish(row) != row:
            return None
        version = Version(row, self.experiment, self.key)
        vars(version).update(policy=state.policy, state=state, report=report)  # which need not be read again
        with self._lock:
            if number == len(self.known) + 1:
                self.known += (version,)
        return version


def version_row(
    number: int, state: State, *, experiment: str, summaries: bytes, report: str, time: float, key: Key | None
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
    return row._replace(signature=canonical_json(signature_of(signed_text(experiment, row), key)).decode())


def signed_text(experiment: str, row: VersionRow) -> str:
    """What is signed of a version; no policy's signature is over such a text."""
    parts = {name: sha256(getattr(row, name)) for name in ("policy", "state", "summaries")}
    content = {"experiment": experiment, "number": row.number, "report": row.report, **parts}
    return f"version/{canonical_json(content).decode()}"


class _Signed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    content: msgspec.Raw
    signature: Signature


def sign_json(text: str, about: str, key: Key | None) -> str:
    """JSON as stores keep it, with its signature, or its hash if there is no key; ``about`` is signed with it."""
    signature = signature_of(f"{about}/{text}", key)
    return msgspec.json.encode(_Signed(content=msgspec.Raw(text.encode()), signature=signature)).decode()


def verified_json(text: str, about: str, key: Key | None) -> tuple[str, bool]:
    """What :func:`sign_json` was given, and whether it is signed; an error where it is anything else."""
    try:
        whole = msgspec.json.decode(text, type=_Signed)
        content = bytes(whole.content).decode()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise FileFormatError(f"it is damaged: {text!r:.60}.") from None
    verify_text(f"{about}/{content}", whole.signature, key, "it does not have the hash that was kept with it.")
    return content, whole.signature["scheme"] != UNSIGNED


def signature_of(text: str, key: Key | None) -> Signature:
    """The signature of a text; where there is no key, its hash."""
    return {"scheme": UNSIGNED, "value": sha256(text)} if key is None else sign(key, text)


def verify_text(text: str, signature: Signature, key: Key | None, changed: str) -> None:
    """Refuse a text that was not signed so; without a key, changes by hand or accident alone are noticed."""
    unsigned = not isinstance(signature, dict) or signature.get("scheme") == UNSIGNED
    if key is not None and unsigned:
        raise FileFormatError(
            "it is not signed, and a key was given to check it with. If you trust the store, leave the key out; "
            "otherwise its signature may have been taken away."
        )
    if key is not None:
        verify_signature(key, text, signature)
    elif not unsigned:
        check_signature(signature)  # which cannot be verified, and has a form
    elif signature != signature_of(text, None):
        raise FileFormatError(changed)


def sha256(data: bytes | str) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
