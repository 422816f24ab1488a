"""Logs of decisions as tables, in stores, Parquet, CSV, dsjson of Vowpal Wabbit and obp; their sums."""

from rareswitch.core import find_parts
from rareswitch.log.batch_sums import HeldOut, summarize, summarize_source
from rareswitch.log.dsjson import dsjson_records, read_dsjson, write_dsjson
from rareswitch.log.formats import ENDINGS, format_of, read, write
from rareswitch.log.importing import ImportReport, import_parts
from rareswitch.log.obp import from_obp, to_obp
from rareswitch.log.parquet import ParquetLog
from rareswitch.log.parts import log_schema
from rareswitch.log.source import Source, read_all
from rareswitch.log.stored import KeptRecord, StoredLog, check_newest
from rareswitch.log.tables import estimate_propensities, from_frame, read_csv, write_csv
from rareswitch.log.write import LogWriter, export_parts, write_decisions, write_log, write_part

__all__ = ["ENDINGS", "HeldOut", "ImportReport", "KeptRecord", "LogWriter"]
__all__ += ["ParquetLog", "Source", "StoredLog", "check_newest", "dsjson_records"]
__all__ += ["estimate_propensities", "export_parts", "find_parts", "format_of", "from_frame", "from_obp"]
__all__ += ["import_parts"]
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
