"""Rewrites: the files that an operation removes, and those of their rows that it writes again.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file,
PROTOCOL.md#partition-value-serialization, PROTOCOL.md#writer-requirements-for-row-tracking,
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial, reduce

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
from sparkdelta.base.protocol.table_properties import has_change_data_feed
from sparkdelta.base.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.base.schema.partition_value_frames import partition_value, typed_partition_value
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    DriverReadTooLargeError,
    InvalidArgumentError,
    NonPartitionColumnReferenceError,
)
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.log.configuration import TableConfiguration
from sparkdelta.table.log.state import NUM_RECORDS
from sparkdelta.table.rows.change_files import ChangeFiles
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.scan.conditions import parse_deterministic_where
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_NAMED_PARTITIONS = 100
"""The most partitions that an overwrite names in its read set, so that commits to other partitions
do not conflict with it."""

_ADD = "sparkdelta:add"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Data files that leave a table, and those of their rows that are written again.

    Attributes
    ----------
    removes
        The remove actions in a column `remove`.
    read
        The data that the rewrite depends on, for conflict detection.
    survivors
        The rows to write again, in the table's columns and `row_id_columns`; None if there are
        none.
    removed_rows
        The rows that are removed, where change data files must tell them.
    row_id_columns
        The columns of data files that hold the row ids and commit versions of `survivors`.
    tags
        Tags of the commit.
    """

    removes: DataFrame
    read: ReadSet
    survivors: DataFrame | None = None
    removed_rows: DataFrame | None = None
    row_id_columns: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


def rewrite_all(snapshot: Snapshot, *, data_change: bool = True) -> Rewrite:
    """Remove all files of the table."""
    return Rewrite(
        remove_actions(snapshot.add_files(), data_change=data_change), ReadSet(whole_table=True)
    )


def rewrite_matching(
    snapshot: Snapshot, where: str | SparkColumn, *, operation: str, data_change: bool = True
) -> Rewrite:
    """Remove the rows that match a condition: files of matching partitions if it uses no other
    columns, else the files that hold such rows, whose other rows are written again.

    Parameters
    ----------
    operation
        As errors name it.

    Raises
    ------
    NondeterministicConditionError, SubqueryInConditionError, AggregateInConditionError
        The condition depends on more than the row.
    InvalidArgumentError
        Rows are removed without `data_change`.
    """
    configuration = snapshot.configuration
    predicate = parse_deterministic_where(
        snapshot.log.spark, where, configuration, operation=operation
    )
    if not selects_partitions(predicate, configuration):
        return _without_matching_rows(
            snapshot, where, predicate, operation=operation, data_change=data_change
        )
    adds = files_of_partitions(snapshot, where)
    return Rewrite(remove_actions(adds, data_change=data_change), ReadSet(predicates=(predicate,)))


def selects_partitions(predicate: Predicate, table: TableConfiguration) -> bool:
    """True if a condition uses no columns but those that the table is partitioned by."""
    partitions = set(table.partition_columns)
    return is_usable(predicate) and not {path[0] for path in columns(predicate)} - partitions


def files_of_partitions(
    snapshot: Snapshot, where: str | SparkColumn, *, names: RowNames = NO_NAMES
) -> DataFrame:
    """The columns of `Snapshot.add_files` for the files of the partitions that a condition, which
    uses no other columns, is true of.

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
    """The columns of `Snapshot.add_files` for the files of the partitions that a condition is true
    of, all files without one.

    Raises
    ------
    NonPartitionColumnReferenceError
        It uses other columns than those of partitions.
    InvalidArgumentError
        It is not understood, or cannot be checked.
    """
    if where is None:
        return snapshot.add_files()
    spark, table = snapshot.log.spark, snapshot.configuration
    if not engine_of(spark).can("see plans"):
        problem = (
            "a Spark Connect client cannot check that it depends only on partition columns; "
            f"{operation} needs a classic session"
        )
        raise InvalidArgumentError(argument="where", problem=problem)
    predicate = parse_deterministic_where(spark, where, table, operation=operation)
    if not is_usable(predicate):
        problem = "only comparisons of partition columns with constants are understood"
        raise InvalidArgumentError(argument="where", problem=problem)
    if not selects_partitions(predicate, table):
        others = {name for name, *_ in columns(predicate)} - set(table.partition_columns)
        raise NonPartitionColumnReferenceError(
            column=min(others), path=snapshot.path, available=tuple(table.partition_columns)
        )
    return files_of_partitions(snapshot, where)


def rewrite_partitions(snapshot: Snapshot, adds: DataFrame, *, data_change: bool = True) -> Rewrite:
    """Remove all files of the partitions that new files are in.

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
    read = ReadSet(whole_table=True) if predicates is None else ReadSet(predicates=predicates)
    return Rewrite(remove_actions(removed, data_change=data_change), read)


def file_actions(
    new: NewFiles, rewrite: Rewrite | None, changed: ChangeFiles | None = None
) -> DataFrame | None:
    """The file actions of a commit that are not staged as values, in columns `add`, `remove` and
    `cdc`.
    """
    return union_of_actions(
        None if new.values is not None else new.adds,
        None if rewrite is None else rewrite.removes,
        None if changed is None else changed.actions,
    )


def union_of_actions(*frames: DataFrame | None) -> DataFrame | None:
    """The union of the given frames by column name; None if all are None."""
    known = [frame for frame in frames if frame is not None]
    union = partial(DataFrame.unionByName, allowMissingColumns=True)
    return reduce(union, known) if known else None


def commit_tags(table: TableConfiguration, rewrite: Rewrite | None) -> Mapping[str, str] | None:
    """Tags of a commit: rows that are not written again keep their ids."""
    tags = {} if rewrite is None else rewrite.tags
    if not is_supported(table.protocol, TableFeature.ROW_TRACKING):
        return tags or None
    return {"delta.rowTracking.preserved": "true", **tags}


def _without_matching_rows(
    snapshot: Snapshot,
    where: str | SparkColumn,
    predicate: Predicate,
    *,
    operation: str,
    data_change: bool,
) -> Rewrite:
    if not data_change:
        problem = f"it cannot be False when {operation} uses data columns"
        raise InvalidArgumentError(argument="data_change", problem=problem)
    row_ids = row_id_columns(snapshot)
    columns = [*snapshot.schema.names, *(f"_metadata.{name}" for name in row_ids)]
    matching = snapshot.scan(where, columns).matching_files()
    has_changes = has_change_data_feed(snapshot.protocol, snapshot.properties)
    loses_ids = is_supported(snapshot.protocol, TableFeature.ROW_TRACKING) and not row_ids
    return Rewrite(
        remove_actions(matching.adds, data_change=data_change),
        ReadSet(predicates=(predicate,)),
        matching.other_rows.withColumnsRenamed(row_ids),
        matching.rows if has_changes else None,
        tuple(row_ids.values()),
        {"delta.rowTracking.preserved": "false"} if loses_ids else {},
    )


def row_id_columns(snapshot: Snapshot) -> dict[str, str]:
    """The columns of data files that hold row ids and commit versions, by the names that a scan
    gives them; none if the table has none, or has columns of these names.
    """
    tracking = snapshot.configuration.row_tracking
    if not tracking.enabled or not tracking.row_id_column or not tracking.row_commit_version_column:
        return {}
    names = {
        "row_id": tracking.row_id_column,
        "row_commit_version": tracking.row_commit_version_column,
    }
    return {} if {name_key(name) for name in snapshot.schema.names} & {*names} else names


def _partition_predicates(snapshot: Snapshot, texts: DataFrame) -> tuple[Predicate, ...] | None:
    """A condition for each of these partitions; None if they are too many, or of types that cannot
    be compared on the driver.
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
    """The actions that remove files, in a column `remove`.

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
        SQL of the rows of each file, deleted ones included; by default, those of `stats_parsed`.
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
