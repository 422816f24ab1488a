"""Logs of others, in and out: obp's dictionaries, VW's dsjson, CSV and Parquet."""

from rareswitch.exchange.csv_files import read_csv, write_csv
from rareswitch.exchange.dsjson import read_dsjson, write_dsjson
from rareswitch.exchange.dsjson_lines import dsjson_records
from rareswitch.exchange.estimated import estimate_propensities
from rareswitch.exchange.formats import ENDINGS, format_of, read, whole, write
from rareswitch.exchange.obp import from_obp, to_obp

__all__ = ["ENDINGS", "dsjson_records", "estimate_propensities", "format_of", "from_obp", "read", "read_csv"]
__all__ += ["read_dsjson", "to_obp", "whole", "write", "write_csv", "write_dsjson"]
