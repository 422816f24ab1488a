"""An experiment in a folder of plain files: policies that servers can be given, and Parquet parts, one a call."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any

from rareswitch.errors import FileFormatError, StoreError
from rareswitch.files import lock, making_folder, pyarrow
from rareswitch.store.folder_files import (
    GROUP,
    last_number,
    place_of,
    read_decisions,
    read_json,
    read_long,
    read_rewards,
    read_version,
    where_is,
    write_decisions,
    write_json,
    write_rewards,
    write_version,
)
from rareswitch.store.memory import MemorySlice, MemoryStore
from rareswitch.store.store import Counts, DecisionRow, Marks, RewardRow, Totals, VersionRow, exists, parentless

#: Of what is written. Folders of schema 1, in which no update was ever refused, become this when one is.
SCHEMA = 2
READ = (1, 2)
EXPERIMENT, LOCK, REPEATS = "experiment.json", "lock", "repeats.json"
FOLDERS = ("versions", "updates", "decisions", "rewards")


class FolderStore:
    """An experiment in the folder ``path/name``.

    Every call that adds something writes one file, whole and on the disk when it returns: a folder is for callers with
    many decisions at a time. One process writes at a time, under a lock; what others wrote is noticed. While it is open
    all but context sets is held in memory too, about a kilobyte a decision. A new folder can be read and written by its
    owner alone.

    ::

        experiment.json            what it was created with
        versions/0001/             policy, state, summaries and report; a folder for every version
        updates/0001.json          what the update of a version looks at, and why others were refused
        decisions/00000001.parquet
        rewards/00000001.parquet
    """

    def __init__(self, path: str | Path, name: str) -> None:
        self.url, self.name = f"folder:{path}", name
        self.path = Path(path).absolute() / name
        self._lock = RLock()
        self._image: MemoryStore | None = None
        self._parts = {"decisions": 0, "rewards": 0}

    def create(self, description: str, first: VersionRow) -> None:
        pyarrow()
        self._refuse_experiment()
        try:
            with making_folder(self.path) as temporary:
                temporary.chmod(0o700)  # the seed is in it, by which decisions can be foretold
                for folder in FOLDERS:
                    (temporary / folder).mkdir()
                (temporary / LOCK).touch()
                write_version(_version_folder(temporary, 1), first)
                told = {"schema": SCHEMA, "name": self.name, "description": description}
                write_json(temporary / EXPERIMENT, told)
        except FileFormatError:
            self._refuse_experiment()  # it was made meanwhile
            raise

    def _refuse_experiment(self) -> None:
        if (self.path / EXPERIMENT).exists():
            raise exists(self.name, self.url)

    def description(self) -> str:
        with self._lock:
            return self._current().description()

    def head(self) -> int:
        with self._lock:
            return self._current().head()

    def versions(self, after: int = 0) -> list[VersionRow]:
        with self._lock:
            return self._current().versions(after)

    def add_decisions(self, rows: Sequence[DecisionRow]) -> list[DecisionRow]:
        with self._writing() as image:
            before = image.find([row.key for row in rows])
            new: dict[bytes, DecisionRow] = {}
            for row, found in zip(rows, before, strict=True):
                if found is None:
                    new.setdefault(row.key, row)
            if new:
                part = self._parts["decisions"] + 1
                write_decisions(self._part("decisions", part), [*new.values()])
                self._take_decisions(image, part, [*new.values()])
            self._count_repeats("decisions", len(rows) - len(new))
            kept = iter(self._whole([found[0] for found in before if found is not None]))
            return [new[row.key] if found is None else next(kept) for row, found in zip(rows, before, strict=True)]

    def add_rewards(self, rows: Sequence[RewardRow], *, overwrite: bool = False) -> list[RewardRow | None]:
        with self._writing() as image:
            before = image.add_rewards(rows, overwrite=overwrite)
            pairs = list(zip(rows, before, strict=True))
            new = [row for row, old in pairs if old is None or (overwrite and old.value != row.value)]
            try:
                if new:
                    write_rewards(self._part("rewards", self._parts["rewards"] + 1), new)
                    self._parts["rewards"] += 1
                self._count_repeats("rewards", sum(old is not None and old.value == row.value for row, old in pairs))
            except BaseException:
                self._image = None  # it has rewards that the folder may not have
                raise
            return before

    def find(self, keys: Sequence[bytes]) -> list[tuple[DecisionRow, list[RewardRow]] | None]:
        with self._lock:
            found = self._current().find(keys)
            whole = iter(self._whole([one[0] for one in found if one is not None]))
            return [None if one is None else (next(whole), one[1]) for one in found]

    def counts(self, upto: Marks | None = None) -> list[Counts]:
        with self._lock:
            return self._current().counts(upto)

    def totals(self) -> Totals:
        with self._lock:
            repeats = self._repeats()
            return (
                self._current()
                .totals()
                ._replace(repeated_decisions=repeats["decisions"], repeated_rewards=repeats["rewards"])
            )

    def cautions(self) -> dict[tuple[str, str], int]:
        with self._lock:
            return self._current().cautions()

    def younger(self, moment: float) -> int:
        with self._lock:
            return self._current().younger(moment)

    def marks(self) -> Marks:
        with self._lock:
            return self._current().marks()

    def started(self, parent: int) -> bool:
        with self._lock:
            return parent == self._current().head() and "plan" in self._frozen(parent)

    def start_update(self, parent: int, plan: str) -> tuple[str, Marks] | None:
        with self._writing() as image:
            if parent != image.head():
                return None
            frozen = self._frozen(parent)
            if "plan" not in frozen:
                frozen |= {"plan": plan, "marks": list(image.marks())}
                write_json(self._update(parent), frozen)
            return frozen["plan"], Marks(*frozen["marks"])

    def abandon_update(self, parent: int) -> None:
        with self._writing() as image:
            if parent != image.head():
                return
            if refusals := self._frozen(parent).get("refusals"):
                write_json(self._update(parent), {"refusals": refusals})
            else:
                self._update(parent).unlink(missing_ok=True)

    def refuse_update(self, parent: int, number: int, report: str) -> None:
        with self._writing() as image:
            refusals = self._frozen(parent).get("refusals", [])
            if parent == image.head() and number == len(refusals) + 1:
                told = read_json(self.path / EXPERIMENT)
                if told["schema"] != SCHEMA:  # first, so that no earlier release finds what it cannot read
                    write_json(self.path / EXPERIMENT, told | {"schema": SCHEMA})
                write_json(self._update(parent), {"refusals": [*refusals, report]})

    def refusals(self, parent: int) -> list[str]:
        with self._lock:
            self._current()
            return list(self._frozen(parent).get("refusals", []))

    def publish(self, version: VersionRow) -> VersionRow:
        with self._writing() as image:
            if version.number > image.head() + 1:
                raise StoreError(parentless(version.number, image.head()))
            if version.number == image.head() + 1:
                write_version(_version_folder(self.path, version.number), version)
            return self._current().versions(version.number - 1)[0]

    def slices(
        self, version: int, upto: Marks, *, sums: bool, window: float | None = None, propensities: bool = False
    ) -> list[MemorySlice]:
        with self._lock:
            return self._current().slices(version, upto, sums=sums, window=window, propensities=propensities)

    def sample(self, version: int, upto: Marks) -> Iterator[tuple[bytes, bytes]]:
        with self._lock:
            ranked = self._current().sample(version, upto)
        while some := list(islice(ranked, GROUP // 4)):
            with self._lock:
                long = self._long([place for _, place in some])
            yield from ((key, contexts) for (key, _), (contexts, _) in zip(some, long, strict=True))

    def rows(self, after: int, upto: Marks) -> Iterator[tuple[int, list[tuple[DecisionRow, list[RewardRow]]]]]:
        with self._lock:
            image = self._current()
        for last, some in image.rows(after, upto):
            for at in range(0, len(some), GROUP):
                piece = some[at : at + GROUP]
                with self._lock:
                    whole = self._whole([row for row, _ in piece])
                held = [rewards for _, rewards in piece]
                yield last - len(some) + at + len(piece), list(zip(whole, held, strict=True))

    def close(self) -> None:
        with self._lock:
            self._image = None

    def faults(self) -> list[str]:
        return []

    def backup(self, path: str | Path) -> None:
        raise StoreError(f"{self.url} is a folder: copy it while nobody writes to it, with: cp -a.")

    # what is in memory

    def _current(self) -> MemoryStore:
        """All that the folder holds by now; only what is new is read."""
        fresh = self._image is None
        image = self._begun() if self._image is None else self._image
        last = {name: last_number(self.path / name) for name in ("versions", *self._parts)} if fresh else {}
        while (folder := _version_folder(self.path, image.head() + 1)).is_dir():
            image.publish(read_version(folder))
        while (path := self._part("decisions", self._parts["decisions"] + 1)).is_file():
            self._take_decisions(image, self._parts["decisions"] + 1, read_decisions(path))
        while (path := self._part("rewards", self._parts["rewards"] + 1)).is_file():
            image.add_rewards(read_rewards(path), overwrite=True)
            self._parts["rewards"] += 1
        for name, number in last.items():
            found = image.head() if name == "versions" else self._parts[name]
            if found < number:
                raise StoreError(
                    f"{self.path / name}: number {found + 1} is missing, and there is a number {number}. Restore it "
                    "from a copy."
                )
        self._image = image
        return image

    def _begun(self) -> MemoryStore:
        if not (self.path / EXPERIMENT).is_file():
            raise StoreError(f"there is no experiment '{self.name}' in {self.url}. Create it, or correct the address.")
        told = read_json(self.path / EXPERIMENT)
        if told.get("schema") not in READ or told.get("name") != self.name:
            raise StoreError(
                f"{self.path / EXPERIMENT}: experiments in folders have schema 1 or {SCHEMA}; this one has "
                f"{told.get('schema')!r:.60} and the name {told.get('name')!r:.100}. Use a matching version of "
                "rareswitch, and the name it was created with."
            )
        self._parts = dict.fromkeys(self._parts, 0)
        image = MemoryStore(self.name)
        image.create(told["description"], read_version(_version_folder(self.path, 1)))
        return image

    def _take_decisions(self, image: MemoryStore, part: int, rows: Sequence[DecisionRow]) -> None:
        image.add_decisions(
            [
                row._replace(contexts=None if row.contexts is None else place_of(part, at), names=None)
                for at, row in enumerate(rows)
            ]
        )
        self._parts["decisions"] = part

    def _whole(self, rows: Sequence[DecisionRow]) -> list[DecisionRow]:
        """Decisions with their contexts and the names of their arms, as far as they were kept."""
        long = iter(self._long([row.contexts for row in rows if row.contexts is not None]))
        found = []
        for row in rows:
            contexts, names = (None, None) if row.contexts is None else next(long)
            found.append(row._replace(contexts=contexts, names=names))
        return found

    def _long(self, places: Sequence[bytes]) -> list[tuple[bytes, str | None]]:
        """Contexts and names of arms at these places."""
        wanted: dict[int, list[int]] = {}
        for part, row in map(where_is, places):
            wanted.setdefault(part, []).append(row)
        found = {part: iter(read_long(self._part("decisions", part), rows)) for part, rows in sorted(wanted.items())}
        return [next(found[where_is(place)[0]]) for place in places]

    # files

    @contextmanager
    def _writing(self) -> Iterator[MemoryStore]:
        """All that the folder holds, while nobody else adds to it."""
        with self._lock:
            self._current()
            with ExitStack() as held:
                try:
                    handle = os.open(self.path / LOCK, os.O_RDWR)
                    held.callback(os.close, handle)
                    lock(handle)
                except OSError as error:
                    raise StoreError(
                        f"{self.path / LOCK}: cannot be locked ({error.strerror or error}). Nothing was kept; look at "
                        "the rights of the folder."
                    ) from error
                yield self._current()

    def _part(self, kind: str, number: int) -> Path:
        return self.path / kind / f"{number:08d}.parquet"

    def _update(self, parent: int) -> Path:
        return self.path / "updates" / f"{parent:04d}.json"

    def _frozen(self, parent: int) -> dict[str, Any]:
        """The update of a version that was begun, its plan and its marks, and the refusals of those before it."""
        path = self._update(parent)
        return read_json(path) if path.exists() else {}

    def _repeats(self) -> dict[str, Any]:
        path = self.path / REPEATS
        return read_json(path) if path.exists() else dict.fromkeys(self._parts, 0)

    def _count_repeats(self, kind: str, count: int) -> None:
        if count:
            repeats = self._repeats()
            write_json(self.path / REPEATS, repeats | {kind: repeats[kind] + count})


def folder_names(path: str | Path) -> list[str]:
    """The experiments in a folder."""
    return sorted(found.parent.name for found in Path(path).glob(f"*/{EXPERIMENT}"))


def _version_folder(path: Path, number: int) -> Path:
    return path / "versions" / f"{number:04d}"
