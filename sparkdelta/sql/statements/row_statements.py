"""DELETE, UPDATE, MERGE and INSERT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.base.spark.session_settings import evolves_schemas
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.write.write import write
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.relations import relation_at
from sparkdelta.sql.grammar.statement_grammar import statement
from sparkdelta.sql.grammar.tokens import Fragment, Kind
from sparkdelta.sql.statements.inserted_rows import (
    Insertion,
    inserted_columns,
    inserted_rows,
    partition_condition,
    with_defaults,
)
from sparkdelta.sql.statements.options import WRITE, arguments, table_properties, with_settings
from sparkdelta.sql.statements.replaced_rows import SOURCE, replace_equal, replace_matching
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.sql.statements.subquery_values import with_subquery_values
from sparkdelta.table.definition.write_options import WriteOptions

_QUERY = ("SELECT", "VALUES", "WITH", "TABLE", "FROM")
_QUERY_IN_PARENTHESES = tuple(f"( {word}" for word in _QUERY if word != "FROM")  # TRIM(FROM x)


def _affected(spark: SparkSession, rows: int | None) -> DataFrame:
    schema = StructType([StructField("num_affected_rows", LongType())])
    return local_frame(spark, pa.table({"num_affected_rows": pa.array([rows], pa.int64())}), schema)


@statement("DELETE FROM", line="table alias [WHERE where:of_rows]")
def _delete(table: StatementTable, where: str | None = None, alias: str | None = None) -> DataFrame:
    return _affected(table.spark, table.named(alias).delete(where).num_deleted_rows)


@statement("UPDATE", line="table alias SET values:assignments [WHERE where:of_rows]")
def _update(
    table: StatementTable,
    values: Mapping[str, str],
    where: str | None = None,
    alias: str | None = None,
) -> DataFrame:
    constant = with_subquery_values(table, values, "UPDATE")
    return _affected(table.spark, table.named(alias).update(where, constant).num_updated_rows)


def _source(parser: Parser) -> dict[str, Any]:
    """Return the source of a merge with its alias, and the alias, or else the table's name."""
    start, name = parser.place, None
    if parser.accept("{"):
        parser.word()
        parser.expect("}")
    elif parser.token.is_name:
        relation = relation_at(parser)
        name = relation.name[-1].partition("@")[0] if relation else None
    if parser.peek("("):
        parser.in_parentheses()
    if parser.place == start:
        raise parser.error("a table or query is expected")
    alias = parser.alias("ON")
    if alias is not None and parser.peek("("):
        parser.names()
    source = parser.fragment(start, follows_from=True)
    queries = {"queries": parser.queries} if parser.queries else {}
    return {"source": source, "source_alias": alias or name, **queries}


def _actions(parser: Parser) -> list[tuple[Any, ...]]:
    """Return the actions of a merge as methods of `DeltaMergeBuilder` with arguments."""
    actions = [_action(parser)]
    while parser.accept("WHEN"):
        actions.append(_action(parser))
    return actions


def _action(parser: Parser) -> tuple[Any, ...]:
    clause = "whenMatched"
    if parser.accept("NOT MATCHED BY SOURCE"):
        clause = "whenNotMatchedBySource"
    elif parser.accept("NOT"):
        clause = "whenNotMatched"
        parser.expect("MATCHED")
        parser.accept("BY TARGET")
    else:
        parser.expect("MATCHED")
    condition = parser.of_rows("THEN") if parser.accept("AND") else None
    parser.expect("THEN")
    if clause == "whenNotMatched":
        parser.expect("INSERT")
        if parser.accept("*"):
            return f"{clause}InsertAll", condition
        return f"{clause}Insert", condition, _inserted_values(parser)
    if parser.accept("DELETE"):
        return f"{clause}Delete", condition
    parser.expect("UPDATE SET")
    if clause == "whenMatched" and parser.accept("*"):
        return f"{clause}UpdateAll", condition
    return f"{clause}Update", condition, parser.assignments("WHEN")


def _inserted_values(parser: Parser) -> Mapping[str, str]:
    names = parser.names()
    parser.expect("VALUES")
    parser.expect("(")
    values = parser.listed(parser.assigned)
    if len(values) != len(names):
        raise parser.error(f"{len(names)} values are expected, not {len(values)}")
    parser.expect(")")
    if len(set(names)) != len(names):
        raise DeltaError.of("DELTA_DUPLICATE_COLUMNS_ON_INSERT", columns=names)
    return dict(zip(names, values, strict=True))


@statement(
    "MERGE",
    line="evolves=[WITH SCHEMA EVOLUTION] INTO table alias USING *source ON condition:of_rows "
    "[WHEN actions]",
    source=_source,
    actions=_actions,
)
def _merge(
    table: StatementTable,
    source: Fragment,
    source_alias: str | None,
    condition: str,
    actions: Sequence[tuple[Any, ...]] = (),
    *,
    alias: str | None = None,
    evolves: bool = False,
    queries: Fragment | None = None,
) -> DataFrame:
    """Merge a source, which may name the queries of WITH."""
    rows = table.sql.query(*([queries] if queries else []), "SELECT * FROM", source)
    rows = rows if source_alias is None else rows.alias(source_alias)
    builder = table.named(alias).merge(rows, condition)
    for method, *given in actions:
        arguments = (
            with_subquery_values(table, each, "MERGE") if isinstance(each, Mapping) else each
            for each in given
        )
        builder = getattr(builder, method)(*arguments)
    return (builder.withSchemaEvolution() if evolves else builder).execute()


def _insert_clauses(parser: Parser) -> dict[str, Any]:
    """Parse the clauses of INSERT; return the arguments of `insert` that are not the defaults."""
    found: dict[str, Any] = {"evolves": parser.accept("WITH SCHEMA EVOLUTION")}
    found["overwrites"] = parser.accept("OVERWRITE")
    if not found["overwrites"]:
        parser.expect("INTO")
    parser.accept("TABLE")
    parser.table()
    found["alias"] = parser.alias("BY", "PARTITION", "REPLACE", *_QUERY)
    if parser.peek("WITH ("):
        parser.next()
        found["options"] = parser.properties()
    if parser.accept("PARTITION"):
        found["partition"] = parser.partition()
    found["by_name"] = parser.accept("BY NAME")
    is_list = parser.peek("(") and not (parser.ahead().is_word(*_QUERY) or parser.peek("( ("))
    if is_list and not found["by_name"]:
        found["columns"] = parser.names()
    if parser.accept("REPLACE"):
        found |= _replaced(parser, found)
    elif found["alias"] is not None:
        raise parser.error("REPLACE ON is expected after an alias")
    if not parser.token.is_word(*_QUERY) and not parser.peek("("):
        raise parser.error("a query is expected")
    start = parser.place
    if "replace_on" in found and parser.peek("("):
        # It may have an alias, or be only the first query of a union.
        parser.in_parentheses()
        if parser.token.is_word("AS") or parser.ahead().kind is Kind.END:
            found["query"] = parser.fragment(start)
            found["query_alias"] = parser.alias()
    if "query" not in found:
        parser.rest()
        found["query"] = parser.fragment(start)
    found["queries"] = parser.queries
    return {name: value for name, value in found.items() if value not in (None, False)}


def _replaced(parser: Parser, insert: Mapping[str, Any]) -> dict[str, Any]:
    """Parse ON, USING or WHERE up to the query."""
    if insert["overwrites"] or not insert.keys().isdisjoint({"columns", "partition"}):
        raise parser.error("REPLACE comes after INTO and the table; a query is expected")
    ends = (*_QUERY, *_QUERY_IN_PARENTHESES)
    if parser.accept("ON"):
        return {"replace_on": parser.of_rows(*ends)}
    if insert["alias"] is not None:
        raise parser.error("ON is expected")
    if parser.accept("USING"):
        return {"replace_using": parser.names()}
    parser.expect("WHERE")
    return {"replace_where": parser.expression(*ends)}


@statement("INSERT", line="*clauses", clauses=_insert_clauses)
def _insert(
    table: StatementTable,
    query: Fragment,
    *,
    columns: tuple[str, ...] | None = None,
    by_name: bool = False,
    overwrites: bool = False,
    partition: Mapping[str, str | None] | None = None,
    evolves: bool = False,
    replace_where: str | None = None,
    replace_using: tuple[str, ...] | None = None,
    replace_on: str | None = None,
    alias: str | None = None,
    query_alias: str | None = None,
    options: Mapping[str, str] | None = None,
    queries: Fragment | None = None,
) -> None:
    """Insert the rows of a query, which may name the queries of WITH.

    Parameters
    ----------
    columns
        None if the rows have all columns of the table.
    partition
        Texts of values by names of columns; None for columns of the rows.
    replace_using
        The columns by which the rows take the place of others.
    alias, query_alias
        Of the table and of the rows, in `replace_on`.
    options
        The options clause after the table, ``WITH ('option' = 'value')``.
    """
    time_zone = table.sql.time_zone
    given, _ = table_properties(options or {})  # which count when a table is created
    found = arguments(given, WRITE, function="WITH")
    # The columns of the table come first, in their types: overwriteSchema only adds others.
    adds = found.pop("overwrite_schema", False) and overwrites
    evolves = found.pop("merge_schema", evolves_schemas()) or evolves or adds
    replaces = replace_using is not None or replace_on is not None
    if replaces and found:
        kind = "INSERT with REPLACE and other options than mergeSchema"
        raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)
    insertion = Insertion(columns, partition or {}, by_name=by_name, evolves=evolves)
    where = (
        partition_condition(table.snapshot, partition, time_zone=time_zone) if partition else None
    )
    if replace_where is not None:
        where = replace_where
    elif not overwrites:
        where = None
    if where is not None and "replace_where" in found:
        raise DeltaError.of(
            "DELTA_STATEMENT_NOT_SUPPORTED",
            statement="INSERT with replaceWhere and another condition",
        )
    if not overwrites:
        found.pop("replace_where", None)
    if queries is None:
        rows = table.sql.query(with_defaults(query, table, insertion))
    else:
        rows = table.sql.query(queries, "(", query, ")")
    if replaces:
        source = query_alias or SOURCE
        values = inserted_columns(rows, table.snapshot, insertion, source)
        if replace_on is None:
            replace_equal(
                rows,
                table.delta,
                table.snapshot,
                replace_using or (),
                values=values,
                time_zone=time_zone,
                evolves=evolves,
            )
        else:
            target = table.named(alias)
            rows = rows.alias(source)
            replace_matching(rows, target, replace_on, values=values, evolves=evolves)
        return
    overwrites = overwrites or where is not None
    given_options = {"replace_where": where, "merge_schema": evolves, **found}
    write_options = WriteOptions.spelled(
        **{"compression": None, **with_settings(given_options, overwrites=overwrites)},
        mode="overwrite" if overwrites else "append",
        requires_table=True,
        time_zone=time_zone,
        converts=True,
    )
    write(inserted_rows(rows, table.snapshot, insertion), table.path, write_options)
