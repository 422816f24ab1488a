"""Logs of decisions as tables, in stores, Parquet, CSV, dsjson of Vowpal Wabbit and obp; their sums."""

from rareswitch.core import find_parts
from rareswitch.log.batch_sums import HeldOut, summarize, summarize_source
from rareswitch.log.decision_log import DecisionLog, Source, read_all
from rareswitch.log.dsjson import dsjson_records, read_dsjson, write_dsjson
from rareswitch.log.formats import ENDINGS, format_of, read, write
from rareswitch.log.importing import ImportReport, import_parts
from rareswitch.log.obp import from_obp, to_obp
from rareswitch.log.parquet import ParquetLog
from rareswitch.log.parts import log_schema
from rareswitch.log.stored import KeptRecord, StoredBatch, StoredLog, check_newest
from rareswitch.log.tables import estimate_propensities, read_csv, write_csv
from rareswitch.log.write import LogWriter, export_parts, write_decisions, write_log, write_part

__all__ = ["ENDINGS", "DecisionLog", "HeldOut", "ImportReport", "LogWriter"]
__all__ += ["KeptRecord", "ParquetLog", "Source", "StoredBatch", "StoredLog", "check_newest", "dsjson_records"]
__all__ += ["estimate_propensities", "export_parts", "find_parts", "format_of", "from_obp", "import_parts"]
__all__ += ["log_schema", "read", "read_all", "read_csv", "read_dsjson", "summarize"]
__all__ += [
    "summarize_source",
    "to_obp",
    "write",
    "write_csv",
    "write_decisions",
    "write_dsjson",
    "write_log",
    "write_part",
]
