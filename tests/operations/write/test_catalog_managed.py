"""Tables that a catalog manages: reads, writes and maintenance through it.

PROTOCOL.md#catalog-managed-tables
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    clean_log,
    clone,
    load_snapshot,
    optimize,
    read_changes,
    read_delta,
    reorg,
    repair,
    use_catalog,
    vacuum,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.table.listing import catalog_log, line_reader
from tests.operations.write.test_write import rows
from tests.support.errors import raises
from tests.support.memory_catalog import MemoryCatalog

pytestmark = pytest.mark.classic("uses a catalog, which Spark Connect refuses")

MANAGED = {"delta.feature.catalogManaged": "supported"}


@pytest.fixture
def catalog(spark: SparkSession, table_path: str) -> Iterator[MemoryCatalog]:
    """Manages the table at `table_path`, and never lets go of a commit."""
    found = MemoryCatalog(forgets=False)
    use_catalog(spark, table_path, found)
    yield found
    use_catalog(spark, table_path, None)


def published(path: str) -> int:
    """The last published version."""
    return max(int(file.stem) for file in Path(path, "_delta_log").glob("*.json"))


@pytest.mark.full
def test_reads_and_writes(
    spark: SparkSession, table_path: str, catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver and executors read and change a table whose commits are only staged."""
    write_delta(spark.range(4), table_path, properties={**MANAGED, "delta.checkpointInterval": "4"})
    with raises("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        write_delta(spark.range(4), f"{table_path}-other", properties=MANAGED)
    assert not Path(f"{table_path}-other").exists()
    monkeypatch.setattr(catalog_log, "MAX_PUBLISHED_BYTES", 0)
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id = 0")
    alter_table(spark, table_path).set_properties({"delta.enableChangeDataFeed": "true"})
    write_delta(spark.range(9, 10), table_path, mode="append")
    assert published(table_path) == 0
    monkeypatch.setattr(line_reader, "DRIVER_LOG_BYTES", 0)
    assert set(rows(spark, table_path)) == {(1,), (2,), (3,), (9,)}
    assert read_delta(spark, table_path, version=1).count() == 3
    assert read_changes(spark, table_path, start_version=3).count() == 1
    assert [row["version"] for row in table.history().collect()] == [3, 2, 1, 0]
    monkeypatch.undo()
    with raises("DELTA_INVALID_COMMIT"):
        alter_table(spark, table_path).set_properties({"delta.enableInCommitTimestamps": "false"})
    write_delta(spark.range(10, 11), table_path, mode="append")  # with a checkpoint
    assert published(table_path) == 4
    assert list(Path(table_path, "_delta_log").glob(f"{4:020d}.checkpoint*"))
    write_checkpoint(spark, table_path)
    assert set(rows(spark, table_path)) == {(1,), (2,), (3,), (9,), (10,)}
    assert verify(spark, table_path).is_clean
    # The catalog is authoritative, even if it has lost a version.
    root = next(iter(catalog.latest))
    catalog.latest[root] = 3
    del catalog.ratified[root][4]
    assert load_snapshot(spark, table_path).version == 3
    use_catalog(spark, table_path, None)
    with raises("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        load_snapshot(spark, table_path)


@pytest.mark.full
def test_maintenance_is_the_catalogs(
    spark: SparkSession, table_path: str, catalog: MemoryCatalog
) -> None:
    del catalog
    write_delta(spark.range(4), table_path, properties=MANAGED)
    refused: list[Callable[[], object]] = [
        lambda: vacuum(spark, table_path),
        lambda: optimize(spark, table_path),
        lambda: reorg(spark, table_path),
        lambda: clean_log(spark, table_path),
        lambda: repair(spark, table_path),
    ]
    for operation in refused:
        with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE") as raised:
            operation()
        assert raised.value.features == ("catalogManaged",)
    # A clone is nobody's.
    clone(spark, table_path, f"{table_path}-clone", deep=True)
    assert rows(spark, f"{table_path}-clone") == [(n,) for n in range(4)]
    assert load_snapshot(spark, table_path).version == 0


@pytest.mark.full
def test_writers_race(spark: SparkSession, table_path: str, catalog: MemoryCatalog) -> None:
    write_delta(spark.range(0), table_path, properties=MANAGED)

    def write(number: int) -> None:
        write_delta(spark.range(number, number + 1), table_path, mode="append")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(rows(spark, table_path)) == {(n,) for n in range(4)}
    assert next(iter(catalog.latest.values())) == published(table_path) == 4
