"""Entries of tables in the session catalog that show their columns, comment and properties.

An entry has only provider and location, since the log has the rest; so Hive, and other programs
that read a metastore, see no columns. Where the session or the table asks for it, each commit that
changes them writes them into the entries whose names this process has used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.table_properties import is_on
from sparkdelta.base.spark.enabled_sessions import syncs_catalog
from sparkdelta.base.spark.session_settings import updates_catalog
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.table_description import all_properties, described_schema
from sparkdelta.table.listing.listing import open_log
from sparkdelta.table.listing.table_names import NewTable, names_of_location, table_path
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

SYNC_CATALOG = "sparkdelta.syncCatalog"
"""A table property: ``true`` to describe the table in session catalogs, whatever the session."""

_LOGGER = logging.getLogger(__name__)
_SPARKS_OWN = "spark.sql."
"""The prefix of properties that only Spark may write into an entry."""


def describe_committed_table(done: CommittedTransaction) -> None:
    """Write what a commit has changed into the table's entries, if it is asked for."""
    names = names_of_location(done.store.table_root)
    if not names or not _is_asked_for(done.spark, done.properties):
        return
    before, after = done.before, done.snapshot
    if before is None or (before.metadata, before.protocol) != (after.metadata, after.protocol):
        _describe(done.spark, names, after)


@contextmanager
def named(table: NewTable, spark: SparkSession, comment: str | None = None) -> Iterator[None]:
    """Register the name of the table that the block creates, see `NewTable.named`."""
    with table.named(spark, comment):
        yield
    if table.name is not None:
        describe_named_table(spark, table.name)


def describe_named_table(spark: SparkSession, name: Sequence[str]) -> None:
    """Write the description of a table into the entry that it has got, if it is asked for.

    A failure is logged: the table exists, and has its name.
    """
    path = table_path(spark, name)
    if path is None or not engine_of(spark).can("describe tables"):
        return
    try:
        snapshot = open_snapshot(spark, path, store=open_log(spark, path))
        if _is_asked_for(spark, snapshot.properties):
            _describe(spark, [name], snapshot)
    except BaseException as error:
        _LOGGER.warning("The columns of %s are not in the catalog: %s", ".".join(name), error)
        if not isinstance(error, Exception):
            raise


def _is_asked_for(spark: SparkSession, properties: Mapping[str, str]) -> bool:
    return syncs_catalog(spark) or updates_catalog() or is_on(properties, SYNC_CATALOG)


def _describe(spark: SparkSession, names: Sequence[Sequence[str]], snapshot: Snapshot) -> None:
    properties = {
        name: text
        for name, text in all_properties(snapshot).items()
        if not name.startswith(_SPARKS_OWN)
    }
    for name in names:
        engine_of(spark).describe_table(
            name,
            snapshot.path,
            described_schema(snapshot.schema),
            comment=snapshot.metadata.description,
            properties=properties,
        )
