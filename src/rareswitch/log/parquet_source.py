"""A log in Parquet as a source of logged decisions, read some rows at a time."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import EmptySetError, FileFormatError, ParameterError, several
from rareswitch.files import pyarrow
from rareswitch.log.ahead import ahead
from rareswitch.log.block import Block
from rareswitch.log.logged import DecisionLog
from rareswitch.log.logged_blocks import ALL, CHOSEN, About, LoggedBlocks
from rareswitch.log.places import find_parts
from rareswitch.log.repeats import Repeats, Seen, find_repeats
from rareswitch.log.schema import COUNTING, EVALUATION, MORE, NEEDED, blocks, check_more, opened
from rareswitch.policy import Policy
from rareswitch.validation import number

#: What the schema of a file may say: how propensities were estimated; the names of batches, and the ids of arms, as
#: JSON lists in their order.
ESTIMATED, BATCHES, ARMS = b"rareswitch.estimated", b"rareswitch.batches", b"rareswitch.arms"
_NEEDED = tuple(name for name in NEEDED if name != "features")


class _Part(NamedTuple):
    """What the footer of a file says."""

    path: str
    rows: int
    columns: list[str]


class ParquetLog:
    """Logged decisions in Parquet, a :class:`~rareswitch.log.Source`; a batch is what one policy decided.

    The columns are those of :func:`~rareswitch.log.log_schema`, those that experiments export (``place``, ``arm``,
    ``names``, ``baseline``), and ``behavior_probs``, list<double>, those of all offered arms. Without ``place``
    the chosen arm is the first whose vector is in ``features``. Several rows of one decision count once: the reward is
    that of the row that knows it.

    Parameters
    ----------
    paths
        Files or patterns, also at URLs such as s3://…: see :func:`~rareswitch.log.find_parts`.
    policies
        The frozen policies, as far as they are at hand. If they are all that the log names, batches have their order;
        else that in which rows of each first appear.
    window, now, default
        As :meth:`~rareswitch.learner.Learner.summarize` takes them; by default what the experiment that wrote the log
        wrote beside it, and for ``now`` the latest time in it.

    Examples
    --------
    >>> import tempfile
    >>> from rareswitch.log import write_part
    >>> path = Path(tempfile.mkdtemp()) / "part-1.parquet"
    >>> sets = {0: [[1.0], [2.0]], 1: [[3.0], [4.0]]}
    >>> write_part(
    ...     path, policy_id="first", ids=[0, 1], features=[[1.0], [4.0]], propensities=[0.5, 0.5], rewards=[1.0, None],
    ...     contexts=sets,
    ... )
    >>> log = ParquetLog(path)
    >>> log
    <log in Parquet: 2 decisions, 1 batch, 1 part>
    >>> [chunk.arm_indices.tolist() for chunk in log.chunks()]
    [[0, 1]]
    """

    def __init__(
        self,
        paths: str | Path | Iterable[str | Path],
        policies: Sequence[Policy] = (),
        *,
        window: float | None = None,
        now: float | None = None,
        default: float | None = None,
    ) -> None:
        patterns = [paths] if isinstance(paths, (str, Path)) else list(paths)
        self.paths = find_parts(patterns)
        self._parts, self._meta = list[_Part](), dict[bytes, bytes]()
        self.dim = self._look()
        counts = self._counting()
        window, default = counts[0] if window is None else window, counts[1] if default is None else default
        found, latest, once = self._first_pass(timed=window is not None and now is None)
        #: Decisions, those that occur several times counted once.
        self.decisions = sum(part.rows for part in self._parts)
        if not self.decisions:
            raise EmptySetError(f"a log needs one decision at least; the {len(self.paths)} files have none.")
        self.batch_names = _in_order(found, self._told(BATCHES), policies)
        self.policies: Mapping[str, Policy] = {one.id: one for one in policies if one.id in found}
        if policies and not self.policies:
            given = ", ".join(one.id[:12] for one in policies[:3])
            raise ParameterError(
                f"policies must be those that decided; the log has rows of {', '.join(found)[:100]}, and {given} were "
                "given. Name the policies of this log."
            )
        self.estimated = self._meta.get(ESTIMATED, b"").decode(errors="replace")
        counting = {}
        if window is not None:
            counting = {"window": number("window", window, low=0.0), "now": latest if now is None else now}
        counting |= {} if default is None else {"default": default}
        self._about = About(
            batch_names=self.batch_names,
            policies=self.policies,
            dim=self.dim,
            estimated=self.estimated,
            arms=self._told(ARMS),
            counting=counting,
        )
        self._repeats = Repeats({}, {})
        if not once:
            numbers = {name: at for at, name in enumerate(self.batch_names)}
            columns = [name for name in ALL if any(name in part.columns for part in self._parts)]
            self._repeats = find_repeats(self._blocks, numbers, self.decisions, columns)
            self.decisions -= self.copies

    def __repr__(self) -> str:
        batches, parts = len(self.batch_names), len(self.paths)
        return (
            f"<log in Parquet: {several(self.decisions, 'decision')}, {several(batches, 'batch')}, "
            f"{several(parts, 'part')}>"
        )

    @property
    def copies(self) -> int:
        """Rows that are left out since their decision is counted already."""
        return self._repeats.copies

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; with ``contexts`` those of which all offered arms are known."""
        reading = LoggedBlocks(self._about)
        for _, block in ahead(self._counted(ALL if contexts else CHOSEN)):
            found = reading.with_sets(block) if contexts else reading.chosen(block)
            if found is not None:
                yield found

    def _counted(self, columns: Sequence[str]) -> Generator[tuple[int, Block]]:
        """The rows that count."""
        for file, block in self._blocks(columns):
            left = self._repeats.settled(file, block) if self.copies else block
            if len(left.numbers):
                yield file, left

    def _blocks(self, columns: Sequence[str]) -> Iterator[tuple[int, Block]]:
        for file, part in enumerate(self._parts):
            with opened(part.path, self.dim, needed=_NEEDED) as opened_part:
                if opened_part.metadata.num_rows != part.rows:
                    raise FileFormatError(f"{part.path}: it changed while it was read. Evaluate whole parts.")
                for first, batch in blocks(opened_part, columns):
                    yield file, Block(part.path, np.arange(first, first + batch.num_rows), batch)

    def _look(self) -> int | None:
        """Check the columns of all files; how many features arms have."""
        dims: dict[int | None, str] = {}
        for path in self.paths:
            with opened(path, None, needed=_NEEDED) as part:
                schema = part.schema_arrow
                check_more(path, schema, MORE | EVALUATION)
                rows = part.metadata.num_rows
                self._parts.append(_Part(path, rows, schema.names))
                if rows:
                    dims.setdefault(_dim(part), path)
                    self._merge(path, schema.metadata or {})
        if len(dims) > 1:
            (one, here), (other, there) = [*dims.items()][:2]
            raise FileFormatError(
                f"{there}: has {other or 'no'} features, and {here} has {one or 'none'}. Name the parts of one log."
            )
        return next(iter(dims), None)

    def _merge(self, path: str, meta: Mapping[bytes, bytes]) -> None:
        """What is said of a file is said of the log."""
        for name in (ESTIMATED, BATCHES, ARMS, COUNTING):
            if name in meta and self._meta.setdefault(name, meta[name]) != meta[name]:
                if name == ESTIMATED:
                    self._meta[name] += b"; " + meta[name]
                elif name == COUNTING:
                    raise FileFormatError(
                        f"{path}: counts rewards otherwise ({meta[name].decode(errors='replace'):.100}) than the files "
                        f"before it ({self._meta[name].decode(errors='replace'):.100}). Name the parts of one log."
                    )
                else:
                    del self._meta[name]  # of two logs that say otherwise neither holds for both

    def _counting(self) -> tuple[float | None, float | None]:
        """Window and default of rewards, as the experiment that wrote the log has them."""
        try:
            found = json.loads(self._meta.get(COUNTING, b"{}"))
            window, default = (None if found.get(k) is None else float(found[k]) for k in ("window", "default"))
        except (AttributeError, TypeError, ValueError):
            raise FileFormatError(
                f"{self.paths[0]}: '{COUNTING.decode()}' of its schema must be JSON with window and default."
            ) from None
        return window, default

    def _told(self, name: bytes) -> list[str]:
        try:
            found = json.loads(self._meta.get(name, b"[]"))
        except ValueError:
            found = None
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise FileFormatError(f"{self.paths[0]}: '{name.decode()}' of its schema must be a JSON list of texts.")
        return found

    def _first_pass(self, *, timed: bool) -> tuple[list[str], float, bool]:
        """The policies as they appear, the latest time where it is needed, and whether each id occurs once for sure."""
        pa, _ = pyarrow()
        seen: dict[str, Seen] = {}
        latest, sure = -np.inf, True
        for _, block in self._blocks(["policy", "id", "key"] + ["time"] * timed):
            whole = "key" not in block.batch.schema.names and pa.types.is_int64(block.batch.schema.field("id").type)
            sure &= whole
            found = block.policies()
            for name, mine in block.by_policy({name: at for at, name in enumerate(found)}):
                before = seen.setdefault(name, Seen())
                if whole:
                    before.add(mine)
            if timed:
                latest = max(latest, float(np.fmax.reduce(block.times("time"), initial=-np.inf)))
        return [*seen], latest, sure and all(one.once for one in seen.values())


def _in_order(found: Sequence[str], told: Sequence[str], policies: Sequence[Policy]) -> tuple[str, ...]:
    """The names of the batches: as the file says, or as policies were given, if these name them all."""
    for names in ([one.id for one in policies], told):
        if set(found) <= set(names):
            return tuple(name for name in dict.fromkeys(names) if name in found or names is told)
    return tuple(found)


def _dim(part: Any) -> int | None:
    """Features of an arm, as the schema or the first row says; None where there are no vectors."""
    if "features" not in part.schema_arrow.names:
        return None
    size = getattr(part.schema_arrow.field("features").type, "list_size", None)
    if size is not None:
        return int(size)
    first = next(part.iter_batches(1, columns=["features"])).column("features")
    return max(1, len(first[0])) if first[0].is_valid else None
