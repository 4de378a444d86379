"""Arrow libraries take tables as they are."""

from __future__ import annotations

import gc
from pathlib import Path

import duckdb
import kvmscope
import pandas
import polars
import pyarrow
import pytest


@pytest.fixture(scope="module")
def exits(fixtures: Path) -> kvmscope.Table:
    return kvmscope.open(fixtures / "nested-svm-toy").report().sections["flow"].tables["exits"]


def test_pyarrow_pandas_polars_and_duckdb_see_one_table(exits: kvmscope.Table) -> None:
    arrow = pyarrow.table(exits)
    assert arrow.column_names == exits.columns and arrow.num_rows == len(exits) > 3
    counts = arrow["count"].to_pylist()
    assert polars.DataFrame(exits)["count"].to_list() == counts
    assert pandas.DataFrame.from_arrow(exits)["count"].tolist() == counts
    relation = duckdb.sql("select sum(count) from exits")
    assert relation is not None and relation.fetchall() == [(sum(counts),)]


def test_rows_are_not_copied(exits: kvmscope.Table) -> None:
    def addresses() -> list[int]:
        batch = pyarrow.table(exits).to_batches()[0]
        return [buffer.address for column in batch.columns for buffer in column.buffers() if buffer is not None]

    assert addresses() == addresses() != [], "two readers have the same memory"
    of_polars = polars.DataFrame(exits)["count"].to_arrow().buffers()[1].address
    assert of_polars in addresses()


def test_rows_outlive_the_recording(fixtures: Path) -> None:
    recording = kvmscope.open(fixtures / "nested-svm-toy")
    arrow = pyarrow.table(recording.report().sections["flow"].tables["exits"])
    before = arrow.to_pylist()
    del recording
    gc.collect()
    assert arrow.to_pylist() == before


def test_a_schema_has_units_keys_and_where_it_is_from(exits: kvmscope.Table) -> None:
    schema = pyarrow.schema(exits)
    assert schema.field("total_ns").metadata == {b"unit": b"ns", b"key": b"false"}
    assert schema.metadata[b"kvmscope.table"] == b"exits" and schema.metadata[b"kvmscope.schema"] == b"kvmscope/1"
    assert exits.units["total_ns"] == "ns" and exits.name == "flow.exits"


def test_a_reader_may_ask_for_other_types(exits: kvmscope.Table) -> None:
    wanted = pyarrow.schema(
        [
            field.with_type(pyarrow.large_string()) if field.type == pyarrow.string() else field
            for field in pyarrow.schema(exits)
        ]
    )
    reader = pyarrow.RecordBatchReader.from_stream(exits, wanted)
    assert reader.read_all().schema.field("reason").type == pyarrow.large_string()


def test_emulated_times_are_marked_in_every_schema(fixtures: Path) -> None:
    emulated, real = kvmscope.open(fixtures / "nested-svm-toy"), kvmscope.open(fixtures / "hog-samples")
    for table in (
        emulated.report().sections["flow"].tables["exits"],
        emulated.chains(),
        emulated.timeline().slices,
        emulated.events("kvm_exit"),
    ):
        assert pyarrow.schema(table).metadata[b"kvmscope.emulated"] == b"QEMU TCG"
    assert b"kvmscope.emulated" not in pyarrow.schema(real.events("sched_switch")).metadata
