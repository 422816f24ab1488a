"""Context sets fixed in advance: those of an array, of a function of the round, or of a file."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from rareswitch.core import ContextSets, FloatArray, Sets, context_sets, finite_array, unit_ball, vector, whole
from rareswitch.errors import ContextNormError, FileFormatError, InputError, NonFiniteError, ParameterError, ShapeError
from rareswitch.lab.context_files import read_context_file
from rareswitch.lab.worlds.linear import direction
from rareswitch.lab.worlds.world import NOISE, Noise, NoisyRewards, Rounds, check_ended

__all__ = ["SequenceWorld"]

#: An array, or none.
Maybe = npt.ArrayLike | None
#: How many entries of a mapped file are checked at a time.
_CHUNK_NUMBERS = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SequenceWorld(NoisyRewards):
    """An oblivious adversary: the sets are fixed in advance, whatever is played. Rewards are xᵀθ + noise.

    :meth:`from_array`, :meth:`from_function` and :meth:`from_file` make one.

    Parameters
    ----------
    rounds
        T, the length of the sequence.
    sets
        ``sets(first, count)`` gives the contexts (count, K, d) of rounds ``first`` and following, or
        :class:`~rareswitch.ContextSets`. It is called for the rounds that are drawn and must always give the same.
    hidden
        θ (d,), of norm at most 1; by default a random direction that the seed tells.

    Examples
    --------
    >>> world = SequenceWorld.from_array([[[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.8], [0.8, 0.6]]], hidden=[1.0, 0.0])
    >>> world.rounds, world.draw(1, seed=1, first=1).means.tolist()
    (2, [[0.6, 0.8]])
    """

    rounds: int
    dim: int
    arms: int
    sets: Callable[[int, int], npt.ArrayLike | ContextSets]
    hidden: Maybe = None

    def __post_init__(self) -> None:
        for name in ("rounds", "dim", "arms"):
            whole(name, getattr(self, name))
        if self.hidden is not None:
            hidden = vector("hidden", self.hidden, self.dim)
            norm = float(np.linalg.norm(hidden))
            if norm > 1.0 + 1e-9:
                raise ParameterError(f"hidden must have norm at most 1; got {norm:.6g}. Divide it by that.")
            vars(self).update(hidden=hidden)

    def __repr__(self) -> str:
        return f"SequenceWorld({self.rounds} rounds, {self.arms} arms, d = {self.dim})"

    @classmethod
    def from_array(
        cls, contexts: npt.ArrayLike, available: Maybe = None, *, hidden: Maybe = None, noise: Noise = NOISE
    ) -> Self:
        """The sets of an array (T, K, d), with an optional mask of the arms that exist (T, K).

        Neither is copied: do not write to them afterwards.
        """
        array = finite_array("contexts", contexts)
        if array.ndim != 3:
            raise ShapeError(f"contexts must be (sets, arms, dim); got {array.shape}. For one pass contexts[None].")
        mask = np.ones(array.shape[:2], dtype=np.bool_) if available is None else np.asarray(available)
        return cls._of(ContextSets(array, mask), hidden, noise)

    @classmethod
    def from_function(
        cls,
        function: Callable[[int], npt.ArrayLike],
        *,
        rounds: int,
        arms: int | None = None,
        hidden: Maybe = None,
        noise: Noise = NOISE,
    ) -> Self:
        """The sets ``function(t)``, (K, d) for t = 0 … ``rounds`` - 1, worked out for the rounds that are drawn.

        The function must give the same set whenever it is asked for the same round. A set may have fewer arms than
        ``arms``, by default the number of round 0. A function of many rounds at once is faster: hand it to the
        world itself, as ``sets``.

        >>> def turning(t):
        ...     return [[np.cos(t / 9), np.sin(t / 9)], [0.5, 0.5]]
        >>> SequenceWorld.from_function(turning, rounds=1000).draw(20, seed=1, first=980).contexts.shape
        (20, 2, 2)
        """
        shape = finite_array("the set of round 0", function(0)).shape
        if len(shape) != 2 or 0 in shape:
            raise ShapeError(f"the function must give a set (arms, dim) for each round; round 0 has {shape}.")
        most, dim = whole("arms", shape[0] if arms is None else arms), shape[1]

        def sets(first: int, count: int) -> ContextSets:
            contexts, available = np.zeros((count, most, dim)), np.ones((count, most), dtype=np.bool_)
            for row, t in enumerate(range(first, first + count)):
                vectors = finite_array(f"the set of round {t}", function(t))
                if vectors.ndim != 2 or vectors.shape[1] != dim or not 1 <= len(vectors) <= most:
                    rule = f"the function must give 1 to {most} arms in {dim} dimensions for each round"
                    remedy = "If some sets have more arms than round 0, pass the most as arms."
                    raise ShapeError(f"{rule}; round {t} has shape {vectors.shape}. {remedy}")
                contexts[row, : len(vectors)] = vectors
                available[row, len(vectors) :] = False
            return ContextSets(contexts, available)

        return cls(rounds=rounds, dim=dim, arms=most, sets=sets, hidden=hidden, noise=noise)

    @classmethod
    def from_file(
        cls, path: str | Path, *, set_column: str = "set", hidden: Maybe = None, noise: Noise = NOISE
    ) -> Self:
        """The sets of a file that :func:`~rareswitch.lab.context_files.read_context_file` reads, one set a round.

        An array (T, K, d) in a .npy file is checked once and then read as its rounds are drawn: it may be larger
        than memory.
        """
        mapped = _mapped(Path(path))
        try:
            if mapped is None:
                return cls._of(read_context_file(path, set_column=set_column).sets, hidden, noise)
            rounds, arms, dim = mapped.shape
            world = cls(rounds=rounds, dim=dim, arms=arms, sets=_part(mapped), hidden=hidden, noise=noise)
            deque(world._pieces(), maxlen=0)  # looks at all of it, and keeps nothing
        except FileFormatError:
            raise
        except InputError as error:
            raise type(error)(f"{path}: {error}") from error
        return world

    @classmethod
    def _of(cls, held: ContextSets, hidden: Maybe, noise: Noise) -> Self:
        unit_ball(context_sets(held))
        rounds, arms, dim = held.contexts.shape
        return cls(rounds=rounds, dim=dim, arms=arms, sets=_part(held), hidden=hidden, noise=noise)

    @cached_property
    def content(self) -> str:
        """A hash of all sets, by which runs that were kept are known to be of this sequence."""
        digest = hashlib.sha256()
        for sets in self._pieces():
            digest.update(sets.contexts.tobytes() + sets.available.tobytes())
        return digest.hexdigest()

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,)."""
        return direction(seed, self.dim) if self.hidden is None else np.asarray(self.hidden)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        check_ended("the sequence", self.rounds, first, count)
        sets = self._take(first, count)
        return Rounds(contexts=sets.contexts, means=sets.contexts @ self.theta(seed), available=sets.available)

    def _pieces(self) -> Iterator[Sets]:
        """All sets, checked, a part at a time."""
        step = max(1, _CHUNK_NUMBERS // (self.arms * self.dim))
        return (self._take(first, min(step, self.rounds - first)) for first in range(0, self.rounds, step))

    def _take(self, first: int, count: int) -> Sets:
        try:
            sets = context_sets(self.sets(first, count))
            unit_ball(sets)
        except (ContextNormError, NonFiniteError) as error:
            raise type(error)(f"{error} Set 0 is that of round {first}.") from error
        if sets.contexts.shape != (count, self.arms, self.dim):
            rule = f"rounds {first} to {first + count - 1} must have contexts {(count, self.arms, self.dim)}"
            raise ShapeError(f"{rule}; got {sets.contexts.shape}.")
        return sets


def _part(held: ContextSets | FloatArray) -> Callable[[int, int], ContextSets | FloatArray]:
    return lambda first, count: held[first : first + count]


def _mapped(path: Path) -> FloatArray | None:
    """The array of a .npy file, left on disk; None where the file is another or holds something else."""
    if path.suffix.lower() != ".npy" or not path.is_file():  # a pipe would be waited for
        return None
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None  # the reader of all files says what is wrong with it
    return array if isinstance(array, np.ndarray) and array.ndim == 3 and array.size else None
