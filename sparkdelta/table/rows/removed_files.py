"""Files that leave a table: chosen by their partitions, and the actions that remove them.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#partition-value-serialization,
PROTOCOL.md#writer-requirements-for-row-tracking,
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from sparkdelta.base.predicates.partition_matching_rules import COMPARABLE
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Column,
    Comparison,
    IsNull,
    Literal,
    Predicate,
    columns,
    is_usable,
)
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.partition_values import parse_partition_value
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.base.schema.partition_value_frames import partition_value, typed_partition_value
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DriverReadTooLargeError,
    InvalidArgumentError,
    NonPartitionColumnReferenceError,
)
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.log.state import NUM_RECORDS
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.conditions import parse_deterministic_where
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_NAMED_PARTITIONS = 100
"""The most partitions that an overwrite names in its read set, so that commits to other partitions
do not conflict with it."""

_ADD = "__sparkdelta_add"


def selects_partitions(predicate: Predicate, table: TableConfiguration) -> bool:
    """Return True if a condition uses no columns but those that the table is partitioned by."""
    partitions = set(table.partition_columns)
    return is_usable(predicate) and not {path[0] for path in columns(predicate)} - partitions


def files_of_partitions(
    snapshot: Snapshot, where: str | SparkColumn, *, names: RowNames = NO_NAMES
) -> DataFrame:
    """Return the files of the partitions that match a condition on partition columns.

    The columns are the ones of `Snapshot.add_files`.

    Parameters
    ----------
    names
        Of the table's rows in the condition.
    """
    files = (
        snapshot.scan(where).with_aliases(names).files(with_json=True)
    )  # does not read all sidecars
    # The condition as it was written, on the typed values, in columns of their own.
    columns = sorted(snapshot.configuration.partition_columns)
    values = [F.col("partitionValues_parsed")[name].alias(name) for name in columns]
    adds = files.select(*values, F.struct("*").alias(_ADD))
    return names.given_to(adds).filter(where).select(f"{quoted(_ADD)}.*")


def chosen_partitions(
    snapshot: Snapshot, where: str | SparkColumn | None, *, operation: str
) -> DataFrame:
    """Return the files of the partitions that match a condition; all files without one.

    The columns are the ones of `Snapshot.add_files`.

    Raises
    ------
    NonPartitionColumnReferenceError
        It uses columns other than partition columns.
    InvalidArgumentError
        It is not understood, or cannot be checked.
    """
    if where is None:
        return snapshot.add_files()
    spark, table = snapshot.log.spark, snapshot.configuration
    try:
        predicate = parse_deterministic_where(spark, where, table, operation=operation)
    except ColumnNotFoundError as error:
        error.named(
            "DELTA_NON_PARTITION_COLUMN_REFERENCE",
            columnName=error.column,
            columnList=", ".join(table.partition_columns),
        )
        raise
    if not is_usable(predicate):
        problem = "only comparisons of partition columns with constants are understood"
        raise InvalidArgumentError(argument="where", problem=problem)
    if not selects_partitions(predicate, table):
        others = {name for name, *_ in columns(predicate)} - set(table.partition_columns)
        raise NonPartitionColumnReferenceError(
            column=min(others), path=snapshot.path, available=tuple(table.partition_columns)
        )
    return files_of_partitions(snapshot, where)


def files_of_same_partitions(snapshot: Snapshot, adds: DataFrame) -> tuple[DataFrame, ReadSet]:
    """Return the columns of `Snapshot.add_files` for all files of the partitions that new files are
    in; and the data that this depends on.

    Parameters
    ----------
    adds
        A column `add`.
    """
    keys = snapshot.configuration.partition_keys
    texts = adds.selectExpr(
        *(
            f"{partition_value('add.partitionValues', key)} AS {quoted(f'p{number}')}"
            for number, (key, _) in enumerate(keys)
        )
    ).distinct()
    # Compared as values: other writers may spell the same value in another way.
    values = texts.selectExpr(
        *(
            f"{typed_partition_value(f'p{number}', column, time_zone='UTC')} AS p{number}"
            for number, (_, column) in enumerate(keys)
        )
    )
    is_same = F.lit(True)
    for number, (_, column) in enumerate(keys):
        own, new = F.col("partitionValues_parsed")[column.name], F.col(f"p{number}")
        if isinstance(column.dataType, FloatType | DoubleType):
            own, new = own.cast("string"), new.cast("string")  # 0.0 = -0.0, in other partitions
        is_same = is_same & own.eqNullSafe(new)
    removed = snapshot.add_files().join(F.broadcast(values), is_same, "left_semi")
    predicates = _partition_predicates(snapshot, texts)
    read = ReadSet(whole_table=predicates is None, predicates=predicates or (), only_rows=True)
    return removed, read


def commit_tags(table: TableConfiguration, *, keeps_row_ids: bool = True) -> dict[str, str]:
    """Return the tags of a commit, which say if rewritten rows keep their ids."""
    if not is_supported(table.protocol, TableFeature.ROW_TRACKING):
        return {}
    return {"delta.rowTracking.preserved": str(keeps_row_ids).lower()}


def row_id_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the columns of data files that hold row ids and commit versions; none if the table has
    none, or has columns of these names.
    """
    tracking = snapshot.configuration.row_tracking
    if not tracking.enabled or not tracking.row_id_column or not tracking.row_commit_version_column:
        return ()
    names = (tracking.row_id_column, tracking.row_commit_version_column)
    return () if {name_key(name) for name in snapshot.schema.names} & {*names} else names


def _partition_predicates(snapshot: Snapshot, texts: DataFrame) -> tuple[Predicate, ...] | None:
    """Return a condition for each of these partitions; None if they are too many, or of types that
    cannot be compared on the driver.
    """
    fields = snapshot.configuration.partition_fields
    types = [str(column.dataType.jsonValue()) for column in fields]
    if not COMPARABLE.issuperset(types):
        return None
    try:
        rows = read_rows(
            texts.limit(MAX_NAMED_PARTITIONS + 1),
            what="overwritten partitions",
            bound=MAX_NAMED_PARTITIONS,
        )
    except DriverReadTooLargeError:
        return None
    partitions: list[Predicate] = []
    for row in rows:
        terms: list[Predicate] = []
        for column, data_type, text in zip(fields, types, row, strict=True):
            value = parse_partition_value(text, data_type, column=column.name)
            own = Column((column.name,))
            literal = Literal(value, column.dataType.simpleString())
            terms.append(IsNull(own) if value is None else Comparison("=", own, literal))
        partitions.append(And(tuple(terms)))
    return tuple(partitions)


def remove_actions(
    adds: DataFrame,
    *,
    num_records: str = f"{STATS_PARSED}.{NUM_RECORDS}",
    data_change: bool = True,
) -> DataFrame:
    """Return the actions that remove files, in a column `remove`.

    Parameters
    ----------
    adds
        The columns of `Snapshot.add_files`.
    num_records, data_change
        See `remove_fields`.
    """
    fields = remove_fields(num_records=num_records, data_change=data_change)
    return adds.selectExpr(f"{fields} AS remove")


def remove_fields(
    *, num_records: str = f"{STATS_PARSED}.{NUM_RECORDS}", data_change: bool = True
) -> str:
    """Return SQL (STRUCT) for the action that removes a live file.

    Parameters
    ----------
    num_records
        SQL of the number of rows of each file with deleted ones; by default, from `stats_parsed`.
    """
    has_stats = f"{num_records} IS NOT NULL"
    fields = (
        "path",
        "unix_millis(current_timestamp()) AS deletionTimestamp",  # of the query, by the commit
        f"{str(data_change).upper()} AS dataChange",
        "TRUE AS extendedFileMetadata",
        "partitionValues",
        "size",
        "deletionVector",
        "baseRowId",
        "defaultRowCommitVersion",
        f"CASE WHEN {has_stats} THEN to_json(struct({num_records} AS {NUM_RECORDS})) END AS stats",
    )
    return f"struct({', '.join(fields)})"
