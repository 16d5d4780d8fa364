"""Delta's statements carried out: one table from statement to function.

Each function does what the method of the same name does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.merge_builder import DeltaMergeBuilder
from sparkdelta.api.optimize_builder import optimize_metrics
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    StatementNotSupportedError,
    SubqueryInConditionError,
)
from sparkdelta.operations.merge.merge_clauses import Clause
from sparkdelta.operations.optimize.optimize import optimize, reorg
from sparkdelta.operations.vacuum.vacuum import checks_retention, vacuum
from sparkdelta.operations.verify.repair import repair
from sparkdelta.operations.write.ignored_settings import (
    check_commit_settings,
    check_evolution_setting,
    check_overwrite_setting,
    check_property_settings,
)
from sparkdelta.operations.write.truncate import truncate
from sparkdelta.operations.write.write import write
from sparkdelta.sql.grammar.statement_values import (
    AddColumns,
    Alter,
    CacheTable,
    ChangeColumns,
    Clone,
    Convert,
    CreateLike,
    CreateTable,
    Delete,
    DescribeColumn,
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
    Refresh,
    RenameTable,
    Reorg,
    Repair,
    ReplaceColumns,
    Restore,
    SetLocation,
    ShowColumns,
    ShowPartitions,
    ShowProperties,
    Statement,
    Truncate,
    UncacheTable,
    Unsupported,
    Update,
    Vacuum,
)
from sparkdelta.sql.grammar.tokens import tokenize
from sparkdelta.sql.statements import definitions
from sparkdelta.sql.statements.cached_tables import cache_table, storage_level, uncache_table
from sparkdelta.sql.statements.descriptions import (
    described_column,
    described_table,
    shown_columns,
    shown_partitions,
    shown_properties,
    text_rows,
)
from sparkdelta.sql.statements.inserted_rows import (
    inserted_columns,
    inserted_partition,
    inserted_rows,
    with_defaults,
)
from sparkdelta.sql.statements.options import WRITE, arguments, table_properties
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.sql.statements.replaced_rows import SOURCE, replace_equal, replace_matching
from sparkdelta.table.definition.write_options import WriteOptions
from sparkdelta.table.listing.table_names import (
    drop_named_table,
    path_in_name,
    rename_named_table,
    table_name,
    table_path,
)
from sparkdelta.table.log.session_times import session_time


def no_rows(spark: SparkSession) -> DataFrame:
    """Return the result of a statement that has none: no columns, no rows."""
    return spark.sql("VALUES (0)").where("FALSE").select()


def _affected(spark: SparkSession, rows: int | None) -> DataFrame:
    schema = StructType([StructField("num_affected_rows", LongType())])
    return local_frame(spark, pa.table({"num_affected_rows": pa.array([rows], pa.int64())}), schema)


def _table(sql: SparkSql, path: str) -> DeltaTable:
    table = DeltaTable.forPath(sql.spark, path)
    return table._converting_in(sql.time_zone)  # noqa: SLF001 - delta-spark has no such argument


def _changed_table(
    sql: SparkSql, path: str, statement: Delete | Insert | Merge | Update
) -> DeltaTable:
    """Return the table under its alias, else its name."""
    table, name = _table(sql, path), statement.target
    alias = statement.alias or (None if path_in_name(name) else name[-1])
    return table if alias is None else table.alias(alias)


def _check_expressions(sql: SparkSql, operation: str, *texts: str | None) -> None:
    """Refuse subqueries, and words after an expression, which PySpark takes for its alias:
    ``a = 1 LIMIT``.
    """
    for text in texts:
        tokens = (text is not None and tokenize(text)) or ()
        if any(one.is_symbol("(") and other.is_word("SELECT") for one, other in pairwise(tokens)):
            raise SubqueryInConditionError(operation=operation, condition=str(text))
    columns = ", ".join(f"({text})" for text in texts if text is not None)
    if columns:
        sql.run(f"EXPLAIN SELECT {columns}")  # parses, and forgives names that it does not know


def _delete(sql: SparkSql, path: str, statement: Delete) -> DataFrame:
    _check_expressions(sql, "DELETE", statement.where)
    result = _changed_table(sql, path, statement).delete(statement.where)
    return _affected(sql.spark, result.num_deleted_rows)


def _truncate(sql: SparkSql, path: str, statement: Truncate) -> None:  # noqa: ARG001
    truncate(sql.spark, path)


def _update(sql: SparkSql, path: str, statement: Update) -> DataFrame:
    _check_expressions(sql, "UPDATE", statement.where, *statement.values.values())
    table = _changed_table(sql, path, statement)
    return _affected(sql.spark, table.update(statement.where, statement.values).num_updated_rows)


def _merge(sql: SparkSql, path: str, statement: Merge) -> DataFrame:
    texts = [[each.condition, *(each.values or {}).values()] for each in statement.actions]
    _check_expressions(sql, "MERGE", statement.condition, *chain(*texts))
    rows = f"SELECT * FROM {statement.source}"  # noqa: S608 - the user's own text
    source = sql.query(f"{statement.queries} {rows}")
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


def _given(statement: Statement) -> dict[str, Any]:
    """Return the options of an INSERT as members of `WriteOptions`; other statements have none."""
    options = statement.options if isinstance(statement, Insert) else {}
    options, _ = table_properties(options)  # which count when a table is created
    return arguments(options, WRITE, function="WITH")


def _insert(sql: SparkSql, path: str, statement: Insert) -> None:
    given = _given(statement)
    evolves = given.pop("merge_schema", False)
    statement = replace(statement, evolves=statement.evolves or evolves)
    if given.pop("overwrite_schema", False):
        raise StatementNotSupportedError(statement="INSERT with the option overwriteSchema")
    if statement.replace_using is not None or statement.replace_on is not None:
        if given:
            problem = "INSERT with REPLACE and other options than mergeSchema"
            raise StatementNotSupportedError(statement=problem)
        _insert_replacing(sql, path, statement)
        return
    partition = inserted_partition(sql.spark, path, statement, time_zone=sql.time_zone)
    where = partition if statement.overwrites else None
    if statement.replace_where is not None:
        where = statement.replace_where
    if where is not None and "replace_where" in given:
        raise StatementNotSupportedError(statement="INSERT with replaceWhere and another condition")
    query = with_defaults(sql.spark, path, statement)
    rows = inserted_rows(sql.query(query), path, statement, time_zone=sql.time_zone)
    defaults = {"partition_overwrite_mode": "static", "compression": None, "replace_where": where}
    options = WriteOptions.spelled(
        **{**defaults, **given},
        mode="overwrite" if statement.overwrites or where is not None else "append",
        merge_schema=statement.evolves,
        requires_table=True,
        time_zone=sql.time_zone,
        rounds=True,
    )
    check_overwrite_setting(sql.spark, options)
    write(rows, path, options)


def _insert_replacing(sql: SparkSql, path: str, statement: Insert) -> None:
    """REPLACE USING and REPLACE ON."""
    _check_expressions(sql, "INSERT", statement.replace_on)
    rows = sql.query(with_defaults(sql.spark, path, statement))
    alias = SOURCE if statement.replace_on is None else statement.query_alias or SOURCE
    given, values = inserted_columns(rows, path, statement, alias)
    if statement.replace_on is not None:
        table = _changed_table(sql, path, statement)
        replace_matching(
            rows.alias(alias), table, statement.replace_on, values=values, evolves=statement.evolves
        )
        return
    names = {}
    for column in statement.replace_using or ():
        name = ".".join(table_name(column))
        if name_key(name) not in given:
            raise ColumnNotFoundError(column=name, available=list(given))
        names[name] = given[name_key(name)]
    replace_equal(rows, _table(sql, path), names, values=values, evolves=statement.evolves)


def _history(sql: SparkSql, path: str, statement: DescribeHistory) -> DataFrame:
    return _table(sql, path).history(statement.limit)


def _detail(sql: SparkSql, path: str, statement: DescribeDetail) -> DataFrame:  # noqa: ARG001
    return _table(sql, path).detail()


def _optimize(sql: SparkSql, path: str, statement: Optimize) -> DataFrame:
    _check_expressions(sql, "OPTIMIZE", statement.where)
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
        check_retention=checks_retention(sql.spark),
    )
    files = [f"{result.path}/{file}" for file in result.files]
    paths = files if statement.dry_run else [result.path]
    return text_rows(sql.spark, ("path",), [(path,) for path in paths])


def _repair(sql: SparkSql, path: str, statement: Repair) -> DataFrame:
    result = repair(sql.spark, path, dry_run=statement.dry_run)
    rows = [(each.file, each.change) for each in result.repairs]
    return text_rows(sql.spark, ("file", "change"), rows)


def _reorg(sql: SparkSql, path: str, statement: Reorg) -> DataFrame:
    _check_expressions(sql, "REORG", statement.where)
    return optimize_metrics(sql.spark, reorg(sql.spark, path, where=statement.where))


def _restore(sql: SparkSql, path: str, statement: Restore) -> DataFrame:
    table = _table(sql, path)
    if statement.timestamp is None:
        return table.restoreToVersion(statement.version or 0)
    return table.restoreToTimestamp(session_time(sql.spark, statement.timestamp).isoformat())


def _drop(sql: SparkSql, path: str, statement: DropTable) -> None:
    drop_named_table(sql.spark, statement.target)
    uncache_table(sql.spark, path)


def _rename(sql: SparkSql, path: str, statement: RenameTable) -> None:
    rename_named_table(sql.spark, statement.target, statement.name)
    level = uncache_table(sql.spark, path)
    new_path = table_path(sql.spark, (*statement.target[:-1], statement.name[-1]))
    if level is not None and new_path is not None:
        cache_table(sql.spark, new_path, level)


def _cache(sql: SparkSql, path: str, statement: CacheTable) -> None:
    rows = cache_table(sql.spark, path, storage_level(statement.options))
    if not statement.is_lazy:
        rows.write.format("noop").mode("overwrite").save()


def _uncache(sql: SparkSql, path: str, statement: UncacheTable) -> None:  # noqa: ARG001
    uncache_table(sql.spark, path)


def _generate(sql: SparkSql, path: str, statement: Generate) -> None:
    _table(sql, path).generate(statement.mode)


def _refresh(sql: SparkSql, path: str, statement: Refresh) -> None:
    """REFRESH TABLE: each statement finds the latest version."""


def _refused(sql: SparkSql, path: str, statement: Unsupported) -> None:  # noqa: ARG001
    raise StatementNotSupportedError(statement=statement.keywords)


def run_statement(sql: SparkSql, path: str, statement: Statement) -> DataFrame:
    """Carry out a statement about the table at a path; return its result."""
    given = _given(statement).keys()
    is_change = isinstance(statement, Insert | Merge | Update | Delete)
    if is_change and not {"txn_app_id", "user_metadata"} & given:
        check_commit_settings(sql.spark)
    if isinstance(statement, Insert | Merge) and not (statement.evolves or "merge_schema" in given):
        check_evolution_setting(sql.spark)
    if isinstance(statement, CreateTable):
        check_property_settings(sql.spark)
    result = COMMANDS[type(statement)](sql, path, statement)
    return no_rows(sql.spark) if result is None else result


COMMANDS: Mapping[type, Callable[[SparkSql, str, Any], DataFrame | None]] = {
    Delete: _delete,
    Truncate: _truncate,
    Update: _update,
    Merge: _merge,
    Insert: _insert,
    DescribeHistory: _history,
    DescribeDetail: _detail,
    DescribeTable: described_table,
    DescribeColumn: described_column,
    ShowColumns: shown_columns,
    ShowPartitions: shown_partitions,
    ShowProperties: shown_properties,
    Optimize: _optimize,
    Reorg: _reorg,
    Restore: _restore,
    CreateTable: definitions.create,
    CreateLike: definitions.created_like,
    Clone: definitions.cloned,
    Convert: definitions.converted,
    RenameTable: _rename,
    SetLocation: definitions.relocated,
    DropTable: _drop,
    Alter: definitions.altered,
    ChangeColumns: definitions.with_changed_columns,
    AddColumns: definitions.with_columns,
    ReplaceColumns: definitions.with_columns_replaced,
    DropFeature: definitions.without_feature,
    Generate: _generate,
    Repair: _repair,
    Refresh: _refresh,
    CacheTable: _cache,
    UncacheTable: _uncache,
    Vacuum: _vacuum,
    Unsupported: _refused,
}
"""The function of each statement, of the path of its table; None is a result without columns."""
