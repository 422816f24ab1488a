"""A deployment: a folder with the frozen policy that servers run, and all that is needed to learn the next one."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from rareswitch.errors import FileFormatError, ParameterError, RareswitchError, UnsuitableError
from rareswitch.files import bounded, canonical_json, making_folder, plain_json, read_whole, write_whole
from rareswitch.learner import (
    Ahead,
    Learner,
    State,
    Summary,
    find_learner,
    make_learner,
    needed,
    state_from_bytes,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
    to_plain,
)
from rareswitch.policy import (
    Key,
    Policy,
    check_signature,
    check_signs,
    load_policy,
    policy_to_bytes,
    sign,
    verify_signature,
)
from rareswitch.store.verification import Relearned, Verification, alike, compared
from rareswitch.version import __version__

#: 3: the description is signed with the policies. 2 had no signature, and is read as one that was never signed.
SCHEMA = 3
LEARNER = "learner.json"
POLICY = "policy.safetensors"
STATE = "state.safetensors"
#: Of a description: all forecasts are in it, which are long where updates are many.
MOST_VALUES = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Learned:
    """An update that was made: whose decisions were learned from, and what was known then."""

    #: The policy that retired.
    policy: Policy
    #: The content of its summary file.
    data: bytes
    #: The forecast that was given.
    ahead: int | list[int] | None

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Of its batch, then of the earlier batches that were given again."""
        return tuple(summaries_from_bytes(self.data))


@dataclass(frozen=True, eq=False, kw_only=True)
class Deployment:
    """A learner and where it stands, with its whole history; kept in a folder, without pickle.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "current"
    >>> Deployment.begin("foresight", dim=3, horizon=1000).save(folder)
    >>> Deployment.load(folder).state
    <state of foresight: policy 1, planned for decisions 0 to 11, then 7 more for 988>
    >>> sorted(path.name for path in folder.iterdir())
    ['learner.json', 'policy.safetensors', 'state.safetensors']
    """

    learner: Learner
    state: State
    #: The updates so far.
    history: tuple[Learned, ...] = ()
    #: Of rareswitch, that wrote it.
    version: str = __version__
    #: Of the folder it was read from: none, or whether a key was given to check it with.
    signature: Literal["none", "checked", "unchecked"] = "none"

    @classmethod
    def begin(cls, name: str, **settings: Any) -> Self:
        """A deployment whose first policy has not decided anything yet.

        Parameters
        ----------
        name
            Of a learner whose batches end when one likes: foresight, or one of the batched and stale ones.
        settings
            As :func:`~rareswitch.learner.make_learner` takes them.
        """
        learner = _made(name, settings)
        to_plain(learner)  # refuses what no file can keep
        return cls(learner=learner, state=learner.begin())

    @property
    def policy(self) -> Policy:
        """The frozen policy that decides now."""
        return self.state.policy

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Those that retired, the first first, and the current one."""
        return (*(entry.policy for entry in self.history), self.policy)

    def advance(self, summary: Summary, *, late: Sequence[Summary] = (), ahead: Ahead | None = None) -> Self:
        """The deployment after the current batch; see :meth:`~rareswitch.learner.Learner.next`. This one stays."""
        state = self.learner.next(self.state, summary, late=late, ahead=ahead)
        forecast = None if ahead is None else np.asarray(ahead).astype(np.int64).tolist()
        entry = Learned(policy=self.policy, data=summaries_to_bytes([summary, *late]), ahead=forecast)
        return replace(self, state=state, history=(*self.history, entry), version=__version__)

    def verify(self) -> Verification:
        """Learn everything again from the summaries, and say which policies come out."""
        state = self.learner.begin()
        found, policies = [compared(self.policies[0], state.policy)], self.policies
        for entry, policy in zip(self.history, policies[1:], strict=True):
            try:
                batch, *late = entry.summaries
                state = self.learner.next(replace(state, policy=entry.policy), batch, late=late, ahead=entry.ahead)
                found.append(compared(policy, state.policy))
            except (RareswitchError, ArithmeticError, ValueError) as error:
                found.append(Relearned(policy_id=policy.id, verdict="otherwise", reason=str(error)))
                break
        sums = alike(*([(s.gram, s.moment, s.count, s.square_sum) for s in of.sums] for of in (self.state, state)))
        return Verification(policies=tuple(found), sums=sums, version=self.version)

    def unsigned(self) -> Self:
        """The same, as if it had never been signed: to give up signing, or to sign what you trust without a check."""
        return replace(self, signature="none")

    def check_key(self, key: Key | None) -> None:
        """Refuse a key, or the lack of one, with which what follows this deployment cannot be saved."""
        if key is not None:
            check_signs(key)
        if self.signature == "none" or (key is not None and self.signature == "checked"):
            return
        how = "--key-file FILE or --key NAME, key=… in Python"
        if key is None:
            raise ParameterError(
                f"this deployment is signed, and what follows it must be. Give its key: {how}. To give up signing, "
                "save deployment.unsigned()."
            )
        raise ParameterError(
            "this deployment is signed, and was loaded without its key: what was not checked is not signed again. Load "
            f"it with its key: {how}."
        )

    def save(self, folder: str | Path, *, key: Key | None = None) -> None:
        """Write a fresh folder, which appears whole or not at all.

        With a key, the policies are signed, and so is the description: all settings and the hashes of all files. What
        was signed is not saved without a key; another key than before may take over where the old one was checked.
        """
        folder = Path(folder)
        check_fresh(folder)
        self.check_key(key)
        state = state_to_bytes(self.state)
        described = {
            "schema": SCHEMA,
            "learner": self.learner.name,
            "settings": to_plain(self.learner),
            "policies": [policy.id for policy in self.policies],
            "updates": [{"summary": _digest(entry.data), "ahead": entry.ahead} for entry in self.history],
            "state": _digest(state),
            "version": self.version,
        }
        described["signature"] = None if key is None else sign(key, _signed_text(described))
        text = canonical_json(described)
        bounded(text.decode(), most=MOST_VALUES)
        content = {LEARNER: text, STATE: state, POLICY: policy_to_bytes(self.policy, key=key)}
        for batch, entry in enumerate(self.history, 1):
            content |= {policy_file(batch): policy_to_bytes(entry.policy, key=key), summary_file(batch): entry.data}
        with making_folder(folder) as temporary:
            for name, data in content.items():
                write_whole(data, temporary / name)

    @classmethod
    def load(cls, folder: str | Path, *, key: Key | None = None) -> Self:
        """Read a folder; nothing is learned again. With a key, only if all of it was signed with that key."""
        folder = Path(folder)
        if not (folder / LEARNER).is_file():
            raise FileFormatError(
                f"{folder}: not the folder of a deployment: it has no {LEARNER}. Make one with: rareswitch begin"
            )
        described = _described(folder / LEARNER, key)
        updates, ids = described["updates"], described["policies"]
        last = len(updates)
        for path in sorted(folder.glob("batch-*")):
            if path.name not in {file(k) for k in range(1, last + 1) for file in (policy_file, summary_file)}:
                raise FileFormatError(f"{path}: belongs to no batch; {LEARNER} tells of {last}. Remove it.")
        try:
            learner = _made(described["learner"], described["settings"])
        except (RareswitchError, TypeError) as error:
            raise FileFormatError(f"{folder / LEARNER}: no learner can be made of it ({error}).") from error
        history = tuple(
            Learned(
                policy=_policy(folder / policy_file(batch), name, key),
                data=_content(folder / summary_file(batch), entry["summary"]),
                ahead=entry["ahead"],
            )
            for batch, (entry, name) in enumerate(zip(updates, ids, strict=False), 1)
        )
        current = _policy(folder / POLICY, ids[-1], key)
        signed = described["signature"] is not None or policy_to_bytes(current) != read_whole(folder / POLICY)
        path = folder / STATE
        data = _content(path, described["state"])
        try:
            state = state_from_bytes(data)
        except FileFormatError as error:
            raise FileFormatError(f"{path}: {error}") from error
        sizes = [stats.dim for stats in learner.parts.statistics.zero()]
        made = [batch.policy_id for batch in state.past] + [state.policy.id]
        if state.learner != learner.name or made != ids or [stats.dim for stats in state.sums] != sizes:
            raise FileFormatError(
                f"{path}: not a state of the run that {LEARNER} tells of: it was changed or taken from elsewhere."
            )
        return cls(
            learner=learner,
            state=state,
            history=history,
            version=described["version"],
            signature="checked" if key is not None else "unchecked" if signed else "none",
        )


def policy_file(batch: int) -> str:
    """Where the policy of a batch that was learned from is kept.

    >>> policy_file(1)
    'batch-0001.policy.safetensors'
    """
    return f"batch-{batch:04d}.{POLICY}"


def summary_file(batch: int) -> str:
    """Where its summary is, with those of the earlier batches that were given again."""
    return f"batch-{batch:04d}.summary"


def check_fresh(folder: str | Path, what: str = "a deployment") -> None:
    """Refuse a place where a fresh folder cannot be written."""
    folder = Path(folder)
    if folder.is_dir() and folder.samefile(Path.cwd()):
        raise FileFormatError(f"{folder}: the folder you are in; {what} is a folder of its own. Name one in it.")
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists():
        raise FileFormatError(
            f"{folder}: exists already, and {what} is never overwritten. Name another folder, or remove it."
        )


def _made(name: str, settings: dict[str, Any]) -> Learner:
    """The learner, if its batches may end at any decision and its statistics can be had from rows."""
    sizes = dict.fromkeys(needed(find_learner(name)), 16)  # of an example: what it is does not depend on them
    clock, statistics = (example := make_learner(name, **sizes)).clock, example.parts.statistics
    if clock.looks or clock.steps or statistics.needs_offered:
        raise UnsuitableError(
            f"{name} decides by looking at each decision when its next policy is due, so its batches do not end at "
            "known decisions. For updates from logs use foresight, or a batched learner such as batch-linucb-kw."
        )
    return make_learner(name, **settings)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _described(path: Path, key: Key | None) -> dict[str, Any]:
    """What the description of a learner says, if nothing is wrong with it."""
    data = read_whole(path)
    try:
        described: dict[str, Any] = plain_json(data, most=MOST_VALUES)
        if described["schema"] not in (2, SCHEMA):
            found = described["schema"]
            raise FileFormatError(f"deployments have schema {SCHEMA}; this one has {found!r}. Use a matching version.")
        updates = [{"summary": str(entry["summary"]), "ahead": entry["ahead"]} for entry in described["updates"]]
        settings = dict(described["settings"])
        again = canonical_json(described | {"updates": updates, "settings": settings})
        names = {"schema", "learner", "settings", "policies", "updates", "state", "version"}
        names |= {"signature"} if described["schema"] == SCHEMA else set()
        if again != data or {*described} != names or len(described["policies"]) != len(updates) + 1:
            raise FileFormatError("it was changed, or written by something else.")
        described = {"signature": None} | described  # there was none in schema 2
        if described["signature"] is not None:
            check_signature(described["signature"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"{path}: not the description of a deployment ({error})") from error
    if key is not None and described["signature"] is None:
        raise FileFormatError(
            f"{path}: the deployment is not signed, and a key was given to check it with. If you trust the folder, "
            "leave the key out, or sign a copy as docs/keys.md says; otherwise its signature may have been taken away."
        )
    if key is not None:
        try:
            verify_signature(key, _signed_text(described), described["signature"])
        except FileFormatError as error:
            raise FileFormatError(f"{path}: {error}") from error
    return described


def _signed_text(described: dict[str, Any]) -> str:
    """What is signed of a description; no policy's signature is over such a text."""
    content = {name: value for name, value in described.items() if name != "signature"}
    return f"deployment/{canonical_json(content).decode()}"


def _content(path: Path, digest: str) -> bytes:
    """A file, if it is the one that was written."""
    data = read_whole(path)
    if _digest(data) != digest:
        raise FileFormatError(f"{path}: not the file that {LEARNER} tells of: it was changed or taken from elsewhere.")
    return data


def _policy(path: Path, name: str, key: Key | None) -> Policy:
    """A policy, if it is the one that was written."""
    policy = load_policy(path, key=key)
    if policy.id != name:
        raise FileFormatError(
            f"{path}: holds policy {policy.id[:12]}… where {LEARNER} tells of {name!s:.12}…: it is from elsewhere."
        )
    return policy
