"""Parts of a log, mapped on any executor and reduced in their order."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import FileFormatError
from rareswitch.executors import run_shards
from rareswitch.learner import Learner, Rows, Sample, State, Summary, in_seconds, sample_order
from rareswitch.log.reading import SPARE, Counted, Gathered, Task, count_part, mark, read_part
from rareswitch.log.schema import ROWS

R = TypeVar("R")
#: About how many hashes of ids are compared at a time.
SWEEP = 1 << 22
#: About how many numbers of rows with repeated ids are held at a time.
GATHERED = 1 << 23


class Reduction:
    """Reads a log in three steps: count the rows by policy, find repeated ids, sum."""

    progress: Callable[[int, int], None] | None = None

    def __init__(
        self,
        learner: Learner,
        state: State,
        files: list[str],
        *,
        executor: Executor | None = None,
        late: bool = False,
        window: float | None = None,
        now: Any = None,
        default: float | None = None,
        clip: tuple[float, float] | None = None,
    ) -> None:
        self.learner, self.state, self.files = learner, state, files
        self.executor = executor
        past = [batch.policy_id for batch in self.state.past]
        self.known = {name: k for k, name in enumerate(dict.fromkeys([*past, self.state.policy.id]))}
        # rows of two batches with one policy cannot be told apart
        self.usable = {name for name in past if late and past.count(name) == 1} | {self.state.policy.id}
        now = float(in_seconds(now)) if isinstance(now, np.datetime64) else now  # those of a log are since 1970
        counting = {"window": window, "now": now, "default": default, "clip": clip}
        self.task = Task(learner=learner, state=state, known=self.known, **counting)
        self.parts: list[Counted] = []
        #: By policy.
        self.rows: Counter[str] = Counter()
        #: Rows of ids that occur more than once.
        self.repeats = 0
        self.summaries: dict[str, Summary] = {}
        self._samples: list[Any] = []
        #: Decisions whose rows contradict each other, by policy.
        self.conflicting: Counter[str] = Counter()
        self.conflicting_rows: Counter[str] = Counter()
        #: Where the first of these are.
        self.contradiction = ""
        self._done, self._tasks = 0, 2 * len(files)

    def count(self) -> None:
        """Count the rows of each policy."""
        self.parts = [*self._map(count_part, self.task, self.files)]
        for part in self.parts:
            self.rows.update(part.policies)
        few = frozenset(name for name in self.usable if self.rows[name] <= ROWS)
        latest = max(part.latest for part in self.parts)
        now = latest if self.task.now is None and np.isfinite(latest) else self.task.now
        self.task = replace(self.task, gathered=few, summed=frozenset(self.usable - few), now=now)

    def find_repeats(self) -> None:
        """Find the ids that occur more than once, of policies whose rows are too many to be gathered."""
        many, table = self.task.summed, None
        unsure = sorted(set[int]().union(*(self._unsure(name) for name in many)))
        files = [self.files[k] for k in unsure]
        sweeps = -(-sum(self.parts[k].policies[name] for k in unsure for name in many) // SWEEP)
        self._tasks += sweeps * len(files)
        for task in self._slices(sweeps):
            hashes = np.concatenate([part.hashes for part in self._map(count_part, task, files)])
            hashes.sort()
            again = hashes[1:] == hashes[:-1]
            if again.any():
                twice = np.unique(hashes[1:][again])
                table = mark(table, twice)
                self.repeats += int(again.sum()) + len(twice)
        self.task = replace(self.task, repeated=table)

    def _unsure(self, name: str) -> set[int]:
        """The parts in which a policy may have ids that occur twice: there, or there and in another part.

        Numbers that rise throughout a part, and lie apart from those of all others, do not; and no string is a number.
        """
        unsure, before = {k for k, part in enumerate(self.parts) if part.policies[name]}, -np.inf
        spans = sorted((part.spans[name], k) for k, part in enumerate(self.parts) if name in part.spans)
        for (span, k), after in zip(spans, [*(span.low for span, _ in spans[1:]), np.inf], strict=False):
            unsure -= {k} if span.rise and before < span.low and span.high < after else set()
            before = max(before, span.high)
        return unsure

    def sum(self) -> None:
        """Sum the rows of unique ids where they are read; compare and sum those of repeated ids here."""
        windows = max(1, -(-self.repeats // max(ROWS, GATHERED // (self.learner.dim + 4))))
        which: Sequence[int] = range(len(self.files))
        compared: list[Summary] = []
        for task in self._slices(windows):
            gathered: dict[str, list[Gathered]] = {}
            cut, again = np.inf, []
            for part, read in zip(which, self._map(read_part, task, [self.files[k] for k in which]), strict=True):
                if (read.rows, read.size) != self.parts[part][:2]:
                    raise FileFormatError(f"{self.files[part]}: it changed while it was read. Update from whole parts.")
                cut = min(cut, read.cut)
                again += [part] * read.repeats
                for name, rows in read.gathered.items():
                    gathered.setdefault(name, []).extend(rows)
                for summary in read.summaries.values():
                    self._add(summary)
            compared += [self._compared(name, gathered[name], cut) for name in sorted(gathered)]
            self._tasks += (windows - 1) * len(again) if task.low == 0.0 else 0
            which = again
        for summary in compared:
            self._add(summary)
        current = self.summaries[self.state.policy.id]
        self.summaries[current.policy_id] = replace(current, sample=self._sample())

    def again(self, state: State) -> Summary:
        """The rows of the current policy, summed at another state."""
        other, only = copy(self), {state.policy.id}
        task = replace(self.task, state=state, gathered=self.task.gathered & only, summed=self.task.summed & only)
        other.state, other.task, other.summaries, other._samples = state, task, {}, []
        other.conflicting, other.conflicting_rows = Counter(), Counter()
        other.progress = None
        other.sum()
        return other.summaries[state.policy.id]

    def _slices(self, count: int) -> Iterator[Task]:
        """The task for one range of hashes after the other."""
        return (replace(self.task, low=k / count, high=(k + 1) / count) for k in range(count))

    def _add(self, summary: Summary) -> None:
        if summary.sample is not None:  # kept apart, as most of what is sampled of a part is left out in the end
            self._samples.append(summary.sample)
            if sum(map(len, self._samples)) > 3 * summary.sample.size:
                self._samples = [self._sample()]
            summary = replace(summary, sample=None)
        before = self.summaries.get(summary.policy_id)
        self.summaries[summary.policy_id] = summary if before is None else before + summary

    def _sample(self) -> Sample | None:
        """What is sampled of all parts so far."""
        if not self._samples:
            return None
        keys = np.concatenate([one.keys for one in self._samples])
        return Sample.of(self._samples[0].size, keys, ContextSets.concatenate([one.sets for one in self._samples]))

    def _compared(self, name: str, gathered: list[Gathered], cut: float) -> Summary:
        """The summary of rows, with all rows of each decision among them; contradictions are left out."""
        rows = Rows.concatenate([part.rows for part in gathered])
        rows = _with_sets_below(rows, cut, SPARE * self.learner.sample_size(self.state))
        wrong = rows.contradicting()
        if wrong.any():
            keys = rows.ids[wrong]
            places = [f"{part.source}, row {row}" for part in gathered for row in part.numbers.tolist()]
            first = np.flatnonzero((rows.ids == keys[0]).all(axis=1))[:2]
            self.contradiction = self.contradiction or " and ".join(places[at] for at in first)
            self.conflicting[name] += len(np.unique(keys, axis=0))
            self.conflicting_rows[name] += len(keys)
            rows = rows[np.flatnonzero(~wrong)]
        return self.learner.summarize(self.state, rows, **self.task.counting, part=True)

    def _map(self, function: Callable[..., R], task: Task, files: Sequence[str]) -> Iterator[R]:
        for result in run_shards(partial(function, task=task), files, self.executor, label="part"):
            self._done += 1
            if self.progress is not None:
                self.progress(self._done, self._tasks)
            yield result


def _with_sets_below(rows: Rows, cut: float, size: int) -> Rows:
    """The rows without context sets that not every part has handed back; ``size`` ranks at the most."""
    if rows.sets is None or rows.places is None:
        return rows
    ranks = sample_order(rows.ids[rows.places])
    kept = np.flatnonzero(ranks <= min(cut, *np.unique(ranks)[size - 1 : size], np.inf))
    return replace(rows, sets=rows.sets[kept], places=rows.places[kept]) if len(kept) else replace(rows, sets=None)
