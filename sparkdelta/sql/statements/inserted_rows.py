"""The rows of an INSERT with the columns of the table: by position, as SQL has it, or by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

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

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.protocol_upgrades import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
)
from sparkdelta.base.schema.moment_texts import date_text, in_utc, time_text
from sparkdelta.base.schema.sql_text import text_literal, type_text
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import Evaluation, session_time_zone
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    NonPartitionColumnReferenceError,
)
from sparkdelta.sql.grammar.tokens import Fragment, Kind, tokenize
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.table.listing.table_names import column_name
from sparkdelta.table.snapshot.snapshot import Snapshot

_FILLED_BY_TABLE = {GENERATION_EXPRESSION, IDENTITY_START}
_ENDS_OF_SELECTED = ("FROM", "UNION", "EXCEPT", "MINUS", "INTERSECT")
_TEMPORAL = (DateType, TimestampType, TimestampNTZType)
_FILLED = {CURRENT_DEFAULT, *_FILLED_BY_TABLE}


@dataclasses.dataclass(frozen=True, slots=True)
class Insertion:
    """The columns of a table that rows fill.

    Attributes
    ----------
    columns
        Their names as SQL text; None for all.
    partition
        The values of some of them as SQL text, or None where the rows have it.
    by_name
        True if columns of the same names are matched, not those at the same place.
    evolves
        True if the rows may have columns that the table does not have.
    """

    columns: tuple[str, ...] | None = None
    partition: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    by_name: bool = False
    evolves: bool = False

    @property
    def constants(self) -> dict[str, str]:
        """The values that are given as SQL text, by column."""
        return {name: text for name, text in self.partition.items() if text is not None}

    def names(self, schema: StructType, elsewhere: Iterable[str]) -> list[str]:
        """Return the names of the columns in the order of the rows', without some others."""
        names = schema.names
        if self.columns is not None:
            names = [column_name(column) for column in self.columns]
        others = set(map(name_key, elsewhere))
        return [name for name in names if name_key(name) not in others]


def inserted_rows(rows: DataFrame, snapshot: Snapshot, insertion: Insertion) -> DataFrame:
    """Return the rows of a query under the names of the table's columns.

    As other columns that an INSERT does not name, partition columns get nulls, unless the table
    fills them.

    Raises
    ------
    DELTA_INSERT_COLUMN_ARITY_MISMATCH
        The query has more or fewer columns than are to be filled.
    InvalidArgumentError
        It has a column by name whose value PARTITION gives.
    """
    found = _typed_nulls(_named_rows(rows, snapshot, insertion), snapshot)
    given = {name_key(name) for name in found.columns}
    nulls = {
        each.name: F.lit(None).cast(each.dataType)
        for each in snapshot.schema.fields
        if each.name in snapshot.metadata.partition_columns
        and name_key(each.name) not in given
        and not _FILLED & (each.metadata or {}).keys()
    }
    return found.withColumns(nulls) if nulls else found


def with_defaults(query: Fragment, table: StatementTable, insertion: Insertion) -> str | Fragment:
    """Return the query of an INSERT with the default of its column, or NULL, for each DEFAULT in
    VALUES, or in what a single SELECT gives.
    """
    tokens = query.tokens
    has_any = any(token.is_word("DEFAULT") for token in tokens)
    if not has_any or not tokens[0].is_word("VALUES", "SELECT") or insertion.by_name:
        return query
    is_select = tokens[0].is_word("SELECT")
    of_values = 0 if is_select else 1
    schema = table.snapshot.schema
    fields = {name_key(each.name): each for each in schema.fields}
    names = insertion.names(schema, insertion.partition if insertion.columns is None else ())
    parts, place, depth, column = [], query.start, 0, 0
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if is_select and not depth and token.is_word(*_ENDS_OF_SELECTED):
            break
        column = 0 if token.is_symbol("(") and depth == of_values == 1 else column
        column += token.is_symbol(",") and depth == of_values
        starts = before.is_symbol("(", ",") or before.is_word("SELECT")
        is_last = after.is_symbol(",", ")") or after.kind is Kind.END or after.is_word("FROM")
        is_value = starts and is_last and depth == of_values
        filled = fields.get(name_key(names[column])) if column < len(names) else None
        metadata = {} if filled is None else filled.metadata or {}
        if is_value and token.is_word("DEFAULT") and not _FILLED_BY_TABLE & metadata.keys():
            parts += [
                query.whole[place : token.start],
                f"({metadata.get(CURRENT_DEFAULT, 'NULL')})",
            ]
            place = token.end
    text = "".join([*parts, query.whole[place : query.end]])
    return tokenize(text) or text


def _named_rows(rows: DataFrame, snapshot: Snapshot, insertion: Insertion) -> DataFrame:
    if not insertion.by_name:
        return _by_position(rows, snapshot, insertion)
    for name in rows.columns:
        if name_key(name) in map(name_key, insertion.constants):
            problem = f"the query has column {name}, too"
            raise InvalidArgumentError(argument="PARTITION", problem=problem)
    rows = _with_constants(rows, insertion)
    fields = {name_key(field.name): as_nullable(field.dataType) for field in snapshot.schema.fields}
    given = {field.name: as_nullable(field.dataType) for field in rows.schema.fields}
    unknown = [name for name in given if name_key(name) not in fields]
    is_cast = any(fields.get(name_key(name), kind) != kind for name, kind in given.items())
    if unknown and is_cast and not insertion.evolves:
        raise _no_column(unknown[0], snapshot)
    return rows


def _no_column(name: str, snapshot: Snapshot) -> DeltaError:
    """Return the error of a column by name; delta-spark has it where rows need a cast."""
    problem, columns = f"the table has no column {name}", ", ".join(snapshot.schema.names)
    error = DeltaError.of("DELTA_METADATA_MISMATCH", path=snapshot.path, problem=problem)
    return error.named("DELTA_MISSING_COLUMN", columnName=name, columnList=columns)


def _with_constants(rows: DataFrame, insertion: Insertion) -> DataFrame:
    constants = {name: F.expr(text) for name, text in insertion.constants.items()}
    return rows.withColumns(constants) if constants else rows


def _typed_nulls(rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Return the rows; columns of nulls without a type have the types of the table's columns."""
    fields = {name_key(field.name): field.dataType for field in snapshot.schema.fields}
    nulls = {
        field.name: F.lit(None).cast(fields[name_key(field.name)])
        for field in rows.schema.fields
        if isinstance(field.dataType, NullType) and name_key(field.name) in fields
    }
    return rows.withColumns(nulls) if nulls else rows


def partition_condition(
    snapshot: Snapshot, values: Mapping[str, str | None], *, time_zone: str
) -> str | None:
    """Return the condition on partition columns for values as SQL text by column.

    The values are converted to the types of the columns. None if no column has a value.

    Parameters
    ----------
    time_zone
        In which values are converted to the types of the columns.

    Raises
    ------
    NonPartitionColumnReferenceError
        A column is not a partition column.
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
    engine, value = engine_of(spark), _shown(frame, given)
    with engine.write_session() as session:
        frame = session.sql("VALUES (0)").selectExpr(f"{value} AS value")
        with engine.in_table_session(frame, Evaluation(time_zone)) as theirs:
            converted = theirs.selectExpr(f"CAST(value AS {type_text(wanted)}) AS value")
        return _shown(converted, wanted)


def _shown(frame: DataFrame, data_type: DataType) -> str:
    """Return the only value of a frame as SQL that means the same in every time zone."""
    shown = frame.selectExpr(f"{unzoned_text('value', data_type)} AS value")
    [(constant,)] = read_rows(shown, what="values of partitions", bound=1)
    literal = "NULL" if constant is None else text_literal(constant)
    return f"CAST({literal} AS {type_text(data_type)})"


def unzoned_text(value: str, data_type: DataType) -> str:
    """Return SQL for a value as text that means the same in every time zone."""
    if isinstance(data_type, TimestampType):
        return f"concat({time_text(in_utc(value))}, 'Z')"
    if isinstance(data_type, TimestampNTZType):
        return time_text(value)
    return date_text(value) if isinstance(data_type, DateType) else value


def _by_position(rows: DataFrame, snapshot: Snapshot, insertion: Insertion) -> DataFrame:
    by_name = {name_key(each.name): each for each in snapshot.schema.fields}
    constants = list(insertion.constants)
    names = insertion.names(snapshot.schema, constants)
    _check_listed(names, snapshot, insertion)
    given = rows.schema.fields
    renamed = rows.toDF(*_all_names(given, names, snapshot, insertion))
    if constants:
        renamed = _with_constants(renamed, insertion)
        given = [*given[: len(names)], *renamed.schema.fields[-len(constants) :]]
        names = [*names, *constants]
    values = {}
    for name, each in zip(names, given, strict=False):
        wanted = by_name.get(name_key(name))
        value = quoted(name) if wanted is None else _value(quoted(name), each.dataType, wanted)
        if value != quoted(name):
            values[name] = F.expr(value)
    return renamed.withColumns(values) if values else renamed


def _check_listed(names: Sequence[str], snapshot: Snapshot, insertion: Insertion) -> None:
    """Refuse columns after the table's name that are there twice, or that it does not have."""
    if insertion.columns is None:
        return
    keys = [name_key(name) for name in names]
    known = set(map(name_key, snapshot.schema.names))
    for number, (name, key) in enumerate(zip(names, keys, strict=True)):
        if key in keys[:number]:
            raise DeltaError.of("DELTA_DUPLICATE_COLUMNS_FOUND", columns=[name]).named(
                "COLUMN_ALREADY_EXISTS"
            )
        if key not in known and not insertion.evolves:
            raise ColumnNotFoundError(column=name, available=snapshot.schema.names)


def _all_names(
    given: Sequence[StructField], names: Sequence[str], snapshot: Snapshot, insertion: Insertion
) -> list[str]:
    """Return the names of columns that are given by position: of the table, then those that the
    table does not have yet.
    """
    extra = given[len(names) :] if insertion.evolves and insertion.columns is None else []
    if len(given) != len(names) + len(extra):
        error = DeltaError.of(
            "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            path=snapshot.path,
            expected=len(names),
            given=len(given),
        )
        lacks_some = len(given) < len(names)
        if insertion.columns is None:
            raise error if lacks_some else error.named("DELTA_METADATA_MISMATCH")
        kind = "NOT_ENOUGH" if lacks_some else "TOO_MANY"
        raise error.named(
            f"INSERT_COLUMN_ARITY_MISMATCH.{kind}_DATA_COLUMNS",
            table_columns=names,
            data_columns=[each.name for each in given],
        )
    return [*names, *(each.name for each in extra)]


def inserted_columns(
    rows: DataFrame, snapshot: Snapshot, insertion: Insertion, alias: str
) -> dict[str, str]:
    """Return the values of the table's columns, by name in backticks, as SQL text over the query's
    alias.

    Raises
    ------
    DELTA_INSERT_COLUMN_ARITY_MISMATCH
        The query has more or fewer columns than the table.
    DELTA_METADATA_MISMATCH
        It has a column by name that the table does not have.
    """
    fields, given = {name_key(f.name): f for f in snapshot.schema.fields}, rows.schema.fields
    names = [field.name for field in given]
    if not insertion.by_name:
        names = _all_names(given, snapshot.schema.names, snapshot, insertion)
    values = {}
    for name, field in zip(names, given, strict=True):
        wanted, value = fields.get(name_key(name)), f"{quoted(alias)}.{quoted(field.name)}"
        if wanted is not None:
            value = _value(value, field.dataType, wanted, by_name=insertion.by_name)
        elif not insertion.evolves:
            raise _no_column(name, snapshot)
        values[quoted(name)] = value
    return values


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
