import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rareswitch.errors import FileFormatError, InputError, ParameterError, ShapeError
from rareswitch.lab.worlds import MovieLensWorld, make_world
from reference.movielens import FILMS, USERS, small_world, write_folder
from reference.refusals import raises


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("ratings"))


def test_the_catalogue_makes_it_from_a_path(folder: Path) -> None:
    world = make_world(f"movielens:{folder}", dim=8, arms=5, noise=9.0)
    assert isinstance(world, MovieLensWorld)
    assert (world.dim, world.arms, len(world.users), len(world.films)) == (8, 5, USERS, FILMS)
    assert 0.0 < world.noise_scale < 0.5  # its own, not the one asked for
    np.testing.assert_array_equal(world.draw(9, seed=2).contexts, small_world().draw(9, seed=2).contexts)
    for name in ("movielens", "movielens:"):
        with pytest.raises(InputError, match=r"from a folder of ratings\. Name it: movielens:path/to/folder"):
            make_world(name, dim=8, arms=5, noise=0.5)


def test_rewards_follow_ratings_that_the_features_have_not_seen() -> None:
    """The hidden taste of the made-up users is found: the model explains most of what others' means leave."""
    world = small_world()
    means = (world.users[:, None] * world.films[None]) @ world.hidden
    spread = (means - means.mean(axis=1, keepdims=True)).std()
    assert spread > 0.8 * world.noise_scale
    less = MovieLensWorld(users=world.users, films=world.films, hidden=world.hidden * 0.5, arms=5)
    assert less.draw(3, seed=1).means == pytest.approx(0.5 * world.draw(3, seed=1).means)


def test_films_on_offer_are_different_and_all_have_their_turn() -> None:
    films = np.arange(1.0, 8.0)[:, None] / 7.0
    world = MovieLensWorld(users=[[1.0]], films=films, hidden=[1.0], arms=4)  # type: ignore[arg-type]
    shown = np.round(world.draw(7000, seed=1).contexts[:, :, 0] * 7).astype(int)
    assert all(len(set(row)) == 4 for row in shown.tolist())
    # each film is on offer with probability 4/7: Hoeffding, false alarm at most 1e-6 over seven films
    bound = np.sqrt(np.log(2 * 7 / 1e-6) / (2 * 7000))
    shares = np.bincount(shown.ravel(), minlength=8)[1:] / 7000
    assert np.abs(shares - 4 / 7).max() <= bound
    every = MovieLensWorld(users=[[1.0]], films=films, hidden=[1.0], arms=7)  # type: ignore[arg-type]
    assert sorted(every.draw(1, seed=1).contexts.ravel()) == pytest.approx(films.ravel())


def test_bad_arrays_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"users must be \(m, d\) beside films.*; got \(2, 2\) and \(3, 1\)"):
        MovieLensWorld(users=np.ones((2, 2)), films=np.ones((3, 1)), hidden=np.ones(2))
    with pytest.raises(ParameterError, match="arms must be"):
        MovieLensWorld(users=np.ones((2, 2)), films=np.ones((3, 2)), hidden=np.ones(2), arms=4)


def rewrite(file: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / file
        path.write_text(change(path.read_text()))

    return apply


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "no such folder. Name a folder that holds users.csv, items.csv"),
        (lambda folder: (folder / "items.csv").unlink(), "there is no items.csv in it. Name a folder that holds"),
        (rewrite("users.csv", lambda s: s.replace("age", "years")), "no column 'age'; it has user_id, years"),
        (rewrite("users.csv", lambda s: s.splitlines()[0]), "users.csv: it holds no rows, only the names of columns"),
        (rewrite("users.csv", lambda s: ""), "users.csv: it is empty"),
        (rewrite("ratings.csv", lambda s: s + "1,2\n"), "2 cells, and there are 4 columns"),
        (rewrite("ratings.csv", lambda s: s + "999,1,3,0\n"), "user 999 is rated, and users.csv does not hold it"),
        (rewrite("ratings.csv", lambda s: s + "1,1,good,0\n"), "'rating' must hold finite numbers; got 'good'"),
        (rewrite("ratings.csv", lambda s: s + "1,1,nan,0\n"), "'rating' must hold finite numbers; got 'nan'"),
        (rewrite("ratings.csv", lambda s: "\n".join(s.splitlines()[:2])), "1 ratings are too few to split"),
        (lambda folder: (folder / "items.csv").write_bytes(b"item_id\n\xff\n"), "items.csv: not a text in UTF-8"),
    ],
)
def test_bad_folders_are_explained(spoil: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "ratings"
    folder.mkdir()
    spoil(write_folder(folder))
    with pytest.raises(FileFormatError) as caught:
        MovieLensWorld.from_folder(folder, dim=8, arms=5)
    assert message in str(caught.value)


def test_sizes_are_checked(folder: Path) -> None:
    raises(ParameterError, "dim must be between 7 and 46; got 6", MovieLensWorld.from_folder, folder, dim=6, arms=5)


def test_films_without_genres_or_years_are_taken(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    rows = [f"{i + 1},Film {i},," for i in range(FILMS)]
    (folder / "items.csv").write_text("\n".join(["item_id,movie_title,release_year,class", *rows]))
    world = MovieLensWorld.from_folder(folder, dim=8, arms=5)
    np.testing.assert_array_equal(world.films[:, -4:], 0.0)
