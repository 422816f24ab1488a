"""The tables of experiments, the same for SQLite and PostgreSQL; several experiments share one database.

What is kept is only added to. Few columns are filled in later: the decision of a reward that came first, and by which
reward another one was superseded. Sequence numbers (``seq``) order decisions, and rewards, as they came.
"""

from collections.abc import Mapping

from rareswitch.errors import StoreError
from rareswitch.version import __version__

#: The version of the schema that this release reads and writes.
SCHEMA = 1

#: Columns by table; those that may be empty have a question mark, those of the primary key an asterisk.
_TABLES = {
    "schema": "*version:number",
    "experiments": "*number:counter name:text description:text",
    "versions": "*experiment:number *number:number policy:data state:data summaries:data report:text signature:text "
    "time:real",
    "updates": "*experiment:number *parent:number plan:text decisions:large rewards:large",
    "refusals": "*experiment:number *parent:number *number:number report:text",
    # waits: until it is activated, and activated: when; they and the group of a holdout are not used yet
    "decisions": "*seq:sequence experiment:number key:data id:text version:number arm:text arm_index:number "
    "propensity:real features:data digest:data time:real rank:real ?baseline:number checksum:large "
    "?waits:number ?activated:real ?holdout:text",
    "contexts": "*seq:large experiment:number version:number rank:real data:data ?names:text checksum:large",
    # the record of a request as it came, which may be personal: apart, so that it can be deleted; not used yet
    "records": "*seq:large experiment:number ?record:text",
    "rewards": "*seq:sequence experiment:number key:data id:text event:text value:real time:real ?decision:large "
    "?version:number ?superseded:large checksum:large",
    "counters": "*experiment:number *name:text count:large",
    "tallies": "*experiment:number decisions:large rewards:large counted:text",
}
#: Indices by name, which begins with that of the table: columns, and which rows are in it.
_INDICES = {
    "UNIQUE experiments_name": ("name", ""),
    "UNIQUE decisions_key": ("experiment, key", ""),
    "decisions_version": ("experiment, version, seq, time", ""),
    "decisions_time": ("experiment, time", ""),
    "contexts_rank": ("experiment, version, rank, seq", ""),
    "UNIQUE rewards_key": ("experiment, key, event", "superseded IS NULL"),
    "rewards_unmatched": ("experiment, key", "decision IS NULL"),
    "rewards_decision": ("experiment, version, decision, seq, superseded, value, time, checksum", ""),
}


def statements(kinds: Mapping[str, str]) -> list[str]:
    """What makes all tables, by what a database calls the kinds of columns.

    >>> statements(dict.fromkeys(("number", "counter", "sequence", "large", "real", "text", "data"), "INTEGER"))[0]
    'CREATE TABLE rareswitch_schema (version INTEGER NOT NULL, PRIMARY KEY (version))'
    """
    made = []
    for table, text in _TABLES.items():
        columns = [column.partition(":") for column in text.split()]
        lines = [
            f"{name.lstrip('*?')} {kinds[kind]}{'' if name.startswith('?') else ' NOT NULL'}"
            for name, _, kind in columns
        ]
        key = ", ".join(name[1:] for name, _, _ in columns if name.startswith("*"))
        made.append(f"CREATE TABLE rareswitch_{table} ({', '.join(lines)}, PRIMARY KEY ({key}))")
    for title, (index, where) in _INDICES.items():
        unique, _, name = title.rpartition(" ")
        on = f"rareswitch_{name.partition('_')[0]} ({index}){where and f' WHERE {where}'}"
        made.append(f"CREATE {unique} INDEX rareswitch_{name} ON {on}".replace("  ", " "))
    return [*made, f"INSERT INTO rareswitch_schema (version) VALUES ({SCHEMA})"]


def check_schema(version: int, shown: str) -> None:
    """Refuse a database of another release."""
    if version != SCHEMA:
        raise StoreError(
            f"{shown} has schema version {version}; rareswitch {__version__} reads and writes version {SCHEMA}. Open "
            "it with the release of rareswitch that made it, or with a newer one."
        )
