"""What is learned from: logs in Parquet and stores, reduced to summaries on any executor."""

from rareswitch.log.exporting import export_parts
from rareswitch.log.held_out import HeldOut
from rareswitch.log.import_report import ImportReport
from rareswitch.log.importing import import_parts
from rareswitch.log.log_report import Earlier, LogReport
from rareswitch.log.log_summary import LogSummary, summarize_log
from rareswitch.log.logged import DecisionLog
from rareswitch.log.logged_file import write_logged
from rareswitch.log.parquet_source import ParquetLog
from rareswitch.log.places import find_parts
from rareswitch.log.schema import log_schema
from rareswitch.log.source import Source
from rareswitch.log.stored import StoredLog, check_newest
from rareswitch.log.version import summarize_version
from rareswitch.log.warm import summarize_source
from rareswitch.log.writer import LogWriter, write_part

__all__ = ["DecisionLog", "Earlier", "HeldOut", "ImportReport", "LogReport", "LogSummary", "LogWriter", "ParquetLog"]
__all__ += ["Source", "StoredLog", "check_newest"]
__all__ += ["export_parts", "find_parts"]
__all__ += ["import_parts", "log_schema", "summarize_log", "summarize_source", "summarize_version"]
__all__ += ["write_logged", "write_part"]
