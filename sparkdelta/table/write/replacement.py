"""What of a table an overwrite takes out, and which rows of the files it must write again.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.engine.driver import read_rows
from sparkdelta.exceptions import (
    DriverReadTooLargeError,
    InvalidArgumentError,
    WriteNotImplementedError,
)
from sparkdelta.frames.log.partition_values import partition_value, typed_partition_value
from sparkdelta.protocol.conflicts import ReadSet
from sparkdelta.protocol.partition_matching import COMPARABLE
from sparkdelta.protocol.partition_values import parse_partition_value
from sparkdelta.protocol.predicates import (
    And,
    Column,
    Comparison,
    IsNull,
    Literal,
    Predicate,
    columns,
    is_usable,
)
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.protocol.table_properties import has_change_data_feed
from sparkdelta.schema.table_schema import quoted
from sparkdelta.table.scan.conditions import understand_replaced
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.write.options import WriteOptions

MAX_NAMED_PARTITIONS = 100
"""Up to this many partitions, a commit of others conflicts only with an overwrite of the same."""

_ADD = "sparkdelta:add"


@dataclass(frozen=True, slots=True)
class Replacement:
    """What an overwrite does to the table as it is.

    Attributes
    ----------
    removes
        A column `remove`; None where that is known only once the new rows are written.
    copied
        Rows of removed files that stay in the table, in its columns and `kept`.
    kept
        Columns of data files beside the table's: of what rows keep that are written again.
    """

    removes: DataFrame | None
    read: ReadSet
    copied: DataFrame | None = None
    kept: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


def replacement(snapshot: Snapshot, options: WriteOptions) -> Replacement:
    """What is replaced: all of the table, or what fulfils a condition; partitions later."""
    if options.is_dynamic and snapshot.configuration.partition_fields:
        return Replacement(None, ReadSet())
    where = options.replace_where
    if where is None:
        return Replacement(_removes(snapshot.add_files(), options), ReadSet(whole_table=True))
    configuration = snapshot.configuration
    predicate = understand_replaced(
        snapshot.log.spark, where, configuration, operation="replace_where"
    )
    partitions = {column.name for column in configuration.partition_fields}
    if not is_usable(predicate) or {path[0] for path in columns(predicate)} - partitions:
        return _replaced_rows(snapshot, options, predicate)
    # The condition as it was written, on the typed values, in columns of their own.
    values = [F.col("partitionValues_parsed")[name].alias(name) for name in sorted(partitions)]
    adds = snapshot.add_files().select(*values, F.struct("*").alias(_ADD))
    adds = adds.filter(where).select(f"{quoted(_ADD)}.*")
    return Replacement(_removes(adds, options), ReadSet(predicates=(predicate,)))


def replaced_partitions(snapshot: Snapshot, adds: DataFrame, options: WriteOptions) -> Replacement:
    """The partitions that new files are in.

    Parameters
    ----------
    adds
        A column `add`.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    keys = snapshot.configuration.partition_keys
    texts = adds.selectExpr(
        *(
            f"{partition_value('add.partitionValues', key)} AS {quoted(f'p{number}')}"
            for number, (key, _) in enumerate(keys)
        )
    ).distinct()
    # By their values: other writers may have written the same in other words.
    values = texts.selectExpr(
        *(
            f"{typed_partition_value(f'p{number}', column, time_zone='UTC')} AS p{number}"
            for number, (_, column) in enumerate(keys)
        )
    )
    is_same = F.lit(True)
    for number, (_, column) in enumerate(keys):
        own = F.col("partitionValues_parsed")[column.name]
        is_same = is_same & own.eqNullSafe(F.col(f"p{number}"))
    replaced = snapshot.add_files().join(F.broadcast(values), is_same, "left_semi")
    named = _named(snapshot, texts)
    read = ReadSet(whole_table=True) if named is None else ReadSet(predicates=named)
    return Replacement(_removes(replaced, options), read)


def _replaced_rows(snapshot: Snapshot, options: WriteOptions, predicate: Predicate) -> Replacement:
    """Files that hold matching rows go; their other rows are written again."""
    if has_change_data_feed(snapshot.protocol, snapshot.properties):
        missing = "change data files for replace_where on data columns"
        raise WriteNotImplementedError(path=snapshot.path, missing=(missing,))
    if not options.data_change:
        problem = "it cannot be False when replace_where uses data columns"
        raise InvalidArgumentError(argument="data_change", problem=problem)
    where = options.replace_where
    assert where is not None
    kept = _kept_row_ids(snapshot)
    columns = [*snapshot.schema.names, *(f"_metadata.{name}" for name in kept)]
    found = snapshot.scan(where, columns).matching_files()
    loses_ids = is_supported(snapshot.protocol, TableFeature.ROW_TRACKING) and not kept
    return Replacement(
        _removes(found.adds, options),
        ReadSet(predicates=(predicate,)),
        found.other_rows.withColumnsRenamed(kept),
        tuple(kept.values()),
        {"delta.rowTracking.preserved": "false"} if loses_ids else {},
    )


def _kept_row_ids(snapshot: Snapshot) -> dict[str, str]:
    """What a scan calls the rows' ids and commit versions, with the columns of data files that keep
    them; none where there are none, or the names are taken.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-row-tracking
    """
    tracking = snapshot.configuration.row_tracking
    if not tracking.enabled or not tracking.row_id_column or not tracking.row_commit_version_column:
        return {}
    kept = {
        "row_id": tracking.row_id_column,
        "row_commit_version": tracking.row_commit_version_column,
    }
    return {} if {name.lower() for name in snapshot.schema.names} & {*kept} else kept


def _named(snapshot: Snapshot, texts: DataFrame) -> tuple[Predicate, ...] | None:
    """A condition for each of these partitions; None if they are too many, or of a kind that cannot
    be compared here.
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


def _removes(adds: DataFrame, options: WriteOptions) -> DataFrame:
    now = time.time_ns() // 1_000_000
    return adds.select(
        F.struct(
            "path",
            F.lit(now).alias("deletionTimestamp"),
            F.lit(options.data_change).alias("dataChange"),
            F.lit(True).alias("extendedFileMetadata"),
            "partitionValues",
            "size",
            "deletionVector",
            "baseRowId",
            "defaultRowCommitVersion",
        ).alias("remove")
    )
