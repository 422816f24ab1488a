"""Files that claim more than they hold: crafted and mutated ones of every kind, and what may come of them.

A mutation is raw (bytes), of the header (what a file says about its arrays), or sealed: content edited by someone who
knows the format, with ids and hashes that fit. Logs, which are others' files as well, are mutated raw.
"""

import gzip
import hashlib
import json
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rareswitch.core import ContextSets, canonical_json
from rareswitch.core.codec import pack, unpack
from rareswitch.decisions import DecisionLog
from rareswitch.design import GOptimal, MixedArgmax, MixedSoftmax, Uniform
from rareswitch.errors import RareswitchError
from rareswitch.features import Arms, Features, Flag, Number
from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.rivals import InverseGap
from rareswitch.lab.worlds import make_world
from rareswitch.learner import (
    Learner,
    State,
    make_learner,
    state_from_bytes,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
)
from rareswitch.log import ParquetLog, read_csv, read_dsjson, write_csv, write_dsjson, write_log
from rareswitch.policy import (
    Blend,
    Elimination,
    HmacKey,
    Layered,
    Optimistic,
    Policy,
    PosteriorDraws,
    policy_from_bytes,
    policy_to_bytes,
)
from reference.loop import after, rows_of

DIM, ARMS = 3, 5
WORLD = make_world("gaussian", dim=DIM, arms=ARMS, noise=0.5)
KEY = HmacKey(secret=b"a secret of tests")
KINDS = ("policy", "summary", "state")
#: Logs by what their names end in. Those in .gz are compressed after they were mutated, or before.
LOGS = (".parquet", ".csv", ".json", ".csv.gz", ".json.gz")
LEARNERS: dict[str, dict[str, Any]] = {
    "foresight": {"horizon": 400, "policies": 4, "intercept": True},
    "batch-linucb-kw": {"arms": ARMS, "horizon": 400},
    "oful": {"arms": ARMS, "horizon": 300},
    "suplinucb": {"arms": ARMS, "horizon": 40},
    "falcon": {"arms": ARMS, "horizon": 300},
}
#: What plain data are replaced by.
JUNK: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 10**9, 10**18, 10**30, 1e308, -1.5, 0.5, "", "x", "é\ud800", "9" * 1000, [], {}),
    *([[[]]], [0] * 1000, [-1], {"array": "nothing"}, {"kind": "uniform"}, {"kind": "blend"}, [{"kind": "optimistic"}]),
)


class File(NamedTuple):
    """An intact file and what is needed to go on from it."""

    kind: str
    data: bytes
    learner: Learner | None = None
    state: State | None = None


@cache
def intact() -> dict[str, list[File]]:
    """Files of each kind."""
    files = {"policy": [File("policy", policy_to_bytes(policy, key=key)) for policy, key in policies()]}
    states, summaries = [], []
    for name, settings in LEARNERS.items():
        learner = make_learner(name, dim=DIM, **settings)
        state = after(learner, WORLD, 3)
        rows = rows_of(state, WORLD, 1, count=min(20, state.batch_sizes[0]))
        summary = learner.summarize(state, rows)
        states.append(File("state", state_to_bytes(state), learner, state))
        summaries.append(File("summary", summaries_to_bytes([summary]), learner, state))
    return files | {"summary": summaries, "state": states}


def policies() -> Iterator[tuple[Policy, HmacKey | None]]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((40, DIM))
    draws = PosteriorDraws(draws=x[:6])
    matrices = np.stack([np.eye(DIM), x.T @ x])
    roots = np.tril(rng.standard_normal((2, DIM, DIM)))
    past = (Elimination.of(x[0], x.T @ x, 1.3), Elimination.of(np.zeros(DIM), np.eye(DIM), 0.4))
    for sampler in (
        *(Uniform(), GOptimal(tol=0.1), draws),
        MixedSoftmax(weights=np.array([0.25, 0.75]), matrices=matrices),
        MixedArgmax(weights=np.array([0.5, 0.5]), matrices=matrices, g_optimal_share=0.1),
        Blend(main=draws, explorer=GOptimal(tol=1.0), share=0.01),
        InverseGap(estimate=x[1], gamma=9.0),
        Optimistic(estimate=x[1], root=roots[0]),
        Layered(estimates=x[:2], roots=roots, thresholds=np.array([0.5, 0.25]), tails=roots),
    ):
        yield Policy(dim=DIM, sampler=sampler, eliminations=past), None
    yield Policy(dim=DIM, sampler=draws, eliminations=past, edition=2), KEY
    price, new = Number("price", of="arm", mean=2.0, missing="error"), Flag("new", alone=False, missing="error")
    features = Features(fields=[price, new], arms=Arms(ids=["x"], own=["new"]))
    yield Policy(dim=DIM, sampler=draws, features=features), KEY


def mutated(kind: str, number: int, seed: int = 0) -> tuple[str, File, bytes]:
    """How a file was changed, the intact one, and its content now; any number gives another."""
    rng = np.random.default_rng([seed, KINDS.index(kind), number])
    files = intact()[kind]
    file = files[int(rng.integers(len(files)))]
    how, change = tuple(CHANGES.items())[number % len(CHANGES)]
    return how, file, change(file, rng)


def _raw(change: Callable[[bytearray, int, int, Any], None]) -> Callable[[File, Any], bytes]:
    def changed(file: File, rng: Any) -> bytes:
        data = bytearray(file.data)
        at, count = int(rng.integers(len(data))), int(rng.integers(1, 65))
        change(data, at, count, rng)
        return bytes(data)

    return changed


def _flip(data: bytearray, at: int, count: int, rng: Any) -> None:
    data[at] ^= 1 << count % 8


def _truncate(data: bytearray, at: int, count: int, rng: Any) -> None:
    del data[at:]


def _delete(data: bytearray, at: int, count: int, rng: Any) -> None:
    del data[at : at + count]


def _insert(data: bytearray, at: int, count: int, rng: Any) -> None:
    data[at:at] = rng.bytes(count)


def _repeat(data: bytearray, at: int, count: int, rng: Any) -> None:
    data[at:at] = data[at : at + 8 * count]


def _number(data: bytearray, at: int, count: int, rng: Any) -> None:
    value = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0, 5e-324])
    data[at // 8 * 8 : at // 8 * 8 + 8] = struct.pack("<d", value)


def _header(change: Callable[[dict[str, Any], Any], str | None]) -> Callable[[File, Any], bytes]:
    def changed(file: File, rng: Any) -> bytes:
        data = file.data
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        text = change(header, rng)
        told = (canonical_json(header) if text is None else text.encode()) + b""
        told += b" " * (-len(told) % 8)
        return struct.pack("<Q", len(told)) + told + data[8 + length :]

    return changed


def _arrays(header: dict[str, Any], rng: Any) -> list[Any]:
    """The entries of a header, in random order."""
    entries = [entry for name, entry in header.items() if name != "__metadata__"]
    return [entries[k] for k in rng.permutation(len(entries))] or [{}]


def _overlap(header: dict[str, Any], rng: Any) -> None:
    entries = _arrays(header, rng)
    for entry in entries:
        entry |= {name: entries[0].get(name) for name in ("shape", "data_offsets")}


def _many(header: dict[str, Any], rng: Any) -> None:
    top = max((entry["data_offsets"][1] for entry in _arrays(header, rng) if entry), default=0)
    for k in range(int(rng.choice([10, 1000, 20_000]))):
        header[f"extra.{k}"] = {"dtype": "F64", "shape": [top // 8], "data_offsets": [0, top]}


def _shape(header: dict[str, Any], rng: Any) -> None:
    shapes: list[Any] = [[10**18], [2**31, 2**31], [-1, -8], [0], [1.0], [True], [1] * 70, [10**400]]
    shapes += [[], None, "3", [0, 2**40]]
    _arrays(header, rng)[0]["shape"] = shapes[int(rng.integers(len(shapes)))]


def _offsets(header: dict[str, Any], rng: Any) -> None:
    offsets = ([0, 2**62], [-8, 0], [8, 0], [0, 8.0], [None, 8], [0], [0, 10**30], [True, 8], "08", [16, 24])
    _arrays(header, rng)[0]["data_offsets"] = offsets[int(rng.integers(len(offsets)))]


def _dtype(header: dict[str, Any], rng: Any) -> None:
    _arrays(header, rng)[0]["dtype"] = ("F32", "I64", "BOOL", "", None, 8, "f64")[int(rng.integers(7))]


def _plain(header: dict[str, Any], rng: Any) -> str:
    """Plain data that are deep, many, long, or not plain."""
    deep = int(rng.choice([50, 900, 100_000]))
    many = int(rng.choice([1000, 100_000, 400_000]))
    texts = (
        "[" * deep + "]" * deep,
        '{"a":' * deep + "0" + "}" * deep,
        "[" + "[[]]," * many + "[]]",
        "[" + '{"a":{}},' * many + "{}]",
        '["' + "x" * (4 * many) + '\\ud83d\\ude00"]',
        "[" + ",".join(["-9"] * many) + "]",
        "{" + ",".join(f'"{k}":{k}' for k in range(many // 4)) + "}",
        *("[NaN]", "[Infinity]", "9" * 10_000, "null", "[1e999]", '"\\ud800"', '{"a":1,"a":2}'),
    )
    text = texts[int(rng.integers(len(texts)))]
    if rng.random() < 0.3:
        return text
    held = json.loads(header["__metadata__"]["rareswitch"])
    name = sorted(held)[int(rng.integers(len(held)))]
    held[name] = "@"
    header["__metadata__"]["rareswitch"] = canonical_json(held).decode().replace('"@"', text)
    return json.dumps(header, sort_keys=True, separators=(",", ":"))


def _sealed(change: Callable[[Any, dict[str, Any], Any], Any]) -> Callable[[File, Any], bytes]:
    def changed(file: File, rng: Any) -> bytes:
        meta, tensors = unpack(file.data)
        change(meta, tensors, rng)
        return resealed(meta, tensors)

    return changed


def resealed(meta: Any, tensors: dict[str, Any]) -> bytes:
    """A file of this content, with the id that belongs to it."""
    if "id" in meta:
        meta["id"] = hashlib.sha256(pack(meta.get("content"), tensors)).hexdigest()
    return pack(meta, tensors)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested plain data, as a container and a key."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def _place(meta: Any, rng: Any) -> tuple[Any, Any]:
    arm_indices = list(_places(meta))
    return arm_indices[int(rng.integers(len(arm_indices)))]


def _replace(meta: Any, tensors: dict[str, Any], rng: Any) -> None:
    held, key = _place(meta, rng)
    held[key] = json.loads(json.dumps(JUNK[int(rng.integers(len(JUNK)))]))


def _nudge(meta: Any, tensors: dict[str, Any], rng: Any) -> None:
    """Another value of the same type, or the same of another."""
    held, key = _place(meta, rng)
    value = held[key]
    if isinstance(value, (int, float)):
        choices = [value + 1, value - 1, float(value), str(value), value * 1000, -value, bool(value)]
        held[key] = choices[int(rng.integers(len(choices)))]
    elif isinstance(value, str):
        held[key] = [value.upper(), value[:-1], value + " ", value[::-1], [value]][int(rng.integers(5))]
    elif isinstance(value, list):
        held[key] = [value + value, value[:-1], value[::-1], [value]][int(rng.integers(4))]


def _remove(meta: Any, tensors: dict[str, Any], rng: Any) -> None:
    held, key = _place(meta, rng)
    if rng.random() < 0.5:
        del held[key]
    elif isinstance(held, dict):
        held[f"{key}2"] = held[key]


def _values(meta: Any, tensors: dict[str, Any], rng: Any) -> None:
    """Other numbers in one array."""
    floats = sorted(name for name, array in tensors.items() if array.dtype == np.float64)
    if floats:
        array = tensors[floats[int(rng.integers(len(floats)))]]
        factors = [-1.0, 0.0, 2.0, 1.0 + 1e-9, 1e-300, 1e100, 1e160, 1e300]
        numbers = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -1.0, 0.0, 1e9, 0.5]
        if rng.random() < 0.4 or not array.size:
            with np.errstate(all="ignore"):
                array *= factors[int(rng.integers(len(factors)))]
        else:
            array.flat[int(rng.integers(array.size))] = numbers[int(rng.integers(len(numbers)))]


def _sizes(meta: Any, tensors: dict[str, Any], rng: Any) -> None:
    """Another size of one array, or one more, or one less."""
    if tensors:
        name = sorted(tensors)[int(rng.integers(len(tensors)))]
        array = tensors.pop(name)
        made = [array.reshape(-1), array[None], array[:-1], array[..., :-1], array.T, array[:0], array[..., None]]
        made += [np.concatenate([array, array]), np.concatenate([array, array], axis=-1), array[::-1]]
        choice = int(rng.integers(len(made) + 2))
        if choice < len(made):
            tensors[name] = made[choice]
        elif choice == len(made):
            tensors[f"{name}2"] = array


#: Every way to change a file.
CHANGES: dict[str, Callable[[File, Any], bytes]] = {
    **{f.__name__[1:]: _raw(f) for f in (_flip, _truncate, _delete, _insert, _repeat, _number)},
    **{f.__name__[1:]: _header(f) for f in (_overlap, _many, _shape, _offsets, _dtype, _plain)},
    **{f.__name__[1:]: _sealed(f) for f in (_replace, _nudge, _remove, _values, _sizes)},
}


def load(kind: str, data: bytes) -> Any:
    """What the library makes of a content."""
    readers: dict[str, Callable[[bytes], Any]] = {
        "policy": policy_from_bytes,
        "summary": summaries_from_bytes,
        "state": state_from_bytes,
    }
    return readers[kind](data)


def fault(file: File, data: bytes, found: Any) -> str:
    """What is wrong with what was loaded; nothing if it is what the file holds, and can be used."""
    try:
        return _fault(file, data, found)
    except RareswitchError:
        return ""  # refused where it is used
    except Exception as error:
        return f"used, it fails with {type(error).__name__}: {error}"


def _fault(file: File, data: bytes, found: Any) -> str:
    if file.kind == "policy":
        if unpack(data)[0]["id"] != found.id or (b"signature" not in data and policy_to_bytes(found) != data):
            return "it is not what the file holds"
        if b"signature" in file.data and data != file.data:
            try:
                policy_from_bytes(data, key=KEY)
            except RareswitchError:
                return _odd(found)
            return "its signature passes"
        return _odd(found)
    again = summaries_to_bytes(found) if file.kind == "summary" else state_to_bytes(found)
    return "" if again == data and repr(found) else "it is not what the file holds"


def _odd(policy: Policy) -> str:
    """What is wrong with the decisions of a policy."""
    sets = ContextSets(*vars(Gaussian(dim=DIM, arms=ARMS).draw(20, seed=3)).values())
    probabilities = policy.probabilities(sets)
    decisions = policy.decide(sets, ids=range(20), seed=1)
    chosen = probabilities[np.arange(20), decisions.arms]
    if policy.features is not None:
        policy.decide_records({"new": True}, {"x": {"price": 1.5}}, id=1, seed=1)
    right = (probabilities >= 0.0).all() and np.abs(probabilities.sum(axis=1) - 1.0).max() <= 1e-9
    right = right and (decisions.survivors > 0).all() and (chosen == decisions.propensities).all() and chosen.min() > 0
    return "" if right else "its probabilities are none"


@cache
def intact_log(ending: str) -> bytes:
    """A log with all that logs may hold, as a file whose name ends so."""
    rng = np.random.default_rng(2)
    contexts = rng.standard_normal((40, ARMS, DIM))
    log = DecisionLog(
        arm_indices=rng.integers(ARMS, size=40),
        propensities=np.full(40, 1 / ARMS),
        rewards=np.where(np.arange(40) % 7 == 0, np.nan, rng.standard_normal(40)),
        contexts=contexts,
        behavior_probs=np.full((40, ARMS), 1 / ARMS),
        arms=[f"arm {k}" for k in range(ARMS)],
        times=1e9 + np.arange(40.0),
    )
    write = {".parquet": write_log, ".csv": write_csv, ".json": write_dsjson}[ending]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"log{ending}")
        write(path, log)
        return path.read_bytes()


def mutated_log(ending: str, number: int, seed: int = 0) -> bytes:
    """A log that was changed; any number gives another."""
    rng = np.random.default_rng([seed, LOGS.index(ending), number])
    change = CHANGES[LOG_CHANGES[number % len(LOG_CHANGES)]]
    plain = ending.removesuffix(".gz")
    if plain == ending:
        return change(File("log", intact_log(ending)), rng)
    if rng.random() < 0.5:
        return change(File("log", gzip.compress(intact_log(plain), mtime=0)), rng)
    return gzip.compress(change(File("log", intact_log(plain)), rng), mtime=0)


LOG_CHANGES = tuple(CHANGES)[:6]


def load_log(path: Path) -> list[DecisionLog]:
    """All decisions of a log, as commands read them."""
    if path.name.endswith(".parquet"):
        log = ParquetLog(path)
        return [*log.chunks(contexts=False), *log.chunks()]
    return [read_csv(path) if ".csv" in path.name else read_dsjson(path)]


def log_fault(parts: list[DecisionLog]) -> str:
    """What is wrong with decisions that were read; nothing if they can be used."""
    for log in parts:
        chosen = log.available[np.arange(len(log)), log.arm_indices]
        numbers = [
            log.propensities,
            log.rewards[~np.isnan(log.rewards)],
            *([] if log.contexts is None else [log.contexts]),
        ]
        if not (chosen.all() and all(np.isfinite(one).all() for one in numbers)):
            return "it chose arms that were not offered, or holds numbers that are none"
        if not (log.propensities > 0.0).all() or not (log.propensities <= 1.0).all():
            return "its propensities are none"
    return ""
