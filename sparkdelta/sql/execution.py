"""Delta's statements carried out: one table from statement to function.

Each function does what the method of the same name does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.commands.truncate import truncate
from sparkdelta.commands.write import write
from sparkdelta.engine.local_frames import local_frame
from sparkdelta.exceptions import StatementNotSupportedError
from sparkdelta.maintenance import optimize, reorg, repair, vacuum
from sparkdelta.merge_builder import DeltaMergeBuilder
from sparkdelta.optimize_builder import optimize_metrics
from sparkdelta.sql import definitions
from sparkdelta.sql.descriptions import (
    described_table,
    shown_columns,
    shown_properties,
    text_rows,
)
from sparkdelta.sql.inserted_rows import inserted_partition, inserted_rows
from sparkdelta.sql.queries import SparkSql
from sparkdelta.sql.statements import (
    AddColumns,
    Alter,
    Clone,
    Convert,
    CreateLike,
    CreateTable,
    Delete,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    DropFeature,
    DropTable,
    Generate,
    Insert,
    Merge,
    MergeAction,
    Optimize,
    RenameTable,
    Reorg,
    Repair,
    ReplaceColumns,
    Restore,
    SetLocation,
    ShowColumns,
    ShowProperties,
    Truncate,
    Unsupported,
    Update,
    Vacuum,
)
from sparkdelta.table.log.session_times import session_time
from sparkdelta.table.log.table_names import (
    drop_named_table,
    path_in_name,
    rename_named_table,
)
from sparkdelta.table.write.merge_clauses import Clause
from sparkdelta.table.write.options import WriteOptions
from sparkdelta.table.write.overwrite_setting import check_overwrite_setting
from sparkdelta.tables import DeltaTable


def no_rows(spark: SparkSession) -> DataFrame:
    """Return the result of a statement that has none: no columns, no rows."""
    return spark.sql("VALUES (0)").where("FALSE").select()


def _affected(spark: SparkSession, rows: int | None) -> DataFrame:
    schema = StructType([StructField("num_affected_rows", LongType())])
    return local_frame(spark, pa.table({"num_affected_rows": pa.array([rows], pa.int64())}), schema)


def _table(sql: SparkSql, path: str) -> DeltaTable:
    return DeltaTable.forPath(sql.spark, path)


def _changed_table(sql: SparkSql, path: str, statement: Delete | Update | Merge) -> DeltaTable:
    """Return the table under its alias, else its name."""
    table, name = _table(sql, path), statement.target
    alias = statement.alias or (None if path_in_name(name) else name[-1])
    return table if alias is None else table.alias(alias)


def _check_expressions(sql: SparkSql, *texts: str | None) -> None:
    """Refuse words after an expression, which PySpark takes for its alias: ``a = 1 LIMIT``."""
    columns = ", ".join(f"({text})" for text in texts if text is not None)
    if columns:
        sql.run(f"EXPLAIN SELECT {columns}")  # parses, and forgives names that it does not know


def _delete(sql: SparkSql, path: str, statement: Delete) -> DataFrame:
    _check_expressions(sql, statement.where)
    result = _changed_table(sql, path, statement).delete(statement.where)
    return _affected(sql.spark, result.num_deleted_rows)


def _truncate(sql: SparkSql, path: str, statement: Truncate) -> DataFrame:  # noqa: ARG001
    truncate(sql.spark, path)
    return no_rows(sql.spark)


def _update(sql: SparkSql, path: str, statement: Update) -> DataFrame:
    _check_expressions(sql, statement.where, *statement.values.values())
    table = _changed_table(sql, path, statement)
    return _affected(sql.spark, table.update(statement.where, statement.values).num_updated_rows)


def _merge(sql: SparkSql, path: str, statement: Merge) -> DataFrame:
    texts = [[each.condition, *(each.values or {}).values()] for each in statement.actions]
    _check_expressions(sql, statement.condition, *chain(*texts))
    source = sql.query(f"SELECT * FROM {statement.source}")  # noqa: S608 - the user's own text
    if statement.source_alias is not None:
        source = source.alias(statement.source_alias)
    table = _changed_table(sql, path, statement)
    builder = reduce(_with_action, statement.actions, table.merge(source, statement.condition))
    return (builder.withSchemaEvolution() if statement.evolves else builder).execute()


def _with_action(builder: DeltaMergeBuilder, action: MergeAction) -> DeltaMergeBuilder:
    where, values = action.condition, action.values
    if action.kind is Clause.MATCHED_DELETE:
        return builder.whenMatchedDelete(where)
    if action.kind is Clause.NOT_MATCHED_BY_SOURCE_DELETE:
        return builder.whenNotMatchedBySourceDelete(where)
    if action.kind is Clause.NOT_MATCHED_BY_SOURCE_UPDATE:
        return builder.whenNotMatchedBySourceUpdate(where, values)
    if action.kind is Clause.MATCHED_UPDATE:
        if values is None:
            return builder.whenMatchedUpdateAll(where)
        return builder.whenMatchedUpdate(where, values)
    if values is None:
        return builder.whenNotMatchedInsertAll(where)
    return builder.whenNotMatchedInsert(where, values)


def _insert(sql: SparkSql, path: str, statement: Insert) -> DataFrame:
    partition = inserted_partition(sql.spark, path, statement)
    rows = inserted_rows(sql.query(statement.query), path, statement)
    where = partition if statement.overwrites else None
    if statement.replace_where is not None:
        where = statement.replace_where
    options = WriteOptions(
        mode="overwrite" if statement.overwrites or where is not None else "append",
        replace_where=where,
        merge_schema=statement.evolves,
        requires_table=True,
    )
    check_overwrite_setting(sql.spark, options)
    write(rows, path, options)
    return no_rows(sql.spark)


def _history(sql: SparkSql, path: str, statement: DescribeHistory) -> DataFrame:
    return _table(sql, path).history(statement.limit)


def _detail(sql: SparkSql, path: str, statement: DescribeDetail) -> DataFrame:  # noqa: ARG001
    return _table(sql, path).detail()


def _optimize(sql: SparkSql, path: str, statement: Optimize) -> DataFrame:
    _check_expressions(sql, statement.where)
    if statement.is_full:
        result = optimize(sql.spark, path, where=statement.where, full=True)
        return optimize_metrics(sql.spark, result)
    builder = _table(sql, path).optimize()
    if statement.where is not None:
        builder = builder.where(statement.where)
    if statement.zorder_by is not None:
        return builder.executeZOrderBy(*statement.zorder_by)
    return builder.executeCompaction()


def _vacuum(sql: SparkSql, path: str, statement: Vacuum) -> DataFrame:
    inventory = None
    if statement.inventory is not None:
        inventory = sql.query(f"SELECT * FROM {statement.inventory}")  # noqa: S608 - the user's own
    result = vacuum(
        sql.spark,
        path,
        retention_hours=statement.retention_hours,
        mode=statement.mode,
        dry_run=statement.dry_run,
        inventory=inventory,
    )
    files = [f"{result.path}/{file}" for file in result.files]
    paths = files if statement.dry_run else [result.path]
    return text_rows(sql.spark, ("path",), [(path,) for path in paths])


def _repair(sql: SparkSql, path: str, statement: Repair) -> DataFrame:
    result = repair(sql.spark, path, dry_run=statement.dry_run)
    rows = [(each.file, each.change) for each in result.repairs]
    return text_rows(sql.spark, ("file", "change"), rows)


def _reorg(sql: SparkSql, path: str, statement: Reorg) -> DataFrame:
    _check_expressions(sql, statement.where)
    return optimize_metrics(sql.spark, reorg(sql.spark, path, where=statement.where))


def _restore(sql: SparkSql, path: str, statement: Restore) -> DataFrame:
    table = _table(sql, path)
    if statement.timestamp is None:
        return table.restoreToVersion(statement.version or 0)
    return table.restoreToTimestamp(session_time(sql.spark, statement.timestamp).isoformat())


def _create(sql: SparkSql, path: str, statement: CreateTable) -> DataFrame:  # noqa: ARG001
    definitions.create(sql, statement)
    return no_rows(sql.spark)


def _clone(sql: SparkSql, path: str, statement: Clone) -> DataFrame:  # noqa: ARG001
    return definitions.cloned(sql, statement)


def _convert(sql: SparkSql, path: str, statement: Convert) -> DataFrame:  # noqa: ARG001
    definitions.converted(sql, statement)
    return no_rows(sql.spark)


def _create_like(sql: SparkSql, path: str, statement: CreateLike) -> DataFrame:  # noqa: ARG001
    definitions.created_like(sql, statement)
    return no_rows(sql.spark)


def _rename(sql: SparkSql, path: str, statement: RenameTable) -> DataFrame:  # noqa: ARG001
    rename_named_table(sql.spark, statement.target, statement.name)
    return no_rows(sql.spark)


def _relocate(sql: SparkSql, path: str, statement: SetLocation) -> DataFrame:
    definitions.relocated(sql, path, statement)
    return no_rows(sql.spark)


def _drop(sql: SparkSql, path: str, statement: DropTable) -> DataFrame:  # noqa: ARG001
    drop_named_table(sql.spark, statement.target)
    return no_rows(sql.spark)


def _alter(sql: SparkSql, path: str, statement: Alter) -> DataFrame:
    definitions.altered(sql, path, statement)
    return no_rows(sql.spark)


def _add_columns(sql: SparkSql, path: str, statement: AddColumns) -> DataFrame:
    definitions.with_columns(sql, path, statement)
    return no_rows(sql.spark)


def _replace_columns(sql: SparkSql, path: str, statement: ReplaceColumns) -> DataFrame:
    definitions.with_columns_replaced(sql, path, statement)
    return no_rows(sql.spark)


def _drop_feature(sql: SparkSql, path: str, statement: DropFeature) -> DataFrame:
    definitions.without_feature(sql, path, statement)
    return no_rows(sql.spark)


def _generate(sql: SparkSql, path: str, statement: Generate) -> DataFrame:
    _table(sql, path).generate(statement.mode)
    return no_rows(sql.spark)


def _refused(sql: SparkSql, path: str, statement: Unsupported) -> DataFrame:  # noqa: ARG001
    raise StatementNotSupportedError(statement=statement.keywords)


COMMANDS: Mapping[type, Callable[[SparkSql, str, Any], DataFrame]] = {
    Delete: _delete,
    Truncate: _truncate,
    Update: _update,
    Merge: _merge,
    Insert: _insert,
    DescribeHistory: _history,
    DescribeTable: described_table,
    ShowColumns: shown_columns,
    ShowProperties: shown_properties,
    DescribeDetail: _detail,
    Optimize: _optimize,
    Reorg: _reorg,
    Restore: _restore,
    CreateTable: _create,
    CreateLike: _create_like,
    RenameTable: _rename,
    SetLocation: _relocate,
    Clone: _clone,
    Convert: _convert,
    DropTable: _drop,
    Alter: _alter,
    AddColumns: _add_columns,
    ReplaceColumns: _replace_columns,
    DropFeature: _drop_feature,
    Generate: _generate,
    Repair: _repair,
    Vacuum: _vacuum,
    Unsupported: _refused,
}
"""The function of each statement, of the path of its table."""
