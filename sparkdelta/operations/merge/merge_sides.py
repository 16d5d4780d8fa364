"""Rows of the target and the source of a MERGE, with the names that its expressions use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.spark.local_data import empty_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.merge.merge_clauses import SOURCE, ResolvedMerge
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.row_names import RowNames
from sparkdelta.table.scan.scan_request import MetadataColumn
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging
from sparkdelta.table.vectors.row_position_frames import file_key

TARGET = "__sparkdelta_target__"
"""Prefix of the target's columns, so that they differ from the source's."""

FILE, POSITION = "__sparkdelta_merged_file", MetadataColumn.ROW_POSITION.value
_PATH = MetadataColumn.FILE.value
"""The `file_key` of a row of the target, and its position in the file."""

SOURCE_ROW = "__sparkdelta_source_row"
"""The column with a number that identifies a row of the source."""

MAX_BROADCAST_BYTES = 64 << 20
"""A source of up to this size is sent to every executor."""

_PART = "source"


@dataclass(frozen=True, slots=True)
class MergeFrames:
    """Rows of the target and of the source, with the names that expressions of a MERGE may use.

    Attributes
    ----------
    target
        For WHEN NOT MATCHED BY SOURCE: the columns of the table under its alias, and again as
        `TARGET`.
    source
        For WHEN NOT MATCHED: the columns of the source, and again as `SOURCE`.
    both
        For WHEN MATCHED and the condition of the merge: pairs of a row of each.
    """

    target: DataFrame
    source: DataFrame
    both: DataFrame


def empty_frames(
    spark: SparkSession, table: StructType, source: DataFrame, *, names: RowNames
) -> MergeFrames:
    """Return the frames without rows, to check expressions on."""
    fields = [StructField(f.name, as_nullable(f.dataType)) for f in table.fields]
    target = with_target_names(
        empty_frame(spark, StructType(fields)), table.names, target_names(table, names)
    )
    of_source = _with_source_names(spark.createDataFrame([], _numbered(source)), source)
    return MergeFrames(target, of_source, target.crossJoin(of_source))


def with_target_names(rows: DataFrame, columns: Sequence[str], names: RowNames) -> DataFrame:
    """Return rows of a table with the names that expressions may use for these of its columns."""
    copies = (f"{quoted(name)} AS {quoted(TARGET + name)}" for name in columns)
    return names.given_to(rows.selectExpr("*", *copies))


def target_names(table: StructType, names: RowNames) -> RowNames:
    """Return the names of the target's rows, with an alias even if the user gives none."""
    return names if names.alias is not None else replace(names, alias=qualifier_of(table))


def positioned(rows: DataFrame, table: TableConfiguration, columns: Sequence[str]) -> DataFrame:
    """Return rows of a scan with `MetadataColumn.FILE` and `MetadataColumn.ROW_POSITION`.

    Parameters
    ----------
    columns
        Those to keep.

    Returns
    -------
    DataFrame
        The columns, `POSITION` and what `row_file` needs.
    """
    kept = rows.select(*(quoted(name) for name in (*columns, POSITION, _PATH)))
    if not is_supported(table.protocol, TableFeature.DELETION_VECTORS):
        return kept
    # Not deterministic, so that Spark evaluates no condition that may fail on deleted rows.
    return kept.filter("spark_partition_id() >= 0")


def row_file() -> Column:
    """Return `FILE` of rows of `positioned`. It takes as long as a join of the row, so it comes
    after joins that leave few.
    """
    return F.expr(file_key(quoted(_PATH))).alias(FILE)


@dataclass(frozen=True, slots=True)
class StagedSource:
    """The rows of the source, which were computed once.

    Attributes
    ----------
    rows
        As `MergeFrames.source`, with `SOURCE_ROW`.
    stage
        Where their files are.
    columns
        The names of the source's columns in these files.
    size_bytes
        Of the files.
    """

    rows: DataFrame
    stage: Staging
    columns: tuple[str, ...]
    size_bytes: int

    @property
    def is_broadcast(self) -> bool:
        """True if the rows are few enough for every executor."""
        return self.size_bytes <= MAX_BROADCAST_BYTES

    @property
    def broadcast(self) -> DataFrame:
        """The rows, sent to every executor if they are few enough."""
        return F.broadcast(self.rows) if self.is_broadcast else self.rows

    def read_keys(self, numbers: Sequence[int], *, bound: int) -> pa.Table:
        """Return columns of `MergeFrames.source` by their numbers, and `SOURCE_ROW`, of a small
        source.

        The driver reads them without a Spark job.
        """
        names = [self.columns[number % len(self.columns)] for number in numbers]
        names.append(SOURCE_ROW)
        keys = self.stage.read_table(_PART, names, what="keys of a source", bound=bound)
        return keys.select(names)


def stage_source(source: DataFrame, stage: Staging) -> StagedSource:
    """Compute the rows of the source and number them."""
    columns = _numbered(source)
    rows = source.toDF(*columns.names).selectExpr(
        "*", f"monotonically_increasing_id() AS {quoted(SOURCE_ROW)}"
    )
    schema = StructType([*columns.fields, StructField(SOURCE_ROW, LongType())])
    named = _with_source_names(stage.stage_rows(rows, _PART, schema), source, SOURCE_ROW)
    return StagedSource(named, stage, tuple(columns.names), stage.size_bytes(_PART))


def _numbered(source: DataFrame) -> StructType:
    """Return the columns of the source under new names, which also differ if case is ignored."""
    return StructType(
        [
            StructField(f"c{number}", as_nullable(field.dataType))
            for number, field in enumerate(source.schema.fields)
        ]
    )


def _with_source_names(numbered: DataFrame, source: DataFrame, *more: str) -> DataFrame:
    names = _numbered(source).names
    copies = (
        f"{name} AS {quoted(SOURCE + own)}" for name, own in zip(names, source.columns, strict=True)
    )
    rows = numbered.selectExpr(*names, *map(quoted, more), *copies)
    return engine_of(numbered.sparkSession).with_attributes_of(rows, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedMerge:
    """A merge whose expressions were checked and whose source was computed.

    Attributes
    ----------
    resolved
        Its clauses, and the table that it leaves.
    names
        Of the target's rows in conditions and values.
    frames
        As `empty_frames` gives them.
    reads_target
        True if rows of the source are made from rows of the target.
    """

    snapshot: Snapshot
    condition: str | Column
    resolved: ResolvedMerge
    names: RowNames
    time_zone: str
    frames: MergeFrames
    source: StagedSource
    stage: Staging
    reads_target: bool

    def conditions(self, rows: str) -> dict[int, str | Column | None]:
        """Return the conditions of the clauses for one kind of rows, by the clauses' indexes."""
        clauses = enumerate(self.resolved.clauses)
        return {index: each.condition for index, each in clauses if each.kind.rows == rows}

    def target_rows(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Return rows of the target with the names that expressions may use for these columns."""
        return with_target_names(rows, columns, target_names(self.snapshot.schema, self.names))
