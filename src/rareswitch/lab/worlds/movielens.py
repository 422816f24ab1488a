"""Films for users, from a folder of ratings such as MovieLens 100K."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from rareswitch.core import FloatArray, IntArray, Table, finite_array, frozen, read_table, uniforms, vector, whole
from rareswitch.errors import FileFormatError, ShapeError
from rareswitch.lab.worlds.world import GaussianNoise, NoisyRewards, Rounds

__all__ = ["MovieLensWorld"]

#: What the folder holds: files and the columns that are read.
FILES = {
    "users.csv": ("user_id", "age"),
    "items.csv": ("item_id", "release_year", "class"),
    "ratings.csv": ("user_id", "item_id", "rating"),
}
#: Features besides the factors: a constant, the film's mean, two axes of genres, the year, the year × the age.
ATTRIBUTES = 6
#: Share of the ratings from which features are made; the others fit the rewards.
TRAINING = 0.8
#: Ratings at the overall mean that are added to every user's and every film's.
PRIOR = 5.0
#: Standard deviations at which features are cut off.
LIMIT = 2.0


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MovieLensWorld(NoisyRewards):
    """Each round a random user comes, and K different random films are on offer; :meth:`from_folder` makes it.

    The context of a film for a user is the elementwise product of a row of the user and a row of the film. Expected
    rewards are exactly linear in it, the same θ for every seed, and the noise is Gaussian.

    Parameters
    ----------
    users, films
        (m, d) and (n, d), with all products in the unit ball.
    hidden
        θ (d,)

    Examples
    --------
    >>> world = MovieLensWorld(users=[[1.0, 0.5]], films=[[0.6, 0.8], [0.0, 1.0]], hidden=[1.0, 0.0], arms=2)
    >>> sorted(world.draw(1, seed=1).contexts[0].tolist())
    [[0.0, 0.5], [0.6, 0.4]]
    """

    users: FloatArray
    films: FloatArray
    hidden: FloatArray
    arms: int = 20

    def __post_init__(self) -> None:
        users, films = finite_array("users", self.users), finite_array("films", self.films)
        if users.ndim != 2 or films.ndim != 2 or users.shape[1] != films.shape[1] or not users.size * films.size:
            raise ShapeError(f"users must be (m, d) beside films (n, d); got {users.shape} and {films.shape}.")
        hidden = vector("hidden", self.hidden, users.shape[1])
        vars(self).update(users=frozen(users), films=frozen(films), hidden=hidden)
        whole("arms", self.arms, high=len(films))

    def __repr__(self) -> str:
        size = f"{len(self.users)} users, {len(self.films)} films"
        return f"MovieLensWorld({size}, {self.arms} on offer, d = {self.dim}, σ = {self.noise.scale:.3g})"

    @classmethod
    def from_folder(cls, folder: str | Path, *, dim: int = 10, arms: int = 20) -> Self:
        """The world of a folder with users.csv, items.csv and ratings.csv.

        Four fifths of the ratings, chosen by a fixed key, make the features: means of users and films, shrunk, and
        the first d - 6 singular vectors of what they leave over of the users × films matrix, zero where nothing was
        rated. The d features of a pair are 1, the film's mean, the products of the user's and the film's factors,
        two principal axes of the genres, the year, and the year × the user's age. Those of users and those of films
        are standardised and cut off at two standard deviations, and all are divided by the longest context.

        θ is the least-squares fit to the other fifth, which the features have not seen, of the rating less the
        user's mean; σ is the root mean square of its residuals. Both are divided by ‖θ‖: rewards are ratings in
        that unit. What the ratings hold beyond the linear fit is noise here, drawn anew each round.
        """
        users, items, ratings = (_read(Path(folder), file) for file in FILES)
        u, i = _places("user", ratings, users), _places("item", ratings, items)
        stars = ratings.numbers("rating")
        whole("dim", dim, low=ATTRIBUTES + 1, high=ATTRIBUTES + min(len(users), len(items)))
        seen = uniforms(0, "movielens training", 0, len(stars))[:, 0] < TRAINING
        if not seen.any() or seen.all():
            raise FileFormatError(f"{folder}/ratings.csv: {len(stars)} ratings are too few to split; give more.")

        offsets = stars - stars[seen].mean()
        offsets -= _shrunk_means(u[seen], offsets[seen], len(users))[u]
        film_means = _shrunk_means(i[seen], offsets[seen], len(items))
        left = np.zeros((len(users), len(items)))
        left[u[seen], i[seen]] = offsets[seen] - film_means[i[seen]]
        of_users, of_films = _factors(left, dim - ATTRIBUTES)
        age = _standard(users.numbers("age")[:, None])
        year = _standard(_years(items.texts("release_year", gaps=True))[:, None])
        ones = np.ones((len(users), 1))
        rows = np.hstack([ones, ones, of_users, ones, ones, ones, age])
        means = _standard(film_means[:, None])
        columns = np.hstack([np.ones_like(year), means, of_films, _genres(items.texts("class", gaps=True)), year, year])
        columns /= np.sqrt((rows**2 @ columns.T**2).max())

        x, y = (rows[u] * columns[i])[~seen], offsets[~seen]
        theta, *_ = np.linalg.lstsq(x, y, rcond=None)
        unit = float(np.linalg.norm(theta)) or 1.0
        noise = GaussianNoise(float(np.sqrt(np.mean((y - x @ theta) ** 2))) / unit)
        return cls(users=rows, films=columns, hidden=theta / unit, noise=noise, arms=arms)

    @property
    def dim(self) -> int:
        """Number of features of a pair."""
        return int(self.users.shape[1])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        numbers = uniforms(seed, "movielens", first, count, 1 + self.arms)
        user = np.floor(numbers[:, 0] * len(self.users)).astype(np.int64)
        contexts = self.films[_different(numbers[:, 1:], len(self.films))]
        contexts *= self.users[user][:, None, :]
        return Rounds(contexts=contexts, means=contexts @ self.hidden)


def _different(numbers: FloatArray, many: int) -> IntArray:
    """K different places among ``many`` for each row of uniform numbers (n, K), by Floyd's algorithm."""
    chosen = np.empty(numbers.shape, dtype=np.int64)
    for k, last in enumerate(range(many - numbers.shape[1], many)):
        drawn = np.floor(numbers[:, k] * (last + 1)).astype(np.int64)
        chosen[:, k] = np.where((chosen[:, :k] == drawn[:, None]).any(axis=1), last, drawn)
    return chosen


def _shrunk_means(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    sums = np.bincount(group, weights=values, minlength=groups)
    return np.asarray(sums / (np.bincount(group, minlength=groups) + PRIOR))


def _factors(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The first singular vectors of users (m, count) and of films (n, count), standardised, with fixed signs."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    left, right = left[:, :count], right[:count].T
    signs = np.sign(right[np.abs(right).argmax(axis=0), np.arange(count)])
    return _standard(left * signs, centre=False), _standard(right * signs, centre=False)


def _genres(texts: Sequence[str]) -> FloatArray:
    """Films (n, 2) on the two principal axes of their genres."""
    names = sorted({name for text in texts for name in text.split()})
    table = np.array([[name in text.split() for name in (*names, "", "")] for text in texts], dtype=np.float64)
    table -= table.mean(axis=0)
    _, _, axes = np.linalg.svd(table, full_matrices=len(table) < 2)
    axes = axes[:2] * np.sign(axes[[0, 1], np.abs(axes[:2]).argmax(axis=1)])[:, None]
    return _standard(table @ axes.T)


def _standard(values: FloatArray, *, centre: bool = True) -> FloatArray:
    """Columns of mean square one, cut off; a column without spread is zero."""
    values = values - values.mean(axis=0) if centre else values
    spread = np.sqrt((values**2).mean(axis=0))
    return np.clip(values / np.where(spread > 1e-12, spread, np.inf), -LIMIT, LIMIT)


def _years(texts: Sequence[str]) -> FloatArray:
    """Years (n,), the mean where there is none."""
    years = np.array([float(text) if re.fullmatch(r"\d+(\.0*)?", text.strip()) else np.nan for text in texts])
    known = years[~np.isnan(years)]
    return np.where(np.isnan(years), known.mean() if len(known) else 0.0, years)


def _read(folder: Path, file: str) -> Table:
    """A file of the folder, which has the needed columns."""
    path = folder / file
    if not path.is_file():
        what = f"there is no {file} in it" if folder.is_dir() else "no such folder"
        raise FileFormatError(f"{folder}: {what}. Name a folder that holds {', '.join(FILES)}.")
    table = read_table(path)
    for name in FILES[file]:
        table.check_column(name)
    return table


def _places(kind: str, ratings: Table, known: Table) -> IntArray:
    """The row (n,) of each rated id in its own table."""
    rows = {name: row for row, name in enumerate(known.labels(f"{kind}_id", option=""))}
    rated = ratings.labels(f"{kind}_id", option="")
    strange = next((row for row, name in enumerate(rated) if name not in rows), None)
    if strange is not None:
        raise ratings.wrong(strange, f"{kind} {rated[strange]} is rated, and {kind}s.csv does not hold it. Add it.")
    return np.array([rows[name] for name in rated])
