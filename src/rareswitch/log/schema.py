"""What a log looks like: Parquet files, the parts, with one row a decision."""

from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError, MissingExtraError
from rareswitch.validation import whole

ROWS = 1 << 16
"""Rows of a row group that is written, and rows that are read at a time."""
NEEDED = ("decision", "policy", "features", "propensity", "reward")
"""Columns that every part has."""
CONTEXTS = "contexts"
"""The column that a part may lack."""
_BUFFER = 1 << 20
"""Bytes of a column that are read at a time."""


def log_schema(dim: int) -> Any:
    """The Arrow schema of a log of ``dim`` features.

    - ``decision``: int64, its number over the whole run, from 0;
    - ``policy``: string, the id of the policy that made it;
    - ``features``: fixed_size_list<double>[dim], the vector of the arm that was chosen;
    - ``propensity``: double in (0, 1], the probability with which the policy chose it;
    - ``reward``: double, null while it is not known;
    - ``contexts``: list<double>, the living arms that were offered, one after the other; needed only for the decisions
      that :meth:`~rareswitch.learner.Learner.sampled` names, null elsewhere.

    >>> log_schema(3).names
    ['decision', 'policy', 'features', 'propensity', 'reward', 'contexts']
    """
    pa, _ = pyarrow()
    number = pa.field("element", pa.float64(), nullable=False)
    return pa.schema(
        [
            pa.field("decision", pa.int64(), nullable=False),
            pa.field("policy", pa.dictionary(pa.int32(), pa.string()), nullable=False),
            pa.field("features", pa.list_(number, whole("dim", dim)), nullable=False),
            pa.field("propensity", pa.float64(), nullable=False),
            pa.field("reward", pa.float64()),
            pa.field(CONTEXTS, pa.list_(number)),
        ]
    )


def check_schema(path: str | Path, schema: Any, dim: int) -> None:
    """Refuse a file whose columns are not those of a log of ``dim`` features; other columns are let be."""
    pa, _ = pyarrow()
    types = pa.types
    names = [name for name in schema.names if name in NEEDED or name == CONTEXTS]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise FileFormatError(
            f"{path}: a log needs the columns {', '.join(NEEDED)}; here {_listed(missing)} missing. It has "
            f"{', '.join(schema.names) or 'none'}."
        )
    if len(set(names)) != len(names):
        raise FileFormatError(f"{path}: column names must differ; got {', '.join(schema.names)}.")
    kinds = {name: schema.field(name).type for name in names}
    policy = kinds["policy"]
    policy = policy.value_type if types.is_dictionary(policy) else policy
    features = kinds["features"]
    rules = {
        "decision": (types.is_int64(kinds["decision"]), "int64"),
        "policy": (types.is_string(policy) or types.is_large_string(policy), "string, or a dictionary of strings"),
        "features": (_is_list(types, features), f"fixed_size_list<double>[{dim}], or list<double>"),
        "propensity": (types.is_float64(kinds["propensity"]), "double"),
        "reward": (types.is_float64(kinds["reward"]), "double"),
        CONTEXTS: (CONTEXTS not in kinds or _is_list(types, kinds[CONTEXTS]), "list<double>"),
    }
    for name, (right, wanted) in rules.items():
        if not right:
            raise FileFormatError(f"{path}: column '{name}' must be {wanted}; it is {kinds[name]}. Cast it.")
    if types.is_fixed_size_list(features) and features.list_size != dim:
        raise FileFormatError(
            f"{path}: the learner is for {dim} features, and column 'features' has {features.list_size}."
        )


def open_part(path: str, metadata: Any = None) -> Any:
    """A Parquet file, to be read a megabyte at a time however long its row groups are, and with its checksums."""
    _, parquet = pyarrow()
    metadata = parquet.read_metadata(path) if metadata is None else metadata
    columns = {metadata.schema.column(c).path for c in range(metadata.num_columns)}
    return parquet.ParquetFile(
        path,
        metadata=metadata,
        read_dictionary=[name for name in ("policy",) if name in columns],
        buffer_size=_BUFFER,
        pre_buffer=False,
        page_checksum_verification=True,
    )


def pyarrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            "logs are Parquet files. Install what they need with: pip install 'rareswitch[parquet]'"
        ) from error
    return pa, parquet


def _is_list(types: Any, kind: Any) -> bool:
    listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(listed and types.is_float64(kind.value_type))


def _listed(names: list[str]) -> str:
    return f"{names[0]} is" if len(names) == 1 else f"{', '.join(names)} are"
