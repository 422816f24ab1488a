"""From logs to the next policy: deployments on disk, logs in Parquet, and the update at a batch's end."""

from rareswitch.log.deployment import Deployment
from rareswitch.log.parts import PartReport, read_part
from rareswitch.log.schema import log_schema
from rareswitch.log.update import Report, Update, find_parts, update
from rareswitch.log.writer import LogWriter, write_part

__all__ = [
    "Deployment",
    "LogWriter",
    "PartReport",
    "Report",
    "Update",
    "find_parts",
    "log_schema",
    "read_part",
    "update",
    "write_part",
]
