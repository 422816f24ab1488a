"""What a log looks like: Parquet files, the parts, with one row a decision."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rareswitch.core import opened_parquet, pyarrow, whole
from rareswitch.errors import FileFormatError

#: Rows of a row group that is written, and rows that are read at a time.
ROWS = 1 << 16
#: Columns that every part has.
NEEDED = ("id", "policy", "features", "propensity", "reward")
#: Columns that an experiment adds, and their types.
MORE = {"arm": "string", "arm_index": "int64", "digest": "binary", "baseline": "int64", "names": "string"}
#: Where the schema of a part says, in JSON, what counts as a reward: window, in seconds, and default.
COUNTING = b"rareswitch.rewards"
#: Where it says how propensities were estimated.
ESTIMATED = b"rareswitch.estimated"
#: About how many bytes of all columns are held at a time.
_BYTES = 1 << 25
#: Bytes of texts that are unpacked at a time.
_TEXTS = 1 << 28


def log_schema(dim: int, *, strings: bool = False, times: bool = False) -> Any:
    """The Arrow schema of a log of ``dim`` features.

    - ``id``: int64 or string, the name of the decision, unique under its policy;
    - ``policy``: string, the id of the policy that made it;
    - ``features``: fixed_size_list<double>[dim], the vector of the arm that was chosen;
    - ``propensity``: double in (0, 1], the probability with which the policy chose it;
    - ``reward``: double, or other numbers or bool, null while it is not known;
    - ``contexts``: list<double>, the available arms, one after the other; null where they were not kept;
    - ``time`` and ``reward_time``: timestamp, or double in seconds; for an attribution window only.

    >>> log_schema(3).names
    ['id', 'policy', 'features', 'propensity', 'reward', 'contexts']
    """
    pa, _ = pyarrow()
    number = pa.field("element", pa.float64(), nullable=False)
    return pa.schema(
        [
            pa.field("id", pa.string() if strings else pa.int64(), nullable=False),
            pa.field("policy", pa.dictionary(pa.int32(), pa.string()), nullable=False),
            pa.field("features", pa.list_(number, whole("dim", dim)), nullable=False),
            pa.field("propensity", pa.float64(), nullable=False),
            pa.field("reward", pa.float64()),
            pa.field("contexts", pa.list_(number)),
            *([pa.field("time", pa.float64()), pa.field("reward_time", pa.float64())] if times else []),
        ]
    )


_TEXT, _NUMBERS = "(large_)?string", r"(large_|fixed_size_)?list<\w+: double( not null)?>(\[\d+\])?"
#: What each column may be, as Arrow writes its types and as errors say it.
_KINDS = {
    "id": (f"int64|{_TEXT}", "int64 or string"),
    "policy": (_TEXT, "string, or a dictionary of strings"),
    "features": (_NUMBERS, "fixed_size_list<double>[{dim}], or list<double>"),
    "propensity": ("double", "double"),
    "reward": ("double|float|bool|u?int(8|16|32|64)", "a number (double, float, whole numbers) or bool"),
    "contexts": (_NUMBERS, "list<double>"),
    "time": (r"timestamp\[.*|double", "a timestamp, or double in seconds"),
    "behavior_probs": (_NUMBERS, "list<double>"),  # of all offered arms
    "key": (r"fixed_size_binary\[16\]", "fixed_size_binary[16]"),  # of ids that are not written as such
    **{name: (f"(large_)?{kind}", kind) for name, kind in MORE.items()},
    "reward_time": (r"timestamp\[.*|double", "a timestamp, or double in seconds"),
}


def check_columns(path: str, schema: Any, dim: int | None, needed: Sequence[str] = NEEDED) -> None:
    """Refuse a file whose columns are not those of a log of ``dim`` features; other columns are let be."""
    names = [name for name in schema.names if name in _KINDS]
    missing = [name for name in needed if name not in names]
    if missing:
        raise FileFormatError(
            f"{path}: a log needs the columns {', '.join(needed)}; here {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. It has {', '.join(schema.names) or 'none'}."
        )
    if len(set(names)) != len(names):
        raise FileFormatError(f"{path}: column names must differ; got {', '.join(schema.names)}.")
    for name in names:
        kind, (right, wanted) = _plain(schema.field(name).type), _KINDS[name]
        if not re.fullmatch(right, str(kind)):
            raise FileFormatError(
                f"{path}: column '{name}' must be {wanted.format(dim=dim)}; it is {kind}. Cast or rename it."
            )
    size = getattr(schema.field("features").type, "list_size", dim) if "features" in names else dim
    if size != dim and dim is not None:
        raise FileFormatError(f"{path}: the learner is for {dim} features, and column 'features' has {size}.")


def _plain(kind: Any) -> Any:
    """The type of the values of a column; texts may be read as codes of a dictionary."""
    pa, _ = pyarrow()
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@contextmanager
def open_part(path: str, dim: int | None, *, needed: Sequence[str] = NEEDED) -> Iterator[Any]:
    """A part of ``dim`` features, any number where it is None, and checked to be one with the columns it needs."""
    with opened_parquet(path, _KINDS) as file:
        check_columns(path, file.schema_arrow, dim, needed)
        yield file


def blocks(file: Any, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """The rows of a part with the number of the first of them, of one row group at a time; of the columns it has.

    There are at most 65,536, and fewer where rows are long: the file alone says how sums are split.
    """
    first, names = 0, file.schema_arrow.names
    columns = [name for name in columns if name in names]
    for group in range(file.metadata.num_row_groups):
        held = file.metadata.row_group(group)  # not asked for its columns: malformed ones would end the process
        count = max(64, min(ROWS, _BYTES * held.num_rows // max(1, held.total_byte_size)))
        stop = first + held.num_rows
        for batch in file.iter_batches(count, row_groups=[group], columns=columns, use_threads=False):
            for block in _unpacked(batch):
                yield first, block
                first += block.num_rows
        if first != stop:  # pages whose headers are damaged may be passed over
            raise OSError(f"it tells of {stop} rows up to here, and {first} are found")


def _unpacked(batch: Any) -> Iterator[Any]:
    """The rows of a batch with texts in place of their codes, so many at a time that these fit into memory."""
    pa, _ = pyarrow()
    names = batch.schema.names
    if "policy" in names and not pa.types.is_dictionary(batch.schema.field("policy").type):
        encoded = batch.column("policy").dictionary_encode()
        batch = batch.set_column(names.index("policy"), "policy", encoded)
    coded = [
        name
        for name, kind in zip(batch.schema.names, batch.schema.types, strict=True)
        if pa.types.is_dictionary(kind) and name != "policy"
    ]
    if not coded:
        yield batch
        return
    from pyarrow import compute

    size = 0
    for name in coded:
        column = batch.column(name)
        lengths = compute.binary_length(column.dictionary).take(column.indices)
        size += compute.sum(lengths).as_py() or 0
    if size > _TEXTS and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _unpacked(batch.slice(0, half))
        yield from _unpacked(batch.slice(half))
        return
    columns = [
        column.dictionary_decode() if name in coded else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
