"""Worlds of tables: labelled rows, and sets of arms with rewards."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.errors import FileFormatError, InputError, ParameterError, ShapeError
from rareswitch.features import Features
from rareswitch.lab.worlds import ChoiceWorld, ClassificationWorld, World, greedy_value, make_world, table_world
from reference.refusals import raises
from reference.tables import CHOICES, labelled

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return file


def disjoint(path: str, **options: object) -> ClassificationWorld:
    world = table_world(path, **options)  # type: ignore[arg-type]
    assert isinstance(world, ClassificationWorld)
    return world


def choices(path: str, **options: object) -> ChoiceWorld:
    return ChoiceWorld.from_file(path, **options)  # type: ignore[arg-type]


def csv_of(numbers: FloatArray, labels: object) -> str:
    names = [f"x{j}" for j in range(numbers.shape[1])]
    rows = [[*map(repr, row), str(label)] for row, label in zip(numbers.tolist(), labels, strict=True)]  # type: ignore[call-overload]
    return "\n".join(map(",".join, [[*names, "label"], *rows])) + "\n"


def test_wine_is_standardised_reduced_and_divided_by_its_longest_row() -> None:
    from sklearn.datasets import load_wine

    numbers, labels = load_wine(return_X_y=True)
    world = make_world("wine")
    assert isinstance(world, ClassificationWorld)
    assert (world.arms, world.dim) == (3, 27)
    np.testing.assert_array_equal(world.labels, labels)
    scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    values, axes = np.linalg.eigh(scaled.T @ scaled)
    scores = scaled @ axes[:, np.argsort(values)[-8:]]
    gram = 1.0 + scores @ scores.T  # the same for any signs of the axes
    np.testing.assert_allclose(world.features @ world.features.T, gram / gram.diagonal().max(), atol=1e-12)


def test_compressed_tables_and_parquet_are_the_same_worlds(write: Write, tmp_path: Path) -> None:
    from pyarrow import csv, parquet

    plain = Path(write("rows.csv", labelled()))
    packed, columnar = tmp_path / "rows.csv.gz", tmp_path / "rows.parquet"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    parquet.write_table(csv.read_csv(plain), columnar)
    first, *others = (disjoint(str(path), label="kind") for path in (plain, packed, columnar))
    for other in others:
        assert other.content == first.content


def test_columns_named_after_classes_stay_columns_of_the_row(write: Write) -> None:
    text = "x0,x1,label\n" + "".join(f"{row % 5}.5,{row % 7}.5,{row % 2}\n" for row in range(40))
    path = write("rows.csv", text)
    assert disjoint(path).dim == 2 * 3
    assert table_world(path, features="shared").dim == 2 + 2 + 2 * 2


def test_labels_such_as_nan_have_one_place(write: Write) -> None:
    """Numbers by size, then names in the order of their letters; NaN would be anywhere in an order of numbers."""
    names = ["nan", "b", "10", "inf", "9", "a"]
    world = disjoint(write("rows.csv", csv_of(np.random.default_rng(1).random((12, 2)), names * 2)))
    assert world.labels.tolist() == 2 * [["9", "10", "a", "b", "inf", "nan"].index(name) for name in names]


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        (["10", "9", "9.0", "10"], [1, 0, 0, 1]),
        (["b", "a", "10", "b"], [2, 1, 0, 2]),
        (["true", "false"] * 2, [1, 0] * 2),
    ],
    ids=["numbers by size", "texts by alphabet", "flags"],
)
def test_classes_are_numbered_in_order(write: Write, given: list[str], codes: list[int]) -> None:
    rows = "".join(f"{row * row}.5,{label}\n" for row, label in enumerate(given))
    np.testing.assert_array_equal(disjoint(write("rows.csv", f"x,label\n{rows}")).labels, codes)


def test_rows_are_reduced_to_as_many_components_as_asked_for(write: Write) -> None:
    path = write("rows.csv", labelled())
    most = disjoint(path, label="kind", components=50)
    # the number and its gaps, three colours of which each is told by the others, and a flag
    assert most.features.shape[1] == 1 + 2 + 2 + 1
    two = disjoint(path, label="kind", components=2)
    assert two.features.shape[1] == 3
    np.testing.assert_allclose(two.features / two.features[0, 0], most.features[:, :3] / most.features[0, 0], atol=1e-9)


def test_shared_features_hold_the_row_for_all_arms_and_a_block_for_each(write: Write) -> None:
    world = table_world(write("rows.csv", labelled()), label="kind", features="shared")
    width = world.dim // 4  # the row, three levels, and three blocks of the row: 4·w + 3
    assert world.dim == 4 * width + 3
    contexts = world.contexts
    np.testing.assert_array_equal(contexts[:, 0, :width], contexts[:, 2, :width])
    levels = contexts[:, :, width : width + 3]
    np.testing.assert_array_equal(levels, np.broadcast_to(levels[0, 0, 0] * np.eye(3), levels.shape))
    own = contexts[:, :, width + 3 :]
    assert not (own[:, 0] * own[:, 1]).any()  # blocks do not meet
    np.testing.assert_allclose(own.sum(axis=2), np.broadcast_to(contexts[:, :, :width].sum(axis=2), own.shape[:2]))
    np.testing.assert_array_equal(world.payoffs.sum(axis=1), 1.0)


def test_shared_features_that_do_not_fit_are_told(write: Write) -> None:
    path = write("rows.csv", labelled())
    world = table_world(path, label="kind", features="shared", columns=16)
    assert world.dim <= 16
    assert "columns=16: " in world.describe()
    wide = write("wide.csv", csv_of(np.random.default_rng(1).random((40, 9)), [row % 2 for row in range(40)]))
    for columns, dim in ((5, 5), (7, 5), (8, 8), (29, 29), (100, 29)):  # two levels, and each column thrice
        assert table_world(wide, features="shared", columns=columns).dim == dim
    with pytest.raises(FileFormatError, match=r"rows\.csv: columns must be at least \d+ for features"):
        table_world(path, label="kind", features="shared", columns=5)


def test_columns_of_choices_that_do_not_fit_are_told(write: Write) -> None:
    """A constant and nine numbers of the arms."""
    rng = np.random.default_rng(1)
    rows = [
        ",".join([str(number), f"{arm}{number}", *(f"{value:.3f}" for value in rng.random(10))])
        for number in range(20)
        for arm in "ab"
    ]
    path = write("sets.csv", "\n".join(["set,arm,reward," + ",".join(f"x{j}" for j in range(9)), *rows]))
    assert choices(path).dim == 10
    assert not choices(path).remarks
    fewer = choices(path, columns=4)
    assert fewer.dim == 4
    assert fewer.remarks == "Left out, as there would be more than columns=4: x3, x4, x5, x6, x7, x8."
    with pytest.raises(FileFormatError, match="columns must be at least 2 for features to make a difference; got 1"):
        choices(path, columns=1)
    rows = [f"{k // 3},{k % 3},{k % 5},{k // 3 % 4}" for k in range(60)]  # a number of the set, none of its arms
    bare = write("bare.csv", "\n".join(["set,arm,reward,x", *rows]))
    assert choices(bare, columns=3).dim == 3
    raises(FileFormatError, "columns must be at least 3 for a level of each arm; got 2", choices, bare, columns=2)
    raises(ParameterError, "columns must be at least 1; got 0", choices, path, columns=0)
    with pytest.raises(ParameterError, match="set, arm and reward are three columns; got 'set', 'set' and 'reward'"):
        choices(path, arm="set")


@pytest.mark.parametrize("columns", [2, 3, 5, 8])
def test_levels_of_arms_do_not_come_in_where_their_fields_do_not_fit(write: Write, columns: int) -> None:
    """Ten arms with a kind of eight, and a number that varies with the set."""
    rng = np.random.default_rng(2)
    rows = [f"{k // 10},a{k % 10},{rng.random():.3f},k{k % 10 % 8},{rng.random():.3f}" for k in range(200)]
    path = write("sets.csv", "\n".join(["set,arm,reward,kind,x", *rows]))
    assert choices(path).dim > 8
    world = choices(path, columns=columns)
    assert world.dim <= columns
    assert f"columns={columns}: kind" in world.remarks


def test_a_policy_is_as_long_as_the_vectors(write: Write) -> None:
    world = disjoint(write("rows.csv", labelled()), label="kind")
    assert greedy_value(world, world.least_squares().tolist()) == greedy_value(world, world.least_squares())
    raises(ShapeError, rf"theta must have shape \({world.dim},\); got \(2,\)", greedy_value, world, [1.0, 2.0])
    raises(InputError, "theta", greedy_value, world, [np.nan] * world.dim)


def test_what_is_left_out_of_a_table_is_told(write: Write) -> None:
    rows = "".join(f"{row},{row % 5}.5,{row % 2},7\n" for row in range(30))
    said = disjoint(write("rows.csv", f"number,x,label,always\n{rows}")).describe()
    assert "30 examples of 2 classes, the largest with 50% of them." in said
    assert "number (the number of the row)" in said
    assert "always (7 in every row)" in said


def test_sets_offer_their_arms_and_pay_what_the_table_says(write: Write) -> None:
    world = choices(write("sets.csv", CHOICES))
    assert (world.arms, len(world.payoffs)) == (3, 40)
    for number in range(40):
        paid = [((number + 2 * k) % 5) / 5 for k in range(1 + number % 3)]
        np.testing.assert_allclose(world.payoffs[number, : len(paid)], paid)
        assert world.offered[number].sum() == len(paid)
    assert world.noise_scale == 0.4  # rewards lie between 0 and 0.8
    rounds = world.draw(200, seed=3)
    assert rounds.available is not None
    assert not rounds.contexts[~rounds.available].any()


def test_what_arms_of_a_set_share_is_of_its_context(write: Write) -> None:
    rows = [line.split(",") for line in CHOICES.splitlines()[1:]]
    sets = [[row for row in rows if row[0] == str(number)] for number in range(40)]
    contexts = [{"age": int(members[0][2])} for members in sets]
    offers = [{row[1]: {"price": float(row[3]), "colour": row[4]} for row in members} for members in sets]
    expected = Features.fit(contexts, offers, spare_arms=0, missing="error").encode_many(contexts, offers).vectors
    np.testing.assert_array_equal(choices(write("sets.csv", CHOICES)).contexts, expected)


def test_arms_stand_at_the_same_place_whatever_the_order_of_rows(write: Write) -> None:
    header, *rows = CHOICES.splitlines(keepends=True)
    given = choices(write("sets.csv", CHOICES))
    turned = choices(write("turned.csv", header + "".join(rows[:6] + rows[6:][::-1])))
    np.testing.assert_array_equal(np.sort(given.payoffs.sum(axis=1)), np.sort(turned.payoffs.sum(axis=1)))
    first = {paid.tobytes() for paid in given.payoffs}
    assert {paid.tobytes() for paid in turned.payoffs} == first


def test_rows_are_drawn_with_equal_chances(write: Write) -> None:
    world, n = disjoint(write("rows.csv", labelled(12)), label="kind"), 20_000
    rows = world.draw(n, seed=2)
    x = rows.contexts[np.arange(n), rows.means.argmax(axis=1)].reshape(n, 3, -1).sum(axis=1)
    found = np.array([np.isclose(x, row).all(axis=1).mean() for row in world.features])
    # Hoeffding for twelve shares, false alarm at most 1e-6
    assert abs(found - 1 / 12).max() <= math.sqrt(math.log(2 * 12 / 1e-6) / (2 * n))


def test_a_table_that_changed_is_another_world(write: Write) -> None:
    same, other = labelled(), labelled()[:-2] + "x\n"  # one label
    worlds = [disjoint(write(f"{k}.csv", text), label="kind") for k, text in enumerate((same, same, other))]
    assert worlds[0].content == worlds[1].content != worlds[2].content
    sets = [choices(write(f"s{k}.csv", CHOICES.replace("0.8\n", new, 1))) for k, new in enumerate(("0.8\n", "0.7\n"))]
    assert sets[0].content != sets[1].content


def single_arms(world: ClassificationWorld | ChoiceWorld) -> float:
    return float(world.payoffs.mean(axis=0).max())


def test_the_best_linear_policy_of_a_separable_table_is_always_right() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 3))
    labels = (x @ rng.normal(size=(3, 4))).argmax(axis=1)
    world = ClassificationWorld.of_columns("separable", x, labels)
    assert greedy_value(world, world.best_linear()) == 1.0
    assert greedy_value(world, world.least_squares()) < 1.0
    assert world.best_linear() is world.best_linear()  # found once
    np.testing.assert_array_equal(
        world.best_linear(), ClassificationWorld.of_columns("separable", x, labels).best_linear()
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_best_linear_policy_is_no_worse_than_single_arms_and_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 2))
    ring = (np.linalg.norm(x, axis=1) > 1.2).astype(int)  # no line parts these
    rare = np.where(rng.random(200) < 0.9, 0, rng.integers(0, 4, 200))  # nothing to be learned, one class prevails
    for labels in (ring, rare):
        world = ClassificationWorld.of_columns("hard", x, labels)
        found = greedy_value(world, world.best_linear())
        assert found >= single_arms(world)
        assert found >= greedy_value(world, world.least_squares())


@pytest.mark.parametrize("seed", range(4))
def test_the_best_linear_policy_is_near_the_best_of_all_directions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-0.7, 0.7, size=(60, 4, 2))
    world = ChoiceWorld(
        name="plane", contexts=contexts, payoffs=rng.random((60, 4)), available=rng.random((60, 4)) < 0.9
    )
    turns = np.linspace(0.0, 2 * math.pi, 2000)
    every = [greedy_value(world, np.array([math.cos(a), math.sin(a)])) for a in turns]
    assert greedy_value(world, world.best_linear()) >= np.quantile(every, 0.9)
    assert max(every) > np.mean(every) + 0.02  # there is something to be found


def test_arms_that_are_not_there_are_not_chosen_in_hindsight() -> None:
    contexts = np.array([[[-0.5], [0.0]], [[0.3], [0.6]]])
    world = ChoiceWorld(
        name="x",
        contexts=contexts,
        payoffs=np.array([[3.0, 9.0], [2.0, 4.0]]),
        available=np.array([[True, False], [True] * 2]),
    )
    assert greedy_value(world, np.array([1.0])) == 3.5
    assert world.noise_scale == 1.0  # rewards lie between 2 and 4; the 9 is not to be had


#: Tables that are wrong, and what is said; of names with "sets", as choices.
HOSTILE = {
    "empty": ("", "it is empty; a table in CSV begins with the names of its columns"),
    "names alone": ("x,label\n", "it holds no rows"),
    "no label": ("x,kind\n1,a\n2,b\n", "there is no column 'label'; it has x, kind. Name the right one with label=…"),
    "one class": ("x,label\n1,a\n2,a\n", "the column 'label' holds 'a' in every row; two classes are needed"),
    "a label is missing": ("x,label\n1,a\n2,\n", "line 3: the column 'label' must not be empty"),
    "NaN": ("x,label\n1,a\n2,b\nnan,b\n3,a\n", "line 4: the column 'x' holds 'nan' where most others are numbers"),
    "a text among numbers": ("x,label\n1,a\n2,b\n1O,b\n3,a\n", "line 4: the column 'x' holds '1O' where most"),
    "an infinite number": ("x,label\n1,a\n1e999,b\n", "line 3: the column 'x' holds an infinite number"),
    "cut short": ("x,y,label\n1,2,a\n2,4", "line 3: 2 cells, and there are 3 columns. The file may be cut short"),
    "no features": ("label\na\nb\n", "there is no column beside 'label'; rows need features"),
    "nothing that differs": ("x,label\n1,a\n1,b\n", "no column tells rows apart. Left out: x (1 in every row)"),
    "no name": ("x,,label\n1,2,a\n2,1,b\n", "column 2 has no name"),
    "no classes": (
        "x,label\n" + "".join(f"{row % 3},{row}.5\n" for row in range(30)),
        "the column 'label' has 30 different values in 30 rows; classes are at most 500, with two rows each",
    ),
    "two columns of a name": ("x,x,label\n1,2,a\n2,1,b\n", "'x' is there twice"),
    "sets, no reward": ("set,arm,x\n0,a,1\n0,b,2\n", "there is no column 'reward'"),
    "sets, no number as a reward": (
        "set,arm,reward\n0,a,1\n0,b,nan\n",
        "line 3: the column 'reward' must hold finite numbers; got 'nan'",
    ),
    "sets, a text as a reward": (
        "set,arm,reward\n0,a,yes\n0,b,no\n",
        "line 2: the column 'reward' must hold finite numbers",
    ),
    "sets, no reward there": ("set,arm,reward\n0,a,1\n0,b,\n", "line 3: the column 'reward' must not be empty"),
    "sets, an arm twice": ("set,arm,reward\n0,a,1\n0,a,0\n", "line 3: the arm 'a' of the set '0' was there in line 2"),
    "sets of one arm": ("set,arm,reward\n0,a,1\n1,b,0\n", "no set has more than one arm"),
    "sets that all pay the same": ("set,arm,reward\n0,a,1\n0,b,1\n", "payoffs must differ"),
    "sets, arms without names": ("set,arm,reward\n0,a,1\n0,,1\n", "line 3: the column 'arm' must not be empty"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_wrong_with_a_table_is_told_with_its_file(write: Write, name: str) -> None:
    text, said = HOSTILE[name]
    path = write("wrong.csv", text)
    with pytest.raises(FileFormatError) as caught:
        make_world(f"choices:{path}" if "sets" in name else f"table:{path}")
    assert str(caught.value).startswith(path)
    assert said in str(caught.value)


def test_sets_that_would_not_fit_into_memory_are_refused(write: Write) -> None:
    one = "".join(f"0,{arm},{arm % 7}.5,{arm % 2}\n" for arm in range(20_000))
    many = "".join(f"{s},{arm},{arm % 7}.5,{arm}\n" for s in range(1, 4000) for arm in range(2))
    with pytest.raises(FileFormatError, match=r"wide\.csv: columns must be fewer: 4000 sets of up to 20000 arms"):
        choices(write("wide.csv", f"set,arm,price,reward\n{one}{many}"))


def test_files_that_are_no_tables_are_refused(write: Write, tmp_path: Path) -> None:
    for name, said in {
        "rows.txt": "a table is read from a file whose name ends in .csv, .csv.gz, .parquet",
        "gone.csv": "cannot be read",
        "rows.csv.gz": "not a whole gzip file",
        "rows.parquet": "not a readable Parquet file",
    }.items():
        path = str(tmp_path / name) if "gone" in name else write(name, labelled())
        with pytest.raises(FileFormatError) as caught:
            table_world(path)
        assert str(caught.value).startswith(path)
        assert said in str(caught.value)
    packed = gzip.compress(labelled().encode())
    (tmp_path / "short.csv.gz").write_bytes(packed[: len(packed) // 2])
    raises(FileFormatError, "cut short", table_world, tmp_path / "short.csv.gz")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (",lable=kind", "takes each of the options label, features, components, columns once; got 'lable=kind'"),
        (",label=kind,label=x", "once; got 'label="),
        (",label=kind,components=few", "components of table:FILE must be a whole number; got 'few'"),
        (",label=kind,components=0", "components must be at least 1"),
        (",label=kind,features=joint", "features must be one of disjoint, shared; got 'joint'"),
        (",label=kind,columns=10", "columns is for shared features; these are disjoint"),
        (",label=kind,features=shared,components=3", "components is for disjoint features; these are shared"),
    ],
)
def test_options_that_a_table_does_not_have_are_refused(write: Write, options: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        make_world(f"table:{write('rows.csv', labelled())}{options}")
    assert said in str(caught.value)


def test_a_table_needs_a_file_and_its_name_may_hold_commas(write: Write) -> None:
    for name in ("table", "choices:"):
        raises(InputError, r"is made from a table in a file\. Name it", make_world, name)
    worlds: list[World] = [
        make_world(f"table:{write(name, labelled())},label=kind") for name in ("a,b.csv", "a,b=c.csv")
    ]
    assert [world.arms for world in worlds] == [3, 3]


def test_arrays_that_are_no_choices_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"contexts must be \(sets, arms, dim\) beside payoffs"):
        ChoiceWorld(name="x", contexts=np.zeros((2, 3, 1)), payoffs=np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="payoffs must differ"):
        ChoiceWorld(name="x", contexts=np.zeros((2, 3, 1)), payoffs=np.ones((2, 3)))
    with pytest.raises(InputError, match="at most 1"):
        ChoiceWorld(name="x", contexts=np.full((1, 2, 1), 3.0), payoffs=np.array([[0.0, 1.0]]))
    with pytest.raises(ParameterError, match="columns must tell examples apart"):
        ClassificationWorld.of_columns("x", np.ones((3, 2)), np.array([0, 1, 1]))
