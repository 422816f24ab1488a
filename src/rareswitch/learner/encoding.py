"""Summaries and states as bytes: tensor files in one canonical form, without pickle."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import BatchError, FileFormatError
from rareswitch.files import decoding, pack, unpack
from rareswitch.ids import id_keys
from rareswitch.learner.state import Batch, State
from rareswitch.learner.summary import COUNTS, Sample, Summary
from rareswitch.policy import policy_from_plain, policy_to_plain
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, finite_array

#: With Σ r, shifts and the learner's name; those of the schema before, without these, are read as well.
SUMMARY_SCHEMA = 3
STATE_SCHEMA = 2
#: What is kept by its own name of a state and of a batch.
STATE = ("learner", "updates", "start", "ahead")
BATCH = ("decided", "rewarded", "late")
Tensors = dict[str, FloatArray]


def summary_to_bytes(summary: Summary) -> bytes:
    """The content of a summary file; equal summaries give equal bytes."""
    return summaries_to_bytes([summary])


def summary_from_bytes(data: bytes) -> Summary:
    """The summary in such a content.

    >>> whole = Summary(policy_id="a", decided=2, rewarded=1, stats=(Stats.of([[1.0]], [2.0]),))
    >>> summary_from_bytes(summary_to_bytes(whole)).stats[0].moment.tolist()
    [2.0]
    """
    found = summaries_from_bytes(data)
    if len(found) != 1:
        raise FileFormatError(f"one summary was expected; this holds {len(found)}.")
    return found[0]


def summaries_to_bytes(summaries: Sequence[Summary]) -> bytes:
    """Several summaries of one learner in one content: that of a batch, and those of earlier ones given with it."""
    return _summaries_to_bytes(summaries, SUMMARY_SCHEMA)


def _summaries_to_bytes(summaries: Sequence[Summary], schema: int) -> bytes:
    meta, tensors = encode(summaries)
    return _sealed({"schema": schema, **meta}, tensors)


def summaries_from_bytes(data: bytes) -> list[Summary]:
    """The summaries in such a content."""
    with decoding("a summary"):
        meta, tensors = unpack(data)
        check_schema("summaries", meta, SUMMARY_SCHEMA, oldest=2)
        found = decode(meta, tensors)
        if _summaries_to_bytes(found, meta["schema"]) != data:
            raise FileFormatError("the summary does not have the hash that it was written with: it was changed.")
    return found


def state_to_bytes(state: State) -> bytes:
    """The content of a state file; equal states give equal bytes."""
    return _state_to_bytes(state, STATE_SCHEMA)


def _state_to_bytes(state: State, schema: int) -> bytes:
    tensors: Tensors = {f"kept.{name}": part for name, part in state.kept.items()}
    policy, parts = policy_to_plain(state.policy)
    tensors |= {f"policy.{name}": part for name, part in parts.items()}
    past = [
        _plain(batch, BATCH) | {"policy": batch.policy_id, "sums": _put(f"past.{k}", batch.stats, tensors)}
        for k, batch in enumerate(state.past)
    ]
    meta = _plain(state, STATE) | {
        "schema": schema,
        "policy": policy,
        "policy_id": state.policy.id,
        "notes": [dict(note) for note in state.notes],
        "sums": _put("sums", state.sums, tensors),
        "past": past,
    }
    return _sealed(meta, tensors)


def state_from_bytes(data: bytes) -> State:
    """The state in such a content. Nothing is learned again.

    >>> from rareswitch.learner import OFUL
    >>> state = OFUL(dim=2, arms=3, horizon=100).begin()
    >>> state_from_bytes(state_to_bytes(state)).policy.id == state.policy.id
    True
    """
    with decoding("a state"):
        meta, tensors = unpack(data)
        check_schema("states", meta, STATE_SCHEMA, oldest=1)
        policy = policy_from_plain(meta["policy"], _under("policy.", tensors))
        past = tuple(
            Batch(
                policy_id=entry["policy"],
                stats=_get(f"past.{k}", entry["sums"], tensors),
                **{name: entry[name] for name in BATCH},
            )
            for k, entry in enumerate(meta["past"])
        )
        told = {name: meta[name] for name in STATE} | {"ahead": tuple(meta["ahead"]), "notes": tuple(meta["notes"])}
        sums, kept = _get("sums", meta["sums"], tensors), _under("kept.", tensors)
        state = State(policy=policy, sums=sums, past=past, kept=kept, **told)
        if meta["policy_id"] != policy.id or _state_to_bytes(state, meta["schema"]) != data:
            raise FileFormatError("the state does not have the hash that it was written with: it was changed.")
    return state


def check_schema(what: str, meta: Any, schema: int, *, oldest: int | None = None) -> None:
    """Refuse a file of another format version, and say whether it is newer."""
    found = meta.get("schema") if isinstance(meta, dict) else None
    if type(found) is not int or found < 1:
        raise FileFormatError(f"{what} have a schema, a whole number; this has {found!r:.60}.")
    if found > schema:
        raise FileFormatError(
            f"{what} of this version of rareswitch have schema {schema}; this one has {found}, which is newer. Install "
            "the version that wrote it, or a later one."
        )
    if found < (schema if oldest is None else oldest):
        raise FileFormatError(f"{what} have schema {schema}; this one has {found}, and no migration is known.")


def encode(summaries: Sequence[Summary]) -> tuple[dict[str, Any], Tensors]:
    """Summaries of one learner as JSON-able data beside arrays."""
    tensors: Tensors = {}
    entries = []
    for k, summary in enumerate(summaries):
        sums = _put(f"{k}", summary.stats, tensors)
        entry = _plain(summary, COUNTS) | {"policy": summary.policy_id, "sums": sums, "sampled": None}
        entry |= {"learner": summary.learner} if summary.learner else {}
        if summary.sample is not None:
            entry["sampled"] = summary.sample.size
            tensors[f"{k}.ids"] = summary.sample.keys.astype("<u8").view("<u4").astype(np.float64)
            tensors[f"{k}.contexts"] = summary.sample.sets.contexts
            tensors[f"{k}.alive"] = summary.sample.sets.alive.astype(np.float64)
        entries.append(entry)
    return {"summaries": entries}, tensors


def decode(meta: Any, tensors: Tensors) -> list[Summary]:
    """What :func:`encode` was given; almost any error if it was not."""
    found = []
    for k, entry in enumerate(meta["summaries"]):
        sample = None
        if entry["sampled"] is not None:
            sets = ContextSets(tensors[f"{k}.contexts"], tensors[f"{k}.alive"] != 0.0)
            words = finite_array("ids", tensors[f"{k}.ids"])
            if words.shape != (len(sets), 4) or not ((words >= 0.0) & (words < 2.0**32)).all():
                raise BatchError("a sample has as many ids as context sets.")
            keys = id_keys(words.astype("<u4").view("<u8").astype(np.uint64))
            if len(sets) > entry["sampled"]:
                raise BatchError("a sample has as many ids as context sets, at most its size.")
            sample = Sample(size=entry["sampled"], keys=keys, sets=sets)
        counts = {name: entry[name] for name in COUNTS}
        if not all(type(value) is int and 0 <= value <= counts["decided"] for value in counts.values()):
            raise BatchError(f"counts must be whole numbers of at most the decisions; got {counts}.")
        stats = _get(f"{k}", entry["sums"], tensors)
        told = {"learner": entry.get("learner", ""), "policy_id": entry["policy"]}
        found.append(Summary(**told, stats=stats, sample=sample, **counts))
    return found


def _plain(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _under(prefix: str, tensors: Tensors) -> Tensors:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}


def _sealed(meta: dict[str, Any], tensors: Tensors) -> bytes:
    """The content of a file that holds the hash of everything else in it."""
    return pack({**meta, "sha256": hashlib.sha256(pack(meta, tensors)).hexdigest()}, tensors)


def _put(name: str, stats: tuple[Stats, ...], tensors: Tensors) -> list[int]:
    """Add sums to the arrays; their counts."""
    if stats:
        tensors[f"{name}.gram"] = np.array([part.gram for part in stats])
        tensors[f"{name}.moment"] = np.array([part.moment for part in stats])
        tensors[f"{name}.squares"] = np.array([part.square_sum for part in stats])
        if all(part.reward_sum is not None for part in stats):
            tensors[f"{name}.rewards"] = np.array([part.reward_sum for part in stats])
        if any(part.shift != 0.0 for part in stats):
            tensors[f"{name}.shifts"] = np.array([part.shift for part in stats])
    return [part.count for part in stats]


def _get(name: str, counts: list[int], tensors: Tensors) -> tuple[Stats, ...]:
    arrays = [tensors[f"{name}.{part}"] for part in ("gram", "moment", "squares")] if counts else []
    rewards: list[Any] = [float(part) for part in tensors.get(f"{name}.rewards", ())] or [None] * len(counts)
    shifts = [float(part) for part in tensors.get(f"{name}.shifts", np.zeros(len(counts)))]
    return tuple(
        Stats(gram=gram, moment=moment, count=count, square_sum=float(squares), reward_sum=total, shift=shift)
        for count, gram, moment, squares, total, shift in zip(counts, *arrays, rewards, shifts, strict=True)
    )
