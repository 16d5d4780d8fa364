"""The rows of an INSERT with the columns of the table: by position, as SQL has it, or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.protocol_upgrades import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
)
from sparkdelta.base.schema.moment_texts import date_text, in_utc, time_text
from sparkdelta.base.schema.sql_text import text_literal, type_text
from sparkdelta.base.schema.store_assignment import assigned, can_assign, can_convert
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    InsertArityError,
    InvalidArgumentError,
    MetadataMismatchError,
    NonPartitionColumnReferenceError,
)
from sparkdelta.sql.grammar.statement_values import Insert
from sparkdelta.sql.grammar.tokens import tokenize
from sparkdelta.table.listing.table_names import table_name
from sparkdelta.table.rows.column_binding import with_values
from sparkdelta.table.snapshot.snapshot import Snapshot

_FILLED_BY_TABLE = {GENERATION_EXPRESSION, IDENTITY_START}
_TEMPORAL = (DateType, TimestampType, TimestampNTZType)
_FILLED = {CURRENT_DEFAULT, *_FILLED_BY_TABLE}


def inserted_rows(rows: DataFrame, path: str, statement: Insert, *, time_zone: str) -> DataFrame:
    """Return the rows of a query under the names of the table's columns.

    As other columns that an INSERT does not name, partition columns get nulls, unless the table
    fills them.

    Parameters
    ----------
    time_zone
        In which strings are converted to other types, which a write does not do.

    Raises
    ------
    InsertArityError
        The query has more or fewer columns than are to be filled.
    InvalidArgumentError
        It has a column by name whose value PARTITION gives.
    """
    snapshot = load_snapshot(rows.sparkSession, path)
    found = _converted(_named_rows(rows, snapshot, statement), snapshot, time_zone)
    given = {name_key(name) for name in found.columns}
    nulls = {
        field.name: F.lit(None).cast(field.dataType)
        for field in snapshot.schema.fields
        if field.name in snapshot.metadata.partition_columns
        and name_key(field.name) not in given
        and not _FILLED & (field.metadata or {}).keys()
    }
    return found.withColumns(nulls) if nulls else found


def with_defaults(spark: SparkSession, path: str, statement: Insert) -> str:
    """Return the query of an INSERT with the default of its column, or NULL, for each DEFAULT in
    VALUES.
    """
    query, tokens = statement.query, tokenize(statement.query) or ()
    has_any = any(token.is_word("DEFAULT") for token in tokens)
    if not has_any or not tokens[0].is_word("VALUES") or statement.by_name:
        return query
    schema = load_snapshot(spark, path).schema
    fields = {name_key(field.name): field for field in schema.fields}
    names = [n for n in schema.names if name_key(n) not in map(name_key, statement.partition)]
    if statement.columns is not None:
        names = [".".join(table_name(column)) for column in statement.columns]
    parts, place, depth, column = [], 0, 0, 0
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += token.is_symbol("(") - token.is_symbol(")")
        column = 0 if token.is_symbol("(") and depth == 1 else column
        column += token.is_symbol(",") and depth == 1
        is_value = before.is_symbol("(", ",") and after.is_symbol(")", ",") and depth == 1
        field = fields.get(name_key(names[column])) if column < len(names) else None
        metadata = {} if field is None else field.metadata or {}
        if is_value and token.is_word("DEFAULT") and not _FILLED_BY_TABLE & metadata.keys():
            parts += [query[place : token.start], f"({metadata.get(CURRENT_DEFAULT, 'NULL')})"]
            place = token.end
    return "".join([*parts, query[place:]])


def _named_rows(rows: DataFrame, snapshot: Snapshot, statement: Insert) -> DataFrame:
    fixed = {name: text for name, text in statement.partition.items() if text is not None}
    if statement.by_name:
        for name in rows.columns:
            if name_key(name) in map(name_key, fixed):
                problem = f"the query has column {name}, too"
                raise InvalidArgumentError(argument="PARTITION", problem=problem)
        if fixed:
            rows = rows.withColumns({name: F.expr(text) for name, text in fixed.items()})
        return rows
    return _by_position(rows, snapshot, statement, fixed)


def _converted(rows: DataFrame, snapshot: Snapshot, time_zone: str) -> DataFrame:
    """Return rows with the values that the table's columns of the same names can take.

    Unlike `sparkdelta.write_delta`, an INSERT converts strings to other types, and raises an error
    where a string is no value of the type.
    """
    fields = {name_key(field.name): field.dataType for field in snapshot.schema.fields}
    values = {}
    for field in rows.schema.fields:
        name, given, wanted = field.name, field.dataType, fields.get(name_key(field.name))
        if wanted is None:
            continue
        if isinstance(given, NullType):
            values[name] = f"CAST({quoted(name)} AS {type_text(wanted)})"
        elif not can_assign(given, wanted) and can_convert(given, wanted):
            values[name] = assigned(quoted(name), given, wanted, column=name)
    return with_values(rows, values, time_zone=time_zone)


def inserted_partition(
    spark: SparkSession, path: str, statement: Insert, *, time_zone: str
) -> str | None:
    """Return the condition that INSERT OVERWRITE replaces: the values that PARTITION gives, as
    values of the partition columns; None if it gives none.

    Parameters
    ----------
    time_zone
        As of `partition_condition`.

    Raises
    ------
    NonPartitionColumnReferenceError
        PARTITION names another column.
    """
    if not statement.partition:
        return None
    snapshot = load_snapshot(spark, path)
    return partition_condition(snapshot, statement.partition, time_zone=time_zone)


def partition_condition(
    snapshot: Snapshot, values: Mapping[str, str | None], *, time_zone: str
) -> str | None:
    """Return the condition that partition columns have values, given as SQL text by column, of
    their types; None if no value is given.

    Parameters
    ----------
    time_zone
        In which values are converted to the types of the columns.

    Raises
    ------
    NonPartitionColumnReferenceError
        A column is no partition column.
    """
    partitions = snapshot.metadata.partition_columns
    fields = {name_key(f.name): f for f in snapshot.schema.fields if f.name in partitions}
    conditions = []
    for name, text in values.items():
        field = fields.get(name_key(name))
        if field is None:
            raise NonPartitionColumnReferenceError(
                column=name, path=snapshot.path, available=partitions
            )
        if text is not None:
            value = _constant(snapshot.log.spark, text, field.dataType, time_zone)
            conditions.append(f"{quoted(field.name)} <=> {value}")
    return " AND ".join(conditions) or None


def _constant(spark: SparkSession, text: str, wanted: DataType, time_zone: str) -> str:
    """Return a value of a type as SQL text for the user's session, converted to the type in another
    time zone if that matters; takes no Spark job.
    """
    value = f"CAST(({text}) AS {type_text(wanted)})"
    is_temporal = isinstance(wanted, _TEMPORAL)
    if time_zone == session_time_zone(spark) or not (is_temporal or isinstance(wanted, StringType)):
        return value
    frame = spark.sql("VALUES (0)").selectExpr(f"(\n{text}\n) AS value")
    given = frame.schema["value"].dataType
    if given == wanted or not {type(given), type(wanted)} & {TimestampType}:
        return value
    with engine_of(spark).in_conversion_session(frame, time_zone) as theirs:
        converted = theirs.selectExpr(f"CAST(value AS {type_text(wanted)}) AS value")
    shown = converted.selectExpr(f"{_unzoned_text('value', wanted)} AS value")
    [(constant,)] = read_rows(shown, what="values of partitions", bound=1)
    if constant is None:
        return f"CAST(NULL AS {type_text(wanted)})"
    return f"CAST({text_literal(constant)} AS {type_text(wanted)})"


def _unzoned_text(value: str, data_type: DataType) -> str:
    """Return SQL for a value as text that means the same in every time zone."""
    if isinstance(data_type, TimestampType):
        return f"concat({time_text(in_utc(value))}, 'Z')"
    if isinstance(data_type, TimestampNTZType):
        return time_text(value)
    return date_text(value) if isinstance(data_type, DateType) else value


def _by_position(
    rows: DataFrame, snapshot: Snapshot, statement: Insert, fixed: Mapping[str, str]
) -> DataFrame:
    schema = snapshot.schema
    by_name = {name_key(field.name): field for field in schema.fields}
    names = schema.names
    if statement.columns is not None:
        names = [".".join(table_name(column)) for column in statement.columns]
    elsewhere = {name_key(name) for name in fixed}
    names = [name for name in names if name_key(name) not in elsewhere]
    given = rows.schema.fields
    renamed = rows.toDF(*_all_names(given, names, snapshot, statement))
    if fixed:
        renamed = renamed.withColumns({name: F.expr(text) for name, text in fixed.items()})
        names, given = (
            [*names, *fixed],
            [*given[: len(names)], *renamed.schema.fields[-len(fixed) :]],
        )
    values = {}
    for name, field in zip(names, given, strict=False):
        wanted = by_name.get(name_key(name))
        value = quoted(name) if wanted is None else _value(quoted(name), field.dataType, wanted)
        if value != quoted(name):
            values[name] = F.expr(value)
    return renamed.withColumns(values) if values else renamed


def _all_names(
    given: Sequence[StructField], names: Sequence[str], snapshot: Snapshot, statement: Insert
) -> list[str]:
    """Return the names of columns that are given by position: of the table, then those that the
    table does not have yet.
    """
    extra = given[len(names) :] if statement.evolves and statement.columns is None else []
    if len(given) != len(names) + len(extra):
        raise InsertArityError(path=snapshot.path, expected=len(names), given=len(given))
    return [*names, *(field.name for field in extra)]


def inserted_columns(
    rows: DataFrame, path: str, statement: Insert, alias: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the query's column for each column of the table, by name in lower case, and the
    columns' values as SQL text over the query's alias, by name in backticks.

    Raises
    ------
    InsertArityError
        The query has more or fewer columns than the table.
    MetadataMismatchError
        It has a column by name that the table does not have.
    """
    snapshot = load_snapshot(rows.sparkSession, path)
    fields, given = {name_key(f.name): f for f in snapshot.schema.fields}, rows.schema.fields
    names = [field.name for field in given]
    if not statement.by_name:
        names = _all_names(given, snapshot.schema.names, snapshot, statement)
    values = {}
    for name, field in zip(names, given, strict=True):
        wanted, value = fields.get(name_key(name)), f"{quoted(alias)}.{quoted(field.name)}"
        if wanted is not None:
            value = _value(value, field.dataType, wanted, by_name=statement.by_name)
        elif not statement.evolves:
            problem = f"the table has no column {name}"
            raise MetadataMismatchError(path=snapshot.path, problem=problem)
        values[quoted(name)] = value
    return {name_key(n): field.name for n, field in zip(names, given, strict=True)}, values


def _value(name: str, given: DataType, column: StructField, *, by_name: bool = False) -> str:
    """Return a value as a SQL expression of which fields of structs have the names of the column's:
    they are matched as columns are.
    """
    if isinstance(given, NullType):
        return f"CAST({name} AS {type_text(column.dataType)})"
    renamed = given if by_name else _renamed(given, column.dataType)
    return name if renamed == given else f"CAST({name} AS {type_text(renamed)})"


def _renamed(given: DataType, wanted: DataType) -> DataType:
    """Return a type with the field names of another type, where both have the same number of
    fields.
    """
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        if len(given) != len(wanted):
            return given
        pairs = zip(given, wanted, strict=True)
        return StructType(
            [StructField(b.name, _renamed(a.dataType, b.dataType), a.nullable) for a, b in pairs]
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(_renamed(given.elementType, wanted.elementType), given.containsNull)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return MapType(
            _renamed(given.keyType, wanted.keyType),
            _renamed(given.valueType, wanted.valueType),
            given.valueContainsNull,
        )
    return given
