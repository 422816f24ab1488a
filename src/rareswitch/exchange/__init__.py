"""Logs of others, in and out: obp's dictionaries, VW's dsjson, CSV and Parquet."""
