"""Fleets: engines and stores change nothing of the answer, what is done stays done, what is broken is a row."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import kvmscope
import pyarrow
import pytest
from conftest import ROOT, Program
from kvmscope import Error, fleet

HOSTS = 24
# One host is not a recording.
BROKEN = "broken"


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated fleet with known truth, and a directory beside it that is no recording."""
    generate = Path(os.environ.get("KVMSCOPE_GENERATE", ROOT / "target/debug/generate"))
    if not generate.exists():
        pytest.skip(f"generate: {generate} is not built; fleets were not tested")
    place = tmp_path_factory.mktemp("nightly")
    subprocess.run(
        [generate, "fleet", place, "--recordings", str(HOSTS), "--seed", "7"], check=True, capture_output=True
    )
    (place / BROKEN).mkdir()
    (place / BROKEN / "recording.json").write_text('{"schema": "kvmscope-recording/2"}')
    return place


def sources(place: Path) -> list[str]:
    return sorted(str(path) for path in place.iterdir() if path.is_dir())


@pytest.fixture(scope="session")
def dataset(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one process makes of it."""
    place = str(tmp_path_factory.mktemp("fleet") / "dataset")
    done = fleet.analyse(sources(recordings), place)
    assert (len(done.added), len(done.failed)) == (HOSTS, 1), done.failed
    return place


@pytest.fixture(scope="session")
def expected(dataset: str) -> str:
    return fleet.report(dataset).json()


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, Any]]:
    """Options for an S3 server of its own process, with a bucket."""
    pytest.importorskip("s3fs", reason="s3fs: it is not installed; fleets over S3 were not tested")
    if shutil.which("moto_server", path=Path(sys.executable).parent) is None:
        pytest.skip("moto_server: it is not installed; fleets over S3 were not tested")
    import s3fs

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    options = {
        "key": "k",
        "secret": "s",
        "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "eu-central-1"},
    }
    try:
        for _ in range(300):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
            except OSError:
                time.sleep(0.1)
        s3fs.S3FileSystem(**options).mkdir("lab")
        yield options
    finally:
        server.kill()
        server.wait()


def test_what_is_planted_is_named_by_host(recordings: Path, dataset: str) -> None:
    truth = json.loads((recordings / "truth.json").read_text())
    answer = fleet.report(dataset)
    rules = {row["rule"]: row["hosts"] for row in rows(answer, "ranked")}
    assert rules["FLW-SHADOW"] == len(truth["shadowing_off"])
    kernels = {finding.subject for finding in answer.findings if finding.rule == "FLT-KERNEL"}
    assert kernels and all(kernel.startswith(truth["kernel"]) for kernel in kernels)


def rows(answer: Any, table: str) -> list[dict[str, Any]]:
    found = json.loads(answer.json())["sections"][0]["tables"][table]
    names = [column["name"] for column in found["columns"]]
    return [dict(zip(names, row, strict=True)) for row in found["rows"]]


def test_the_program_answers_the_same(dataset: str, expected: str, program: Program) -> None:
    assert program("fleet", "report", dataset, "--json").decode() == expected


def test_the_program_makes_the_same_files(recordings: Path, dataset: str, program: Program, tmp_path: Path) -> None:
    first = sources(recordings)[1]
    program("export", first, "--dataset", tmp_path / "one")
    made = {path.relative_to(tmp_path / "one"): path.read_bytes() for path in (tmp_path / "one").rglob("*.parquet")}
    assert len(made) > 15
    for path, content in made.items():
        assert (Path(dataset) / path).read_bytes() == content, path


def test_what_is_done_is_not_done_again_and_what_is_new_is(recordings: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "dataset")
    all_of_them = [source for source in sources(recordings) if not source.endswith(BROKEN)]
    assert len(fleet.analyse(all_of_them[:3], place).added) == 3
    times = {path: path.stat().st_mtime_ns for path in Path(place).rglob("*.parquet")}
    again = fleet.analyse(all_of_them[:4], place)
    assert (len(again.there), [Path(one.source).name for one in again.added]) == (3, [Path(all_of_them[3]).name])
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in times.items())
    # From another place it is the same recording.
    shutil.copytree(all_of_them[0], tmp_path / "copy")
    assert [one.status for one in fleet.analyse([tmp_path / "copy"], place).outcomes] == ["already there"]
    assert len(fleet.analyse(all_of_them[:1], place, force=True).added) == 1


def test_one_that_is_broken_is_a_row_until_it_is_whole(recordings: Path, tmp_path: Path) -> None:
    place, source = str(tmp_path / "dataset"), tmp_path / "nightly"
    shutil.copytree(recordings / BROKEN, source)
    good = sources(recordings)[1]
    done = fleet.analyse([source, good], place)
    assert [one.status for one in done.outcomes] == ["failed", "added"] and done.failed[0].error
    assert [row["source"] for row in rows(fleet.report(place), "failures")] == [str(source)]
    shutil.rmtree(source)
    shutil.copytree(sources(recordings)[2], source)
    assert [one.status for one in fleet.analyse([source, good], place).outcomes] == ["added", "already there"]
    assert "failures" not in json.loads(fleet.report(place).json())["sections"][0]["tables"]


def test_what_was_killed_before_its_row_is_not_there_and_is_made_again(recordings: Path, tmp_path: Path) -> None:
    place = tmp_path / "dataset"
    some = sources(recordings)[1:4]
    fleet.analyse(some, place)
    row = next((place / "fleet.recordings").rglob("*.parquet"))
    row.unlink()
    assert json.loads(fleet.report(place).json())["sections"][0]["about"][0].startswith("2 recordings of 2 hosts")
    assert len(fleet.analyse(some, place).added) == 1
    assert row.exists()
    assert not [path for path in place.rglob("*") if path.name.endswith(".new")]


def test_a_place_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(Error, match="is not empty"):
        fleet.analyse("nightly", tmp_path)
    with pytest.raises(Error, match="is no data set"):
        fleet.report(tmp_path)
    with pytest.raises(ValueError, match="is no engine"):
        fleet.analyse([tmp_path], tmp_path / "new", engine="hadoop")


def test_dask_has_the_same_answer_and_the_same_files(
    recordings: Path, dataset: str, expected: str, tmp_path: Path
) -> None:
    pytest.importorskip("distributed", reason="dask: it is not installed; fleets on it were not tested")
    place = tmp_path / "dataset"
    with fleet.Dask(workers=2) as cluster:
        running = fleet.Dask(cluster._client)
        done = fleet.analyse(sources(recordings), place, engine=running)
        assert (len(done.added), len(done.failed)) == (HOSTS, 1)
        # By address, as on a cluster of others.
        answer = fleet.report(place, engine=fleet.Dask(cluster._client.scheduler.address))
        assert answer.json() == expected
    for path in Path(dataset).rglob("*.parquet"):
        assert (place / path.relative_to(dataset)).read_bytes() == path.read_bytes(), path


def test_over_s3_recordings_and_answer_are_the_same(recordings: Path, expected: str, s3: dict[str, Any]) -> None:
    import s3fs

    store = s3fs.S3FileSystem(**s3)
    some = sources(recordings)[:4]
    for source in some:
        store.put(source, f"lab/nightly/{Path(source).name}", recursive=True)
    done = fleet.analyse("s3://lab/nightly/*", "s3://lab/fleet", source_options=s3, storage_options=s3)
    assert (len(done.added), len(done.failed)) == (3, 1), done.outcomes
    again = fleet.analyse("s3://lab/nightly/*", "s3://lab/fleet", source_options=s3, storage_options=s3)
    assert (len(again.there), len(again.failed)) == (3, 1)
    # The others come from this machine.
    done = fleet.analyse(sources(recordings), "s3://lab/fleet", storage_options=s3)
    assert (len(done.there), len(done.added)) == (3, HOSTS - 3), done
    answer = json.loads(fleet.report("s3://lab/fleet", storage_options=s3).json())
    tables = json.loads(expected)["sections"][0]["tables"]
    for name in tables.keys() - {"failures"}:
        assert answer["sections"][0]["tables"][name] == tables[name], name


def test_spark_has_the_same_answer_and_the_same_files(
    recordings: Path, dataset: str, expected: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="spark: pyspark is not installed; fleets on it were not tested")
    if shutil.which("java") is None:
        pytest.skip("spark: there is no java; the Debian package openjdk-17-jre-headless brings it")
    place = tmp_path / "dataset"
    # Few, because a session takes half a minute to begin with; the answer is over all.
    some = [*sources(recordings)[:6], str(recordings / "host-0023-0")]
    with fleet.Spark(master="local[2]") as session:
        running = fleet.Spark(session._session)
        done = fleet.analyse(some, place, engine=running)
        assert (len(done.added), len(done.failed)) == (6, 1)
        assert fleet.report(dataset, engine=running).json() == expected
    made = [path for path in place.rglob("*.parquet") if "fleet.failures" not in path.parts]
    assert len(made) > 6 * 15
    for path in made:
        assert (Path(dataset) / path.relative_to(place)).read_bytes() == path.read_bytes(), path


def test_a_pattern_that_matches_nothing_makes_no_data_set(recordings: Path, tmp_path: Path) -> None:
    place = tmp_path / "dataset"
    nothings: tuple[str | list[str], ...] = (str(recordings / "nightyl-*"), [])
    for nothing in nothings:
        with pytest.raises(Error, match=r"nothing matches .*nightyl|no recording is named"):
            fleet.analyse(nothing, place)
    assert not place.exists()
    one = sources(recordings)[1]
    done = fleet.analyse([one, str(recordings / "nightyl-*")], place)
    assert [len(done.added), [outcome.source for outcome in done.failed]] == [1, [str(recordings / "nightyl-*")]]


def test_a_store_that_is_not_there_is_an_error_with_its_url(s3: dict[str, Any], recordings: Path) -> None:
    with pytest.raises(Error, match="s3://no-such-bucket/x: "):
        fleet.analyse(sources(recordings)[:1], "s3://no-such-bucket/x", storage_options=s3)
    with pytest.raises(Error, match="nosuch://x"):
        fleet.report("nosuch://x")


def test_the_query_of_the_documentation_runs_and_counts_what_the_recordings_have(
    dataset: str, recordings: Path
) -> None:
    query = (
        (ROOT / "docs/use/compare.md")
        .read_text()
        .split('duckdb -c "')[1]
        .split('"')[0]
        .replace("'fleet/", f"'{dataset}/")
    )
    counted: dict[str, int] = {}
    relation = duckdb.sql(query)
    assert relation is not None
    for _, reason, count in relation.fetchall():
        counted[reason] = counted.get(reason, 0) + int(count)
    expected: dict[str, int] = {}
    for source in sources(recordings):
        if source.endswith(BROKEN):
            continue
        table = pyarrow.table(kvmscope.open(source).report().sections["flow"].tables["exits"])
        for row in table.select(["reason", "count"]).to_pylist():
            expected[row["reason"]] = expected.get(row["reason"], 0) + row["count"]
    assert counted == expected != {}
