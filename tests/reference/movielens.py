"""A small folder of ratings, made up, in which taste follows two hidden factors and the year."""

import tempfile
from pathlib import Path

import numpy as np

from rareswitch.lab.worlds import MovieLensWorld

GENRES = ("Drama", "Comedy", "Drama Romance", "Action Thriller", "Comedy Romance")
USERS, FILMS = 60, 40


def write_folder(folder: Path) -> Path:
    """Users, films and 1800 ratings, the same every time."""
    rng = np.random.default_rng(1)
    age = rng.integers(15, 70, USERS)
    year = rng.integers(1930, 1999, FILMS)
    taste = rng.standard_normal((USERS, 2)) @ rng.standard_normal((2, FILMS))
    stars = 3.5 + 0.8 * taste + 0.01 * (year - 1965) + 0.2 * rng.standard_normal((USERS, FILMS))
    stars = np.clip(np.round(stars), 1, 5).astype(int)
    rated = rng.permutation(USERS * FILMS)[:1800]
    users = [f"{u + 1},{age[u]},F,other,0" for u in range(USERS)]
    films = [f"{i + 1},Film {i},{'unknown' if i == 3 else year[i]},{GENRES[i % 5]}" for i in range(FILMS)]
    ratings = [f"{p // FILMS + 1},{p % FILMS + 1},{stars[p // FILMS, p % FILMS]},0" for p in rated.tolist()]
    for file, header, rows in (
        ("users.csv", "user_id,age,gender,occupation,zip_code", users),
        ("items.csv", "item_id,movie_title,release_year,class", films),
        ("ratings.csv", "user_id,item_id,rating,timestamp", ratings),
    ):
        (folder / file).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return folder


def small_world() -> MovieLensWorld:
    """The world of that folder, with 8 features and 5 films on offer."""
    with tempfile.TemporaryDirectory() as folder:
        return MovieLensWorld.from_folder(write_folder(Path(folder)), dim=8, arms=5)
