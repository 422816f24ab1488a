"""Parts on another machine: a local S3, which pyarrow reaches as it reaches the real one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from moto.server import ThreadedMotoServer
from pyarrow.fs import FileSystem

from rareswitch.core import make_executor
from rareswitch.errors import FileFormatError
from rareswitch.log import LogWriter, find_parts, write_part
from reference.logs import Row, Run, played, update
from reference.refusals import raises

COLUMNS: dict[str, Any] = {"policy_id": "p", "features": [[1.0, 2.0]], "ids": [1], "propensities": [0.5]}


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URL of an empty bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "of-a-test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        FileSystem.from_uri("s3://logs?allow_bucket_creation=true")[0].create_dir("logs")
        yield "s3://logs"
    server.stop()


def write(path: str | Path, rows: list[Row]) -> None:
    write_part(
        path,
        policy_id=rows[0].policy,
        features=[row.features for row in rows],
        ids=[row.id for row in rows],
        propensities=[row.propensity for row in rows],
        rewards=[row.reward for row in rows],
        contexts={row.id: [row.contexts[k : k + 3] for k in range(0, 15, 3)] for row in rows if row.contexts},
    )


@pytest.mark.parametrize("engine", ["serial", "processes:1"])
def test_a_log_in_a_bucket_gives_the_policy_of_one_on_the_disk(bucket: str, engine: str, tmp_path: Path) -> None:
    here = Run.begin("foresight", dim=3, horizon=2000)
    rows = played(here, count=60)
    where = f"{bucket}/{engine}"
    for number, part in enumerate((rows[:20], rows[20:])):
        for folder in (where, tmp_path):
            write(f"{folder}/part-{number}.parquet", part)
    with make_executor(engine) as there:
        far = update(here, [f"{where}/part-*.parquet"], executor=there)
    near = update(here, [tmp_path / "part-*.parquet"])
    assert far.run.policy.id == near.run.policy.id
    assert (len(far.log.parts), far.counts["used"]) == (2, 60)


def test_patterns_name_objects_as_they_name_files(bucket: str) -> None:
    for name in ("b.parquet", "a.parquet", "week/c.parquet", "week/deep/d.parquet", "a.txt"):
        write_part(f"{bucket}/names/{name}", **COLUMNS, rewards=[1.0])

    def found(pattern: str) -> list[str]:
        return [url.removeprefix(f"{bucket}/names/") for url in find_parts([f"{bucket}/names/{pattern}"])]

    assert found("*.parquet") == found("[ab].parquet") == ["a.parquet", "b.parquet"]
    assert found("**/*.parquet") == ["a.parquet", "b.parquet", "week/c.parquet", "week/deep/d.parquet"]
    assert found("*/c.parquet") == found("week/c.parquet") == ["week/c.parquet"]
    assert found("b.parquet?region=us-east-1") == ["b.parquet?region=us-east-1"]
    assert found("[b].parquet?region=us-east-1") == ["b.parquet?region=us-east-1"]
    assert len(find_parts([f"{bucket}/names/*.parquet", f"{bucket}/names/a.*"])) == 3


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("s3://logs/none-*.parquet", "no file matches this pattern"),
        ("s3://logs/none.parquet", "no file matches this pattern"),
        ("s3://logs/folder", r"a folder; name the files in it, as s3://logs/folder/\*.parquet"),
        ("s3://logs/folder/", r"a folder; name the files in it, as s3://logs/folder/\*.parquet"),
        (
            "s3://nowhere/part-*.parquet",
            "cannot be reached .*NO_SUCH_BUCKET.* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
        ),
        ("what://logs/part.parquet", "cannot be reached"),
    ],
)
def test_what_is_not_there_is_named_with_the_remedy(bucket: str, pattern: str, words: str) -> None:
    if "folder" in pattern:
        with LogWriter(f"{bucket}/folder/{len(pattern)}.parquet", dim=1, policy_id="p"):
            pass
    with pytest.raises(FileFormatError, match=words) as error:
        find_parts([pattern])
    assert str(error.value).startswith(pattern)


def test_an_object_appears_whole_or_not_at_all_and_is_never_replaced(bucket: str) -> None:
    url = f"{bucket}/once.parquet"
    with pytest.raises(KeyboardInterrupt), LogWriter(url, dim=2, policy_id="p"):
        raise KeyboardInterrupt
    raises(FileFormatError, "no file matches", find_parts, [url])
    write_part(url, **COLUMNS, rewards=[1.0])
    with pytest.raises(FileFormatError, match=f"{url}: exists already, and a log is never overwritten"):
        write_part(url, **COLUMNS, rewards=[2.0])
    assert parquet.read_table(url)["reward"].to_pylist() == [1.0]


def test_a_damaged_object_is_named(bucket: str) -> None:
    files, _ = FileSystem.from_uri(bucket)
    here = Run.begin("foresight", dim=3)
    write(f"{bucket}/damaged.parquet", played(here, count=8))
    with files.open_input_file("logs/damaged.parquet") as part:
        data = part.read()
    for change, words in (
        (b"", r"damaged.parquet: the file is empty \(0 bytes\)"),
        (data[:400], "damaged.parquet: not a readable Parquet file"),
        (data[:-30] + bytes(1) + data[-29:], "damaged.parquet: its footer is not that of its checksum"),
    ):
        with files.open_output_stream("logs/damaged.parquet") as part:
            part.write(change)
        raises(FileFormatError, words, update, here, [f"{bucket}/damaged.parquet"])


def test_an_address_with_a_password_is_refused_without_repeating_it(bucket: str) -> None:
    address = f"{bucket.replace('//', '//me:hush/hush@')}/part-1.parquet"
    for call in (lambda: find_parts([address]), lambda: write_part(address, **COLUMNS)):
        with pytest.raises(FileFormatError, match=r"password in it.*environment") as raised:
            call()
        assert "hush" not in str(raised.value)
