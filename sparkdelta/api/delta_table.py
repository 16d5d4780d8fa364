"""`DeltaTable` with the method names of delta-spark's `delta.tables.DeltaTable`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.api.merge_builder import DeltaMergeBuilder
from sparkdelta.api.optimize_builder import DeltaOptimizeBuilder
from sparkdelta.api.table_builder import DeltaTableBuilder, IdentityGenerator
from sparkdelta.base.protocol.arguments import (
    checked_flag,
    checked_number,
    checked_text,
    checked_version,
)
from sparkdelta.base.protocol.settable_properties import (
    FEATURE,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
)
from sparkdelta.base.protocol.table_features import Writing
from sparkdelta.base.schema.sql_text import SESSION_CATALOG, text_literal
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.enabled_sessions import conversion_time_zone, is_enabled
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.session_settings import evolves_schemas, follow_settings
from sparkdelta.exceptions import (
    ArgumentTypeError,
    DeltaError,
    InvalidArgumentError,
    TableNotFoundError,
)
from sparkdelta.operations.alter.alter_table import alter
from sparkdelta.operations.alter.altered_properties import set_properties
from sparkdelta.operations.alter.drop_feature import drop_feature
from sparkdelta.operations.changes.describe import table_detail, table_history
from sparkdelta.operations.compaction.optimize_run import OptimizeRequest, OptimizeResult
from sparkdelta.operations.copy.clone import CloneOptions, clone
from sparkdelta.operations.copy.convert import convert, parquet_path
from sparkdelta.operations.copy.converted_table import ConvertOptions, checked_partition_schema
from sparkdelta.operations.copy.restore import restore, restore_metrics
from sparkdelta.operations.merge.merge import MergeRequest, merge
from sparkdelta.operations.optimize.optimize import optimize_table
from sparkdelta.operations.upkeep.symlink_manifests import generate_manifests
from sparkdelta.operations.vacuum.vacuum import VacuumOptions, checks_retention, vacuum_table
from sparkdelta.operations.write.create_table import Creation
from sparkdelta.operations.write.delete import delete
from sparkdelta.operations.write.update import update
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.listing import find_log_segment, open_log, open_log_for_writing
from sparkdelta.table.listing.missing_tables import with_not_found_hint
from sparkdelta.table.listing.table_names import (
    name_in_catalog,
    name_not_found,
    table_name_in,
    table_path,
)
from sparkdelta.table.log.session_times import session_time
from sparkdelta.table.log.time_travel import version_at_timestamp
from sparkdelta.table.rows.expression_arguments import checked_condition, checked_values
from sparkdelta.table.rows.row_changes import ChangeResult, open_changeable
from sparkdelta.table.scan.row_names import RowNames, columns_frame
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]

_DELTA_TABLE = "DeltaTable"
Value = TypeVar("Value")


class DeltaTable:
    """A Delta table identified by its path; every method reads the latest version when it is
    called.

    Created by `DeltaTable.forPath` or the builders of `DeltaTable.create` and similar methods.
    """

    def __init__(self, spark: SparkSession, path: str, hadoopConf: Mapping[str, str]) -> None:
        self._spark = spark
        self._path = path
        self._options = dict(hadoopConf)
        self._alias: str | None = None
        self._frames: list[DataFrame] = []
        self._time_zone: str | None = None
        self._catalog_name: tuple[str, ...] | None = None

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """Return the table at a path.

        Parameters
        ----------
        hadoopConf
            File system options, added to the session's.

        Raises
        ------
        TableNotFoundError
            There is no Delta table at the path.
        """
        table = cls(sparkSession, path, hadoopConf or {})
        with (
            follow_settings(sparkSession, _DELTA_TABLE),
            with_not_found_hint(sparkSession, path),
        ):
            find_log_segment(open_log(sparkSession, path, table._options))
        return table

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Return the table of a name in the session catalog, or of ``delta.`/path` ``.

        Raises
        ------
        TableNotFoundError
            There is no Delta table of this name.
        """
        name = table_name_in(sparkSession, tableOrViewName)
        path = table_path(sparkSession, name)
        if path is None:
            with follow_settings(sparkSession, _DELTA_TABLE):
                raise _name_not_found(sparkSession, name)
        table = cls.forPath(sparkSession, path)
        table._catalog_name = name  # noqa: SLF001 - of the same class
        return table

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Return True if there is a Delta log at a path."""
        try:
            find_log_segment(open_log(sparkSession, identifier))
        except TableNotFoundError:
            return False
        return True

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
    ) -> DeltaTable:
        """Convert a directory of Parquet files, see `sparkdelta.convert_to_delta`, and return the
        table.

        Parameters
        ----------
        identifier
            ``parquet.`/path/to/directory```.
        partitionSchema
            The columns whose values are in the names of directories; none by default.

        Raises
        ------
        DELTA_MISSING_PROVIDER_FOR_CONVERT, DELTA_CONVERT_NON_PARQUET_TABLE
            The identifier does not name a directory of Parquet files.
        """
        path = parquet_path(identifier)
        schema = checked_partition_schema(partitionSchema, "partitionSchema")
        with follow_settings(sparkSession):
            result = convert(sparkSession, path, ConvertOptions(partition_schema=schema))
        return cls(sparkSession, result.path, {})

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a new table."""
        return cls._builder(sparkSession, Creation.CREATE)

    @classmethod
    def createIfNotExists(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a table that is only created if it does not exist."""
        return cls._builder(sparkSession, Creation.CREATE_IF_NOT_EXISTS)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a table that replaces an existing one and its rows."""
        return cls._builder(sparkSession, Creation.REPLACE)

    @classmethod
    def createOrReplace(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a table that is created or replaces an existing one."""
        return cls._builder(sparkSession, Creation.CREATE_OR_REPLACE)

    @classmethod
    def _builder(
        cls, spark: SparkSession | None, creation: Creation
    ) -> DeltaTableBuilder[DeltaTable]:
        spark = spark or SparkSession.getActiveSession()
        if spark is None:
            problem = "it is not given, and there is no active session"
            raise InvalidArgumentError(argument="sparkSession", problem=problem)
        return DeltaTableBuilder(spark, creation, cls.forPath)

    def __repr__(self) -> str:
        return f"DeltaTable({self._path!r})"

    def toDF(self) -> DataFrame:
        """Return the rows of the latest version, see `sparkdelta.read_delta`; in an enabled
        session, of the latest version whenever a query runs.

        Its columns, such as ``table.toDF()["id"]``, can be used in conditions and values of
        `delete`, `update` and `merge`.
        """
        rows = self._snapshot().latest_rows()
        self._frames[:] = [columns_frame(rows, *self._frames)]
        return self._names.given_to(rows)

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table with an alias for its rows."""
        table = DeltaTable(self._spark, self._path, self._options)
        table._alias, table._frames = aliasName, self._frames
        table._time_zone, table._catalog_name = self._time_zone, self._catalog_name
        return table

    def _converting_in(self, time_zone: str) -> DeltaTable:
        """Return the same table; values are converted to the types of its columns in a time zone,
        by default the `conversion_time_zone` of the session.
        """
        table = DeltaTable(self._spark, self._path, self._options)
        table._alias, table._frames, table._time_zone = self._alias, self._frames, time_zone
        table._catalog_name = self._catalog_name
        return table

    @property
    def _conversion_zone(self) -> str:
        return self._time_zone or conversion_time_zone(self._spark)

    @property
    def _names(self) -> RowNames:
        """The names of the rows in conditions and values."""
        return RowNames(self._alias, *self._frames)

    def _full_name(self) -> tuple[str, ...] | None:
        """Return the name in the session catalog by which the table was opened, if it was."""
        return self._catalog_name and name_in_catalog(self._spark, self._catalog_name)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Follow the settings of an enabled session in the block, and add advice to its
        `TableNotFoundError`.
        """
        with (
            follow_settings(self._spark, _DELTA_TABLE, self._full_name),
            with_not_found_hint(self._spark, self._path),
        ):
            yield

    def delete(self, condition: str | Column | None = None) -> ChangeResult:
        """Delete the rows that match a condition, or all rows without one.

        Rows for which it is null stay. Rows that match rows of another DataFrame are deleted by a
        merge with one clause, ``merge(other, condition).whenMatchedDelete().execute()``.

        Parameters
        ----------
        condition
            SQL text or a Column; deterministic, without subqueries and aggregates.

        Raises
        ------
        DELTA_CANNOT_MODIFY_APPEND_ONLY
            The table is append-only.
        DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED, DELTA_UNSUPPORTED_SUBQUERY,
        DELTA_AGGREGATION_NOT_SUPPORTED
            The condition depends on more than the row.
        ColumnNotFoundError, InvalidConditionError
            The condition is not valid.
        DeltaConcurrentModificationException
            Another commit changed the same rows.

        References
        ----------
        PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
        """
        where = checked_condition(condition, "condition")
        with self._running():
            return delete(self._spark, self._path, where, names=self._names, options=self._options)

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002 - delta-spark's name
    ) -> ChangeResult:
        """Assign new values to columns of the rows that match a condition, or of all rows
        without one.

        Parameters
        ----------
        condition
            SQL text or a Column; deterministic, without subqueries and aggregates.
        set
            Expressions on the row as it was, as SQL text or Columns, by the names of columns or of
            fields of struct columns. They are converted to the column's type; one that does not
            fit fails the update.

        Raises
        ------
        DELTA_CANNOT_MODIFY_APPEND_ONLY
            The table is append-only.
        ColumnNotFoundError, DELTA_MISSING_SET_COLUMN, DELTA_CONFLICT_SET_COLUMN,
        DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED
            A name in `set` is not that of a column that can be assigned.
        DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED, DELTA_UNSUPPORTED_SUBQUERY,
        DELTA_AGGREGATION_NOT_SUPPORTED
            The condition depends on more than the row.
        ConstraintError
            A new row breaks a rule of the table.
        DeltaConcurrentModificationException
            Another commit changed the same rows.

        References
        ----------
        PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
        """
        given = _required(set, "set")
        where, values = checked_condition(condition, "condition"), checked_values(given, "set")
        with self._running():
            return update(
                self._spark,
                self._path,
                where,
                values,
                names=self._names,
                options=self._options,
                time_zone=self._conversion_zone,
            )

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Return a builder of a merge of a source into the table; nothing happens before its
        `execute`.

        Parameters
        ----------
        source
            The rows to merge, which are computed once. Give it and the table an `alias` if they
            share names of columns.
        condition
            The condition on which rows match, as SQL text or a Column on columns of both;
            deterministic, without subqueries and aggregates.
        """
        if not isinstance(_required(source, "source"), DataFrame):
            problem = f"its type must be DataFrame, not {type(source).__name__}"
            raise ArgumentTypeError(argument="source", problem=problem)
        on = checked_condition(_required(condition, "condition"), "condition")
        assert on is not None
        request = MergeRequest(
            source=source,
            condition=on,
            clauses=(),
            names=self._names,
            time_zone=self._conversion_zone,
        )
        return DeltaMergeBuilder(request, self._merge)

    def optimize(self) -> DeltaOptimizeBuilder:
        """Return a builder that rewrites small files as larger ones, or rows in Z-order; nothing
        happens before its `executeCompaction` or `executeZOrderBy`.
        """
        return DeltaOptimizeBuilder(self._spark, self._optimize)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore an earlier version, as a new commit that any concurrent change of the table
        fails.

        This restores rows, schema, properties and metadata domains. The protocol keeps its
        features, and identity values, column ids and row ids that were assigned since are never
        assigned again. In-commit timestamps stay enabled or disabled as they are.

        Returns
        -------
        DataFrame
            One row, or none if this is the latest version: table_size_after_restore LONG (bytes),
            num_of_files_after_restore LONG, num_removed_files LONG, num_restored_files LONG,
            removed_files_size LONG (bytes), restored_files_size LONG (bytes).

        Raises
        ------
        DELTA_CANNOT_RESTORE_TABLE_VERSION
            The version is not there, or can no longer be read.
        DELTA_CANNOT_RESTORE_FILES
            Files of it were deleted or are damaged.
        DELTA_CANNOT_MODIFY_APPEND_ONLY
            The table is append-only.
        DeltaConcurrentModificationException
            Another commit changed the table.

        References
        ----------
        PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
        """
        return self._restore(version=_required(checked_version(version), "version"))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the version that was the latest at a time; see `restoreToVersion`.

        Parameters
        ----------
        timestamp
            ``2026-01-31`` or ``2026-01-31 12:00:00.5+01:00``; without a zone in UTC, in an
            enabled session in the session's.

        Raises
        ------
        DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER, DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER,
        DELTA_TIMESTAMP_INVALID
            There is no version of that time.
        """
        time = _required(checked_text(timestamp, "timestamp"), "timestamp")
        return self._restore(timestamp=self._time(time))

    def _time(self, timestamp: str) -> str:
        """Return a time with its zone: without one it is in that of an enabled session, or UTC."""
        if not is_enabled(self._spark):
            return timestamp
        return session_time(self._spark, text_literal(timestamp)).isoformat()

    def generate(self, mode: str) -> None:
        """Write the symlink manifests of the latest version: lists of its data files, with which
        Presto, Athena and others read it as a Hive table.

        A partitioned table has one in each partition directory below
        ``_symlink_format_manifest``; manifests of partitions without files are deleted. With the
        table property ``delta.compatibility.symlinkFormatManifest.enabled``, every commit updates
        the manifests that it changes.

        Parameters
        ----------
        mode
            ``symlink_format_manifest``.

        Raises
        ------
        DELTA_MODE_NOT_SUPPORTED
            There is no such mode.
        DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS,
        DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING
            The table has deletion vectors or maps its columns.
        """
        if not isinstance(mode, str) or mode.lower() != "symlink_format_manifest":
            raise DeltaError.of("DELTA_MODE_NOT_SUPPORTED", mode=str(mode))
        spark, path, options = self._spark, self._path, self._options
        with with_not_found_hint(spark, path):
            store = open_log_for_writing(spark, path, options)
            snapshot = open_snapshot(spark, path, store=store, options=options)
            with jobs_of(snapshot.path, snapshot.version):
                generate_manifests(snapshot)

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Clone the latest version to another path, see `sparkdelta.clone`, and return the clone.

        Parameters
        ----------
        isShallow
            True to share the files, False to copy them.
        """
        return self._clone(None, target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Clone a version; otherwise as `clone`."""
        version = _required(checked_version(version), "version")
        return self._clone(version, target, isShallow, replace, properties)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Clone the version that was the latest at a time; otherwise as `clone`.

        Parameters
        ----------
        timestamp
            ``2026-01-31`` or ``2026-01-31 12:00:00.5+01:00``; without a zone in UTC, in an
            enabled session in the session's.
        """
        timestamp = _required(checked_text(timestamp, "timestamp"), "timestamp")
        with self._running():
            version = version_at_timestamp(self._spark, self._path, self._time(timestamp))
        return self._clone(version, target, isShallow, replace, properties)

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete the files that no version within the retention period needs.

        See `sparkdelta.vacuum`, which takes more arguments and returns a report.

        Parameters
        ----------
        retentionHours
            By default the table's `delta.deletedFileRetentionDuration`, or a week; not less,
            unless delta-spark's setting `retentionDurationCheck.enabled` is false.

        Returns
        -------
        DataFrame
            Empty, without columns.

        Raises
        ------
        DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT, DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE
            The retention period is shorter than the table's, or negative.
        StorageError
            Files could not be listed, and nothing was deleted; or some could not be deleted.

        References
        ----------
        PROTOCOL.md#data-files, PROTOCOL.md#vacuum-protocol-check
        """
        wanted = VacuumOptions(
            retention_hours=checked_number(retentionHours, "retentionHours"),
            check_retention=checks_retention(self._spark),
        )
        with self._running():
            spark, path, options = self._spark, self._path, self._options
            found = open_writable(spark, path, writing=Writing.MAINTENANCE, options=options)
            vacuum_table(found, wanted)
        return self._spark.createDataFrame([], StructType())

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Add the table features that versions of the protocol imply, in the lowest versions for
        all features of the table.

        Versions with lists of features, 3 and 7, imply none, and change nothing.

        Raises
        ------
        InvalidArgumentError
            There are no such versions, or reader version 3 without writer version 7.
        ProtocolChangedException, MetadataChangedException
            Another commit altered the table.

        References
        ----------
        PROTOCOL.md#protocol-evolution
        """
        for name, version in ("readerVersion", readerVersion), ("writerVersion", writerVersion):
            _required(checked_version(version, name), name)
        versions = {MIN_READER_VERSION: readerVersion, MIN_WRITER_VERSION: writerVersion}
        self._set_properties({name: str(version) for name, version in versions.items()})

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a table feature, and those that it needs, to the protocol.

        Raises
        ------
        DELTA_UNKNOWN_CONFIGURATION, DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED,
        DELTA_WRITE_NOT_IMPLEMENTED
            The feature is unknown, needs clustering columns, or is not implemented.
        ProtocolChangedException, MetadataChangedException
            Another commit altered the table.

        References
        ----------
        PROTOCOL.md#table-features
        """
        name = _required(checked_text(featureName, "featureName"), "featureName")
        self._set_properties({f"{FEATURE}{name}": "supported"})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a table feature from the protocol, with what the table has of it.

        Files that need the feature are written again, in as many commits as needed. If earlier
        versions can only be read with the feature, they are hidden behind checkpoints, which the
        feature `checkpointProtection` protects; with `truncateHistory`, they must have expired
        first, and are deleted. A drop that stopped half-way goes on when it is repeated.

        Parameters
        ----------
        truncateHistory
            True to delete earlier versions, a day after none of them uses the feature. The first
            call then raises `DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD`.

        Raises
        ------
        DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE, DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY,
        DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT
            There is no such feature, or the table does not have it.
        DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE, DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED,
        DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION
            It cannot be dropped, or not in this way.
        DELTA_FEATURE_DROP_DEPENDENT_FEATURE, DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE,
        DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE,
        DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING
            The table depends on it.
        DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD, DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST,
        DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD
            Earlier versions have not expired.
        DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL, DeltaConcurrentModificationException
            Other writers altered the table.
        DELTA_FEATURE_DROP_CHECKPOINT_FAILED
            A checkpoint could not be written.

        References
        ----------
        PROTOCOL.md#supported-features
        """
        name = _required(checked_text(featureName, "featureName"), "featureName")
        given = False if truncateHistory is None else truncateHistory
        truncates = checked_flag(given, "truncateHistory")
        with follow_settings(self._spark):
            drop_feature(
                self._spark,
                self._path,
                name,
                truncates_history=truncates,
                options=self._options,
            )

    def _set_properties(self, properties: Mapping[str, str]) -> None:
        statement = partial(set_properties, properties=properties)
        with follow_settings(self._spark):
            alter(self._spark, self._path, statement, self._options)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits, newest first; columns as in
        `sparkdelta.operations.changes.describe.table_history`.

        To read the table as of a commit, pass its `version`. Spark displays `timestamp` in the
        session time zone and collects it as a naive local datetime, while `read_delta` interprets
        times without a time zone as UTC: pass ``row.timestamp.astimezone()``.
        """
        return table_history(self._spark, self._snapshot(), limit)

    def detail(self) -> DataFrame:
        """Return one row about the table; columns as in
        `sparkdelta.operations.changes.describe.table_detail`.
        """
        names = self._full_name()
        return table_detail(self._spark, self._snapshot(), ".".join(names) if names else None)

    def _merge(self, request: MergeRequest) -> DataFrame:
        with self._running():
            evolves = request.evolves or evolves_schemas()
            request = dataclasses.replace(request, evolves=evolves)
            return merge(self._spark, self._path, request, self._options)

    def _optimize(self, where: str | None, request: OptimizeRequest) -> OptimizeResult:
        with self._running():
            snapshot = open_changeable(self._spark, self._path, self._options, only_inserts=True)
            return optimize_table(snapshot, where, request)

    def _restore(self, *, version: int | None = None, timestamp: str | None = None) -> DataFrame:
        with self._running():
            result = restore(
                self._spark,
                self._path,
                version=version,
                timestamp=timestamp,
                options=self._options,
            )
        return restore_metrics(self._spark, result)

    def _clone(
        self,
        version: int | None,
        target: str,
        is_shallow: bool,
        replace: bool,
        properties: Mapping[str, str] | None,
    ) -> DeltaTable:
        options = CloneOptions(
            version=version,
            deep=not checked_flag(is_shallow, "isShallow"),
            replace=checked_flag(replace, "replace"),
            properties=properties or {},
        )
        with self._running():
            result = clone(self._spark, self._path, target, options, self._options)
        return DeltaTable(self._spark, result.target, self._options)

    def _snapshot(self) -> Snapshot:
        with self._running():
            return open_snapshot(self._spark, self._path, options=self._options)


def _required(value: Value | None, argument: str) -> Value:
    """Return a value that is not None."""
    if value is None:
        raise InvalidArgumentError(argument=argument, problem="it cannot be None")
    return value


def _name_not_found(spark: SparkSession, name: Sequence[str]) -> TableNotFoundError:
    """Return the error of `DeltaTable.forName` for a name that is not of a Delta table."""
    error, catalog = name_not_found(spark, name), name[0]
    setting = f"spark.sql.catalog.{catalog}"
    is_of_catalog = len(name) == 3 and catalog.lower() != SESSION_CATALOG
    if is_of_catalog and spark.conf.get(setting, None) is None:
        return error.named(
            "CATALOG_NOT_FOUND", catalogName=quoted_path((catalog,)), config=f'"{setting}"'
        )
    return error.named("DELTA_MISSING_DELTA_TABLE", path=name)
