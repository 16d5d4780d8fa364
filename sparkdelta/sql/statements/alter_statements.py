"""ALTER TABLE: each clause is the method of `sparkdelta.AlterTable`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql.types import StructType

from sparkdelta.api.alter import AlterTable, alter_table
from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.predicates.resolved_names import UnusableError, find_column
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.schema.column_ids import without_ids
from sparkdelta.base.schema.table_schema import as_nullable, type_of_path
from sparkdelta.base.spark.session_settings import follows_settings
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.alter.alter_table import alter
from sparkdelta.operations.alter.altered_columns import (
    ColumnChange,
    NewColumn,
    add_columns,
    change_columns,
    column_path,
)
from sparkdelta.operations.upkeep.catalog_entries import describe_named_table
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.statement_grammar import (
    STATEMENTS,
    Rule,
    Statement,
    next_rule,
    no_partitions,
    no_v2_command,
    statement,
)
from sparkdelta.sql.statements.cached_tables import cache_table, uncache_table
from sparkdelta.sql.statements.column_definitions import (
    ColumnText,
    column_text,
    columns_of_table,
    position,
    table_properties,
    type_of,
    type_text,
)
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.table.listing.table_names import move_named_table, rename_named_table, table_path

_CLAUSES: dict[str, Rule] = {}
_COLUMN_CHANGES = ("TYPE", "COMMENT", "FIRST", "AFTER", "SET", "DROP", "SYNC")


def _alter_table(parser: Parser) -> Statement | None:
    parser.table()
    clause = next_rule(parser, _CLAUSES)
    if clause is None:
        if _is_of_partition(parser):
            raise no_partitions(parser)
        if parser.peek("RECOVER PARTITIONS"):
            raise no_v2_command("ALTER TABLE ... RECOVER PARTITIONS")
        words = f"{parser.token.text} {parser.ahead().text}".upper().strip()
        if words in ("SET SERDE", "SET SERDEPROPERTIES"):
            raise no_v2_command("ALTER TABLE ... SET [SERDE|SERDEPROPERTIES]")
        error = DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=f"ALTER TABLE ... {words}")
        raise (
            error.named("UNSUPPORTED_FEATURE.TABLE_OPERATION", operation="ADD CONSTRAINT")
            if (words.startswith("ADD "))
            else error
        )
    is_constraint = clause is _CLAUSES["ADD CONSTRAINT"]
    if is_constraint and parser.ahead().is_word("PRIMARY", "FOREIGN", "UNIQUE"):
        kind = "ALTER TABLE ... ADD CONSTRAINT of a key"
        raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind).named(
            "UNSUPPORTED_FEATURE.TABLE_OPERATION", operation="table constraint"
        )
    found = clause(parser)
    if found is not None and "synchronized" in found.arguments:
        found = replace(found, only_delta=True)  # the other changes of columns are Spark's, too
    return found


STATEMENTS["ALTER TABLE"] = _alter_table


def _is_of_partition(parser: Parser) -> bool:
    """Return True if a clause adds, drops or renames a partition."""
    heads = ("", "ADD", "DROP", "ADD IF NOT EXISTS", "DROP IF EXISTS")
    return any(parser.peek(f"{head} PARTITION (") for head in heads)


def _alter(table: StatementTable) -> AlterTable:
    return alter_table(table.spark, table.path)


@statement("SET TBLPROPERTIES", line="properties", rules=_CLAUSES, properties=table_properties)
def _set_properties(table: StatementTable, properties: dict[str, str]) -> None:
    _alter(table).set_properties(properties)


def _keys(parser: Parser) -> list[str]:
    return parser.enclosed(parser.property)


@statement("UNSET TBLPROPERTIES", line="if_exists=[IF EXISTS] names", rules=_CLAUSES, names=_keys)
def _unset_properties(table: StatementTable, names: list[str], *, if_exists: bool = False) -> None:
    ignores_missing = if_exists or follows_settings()  # as delta-spark does
    _alter(table).unset_properties(names, if_exists=ignores_missing)


def _condition(parser: Parser) -> str:
    [inner] = parser.enclosed(parser.of_rows)
    return inner


@statement(
    "ADD CONSTRAINT",
    line="name:word CHECK check",
    rules=_CLAUSES,
    only_delta=True,
    check=_condition,
)
def _add_constraint(table: StatementTable, name: str, check: str) -> None:
    _alter(table).add_constraint(name, check)


@statement(
    "DROP CONSTRAINT", line="if_exists=[IF EXISTS] name:word", rules=_CLAUSES, only_delta=True
)
def _drop_constraint(table: StatementTable, name: str, *, if_exists: bool = False) -> None:
    _alter(table).drop_constraint(name, if_exists=if_exists)


@statement(
    "DROP FEATURE",
    line="name:property truncates_history=[TRUNCATE HISTORY]",
    rules=_CLAUSES,
    only_delta=True,
)
def _drop_feature(table: StatementTable, name: str, *, truncates_history: bool = False) -> None:
    DeltaTable.forPath(table.spark, table.path).dropFeatureSupport(name, truncates_history)


def _added_columns(parser: Parser) -> tuple[ColumnText, ...]:
    if parser.peek("IF NOT EXISTS"):
        raise parser.error("the name of a column is expected")
    column = partial(column_text, parser)
    return tuple(parser.enclosed(column) if parser.peek("(") else parser.listed(column))


@statement("ADD COLUMNS", "ADD COLUMN", line="columns", rules=_CLAUSES, columns=_added_columns)
def _add_new_columns(table: StatementTable, columns: Sequence[ColumnText]) -> None:
    """Add columns, in one version."""
    new = tuple(
        NewColumn(each.field, column_path(each.name)[:-1], each.position) for each in columns
    )
    alter(table.spark, table.path, partial(add_columns, columns=new))


@statement("REPLACE COLUMNS", line="( columns )", rules=_CLAUSES, columns=columns_of_table)
def _replace_columns(table: StatementTable, columns: Sequence[ColumnText]) -> None:
    _alter(table).replace_columns(StructType([column.field for column in columns]))


@statement("RENAME COLUMN", line="name:column TO new_name:word", rules=_CLAUSES)
def _rename_column(table: StatementTable, name: str, new_name: str) -> None:
    _alter(table).rename_column(name, new_name)


@statement(
    "DROP COLUMNS", "DROP COLUMN", line="if_exists=[IF EXISTS] names:columns", rules=_CLAUSES
)
def _drop_columns(table: StatementTable, names: Sequence[str], *, if_exists: bool = False) -> None:
    _alter(table).drop_columns(*names, if_exists=if_exists)


def _clustering(parser: Parser) -> tuple[str, ...]:
    return () if parser.accept("NONE") else parser.names()


@statement("CLUSTER BY", line="columns", only_delta=True, rules=_CLAUSES, columns=_clustering)
def _cluster_by(table: StatementTable, columns: Sequence[str]) -> None:
    _alter(table).cluster_by(*columns)


@statement("RENAME TO", line="name", rules=_CLAUSES)
def _rename_table(table: StatementTable, name: Name) -> None:
    spark = table.spark
    rename_named_table(spark, table.name, name)
    level = uncache_table(spark, table.path)
    path = table_path(spark, (*table.name[:-1], name[-1]))
    if level is not None and path is not None:
        cache_table(spark, path, level)


@statement("SET LOCATION", line="location:string", rules=_CLAUSES)
def _set_location(table: StatementTable, location: str) -> None:
    """Set the location to that of a table with the same columns."""
    now, then = table.snapshot, load_snapshot(table.spark, location)
    tables = [(without_ids(each.schema), each.metadata.partition_columns) for each in (now, then)]
    if tables[0] != tables[1]:
        raise DeltaError.of(
            "DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            path=now.path,
            location=then.path,
            original=now.schema.treeString(),
            destination=then.schema.treeString(),
        )
    move_named_table(table.spark, table.name, then.path)
    describe_named_table(table.spark, table.name)


def _column_change(parser: Parser) -> dict[str, Any]:
    """Return what changes in a column, and go past it."""
    for words, change in (
        ("FIRST", {"first": True}),
        ("DROP NOT NULL", {"drop_not_null": True}),
        ("SET NOT NULL", {"set_not_null": True}),
        ("DROP DEFAULT", {"drop_default": True}),
    ):
        if parser.accept(words):
            return change
    if parser.accept("TYPE"):
        return {"data_type": type_text(parser)}
    if parser.accept("COMMENT"):
        return {"comment": parser.string()}
    if parser.accept("AFTER"):
        return {"after": parser.column()}
    if parser.accept("SET DEFAULT"):
        return {"default": parser.expression(closing=",")}
    raise DeltaError.of(
        "DELTA_STATEMENT_NOT_SUPPORTED", statement=f"ALTER COLUMN ... {parser.rest().text}"
    )


def _column_changes(parser: Parser) -> dict[str, Any]:
    """Parse ``a TYPE INT, b FIRST``, or ``a SYNC IDENTITY``."""
    changes = list[dict[str, Any]]()
    while not changes or parser.accept(","):
        name = parser.column()
        if parser.accept("SYNC IDENTITY"):
            if changes:
                raise parser.error("SYNC IDENTITY goes with one column alone")
            return {"synchronized": name}
        change = _column_change(parser)
        if name_key(name) in (name_key(each["name"]) for each in changes):
            raise parser.error(f"{name} is changed twice").named(
                "NOT_SUPPORTED_CHANGE_SAME_COLUMN", name=name
            )
        changes.append({"name": name, **change})
    return {"changes": tuple(changes)}


def _changed_column(parser: Parser) -> dict[str, Any]:
    """Parse ``a a INT [COMMENT] [FIRST | AFTER]``, or the changes of ALTER COLUMN."""
    name = parser.column()
    is_named = name_key(parser.token.text) == name_key(column_path(name)[-1])
    if parser.token.is_word("SYNC") and not is_named and parser.accept("SYNC IDENTITY"):
        return {"synchronized": name}
    if parser.token.is_word(*_COLUMN_CHANGES) and not is_named:
        return {"changes": ({"name": name, **_column_change(parser)},)}
    column = column_text(parser)
    if name_key(column.name.split(".")[-1].strip("`")) != name_key(name.split(".")[-1].strip("`")):
        kind = "CHANGE COLUMN to another name; use RENAME COLUMN"
        raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)
    if not column.nullable or column.default is not None:
        raise DeltaError.of(
            "DELTA_STATEMENT_NOT_SUPPORTED", statement="CHANGE COLUMN with NOT NULL or DEFAULT"
        )
    change = {
        "name": name,
        "data_type": column.data_type,
        "comment": column.comment,
        "first": column.is_first,
        "after": column.after,
        "repeats_type": True,
    }
    return {"changes": ({key: value for key, value in change.items() if value is not None},)}


@statement("ALTER COLUMN", "ALTER", line="*changes", rules=_CLAUSES, changes=_column_changes)
@statement("CHANGE COLUMN", "CHANGE", line="*changes", rules=_CLAUSES, changes=_changed_column)
def _alter_columns(
    table: StatementTable, changes: Sequence[dict[str, Any]] = (), synchronized: str | None = None
) -> None:
    """Change columns, in one version; or let an identity column go on after the table's values.

    Parameters
    ----------
    changes
        Arguments of `sparkdelta.AlterTable.change_column`, and ``set_not_null``, which SQL alone
        has: it changes nothing.
    """
    if synchronized is not None:
        _alter(table).sync_identity(synchronized)
    elif len(changes) == 1 and "set_not_null" not in changes[0]:
        _change_column(table, **changes[0])
    else:
        several = [_column_change_of(**change) for change in changes]
        alter(table.spark, table.path, partial(change_columns, changes=several))


def _change_column(
    table: StatementTable,
    name: str,
    data_type: str | None = None,
    *,
    repeats_type: bool = False,
    **options: Any,
) -> None:
    """Change a column; a type that is given beside other changes may be the one that it has."""
    if repeats_type and any(options.values()) and _has_type(table, name, str(data_type)):
        data_type = None
    _alter(table).change_column(name, data_type, **options)


def _has_type(table: StatementTable, name: str, data_type: str) -> bool:
    schema = table.snapshot.schema
    try:
        column = find_column(schema, column_path(name))
    except UnusableError:
        return False
    return as_nullable(type_of_path(schema, column.path)) == as_nullable(type_of(data_type))


def _column_change_of(
    name: str,
    data_type: str | None = None,
    *,
    first: bool = False,
    after: str | None = None,
    **options: Any,
) -> tuple[ColumnPath, ColumnChange]:
    changed_type = None if data_type is None else type_of(data_type)
    place = position(first=first, after=after)
    return column_path(name), ColumnChange(data_type=changed_type, position=place, **options)
