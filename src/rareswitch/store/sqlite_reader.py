"""Reads an SQLite file through ADBC in a process of its own, for processes that have the file open.

ADBC brings its own copy of the SQLite library. Two copies that use one file in one process undo each other's locks
(https://www.sqlite.org/howtocorrupt.html, 2.2.1), so a process that has the file open asks another one. That one runs
the script below, which needs nothing of this library and so starts in the time that pyarrow takes. Lines of JSON with
an address, queries and names of files come in; it writes an Arrow file for each query, which is mapped into memory, and
answers with an empty line. It ends when its input does, as when this process is killed, and when it was not asked for a
minute.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from rareswitch.errors import StoreError
from rareswitch.files import pyarrow
from rareswitch.store.sqlite_files import uri

_SCRIPT = """
import json, signal, sys
sys.path[:] = json.loads(sys.argv[1])
import adbc_driver_sqlite.dbapi as adbc, pyarrow
alarm = getattr(signal, "alarm", lambda seconds: None)
for line in sys.stdin.buffer:
    alarm(0)
    address, queries, files = json.loads(line)
    with adbc.connect(address) as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": 65536})
        for query, file in zip(queries, files):
            cursor.execute(query)
            table = cursor.fetch_arrow_table()
            with pyarrow.ipc.new_file(file, table.schema) as written:
                written.write_table(table)
    print(flush=True)
    alarm(60)
"""


#: By which it ends when it was not asked for a minute; there is none on Windows.
_ALARM = getattr(signal, "SIGALRM", 0)


class SqliteReader:
    """A process that reads; started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """In a process that was forked: the reader is its parent's, who alone may ask it, wait for it and end it."""
        self._lock = threading.Lock()  # which another thread of the parent may hold
        if self._process is not None:
            self._process.returncode = 0  # so that nobody here waits for it
            self._process = None

    def tables(self, path: str, queries: Sequence[str]) -> list[Any]:
        """What queries give, as Arrow tables."""
        with self._lock, TemporaryDirectory(prefix="rareswitch-", ignore_cleanup_errors=True) as folder:
            return self._tables(path, queries, [os.path.join(folder, str(k)) for k in range(len(queries))], again=True)

    def _tables(self, path: str, queries: Sequence[str], files: list[str], *, again: bool) -> list[Any]:
        pa, _ = pyarrow()
        process = self._process = self._started()
        asked, answers = process.stdin, process.stdout
        assert asked is not None  # as they are pipes
        assert answers is not None
        try:
            asked.write(json.dumps([uri(path), queries, files]).encode() + b"\n")
            asked.flush()
            if not answers.readline():
                raise OSError("the process that reads has ended")
            return [pa.ipc.open_file(pa.memory_map(file)).read_all() for file in files]
        except (OSError, pa.ArrowInvalid) as error:
            lines = self._end().decode(errors="replace").splitlines()
            if again and process.returncode == -_ALARM:  # its minute was over at this very moment
                return self._tables(path, queries, files, again=False)
            said = next((line for line in reversed(lines) if "Error: " in line), str(error))
            damaged = "The file is damaged: restore it from a copy." if "malformed" in said else ""
            raise StoreError(f"decisions cannot be read from {path}: {said}. {damaged}".strip()) from error
        except BaseException:  # Ctrl-C, no memory: the rest of this answer must not be taken for the next one
            process.kill()
            self._end()
            raise

    def start(self) -> None:
        """Start the process ahead of the first table, as it takes a moment."""
        with self._lock:
            self._process = self._started()

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is not None:
            return self._process
        command, pipe = [sys.executable, "-I", "-c", _SCRIPT, json.dumps(sys.path)], subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._process.kill()  # it only reads
                self._end()

    def _end(self) -> bytes:
        assert self._process is not None
        process, self._process = self._process, None
        try:
            return process.communicate(timeout=5.0)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[1]
