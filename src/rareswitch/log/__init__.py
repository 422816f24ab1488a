"""Logs in Parquet, and the update that learns from them."""

from rareswitch.log.schema import log_schema
from rareswitch.log.update import Update, find_parts, update
from rareswitch.log.update_report import Earlier, UpdateReport
from rareswitch.log.writer import LogWriter, write_part

__all__ = ["Earlier", "LogWriter", "Update", "UpdateReport", "find_parts", "log_schema", "update", "write_part"]
