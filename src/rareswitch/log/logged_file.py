"""Logged decisions as a file in Parquet."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.files import pyarrow
from rareswitch.ids import key_bytes
from rareswitch.log.logged import DecisionLog
from rareswitch.log.parquet_source import ARMS, BATCHES, ESTIMATED
from rareswitch.log.places import exists
from rareswitch.log.writer import write_table
from rareswitch.validation import BoolArray


def write_logged(path: str | Path, logged: DecisionLog) -> None:
    """Write logged decisions, for :class:`~rareswitch.log.ParquetLog` and other tools to read.

    The columns are those of :func:`~rareswitch.log.log_schema`, without vectors where there are none, and as far as
    these are known ``place``, ``names``, ``baseline``, ``time``, ``behavior_probs``, and ``available`` where arms
    do not stand at the first places. Ids that are texts are known by their keys alone, which are kept. How
    propensities were estimated, the order of the batches and that of the arms are in the schema. Policies are not
    written: keep their files beside.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.log import ParquetLog
    >>> log = DecisionLog(arm_indices=[0, 1], propensities=[0.5, 0.5], rewards=[1.0, None], arms=["red", "blue"])
    >>> path = Path(tempfile.mkdtemp()) / "log.parquet"
    >>> write_logged(path, log)
    >>> next(ParquetLog(path).chunks()).chosen_names
    ['red', 'blue']
    """
    if exists(path):
        raise FileFormatError(f"{path}: exists already, and a log is never overwritten. Name another file.")
    write_table(path, logged_table(logged))


def logged_table(logged: DecisionLog) -> Any:
    """Logged decisions as Arrow keeps them."""
    pa, _ = pyarrow()
    count, available = len(logged), logged.available
    order = np.cumsum(available, axis=1) - 1  # where each arm stands among those that were offered
    rows = np.arange(count)
    texts = bool(logged.ids[:, 1].any())
    keys = key_bytes(logged.ids)
    columns: dict[str, Any] = {
        "id": [key.hex() for key in keys] if texts else pa.array(logged.ids[:, 0].astype(np.int64)),
        "policy": pa.DictionaryArray.from_arrays(logged.batches.astype(np.int32), pa.array(logged.batch_names)),
        "propensity": logged.propensities,
        "reward": pa.array(logged.rewards, from_pandas=True),
        "arm_index": order[rows, logged.arm_indices],
    }
    if texts:
        columns["key"] = pa.array(keys, pa.binary(16))
    if logged.features is not None:
        vectors = pa.array(np.ascontiguousarray(logged.features).reshape(-1))
        columns["features"] = pa.FixedSizeListArray.from_arrays(vectors, logged.features.shape[1])
    if logged.contexts is not None:
        columns["contexts"] = _lists(logged.contexts[available].reshape(-1), available, logged.contexts.shape[2])
    if logged.codes is not None and logged.arms is not None:
        columns["names"] = _names(logged)
        columns["arm"] = pa.array(logged.chosen_names)
    if logged.behavior_probs is not None:
        columns["behavior_probs"] = _lists(logged.behavior_probs[available], available)
    if logged.baselines is not None:
        columns["baseline"] = _baselines(logged, order)
    if logged.times is not None:
        columns["time"] = pa.array(logged.times, from_pandas=True)
    known = logged.contexts is not None or logged.codes is not None or logged.behavior_probs is not None
    if not known or (order != np.arange(available.shape[1]))[available].any():
        columns["available"] = _lists(available.reshape(-1), np.ones_like(available))
    table = pa.table(columns)
    told = {BATCHES: json.dumps([*logged.batch_names], ensure_ascii=False)}
    told |= {ESTIMATED: logged.estimated} if logged.estimated else {}
    told |= {ARMS: json.dumps([*logged.arms], ensure_ascii=False)} if logged.arms is not None else {}
    return table.replace_schema_metadata(told)


def _lists(flat: Any, available: BoolArray, width: int = 1) -> Any:
    """A list for each row, of ``width`` values for each of its arms."""
    pa, _ = pyarrow()
    ends = np.concatenate([[0], np.cumsum(available.sum(axis=1) * width)])
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(flat))


def _names(logged: DecisionLog) -> Any:
    """The ids of the offered arms, a text for each row, of which each is made once."""
    pa, _ = pyarrow()
    assert logged.codes is not None  # as arms have ids
    assert logged.arms is not None
    different, which = np.unique(logged.codes, axis=0, return_inverse=True)
    texts = [
        json.dumps([logged.arms[code] for code in codes if code >= 0], ensure_ascii=False, separators=(",", ":"))
        for codes in different.tolist()
    ]
    indices = pa.array(which.reshape(-1).astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts)).dictionary_decode()


def _baselines(logged: DecisionLog, order: Any) -> Any:
    pa, _ = pyarrow()
    assert logged.baselines is not None
    named, rows = logged.baselines >= 0, np.arange(len(logged))
    odd = named & ~logged.available[rows, np.maximum(logged.baselines, 0)]
    if odd.any():
        at = int(np.flatnonzero(odd)[0])
        raise ParameterError(
            f"baselines must be those of offered arms; row {at} (the first is 0) has {logged.baselines[at]}."
        )
    return pa.array(order[rows, np.maximum(logged.baselines, 0)], mask=~named)
