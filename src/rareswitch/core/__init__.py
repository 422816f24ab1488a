"""What everything else stands on: arrays and their checks, context sets, randomness, sums, ids, files and executors."""

from rareswitch.core import codec
from rareswitch.core.choosing import gather, highest, keep_intervals, largest, pass_layers, workspace
from rareswitch.core.codec import canonical_json, check_value_count, decoding, encode, kind, name_of, plain_json
from rareswitch.core.executors import make_executor, run_shards
from rareswitch.core.files import class_of_file, lock, pyarrow, read_whole, reading, replacing, write_whole
from rareswitch.core.filesystems import exists, file_size, find_parts, is_url, making_file
from rareswitch.core.parquet_files import opened_parquet, seal_footer
from rareswitch.core.rng import (
    LONGEST,
    KeyArray,
    id_keys,
    key_bytes,
    keys_of_bytes,
    normals,
    one_key,
    sample_order,
    stream_key,
    text_keys,
    uniforms,
    uniforms_at,
    unit_at,
)
from rareswitch.core.stats import (
    TIE,
    Expansion,
    Stats,
    absorb,
    first_highest,
    inverse_root,
    log_growth,
    semidefinite_root,
)
from rareswitch.core.structs import (
    SCHEMA_VERSION,
    Result,
    data_frame,
    draw_result,
    percent_text,
    plain_number,
    result_text,
    table,
)
from rareswitch.core.table_files import Table, TableCell, cell_text, is_number, read_table
from rareswitch.core.validation import (
    EXACT,
    LARGEST_PARAMETER,
    LARGEST_SCALE,
    BoolArray,
    ContextSets,
    FloatArray,
    IntArray,
    Sets,
    SetsLike,
    context_sets,
    count_of,
    finite_array,
    frozen,
    number,
    owned,
    parameters,
    probability_vector,
    read_only,
    sealed,
    set_size,
    sets_of,
    summable,
    symmetric_matrices,
    unit_ball,
    unmasked,
    vector,
    whole,
)

__all__ = ["EXACT", "BoolArray", "ContextSets", "Expansion", "FloatArray", "IntArray", "KeyArray"]
__all__ += [
    "LARGEST_PARAMETER",
    "LARGEST_SCALE",
    "LONGEST",
    "SCHEMA_VERSION",
    "TIE",
    "Result",
    "Sets",
    "SetsLike",
    "class_of_file",
]
__all__ += ["Stats", "Table", "TableCell", "absorb", "canonical_json", "cell_text", "check_value_count", "codec"]
__all__ += ["context_sets", "count_of", "data_frame", "decoding", "draw_result", "encode", "exists", "file_size"]
__all__ += ["find_parts", "finite_array", "first_highest", "frozen", "gather", "highest", "id_keys", "inverse_root"]
__all__ += ["is_number", "is_url", "keep_intervals", "key_bytes", "keys_of_bytes", "kind", "largest", "lock"]
__all__ += ["log_growth", "make_executor", "making_file", "name_of", "normals", "number", "one_key", "opened_parquet"]
__all__ += [
    "owned",
    "parameters",
    "pass_layers",
    "percent_text",
    "plain_json",
    "plain_number",
    "probability_vector",
    "pyarrow",
]
__all__ += ["read_only", "read_table", "read_whole", "reading", "replacing", "result_text", "run_shards"]
__all__ += [
    "sample_order",
    "seal_footer",
    "sealed",
    "semidefinite_root",
    "set_size",
    "sets_of",
    "stream_key",
    "summable",
]
__all__ += ["symmetric_matrices", "table", "text_keys", "uniforms", "uniforms_at", "unit_at", "unit_ball", "unmasked"]
__all__ += ["vector", "whole", "workspace", "write_whole"]
