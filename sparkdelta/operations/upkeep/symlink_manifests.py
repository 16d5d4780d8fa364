"""The symlink manifests of a table.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.manifest_files import MANIFEST_NAME, MANIFESTS, partition_directory
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.schema.partition_value_frames import partition_value
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.driver import has_rows, read_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import driver_files, worker_files
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.upkeep.manifest_workers import (
    FILE,
    VALUES,
    ManifestWriter,
    write_manifests,
)
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_MANIFESTS = 100_000
"""The most partitions of a table with manifests: the driver compares them with those that are
there."""

Values = tuple[str | None, ...]


def generate_manifests(snapshot: Snapshot, partitions: Collection[Values] | None = None) -> None:
    """Write the manifests of a version, each in the place of the one that is there, and delete
    the manifests of partitions without files.

    Parameters
    ----------
    partitions
        The only partitions whose manifests are outdated; None if it is not known.
    """
    with engine_of(snapshot.log.spark).log_session() as session:
        _generate(snapshot.in_session(session), partitions)


def _generate(snapshot: Snapshot, partitions: Collection[Values] | None) -> None:
    _check_listable(snapshot)
    names = snapshot.configuration.partition_columns
    there = {*_directories(snapshot)}
    if not there or not names:
        partitions = None
    spark, root, options = snapshot.log.spark, snapshot.path, snapshot.log.options
    writer = ManifestWriter(files=worker_files(spark, root, options), table_root=root, names=names)
    listed = _files(snapshot, partitions)
    tasks = engine_of(spark).parallelism
    listed = listed.repartition(tasks, VALUES) if names else listed.repartition(1)
    listed = listed.sortWithinPartitions(VALUES, FILE)
    with worker_python(spark):
        manifests = write_manifests(listed, writer)
    rows = read_rows(manifests, what="symlink manifests", bound=MAX_MANIFESTS)
    written = {row["directory"] for row in rows}
    if not names and not written:
        replace(writer, files=driver_files(spark, root, options)).write_one("", ())
        written = {""}
    if partitions is not None:
        there &= {partition_directory(names, values) for values in partitions}
    _delete(snapshot, there - written, written)


def _delete(snapshot: Snapshot, stale: set[str], written: set[str]) -> None:
    files = snapshot.log.store.table_files()
    for directory in sorted(stale):
        place = f"{MANIFESTS}/{directory}".rstrip("/")
        if any(other.startswith(f"{directory}/") for other in written) or not directory:
            files.delete([f"{place}/{MANIFEST_NAME}"])
        else:
            files.delete_directory(place)


def _check_listable(snapshot: Snapshot) -> None:
    if snapshot.configuration.is_mapped:
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING", path=snapshot.path
        )
    with_vector = snapshot.add_files().filter("deletionVector.storageType IS NOT NULL")
    if has_rows(with_vector.select("path"), what="file with a deletion vector"):
        raise DeltaError.of("DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS", path=snapshot.path)


def _files(snapshot: Snapshot, partitions: Collection[Values] | None) -> DataFrame:
    """Return VALUES and FILE of the live files."""
    names = snapshot.configuration.partition_columns
    values = [f"nullif({partition_value('partitionValues', name)}, '')" for name in names]
    files = snapshot.add_files()
    if partitions is not None and names:
        terms = (
            " AND ".join(
                f"coalesce({value}, '') = {text_literal(wanted or '')}"
                for value, wanted in zip(values, tuple_, strict=True)
            )
            for tuple_ in partitions
        )
        files = files.filter(" OR ".join(f"({term})" for term in terms) or "FALSE")
    return files.selectExpr(
        f"CAST(array({', '.join(values)}) AS ARRAY<STRING>) AS {VALUES}",
        f"{absolute_path('path', table_root=snapshot.path)} AS {FILE}",
    )


def _directories(snapshot: Snapshot) -> Iterator[str]:
    """Yield the partition directories that have a manifest; an empty one for that of the table."""
    for entry in snapshot.log.store.table_files().list_files(MANIFESTS):
        directory, _, name = entry.name.rpartition("/")
        if name == MANIFEST_NAME:
            yield directory.removeprefix(MANIFESTS).lstrip("/")
