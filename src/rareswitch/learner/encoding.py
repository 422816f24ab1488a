"""Summaries and states as bytes: tensor files in one canonical form, without pickle."""

import hashlib
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import BatchError, FileFormatError
from rareswitch.files import decoding, pack, unpack
from rareswitch.ids import LONGEST, id_keys
from rareswitch.learner.state import Batch, State
from rareswitch.learner.summary import COUNTS, Extent, Sample, Summary, added, sample_order
from rareswitch.policy import Layered, policy_from_plain, policy_to_plain
from rareswitch.stats import Expansion, Stats
from rareswitch.validation import LARGEST_SCALE, FloatArray, count_of, finite_array, number, summable

SUMMARY_SCHEMA = 1
STATE_SCHEMA = 1
#: What is kept by its own name of a state and of a batch.
STATE = ("learner", "updates", "start", "ahead")
BATCH = ("decided", "rewarded", "late")
#: By which entry of their plain data files are told apart, the first that is there.
MARKS = {"nodes": "reports", "summaries": "summaries", "past": "states", "id": "policies"}
#: By how much the scaled products of rows may leave the range that they have, by rounding.
SLACK = 1e-6
#: The arrays of an expansion.
EXPANSION = ("point", "value", "gradient", "curvature", "held_out")
#: Of a shift: by so much rewards may be off that it was taken from.
ROUNDING = 1e-12
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
    meta, tensors = encode(summaries)
    return _sealed({"schema": SUMMARY_SCHEMA, **meta}, tensors)


def summaries_from_bytes(data: bytes) -> list[Summary]:
    """The summaries in such a content."""
    with decoding("a summary"):
        meta, tensors = unpack(data)
        check_schema("summaries", meta, SUMMARY_SCHEMA)
        found = decode(meta, tensors)
        if not found or summaries_to_bytes(found) != data:
            raise FileFormatError("the summary does not have the hash that it was written with: it was changed.")
    return found


def state_to_bytes(state: State) -> bytes:
    """The content of a state file; equal states give equal bytes."""
    tensors: Tensors = {f"kept.{name}": part for name, part in state.kept.items()}
    policy, parts = policy_to_plain(state.policy)
    tensors |= {f"policy.{name}": part for name, part in parts.items()}
    past = [
        _plain(batch, BATCH) | {"policy": batch.policy_id, "sums": _put(f"past.{k}", batch.stats, tensors)}
        for k, batch in enumerate(state.past)
    ]
    warm = {}
    if state.warm is not None:
        warm = {"warm": _plain(state.warm, BATCH) | {"policy": state.warm.policy_id}}
        warm["warm"]["sums"] = _put("warm", state.warm.stats, tensors)
    meta = (
        _plain(state, STATE)
        | warm
        | {
            "schema": STATE_SCHEMA,
            "policy": policy,
            "policy_id": state.policy.id,
            "notes": [dict(note) for note in state.notes],
            "sums": _put("sums", state.sums, tensors),
            "past": past,
        }
    )
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
        check_schema("states", meta, STATE_SCHEMA)
        policy = policy_from_plain(meta["policy"], _under("policy.", tensors))
        past = tuple(_batch(f"past.{k}", entry, tensors) for k, entry in enumerate(meta["past"]))
        warm = _batch("warm", meta["warm"], tensors) if "warm" in meta else None
        told = {name: meta[name] for name in STATE} | {"ahead": tuple(meta["ahead"]), "notes": tuple(meta["notes"])}
        most = sum(batch.rewarded for batch in past) if past else plain_count("start", meta["start"])
        most += 0 if warm is None else warm.rewarded
        sums, kept = _get("sums", meta["sums"], tensors, most=most), _under("kept.", tensors)
        state = State(policy=policy, sums=sums, past=past, warm=warm, kept=kept, **told)
        if meta["policy_id"] != policy.id or state_to_bytes(state) != data:
            raise FileFormatError("the state does not have the hash that it was written with: it was changed.")
        _check_state(state)
    return state


def _batch(name: str, entry: Any, tensors: Tensors) -> Batch:
    """What is remembered of some decisions."""
    return Batch(
        policy_id=_text(entry["policy"]),
        stats=_get(name, entry["sums"], tensors, most=plain_count("rewarded", entry["rewarded"])),
        **{name: plain_count(name, entry[name]) for name in BATCH},
    )


def check_schema(what: str, meta: Any, schema: int) -> None:
    """Refuse a file of another kind or format version, and say which, or whether it is newer."""
    held = meta if isinstance(meta, dict) else {}
    kind = next((kind for mark, kind in MARKS.items() if mark in held), what)
    if kind != what:
        raise FileFormatError(f"{what} were expected, and this file is one of {kind}. Name another file.")
    found = held.get("schema")
    if type(found) is not int or found < 1:
        raise FileFormatError(f"{what} have a schema, a whole number; this has {found!r:.60}.")
    if found > schema:
        raise FileFormatError(
            f"{what} of this version of rareswitch have schema {schema}; this one has {found}, which is newer. Install "
            "the version that wrote it, or a later one."
        )
    if found < schema:
        raise FileFormatError(f"{what} have schema {schema}; this one has {found}, and no migration is known.")


def encode(summaries: Sequence[Summary]) -> tuple[dict[str, Any], Tensors]:
    """Summaries of one learner as JSON-able data beside arrays."""
    tensors: Tensors = {}
    entries = []
    for k, summary in enumerate(summaries):
        sums = _put(f"{k}", summary.stats, tensors)
        entry = _plain(summary, COUNTS) | {"policy": summary.policy_id, "sums": sums, "sampled": None}
        entry |= {"learner": summary.learner} if summary.learner else {}
        entry |= {"extent": list(summary.extent)} if summary.extent is not None else {}
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
            contexts = summable("contexts", finite_array("contexts", tensors[f"{k}.contexts"]))
            sets = ContextSets(contexts, tensors[f"{k}.alive"] != 0.0)
            words = finite_array("ids", tensors[f"{k}.ids"])
            if words.shape != (len(sets), 4) or not ((words >= 0.0) & (words < 2.0**32)).all():
                raise BatchError("a sample has as many ids as context sets.")
            keys = id_keys(words.astype("<u4").view("<u8").astype(np.uint64))
            sample = Sample(size=plain_count("sampled", entry["sampled"], low=1), keys=keys, sets=sets)
            ordered = (np.diff(sample_order(keys)) >= 0.0).all()
            if not ordered or len(np.unique(keys, axis=0)) != len(keys) or len(keys) > sample.size:
                raise BatchError("a sample has each id once, in the order of their hashes, and at most its size.")
        counts = {name: plain_count(name, entry[name]) for name in COUNTS}
        decided = counts["decided"]
        apart = counts["rewarded"] + counts["waiting"] + counts["expired"]
        if apart > decided or counts["clipped"] > counts["rewarded"] or (sample is not None and len(sample) > decided):
            raise BatchError(f"no decision is counted twice: rewarded, waiting, expired or none; got {counts}.")
        stats = _get(f"{k}", entry["sums"], tensors, most=counts["rewarded"])
        if sample is not None and {s.dim for s in stats} - {sample.sets.dim, sample.sets.dim + 1}:
            raise BatchError(f"sampled contexts of {sample.sets.dim} features beside sums of others.")
        learner = _text(entry["learner"]) if "learner" in entry else ""
        extent = _extent(entry["extent"]) if "extent" in entry else None
        policy = _text(entry["policy"])
        found.append(Summary(learner=learner, policy_id=policy, stats=stats, extent=extent, sample=sample, **counts))
    if len({tuple(s.dim for s in summary.stats) for summary in found}) > 1:
        raise BatchError("the sums of these summaries are of different features.")
    return found


def _check_state(state: State) -> None:
    """Refuse a state that no run can have."""
    _text(state.learner)
    batches, features = len(state.past), state.policy.dim
    updates, start = plain_count("updates", state.updates, low=1), plain_count("start", state.start)
    for length in state.ahead:
        plain_count("ahead", length, low=1)
    # learners that change at every step do not tell batches apart
    if state.past and (updates != batches + (not state.done) or start != sum(batch.decided for batch in state.past)):
        raise BatchError(f"{updates} policies and {start} decisions, where {batches} batches were learned from.")
    if updates > start + 1:
        raise BatchError(f"{updates} policies after {start} decisions.")
    models, dim, sampler = len(state.sums), state.sums[0].dim, state.policy.sampler
    learned = state.past if state.warm is None else (state.warm, *state.past)
    dims = {tuple(stats.dim for stats in sums) for sums in (state.sums, *(batch.stats for batch in learned))}
    if dim not in (features, features + 1) or not dims <= {(), (dim,) * models}:
        raise BatchError(f"sums of other features than the {features} of the policy.")
    shapes = {name: finite_array(name, part).shape for name, part in state.kept.items()}
    wanted: dict[str, tuple[int, ...]] = {}
    if isinstance(sampler, Layered):
        wanted = {"frozen_gram": (models, dim, dim), "frozen_count": (models,)}
    elif "actions" in shapes:
        wanted = {"actions": (1, *shapes["actions"][1:2], features), "available": (1, *shapes["actions"][1:2])}
    if any(shapes.get(name) != shape for name, shape in wanted.items()):
        raise BatchError(f"the rule remembers {shapes!s:.200} where it needs {wanted}.")
    if isinstance(sampler, Layered) and len(sampler.thresholds) != models:
        raise BatchError(f"sums of {models} layers beside a policy of {len(sampler.thresholds)}.")
    kept = [batch.stats for batch in learned if batch.stats]
    if kept and len(kept) == len(learned) and not _same(reduce(added, kept), state.sums):
        raise BatchError("the sums of all decisions are not those of the batches.")
    for note in state.notes:
        if not all(value is None or isinstance(value, (bool, int, float, str)) for value in note.values()):
            raise BatchError("a note holds numbers and texts by name.")


def plain_count(name: str, value: Any, *, low: int = 0) -> int:
    """A count as it is kept: no other type, no other value passes for it."""
    if type(value) is not int:
        raise BatchError(f"{name} must be a whole number; got {value!r:.60}.")
    return count_of(name, value, low=low)


def _same(sums: tuple[Stats, ...], others: tuple[Stats, ...]) -> bool:
    """Whether sums are the same, up to rounding, whatever was taken off the rewards."""
    for one, other in zip(sums, others, strict=True):
        other = other.shifted(one.shift)
        scale = np.sqrt(np.append(np.diag(one.gram), one.square_sum + one.count * (ROUNDING * one.shift) ** 2))
        far = np.abs(one.gram - other.gram) > SLACK * np.outer(scale[:-1], scale[:-1])
        off = np.abs(one.moment - other.moment) > SLACK * scale[:-1] * scale[-1]
        if far.any() or off.any() or one.count != other.count:
            return False
    return True


def _text(value: Any) -> str:
    """An id of a policy, or a name."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST:
        raise BatchError(f"names and ids are texts of at most {LONGEST} characters; got {value!r:.60}.")
    return value


def _extent(value: Any) -> Extent:
    """How far numbers reach: three floats."""
    low, high, largest = (number("extent", part, low=-np.inf) for part in value)
    if low > high or largest < 0.0 or not all(type(part) is float for part in value):
        raise BatchError(f"rewards reach from a least to a largest one, as numbers; got {value!r:.60}.")
    return Extent(low, high, largest)


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
        expansions = [part.expansion for part in stats if part.expansion is not None]
        if len(expansions) == len(stats):
            tensors |= {f"{name}.{part}": np.array([getattr(e, part) for e in expansions]) for part in EXPANSION}
    return [part.count for part in stats]


def _get(name: str, counts: list[int], tensors: Tensors, *, most: int) -> tuple[Stats, ...]:
    """The sums of at most so many rows, if rows can have them."""
    arrays = [tensors[f"{name}.{part}"] for part in ("gram", "moment", "squares")] if counts else []
    rewards: list[Any] = [float(part) for part in tensors.get(f"{name}.rewards", ())] or [None] * len(counts)
    shifts = [float(part) for part in tensors.get(f"{name}.shifts", np.zeros(len(counts)))]
    expansions: list[Expansion | None] = [None] * len(counts)
    if f"{name}.point" in tensors:
        columns = (tensors[f"{name}.{part}"] for part in EXPANSION)
        expansions = [
            Expansion(**dict(zip(EXPANSION, parts, strict=True)) | {"value": float(parts[1])})
            for parts in zip(*columns, strict=True)
        ]
    found = tuple(
        Stats(
            gram=gram,
            moment=moment,
            count=plain_count("count", count),
            square_sum=float(squares),
            reward_sum=total,
            shift=shift,
            expansion=expansion,
        )
        for count, gram, moment, squares, total, shift, expansion in zip(
            counts, *arrays, rewards, shifts, expansions, strict=True
        )
    )
    if sum(stats.count for stats in found) > most:
        raise BatchError(f"sums of {counts!s:.60} rows where {most} have rewards.")
    for stats in found:
        _check_sums(stats)
    return found


def _check_sums(stats: Stats) -> None:
    """Refuse sums that no rows have: AᵀA of A = (features, rewards) is positive semidefinite, of rank at most count.

    Scaled to a diagonal of ones, its squares sum up to at least trace²/rank.
    """
    # taking off another shift rounds moments in the digits of the shift
    squares = stats.square_sum + stats.count * (ROUNDING * stats.shift) ** 2
    products = np.block([[stats.gram, stats.moment[:, None]], [stats.moment, np.array([squares])]])
    if np.abs(products).max() > stats.count * LARGEST_SCALE**2:
        raise BatchError(f"these are not the sums of {stats.count} rows: they are too large.")
    # squares of what is below this size vanish, where products with larger numbers do not
    scale = np.sqrt(np.maximum(np.diag(products), 0.0)).clip(min=1e-150)
    unit = products / scale / scale[:, None]
    fits = np.array_equal(products, products.T) and np.abs(unit).max() <= 1.0 + SLACK
    total = stats.reward_sum or 0.0
    fits = fits and total**2 <= (1.0 + SLACK) * stats.count * squares
    fits = fits and (stats.shift == 0.0 or stats.gram[-1, -1] == stats.count)  # which needs a last feature of 1
    rank = stats.count + (stats.shift != 0.0)  # the room for rounding is one more direction
    if not fits or (unit**2).sum() * rank < (1.0 - SLACK) * np.trace(unit) ** 2 or not _semidefinite(unit):
        raise BatchError(f"these are not the sums of {stats.count} rows.")


def _semidefinite(unit: FloatArray) -> bool:
    """Whether a symmetric matrix with a diagonal of ones has no negative eigenvalue, up to rounding."""
    try:
        np.linalg.cholesky(unit + SLACK * len(unit) * np.eye(len(unit)))
    except np.linalg.LinAlgError:
        return False
    return True
