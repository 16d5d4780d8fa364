"""Checks that a table can be written, before anything is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.table_features import Writing, check_data_writable, check_writable
from sparkdelta.base.schema.iceberg_types import check_iceberg_types
from sparkdelta.base.schema.written_schema import check_collations
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot


def open_writable(
    spark: SparkSession,
    path: str,
    *,
    version: Version | None = None,
    writing: Writing = Writing.LOG_FILES,
    without: Collection[str] = (),
    options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Load a version, the latest by default, of a table whose log may be written.

    The latest protocol decides who may write; the features of an older version must be known, too.
    Checkpoints named in `without` are ignored.
    """
    store = open_log_for_writing(spark, path, options)
    snapshot = open_snapshot(spark, path, store=store, without=without, options=options)
    check_writable(snapshot.protocol, path=snapshot.path, writing=writing)
    if version is not None and version != snapshot.version:
        snapshot = open_snapshot(
            spark, path, version=version, store=store, without=without, options=options
        )
        check_writable(snapshot.protocol, path=snapshot.path, writing=writing)
    return snapshot


def check_table_writable(table: TableConfiguration, *, path: str) -> None:
    """Check that rows can be written: the table's features, and the schema that they allow."""
    check_data_writable(table.protocol, path=path)
    check_iceberg_types(table.schema, table.iceberg_version)
    check_collations(table.schema, table.protocol)
