"""Reads an SQLite file through ADBC in a process of its own, for processes that have the file open.

ADBC brings its own copy of the SQLite library. Two copies that use one file in one process undo each other's locks
(https://www.sqlite.org/howtocorrupt.html, 2.2.1), so a process that has the file open asks another one. That one runs
the script below, which needs nothing of this library and so starts in the time that pyarrow takes: lines of JSON with a
path and a query come in, Arrow streams go out. It ends when its input does, as when this process is killed.
"""

import json
import subprocess
import sys
import threading
from typing import Any

from rareswitch.errors import StoreError
from rareswitch.files import pyarrow

_SCRIPT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import adbc_driver_sqlite.dbapi as adbc, pyarrow
for line in sys.stdin.buffer:
    path, query = json.loads(line)
    with adbc.connect(f"file:{path}?mode=ro") as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": 65536})
        cursor.execute(query)
        table = cursor.fetch_arrow_table()
    with pyarrow.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)
    sys.stdout.buffer.flush()
"""


class SqliteReader:
    """A process that reads; started when the first table is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def table(self, path: str, query: str) -> Any:
        """What a query gives, as an Arrow table."""
        pa, _ = pyarrow()
        with self._lock:
            if self._process is None:
                command = [sys.executable, "-I", "-c", _SCRIPT, json.dumps(sys.path)]
                pipe = subprocess.PIPE
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
            asked, answers = self._process.stdin, self._process.stdout
            assert asked is not None  # as they are pipes
            assert answers is not None
            try:
                asked.write(json.dumps([path, query]).encode() + b"\n")
                asked.flush()
                return pa.ipc.open_stream(answers).read_all()
            except (OSError, pa.ArrowInvalid) as error:
                lines = self._end().decode(errors="replace").splitlines()
                said = next((line for line in reversed(lines) if "Error: " in line), str(error))
                damaged = "The file is damaged: restore it from a copy." if "malformed" in said else ""
                raise StoreError(f"decisions cannot be read from {path}: {said}. {damaged}".strip()) from error

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._end()

    def _end(self) -> bytes:
        assert self._process is not None
        process, self._process = self._process, None
        try:
            return process.communicate(timeout=5.0)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[1]
