"""`DeltaTableBuilder` with the method names of delta-spark.

References
----------
PROTOCOL.md#change-metadata
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.protocol.protocol_upgrades import GENERATION_EXPRESSION
from sparkdelta.base.schema.declared_columns import bounded_text, declared_type, identity_metadata
from sparkdelta.base.spark.session_settings import follow_settings
from sparkdelta.exceptions import ArgumentTypeError, InvalidArgumentError
from sparkdelta.operations.upkeep.catalog_entries import named
from sparkdelta.operations.write.create_table import Creation, create_table
from sparkdelta.table.definition.definition_change import TableDescription
from sparkdelta.table.listing.table_names import NewTable, table_name_in

Table = TypeVar("Table")


@dataclass
class IdentityGenerator:
    """The first value of an identity column and the step between values."""

    start: int = 1
    step: int = 1


class DeltaTableBuilder(Generic[Table]):
    """The builder of a table's definition; nothing is executed before `execute`.

    Created by `DeltaTable.create`, `createIfNotExists`, `replace` and `createOrReplace`.
    """

    def __init__(
        self,
        spark: SparkSession,
        creation: Creation,
        opened: Callable[[SparkSession, str], Table],
    ) -> None:
        self._spark = spark
        self._creation = creation
        self._opened = opened
        self._location: str | None = None
        self._name: Sequence[str] | None = None
        self._table = TableDescription(columns=())

    def tableName(self, identifier: str) -> DeltaTableBuilder[Table]:
        """Set the table's name in the session catalog, of a classic session; or its path, as
        ``delta.`/path` ``. Without a `location`, the database's is used.
        """
        self._name = table_name_in(self._spark, identifier)
        return self

    def location(self, location: str) -> DeltaTableBuilder[Table]:
        """Set the table's root, as any path that Spark can write to."""
        self._location = _text("location", location)
        return self

    def comment(self, comment: str) -> DeltaTableBuilder[Table]:
        """Set the table's description."""
        self._table = replace(self._table, comment=_text("comment", comment))
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder[Table]:
        """Add a column.

        Parameters
        ----------
        dataType
            A type, or its SQL name.
        generatedAlwaysAs
            A SQL expression over other columns, or an identity column for which rows must not
            provide values.
        generatedByDefaultAs
            An identity column for which rows may provide values.
        """
        metadata: dict[str, object] = {}
        if comment is not None:
            metadata["comment"] = _text("comment", comment)
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise _invalid("generatedByDefaultAs", "it cannot be combined with generatedAlwaysAs")
        identity, argument = generatedByDefaultAs, "generatedByDefaultAs"
        if isinstance(generatedAlwaysAs, str):
            metadata[GENERATION_EXPRESSION] = generatedAlwaysAs
        elif generatedAlwaysAs is not None:
            identity, argument = generatedAlwaysAs, "generatedAlwaysAs"
        if identity is not None:
            if not isinstance(identity, IdentityGenerator):
                raise _mistyped(argument, f"{identity!r} is not an IdentityGenerator")
            if identity.step == 0:
                raise _invalid(argument, "the step must not be 0")
            allows_explicit_values = generatedByDefaultAs is not None
            metadata |= identity_metadata(
                identity.start, identity.step, allows_explicit_values=allows_explicit_values
            )
        if not isinstance(dataType, str | DataType):
            raise _mistyped("dataType", f"{dataType!r} is not a type")
        if not isinstance(nullable, bool):
            raise _mistyped("nullable", f"{nullable!r} is neither True nor False")
        return self._with_columns(
            [StructField(_text("colName", colName), declared_type(dataType), nullable, metadata)]
        )

    def addColumns(self, cols: StructType | list[StructField]) -> DeltaTableBuilder[Table]:
        """Add columns with their metadata."""
        fields = cols.fields if isinstance(cols, StructType) else cols
        if not isinstance(fields, list) or not all(isinstance(f, StructField) for f in fields):
            raise _mistyped("cols", "it must be a StructType or a list of StructFields")
        return self._with_columns(fields)

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[Table]:
        """Set the partition columns, as separate arguments or one list."""
        self._table = replace(self._table, partition_by=_names("partitionedBy", cols))
        return self

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[Table]:
        """Set the clustering columns, as separate arguments or one list; at most four."""
        self._table = replace(self._table, clustering_columns=_names("clusterBy", cols))
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder[Table]:
        """Set a table property."""
        more = {_text("key", key): _text("value", value)}
        self._table = replace(self._table, properties={**self._table.properties, **more})
        return self

    def execute(self) -> Table:
        """Create or replace the table and return it. `createIfNotExists` leaves an existing table
        unchanged.

        Raises
        ------
        DeltaError
            Nothing was committed; see `sparkdelta.exceptions`.
        """
        with follow_settings(self._spark):
            table = self._new_table()
            described = replace(self._table, is_managed=table.is_managed)
            with named(table, self._spark, self._table.comment):
                create_table(self._spark, table.path, described, self._creation)
        return self._opened(self._spark, table.path)

    def _new_table(self) -> NewTable:
        if self._name is not None:
            return NewTable.of(
                self._spark,
                self._name,
                self._location,
                is_optional=self._creation is Creation.CREATE_IF_NOT_EXISTS,
                replaces=self._creation in (Creation.REPLACE, Creation.CREATE_OR_REPLACE),
            )
        if self._location is None:
            raise _invalid("location", "a location or a table name is required")
        return NewTable(self._location)

    def _with_columns(self, columns: Iterable[StructField]) -> DeltaTableBuilder[Table]:
        more = map(bounded_text, columns)
        self._table = replace(self._table, columns=(*self._table.columns, *more))
        return self


def _names(argument: str, given: tuple[str | list[str] | tuple[str, ...], ...]) -> tuple[str, ...]:
    one = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
    names = tuple(name for name in one if isinstance(name, str))
    if len(names) != len(one):
        raise _mistyped(argument, "it must be a list of column names")
    return names


def _text(argument: str, given: str) -> str:
    if not isinstance(given, str):
        raise _mistyped(argument, f"{given!r} is not text")
    return given


def _mistyped(argument: str, problem: str) -> ArgumentTypeError:
    return ArgumentTypeError(argument=argument, problem=problem)


def _invalid(argument: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(argument=argument, problem=problem)
