"""A deployment: a folder with the frozen policy that servers run, and all that is needed to learn the next one."""

import copy
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from rareswitch.errors import FileFormatError, ParameterError, RareswitchError, UnsuitableError
from rareswitch.files import canonical_json, read_whole, write_whole
from rareswitch.learner import (
    DeterminantGrowth,
    EveryStep,
    Learner,
    Summary,
    custom_grid,
    find_learner,
    make_learner,
    summary_from_bytes,
    summary_to_bytes,
)
from rareswitch.learner.layered import LayeredLearner
from rareswitch.policy import Policy, load_policy
from rareswitch.policy.encoding import encode
from rareswitch.policy.files import to_bytes
from rareswitch.policy.signing import Key
from rareswitch.version import __version__

SCHEMA = 1
POLICY = "policy.safetensors"
LEARNER = "learner.json"
CLOSE = 1e-6
"""How far the numbers of a policy that is learned again may be from those in the file, relative to the largest."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Deployment:
    """A learner on disk, without pickle: its name, its settings, and the summary of each batch it has learned from.

    A learner is a function of these, so it is made anew when the folder is loaded; and each policy that it then makes
    must be the one that the folder has, up to the rounding of another processor.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "current"
    >>> Deployment.begin("foresight", dim=3, horizon=1000).save(folder)
    >>> there = Deployment.load(folder)
    >>> there.learner.start, there.learner.stop, sorted(path.name for path in folder.iterdir())
    (0, 12, ['learner.json', 'policy.safetensors'])
    """

    name: str
    """Of the learner, as the catalogue has it."""
    settings: Mapping[str, Any]
    """What the catalogue makes it from: numbers, texts, None, and batch ends as a list under ``grid``."""
    learner: Learner
    """As it stands; not to be fed by hand."""
    policies: tuple[Policy, ...] = ()
    """Those of the batches that were learned from, the first first."""
    summaries: tuple[Summary, ...] = ()
    """One for each of them."""

    @classmethod
    def begin(cls, name: str, **settings: Any) -> Self:
        """A deployment whose first policy has not decided anything yet.

        Parameters
        ----------
        name
            Of a learner whose batches end at known decisions: foresight, or one of the batched and stale ones.
        settings
            As :func:`~rareswitch.learner.make_learner` takes them, as long as they are numbers, texts or None.
            ``grid`` may be a list of batch ends.
        """
        plain = {key: _plain(name, key, value) for key, value in settings.items()}
        needed = {"dim", "horizon"} if name == "foresight" else {"dim", "horizon", "arms"}
        for key in sorted(needed & find_learner(name).takes - plain.keys()):
            raise ParameterError(f"{name} needs {key}, and it was not given: {key}=…, or --{key} on the command line.")
        return cls(name=name, settings=plain, learner=_made(name, plain))

    @property
    def policy(self) -> Policy:
        """The frozen policy that makes the decisions of the current batch."""
        return self.learner.policy

    def advance(self, summary: Summary) -> Self:
        """The deployment after the current batch, whose summary this is. The one before stays as it is."""
        learner = copy.deepcopy(self.learner)
        learner.next(summary)
        return type(self)(
            name=self.name,
            settings=self.settings,
            learner=learner,
            policies=(*self.policies, self.policy),
            summaries=(*self.summaries, summary),
        )

    def save(self, folder: str | Path, *, key: Key | None = None) -> None:
        """Write a fresh folder, which appears whole or not at all; with a key, sign the policies."""
        folder = Path(folder)
        check_fresh(folder)
        summaries = [summary_to_bytes(summary) for summary in self.summaries]
        described = {
            "schema": SCHEMA,
            "learner": self.name,
            "settings": dict(self.settings),
            "policies": [policy.id for policy in (*self.policies, self.policy)],
            "summaries": [hashlib.sha256(data).hexdigest() for data in summaries],
            "version": __version__,
        }
        content = {LEARNER: canonical_json(described), POLICY: to_bytes(self.policy, key=key)}
        for batch, (policy, data) in enumerate(zip(self.policies, summaries, strict=True), 1):
            content |= {policy_file(batch): to_bytes(policy, key=key), summary_file(batch): data}
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        try:
            temporary.mkdir(parents=True)
            for name, data in content.items():
                write_whole(data, temporary / name)
                if read_whole(temporary / name) != data:
                    raise FileFormatError(f"{folder / name}: what was written there reads back as something else.")
            os.replace(temporary, folder)
        except OSError as error:
            raise FileFormatError(f"{folder}: cannot be written ({error.strerror or error}).") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @classmethod
    def load(cls, folder: str | Path, *, key: Key | None = None) -> Self:
        """Read a folder and make its learner anew; with a key, only if the policies were signed with it."""
        folder = Path(folder)
        if not (folder / LEARNER).is_file():
            raise FileFormatError(
                f"{folder}: not the folder of a deployment: it has no {LEARNER}. Make one with: rareswitch begin"
            )
        described = _described(folder / LEARNER)
        batches = len(described["summaries"])
        _check_listing(folder, batches)
        try:
            learner = _made(described["learner"], described["settings"])
        except (RareswitchError, TypeError) as error:
            raise FileFormatError(f"{folder / LEARNER}: no learner can be made of it ({error}).") from error
        policies, summaries = [], []
        for batch, (name, digest) in enumerate(zip(described["policies"], described["summaries"], strict=False), 1):
            policies.append(_adopted(learner, folder / policy_file(batch), name, key, described["version"]))
            summaries.append(_learned(learner, folder / summary_file(batch), digest))
        _adopted(learner, folder / POLICY, described["policies"][-1], key, described["version"])
        return cls(
            name=described["learner"],
            settings=described["settings"],
            learner=learner,
            policies=tuple(policies),
            summaries=tuple(summaries),
        )


def policy_file(batch: int) -> str:
    """Where the policy of a batch that was learned from is kept.

    >>> policy_file(1)
    'batch-0001.policy.safetensors'
    """
    return f"batch-{batch:04d}.{POLICY}"


def summary_file(batch: int) -> str:
    """Where its summary is."""
    return f"batch-{batch:04d}.summary"


def check_fresh(folder: str | Path) -> None:
    """Refuse a place where a deployment cannot be written."""
    folder = Path(folder)
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists():
        raise FileFormatError(
            f"{folder}: exists already, and a deployment is never overwritten. Name another folder, or remove it."
        )


def _plain(name: str, key: str, value: Any) -> Any:
    """A setting as JSON can keep it."""
    value = value.item() if isinstance(value, np.generic) else value
    ends = getattr(value, "ends", value)
    if key == "grid" and isinstance(ends, (list, tuple)):
        return [int(end) for end in ends]
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ParameterError(
        f"a deployment keeps its settings as JSON: {key} of {name} must be a number, a text or None, or a list of "
        f"batch ends as grid; got {value!r:.100}."
    )


def _made(name: str, settings: Mapping[str, Any]) -> Learner:
    """The learner, if its batches end at known decisions and its statistics can be had from a log."""
    ends = settings.get("grid")
    learner = make_learner(name, **{**settings, **({} if ends is None else {"grid": custom_grid(ends)})})
    clock = getattr(learner, "clock", None)
    if isinstance(learner, LayeredLearner) or isinstance(clock, (EveryStep, DeterminantGrowth)):
        raise UnsuitableError(
            f"{name} decides by looking at each decision when its next policy is due, so its batches do not end at "
            "known decisions. For updates from logs use foresight, or a batched learner such as batch-linucb-kw."
        )
    return learner


def _described(path: Path) -> dict[str, Any]:
    """What the description of a learner says, if nothing is wrong with it."""
    data = read_whole(path)
    try:
        described = json.loads(data)
        if not isinstance(described, dict) or described.get("schema") != SCHEMA:
            found = described.get("schema") if isinstance(described, dict) else None
            raise FileFormatError(f"deployments have schema {SCHEMA}; this one has {found!r}. Use a matching version.")
        kinds = {"schema": int, "learner": str, "settings": dict, "policies": list, "summaries": list, "version": str}
        if (
            {name: type(value) for name, value in described.items()} != kinds
            or len(described["policies"]) != len(described["summaries"]) + 1
            or canonical_json(described) != data
        ):
            raise FileFormatError("it was changed, or written by something else.")
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"{path}: not the description of a deployment ({error})") from error
    return described


def _check_listing(folder: Path, batches: int) -> None:
    """Refuse a folder in which files of a batch are missing, or belong to none."""
    wanted = {file for batch in range(1, batches + 1) for file in (policy_file(batch), summary_file(batch))} | {POLICY}
    found = {path.name for path in folder.iterdir()}
    for name in sorted(wanted - found):
        raise FileFormatError(f"{folder / name}: missing; {LEARNER} tells of {batches} batches that were learned from.")
    for name in sorted(found - wanted):
        if re.fullmatch(r"batch-\d+\..*", name):
            raise FileFormatError(f"{folder / name}: belongs to no batch; {LEARNER} tells of {batches}. Remove it.")


def _learned(learner: Learner, path: Path, digest: str) -> Summary:
    """The summary in a file, after the learner has learned from it."""
    data = read_whole(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise FileFormatError(
            f"{path}: not the summary that {LEARNER} tells of: it was changed or taken from elsewhere."
        )
    try:
        summary = summary_from_bytes(data)
        learner.next(summary)
    except (RareswitchError, ArithmeticError, ValueError) as error:
        raise FileFormatError(f"{path}: the learner cannot learn from it ({error})") from error
    return summary


def _adopted(learner: Learner, path: Path, name: str, key: Key | None, version: str) -> Policy:
    """The policy in a file, for the learner to go on with, if it is the one that the learner has made."""
    policy = load_policy(path, key=key)
    if policy.id != name:
        raise FileFormatError(
            f"{path}: holds policy {policy.id[:12]}… where {LEARNER} tells of {name!s:.12}…: it is from elsewhere."
        )
    if policy.id != learner.policy.id and not _alike(encode(policy), encode(learner.policy)):
        raise FileFormatError(
            f"{path}: holds policy {policy.id[:12]}…, and learning again from the summaries gives "
            f"{learner.policy.id[:12]}…. A file was changed or taken from elsewhere, or the learner of rareswitch "
            f"{version}, which wrote the folder, differs from that of {__version__}, which reads it."
        )
    learner.policy = policy
    return policy


def _alike(one: Any, other: Any) -> bool:
    """Whether two policies, taken apart, differ by rounding alone."""
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and bool((np.abs(one - other) <= CLOSE * np.abs(other).max(initial=0.0)).all())
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE)
    return type(one) is type(other) and bool(one == other)
