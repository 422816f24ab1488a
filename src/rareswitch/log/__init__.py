"""What is learned from: logs in Parquet and stores, reduced to summaries on any engine."""

from rareswitch.log.places import find_parts
from rareswitch.log.schema import log_schema
from rareswitch.log.update import Update, update
from rareswitch.log.update_report import Earlier, UpdateReport
from rareswitch.log.version import summarize_version
from rareswitch.log.writer import LogWriter, write_part

__all__ = ["Earlier", "LogWriter", "Update", "UpdateReport", "find_parts", "log_schema", "summarize_version", "update"]
__all__ += ["write_part"]
