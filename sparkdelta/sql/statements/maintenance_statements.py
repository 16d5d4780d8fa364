"""Statements about a table's files, versions, name and place in Spark's cache."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.api.alter import alter_table
from sparkdelta.api.cloning import convert_to_delta
from sparkdelta.api.optimize_builder import optimize_metrics
from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.copy.convert import parquet_path
from sparkdelta.operations.optimize.optimize import optimize, reorg
from sparkdelta.operations.vacuum.vacuum import checks_retention, vacuum
from sparkdelta.operations.verify.repair import repair
from sparkdelta.operations.write.delete import truncate
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.statement_grammar import STATEMENTS, Rule, Statement, statement
from sparkdelta.sql.grammar.tokens import Fragment, Kind
from sparkdelta.sql.statements.cached_tables import cache_table, storage_level, uncache_table
from sparkdelta.sql.statements.descriptions import text_rows
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.sql.statements.statement_targets import view_of_name
from sparkdelta.table.listing.table_names import (
    drop_named_table,
    name_not_found,
    path_in_name,
    table_path,
)
from sparkdelta.table.log.session_times import session_time


@statement(
    "OPTIMIZE",
    line="table full=[FULL] [WHERE where:of_rows] [ZORDER BY zorder_by:columns]",
    only_delta=True,
)
def _optimize_table(
    table: StatementTable,
    where: str | None = None,
    zorder_by: tuple[str, ...] | None = None,
    *,
    full: bool = False,
) -> DataFrame:
    if full:
        result = optimize(table.spark, table.path, where=where, zorder_by=zorder_by, full=True)
        return optimize_metrics(table.spark, result)
    builder = table.delta.optimize()
    builder = builder if where is None else builder.where(where)
    return builder.executeCompaction() if zorder_by is None else builder.executeZOrderBy(*zorder_by)


@statement("REORG", line="TABLE table [WHERE where:of_rows] APPLY ( PURGE )", only_delta=True)
def _reorg_table(table: StatementTable, where: str | None = None) -> DataFrame:
    return optimize_metrics(table.spark, reorg(table.spark, table.path, where=where))


def _moment(parser: Parser) -> dict[str, Any]:
    found = parser.moment()
    if not found:
        raise parser.error("VERSION AS OF or TIMESTAMP AS OF is expected")
    return found


@statement("RESTORE", line="[TABLE] table [TO] *moment", only_delta=True, moment=_moment)
def _restore(
    table: StatementTable, version: int | None = None, timestamp: str | None = None
) -> DataFrame:
    if timestamp is None:
        return table.delta.restoreToVersion(version or 0)
    return table.delta.restoreToTimestamp(session_time(table.spark, timestamp).isoformat())


@statement("GENERATE", line="mode:word FOR TABLE table", only_delta=True)
def _generate(table: StatementTable, mode: str) -> None:
    table.delta.generate(mode)


@statement("FSCK REPAIR TABLE", line="table dry_run=[DRY RUN]", only_delta=True)
def _repair_table(table: StatementTable, *, dry_run: bool = False) -> DataFrame:
    result = repair(table.spark, table.path, dry_run=dry_run)
    rows = [(each.file, each.change) for each in result.repairs]
    return text_rows(table.spark, ("file", "change"), rows)


def _vacuum_clauses(parser: Parser) -> dict[str, Any]:
    """Parse ``FULL | LITE``, ``USING INVENTORY``, ``RETAIN`` and ``DRY RUN`` in any order."""
    clauses, seen = dict[str, Any](), set[str]()
    while not parser.is_at_end:
        word = parser.token.text.upper()
        clause = "LITE or FULL" if word in ("LITE", "FULL") else word
        if clause in seen:
            shown = {"LITE or FULL": "LITE/FULL", "DRY": "DRY RUN"}.get(clause, clause)
            raise parser.error(f"{clause} is there twice").named(
                "DUPLICATE_CLAUSES", clauseName=shown
            )
        seen.add(clause)
        if parser.accept("LITE"):
            clauses["mode"] = "lite"
        elif parser.accept("USING INVENTORY"):
            start = parser.place
            if parser.peek("("):
                parser.in_parentheses()
            else:
                parser.name()
            clauses["inventory"] = parser.fragment(start, follows_from=True)
        elif parser.accept("RETAIN"):
            if parser.token.kind is not Kind.NUMBER:
                raise parser.error("a number is expected")
            clauses["retention_hours"] = float(parser.next().text)
            parser.expect("HOURS")
        elif parser.accept("DRY RUN"):
            clauses["dry_run"] = True
        else:
            parser.expect("FULL")
    return clauses


@statement("VACUUM", line="table *clauses", only_delta=True, clauses=_vacuum_clauses)
def _vacuum_table(
    table: StatementTable,
    mode: str = "full",
    inventory: Fragment | None = None,
    retention_hours: float | None = None,
    *,
    dry_run: bool = False,
) -> DataFrame:
    if inventory is not None and not inventory.tokens[0].is_symbol("("):
        name = Parser(inventory.whole, inventory.tokens).name()
        if path_in_name(name) is None and not table.spark.catalog.tableExists(quoted_path(name)):
            raise name_not_found(table.spark, name).named(
                "DELTA_ONLY_OPERATION", operation="VACUUM"
            )
    result = vacuum(
        table.spark,
        table.path,
        retention_hours=retention_hours,
        mode=mode,
        dry_run=dry_run,
        inventory=None if inventory is None else table.sql.query("SELECT * FROM", inventory),
        check_retention=checks_retention(table.spark),
    )
    files = [f"{result.path}/{file}" for file in result.files]
    return text_rows(
        table.spark, ("path",), [(path,) for path in (files if dry_run else [result.path])]
    )


@statement(
    "CONVERT TO DELTA",
    line="table no_statistics=[NO STATISTICS] [PARTITIONED BY partition_schema:in_parentheses]",
)
def convert(
    table: StatementTable, partition_schema: str | None = None, *, no_statistics: bool = False
) -> None:
    """Make a Delta table of a directory of Parquet files; its name is the statement's."""
    *source, directory = table.name
    kind = ".".join(source)
    if "/" not in directory and kind.lower() not in ("parquet", "delta"):
        if table_path(table.spark, table.name) is not None:
            return  # it is one
        _check_table_to_convert(table.spark, table.name)
    convert_to_delta(
        table.spark,
        parquet_path(".".join([*source, quoted(directory)])),
        partition_schema=partition_schema,
        collect_statistics=not no_statistics,
    )


def _check_table_to_convert(spark: SparkSession, name: Name) -> None:
    """Raise an error if a name is not that of a table."""
    is_view = view_of_name(spark, name) is not None
    if not is_view and spark.catalog.tableExists(quoted_path(name)):
        return
    error = name_not_found(spark, name)
    if is_view and not engine_of(spark).is_temporary_view(name):
        operation = "Converting a view to a Delta table"
        raise error.named(
            "DELTA_OPERATION_NOT_ALLOWED_DETAIL", operation=operation, tableName=quoted_path(name)
        )
    *_, database, table = ("", *name)
    raise error.named(
        "TABLE_OR_VIEW_NOT_FOUND",
        relationName=quoted_path((database, table)),
        searchPath=f"[{quoted(database)}]",
    )


@statement("TRUNCATE TABLE")
def truncate_table(table: StatementTable) -> None:
    """Remove all rows."""
    truncate(table.spark, table.path)


@statement("DROP TABLE", line="[IF EXISTS] table [PURGE]")
def drop_table(table: StatementTable) -> None:
    """Remove a table's name, and the files of a managed one."""
    drop_named_table(table.spark, table.name)
    uncache_table(table.spark, table.path)


def _comment(parser: Parser) -> str:
    return "" if parser.accept("NULL") else parser.string()


@statement("COMMENT ON TABLE", line="table IS comment", comment=_comment)
def _comment_on_table(table: StatementTable, comment: str) -> None:
    alter_table(table.spark, table.path).set_properties({"comment": comment})


@statement("REFRESH TABLE")
def _refresh(table: StatementTable) -> None:
    """Accept REFRESH TABLE, although each statement finds the latest version anyway."""


@statement("CACHE TABLE", line="table [OPTIONS options:properties]")
def _cache(table: StatementTable, options: Mapping[str, str] | None = None) -> None:
    rows = cache_table(table.spark, table.path, storage_level(options or {}))
    rows.write.format("noop").mode("overwrite").save()


@statement("CACHE LAZY TABLE", line="table [OPTIONS options:properties]")
def _cache_lazily(table: StatementTable, options: Mapping[str, str] | None = None) -> None:
    cache_table(table.spark, table.path, storage_level(options or {}))


def _of_no_query(parser: Parser, rule: Rule) -> Statement | None:
    """Return the statement that caches a table; None if it caches a query by another name."""
    place = parser.place
    parser.table_name()
    if parser.accept("OPTIONS"):
        parser.properties()
    is_of_query, parser.place = not parser.is_at_end, place
    return None if is_of_query else rule(parser)


for _head in ("CACHE TABLE", "CACHE LAZY TABLE"):
    STATEMENTS[_head] = partial(_of_no_query, rule=STATEMENTS[_head])


@statement("UNCACHE TABLE", line="[IF EXISTS] table")
def _uncache(table: StatementTable) -> None:
    uncache_table(table.spark, table.path)
