"""Changes of a store by somebody who knows its tables and checksums."""

from typing import Any

from rareswitch.store import Store


def edit_decision(store: Store, at: int, **changes: Any) -> None:
    """Change a decision, by its place among all."""

    def call(connection: Any) -> None:
        seq, row, _ = store._page(connection, 0, store.marks())[at]
        for table in ("decisions", "contexts"):
            connection.execute(f"DELETE FROM rareswitch_{table} WHERE seq = ?", (seq,))
        (new,) = store._insert_decisions(connection, [row._replace(**changes)]).values()
        for table in ("decisions", "contexts"):
            connection.execute(f"UPDATE rareswitch_{table} SET seq = ? WHERE seq = ?", (seq, new))

    store._write(call)
