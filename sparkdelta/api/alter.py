"""Public: the statements of `ALTER TABLE`, as methods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.protocol.protocol_upgrades import CURRENT_DEFAULT
from sparkdelta.base.schema.column_alterations import Position
from sparkdelta.base.schema.declared_columns import declared_type
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.alter.alter_table import alter
from sparkdelta.operations.alter.altered_clustering import cluster_by
from sparkdelta.operations.alter.altered_columns import (
    ColumnChange,
    NewColumn,
    add_columns,
    change_column,
    column_path,
    drop_columns,
    rename_column,
)
from sparkdelta.operations.alter.altered_constraints import add_constraint, drop_constraint
from sparkdelta.operations.alter.altered_identity import sync_identity
from sparkdelta.operations.alter.altered_properties import set_properties, unset_properties
from sparkdelta.operations.alter.replaced_columns import replace_columns
from sparkdelta.table.definition.alteration import Alteration
from sparkdelta.table.snapshot.snapshot import Snapshot


def alter_table(spark: SparkSession, path: str) -> AlterTable:
    """Return the statements that alter the table at a path.

    Examples
    --------
    >>> alter_table(spark, "/data/people").set_properties(  # doctest: +SKIP
    ...     {"delta.columnMapping.mode": "name"}
    ... )

    References
    ----------
    PROTOCOL.md#change-metadata
    """
    return AlterTable(spark, path)


class AlterTable:
    """Statements that alter a table; made by `alter_table`.

    Each method commits one version at once, none if the table is so already, and returns the same
    object, for the next statement. Files that must be written first are committed before, in
    versions of their own. A statement that is refused changes nothing.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path

    def __repr__(self) -> str:
        return f"AlterTable({self._path!r})"

    def set_properties(self, properties: Mapping[str, str]) -> AlterTable:
        """Set table properties, and add the table features that they need to the protocol.

        On a table with rows, ``delta.columnMapping.mode`` can become ``name``, and no file is
        written; if it becomes ``none``, all files are written again first. Before
        ``delta.enableRowTracking`` becomes true, files without row ids get them, in commits that
        conflict with nothing that only appends.

        Raises
        ------
        DELTA_UNKNOWN_CONFIGURATION, InvalidArgumentError, DELTA_ADD_CONSTRAINTS,
        DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED
            A property cannot be set, or not to this value.
        DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
        DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE,
        DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING,
        DELTA_ICEBERG_COMPAT_VIOLATION, DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS
            The table as it is does not allow it.
        MetadataChangedException, ProtocolChangedException
            Another commit altered the table.
        ConcurrentAppendException, ConcurrentDeleteReadException
            Column mapping is removed, and another commit changed files.

        References
        ----------
        PROTOCOL.md#table-features-for-new-and-existing-tables
        """
        return self._altered(partial(set_properties, properties=dict(properties)))

    def unset_properties(self, names: Collection[str], *, if_exists: bool = False) -> AlterTable:
        """Remove table properties; the table features that they needed stay.

        Raises
        ------
        DELTA_UNSET_NON_EXISTENT_PROPERTY
            The table does not have a property, and `if_exists` is False.
        InvalidArgumentError, DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING
            Reading the table depends on the property.

        References
        ----------
        PROTOCOL.md#change-metadata
        """
        return self._altered(partial(unset_properties, names=names, if_exists=if_exists))

    def add_column(
        self,
        name: str,
        data_type: str | DataType,
        *,
        comment: str | None = None,
        default: str | None = None,
        first: bool = False,
        after: str | None = None,
    ) -> AlterTable:
        """Add a column, which is null in existing rows; the last one unless a position is given.

        Parameters
        ----------
        name
            With dots to add a field to a struct: ``address.zip``, ``items.element.price``.
        data_type
            A type, or its SQL name.
        default
            A SQL expression for the value in later rows that are written without one.
        first, after
            The position in the table or struct.

        Raises
        ------
        DELTA_DUPLICATE_COLUMNS_FOUND, ColumnNotFoundError, DELTA_ADD_COLUMN_PARENT_NOT_STRUCT
            There is a column of this name, or no place for it.
        InvalidArgumentError, InvalidColumnNameError, DELTA_UNSUPPORTED_DATA_TYPES,
        DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS
            No table can have such a column.

        References
        ----------
        PROTOCOL.md#change-metadata, PROTOCOL.md#default-columns
        """
        path, metadata = column_path(name), dict[str, object]()
        if comment is not None:
            metadata["comment"] = comment
        if default is not None:
            metadata[CURRENT_DEFAULT] = default
        field = StructField(path[-1], declared_type(data_type), True, metadata)
        new = NewColumn(field, path[:-1], _position(after, first=first))
        return self._altered(partial(add_columns, columns=(new,)))

    def add_columns(self, columns: str | StructType) -> AlterTable:
        """Add columns after the others, given as a schema or its SQL text; see `add_column`."""
        new = tuple(map(NewColumn, _columns(columns)))
        return self._altered(partial(add_columns, columns=new))

    def replace_columns(self, columns: str | StructType) -> AlterTable:
        """Replace the list of columns, in this order; no data file is written.

        Columns and nested fields of the same name, in any case, keep their data; their comments and
        defaults change if given. They lose NOT NULL unless it is given, and change their types as
        `change_column` allows. Other columns are added, or dropped (with column mapping).

        Parameters
        ----------
        columns
            A schema, or its SQL text.

        Raises
        ------
        DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP
            A column would be dropped without column mapping, become NOT NULL, or get a type that is
            not wider; or some are new and others missing, which could be a renaming.
        DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED
            The table has an identity column.
        DELTA_DUPLICATE_COLUMNS_FOUND, InvalidArgumentError, InvalidColumnNameError,
        DELTA_UNSUPPORTED_DATA_TYPES, DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS
            No table can have such columns.
        DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN, DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN
        DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE, DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE
            An expression of the table uses a column that would be dropped or get another type.

        References
        ----------
        PROTOCOL.md#change-metadata, PROTOCOL.md#column-mapping, PROTOCOL.md#type-widening
        """
        return self._altered(partial(replace_columns, columns=_columns(columns)))

    def rename_column(self, name: str, new_name: str) -> AlterTable:
        """Give another name to a column or field of a struct; needs column mapping.

        Parameters
        ----------
        new_name
            The name alone, also of a field of a struct. It may have any characters.

        Raises
        ------
        DELTA_UNSUPPORTED_RENAME_COLUMN
            The table has no column mapping.
        ColumnNotFoundError, DELTA_DUPLICATE_COLUMNS_FOUND
        DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE, DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE
            An expression of the table uses the column.

        References
        ----------
        PROTOCOL.md#column-mapping
        """
        return self._altered(partial(rename_column, path=column_path(name), name=new_name))

    def drop_columns(self, *names: str, if_exists: bool = False) -> AlterTable:
        """Drop columns or fields of structs; needs column mapping. Data files are not changed.

        Raises
        ------
        DELTA_UNSUPPORTED_DROP_COLUMN
            The table has no column mapping.
        ColumnNotFoundError
            There is no such column, and `if_exists` is False.
        DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN, DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN,
        DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA
        DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE, DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE
            An expression of the table uses a column.

        References
        ----------
        PROTOCOL.md#column-mapping
        """
        paths = tuple(map(column_path, names))
        return self._altered(partial(drop_columns, paths=paths, if_exists=if_exists))

    def change_column(
        self,
        name: str,
        data_type: str | DataType | None = None,
        *,
        comment: str | None = None,
        first: bool = False,
        after: str | None = None,
        drop_not_null: bool = False,
        default: str | None = None,
        drop_default: bool = False,
    ) -> AlterTable:
        """Change the type, comment, position, nullability or default of a column.

        Parameters
        ----------
        name
            With dots for fields of structs, and ``element``, ``key`` and ``value`` for the parts
            of arrays and maps, of which only the type can be changed.
        data_type
            A wider type, if the table has type widening; or a longer VARCHAR, or STRING.
        default
            A SQL expression for the value in later rows that are written without one.

        Raises
        ------
        ColumnNotFoundError
        UnsupportedColumnChangeError
            The type cannot become this one, or not in this table.
        InvalidArgumentError
            Nothing is to be changed, or the default does not fit.
        DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE, DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE
            The type is another one, and an expression of the table uses the column.

        References
        ----------
        PROTOCOL.md#type-widening, PROTOCOL.md#default-columns
        """
        change = ColumnChange(
            data_type=None if data_type is None else declared_type(data_type),
            comment=comment,
            position=_position(after, first=first),
            drop_not_null=drop_not_null,
            default=default,
            drop_default=drop_default,
        )
        return self._altered(partial(change_column, path=column_path(name), change=change))

    def sync_identity(self, name: str) -> AlterTable:
        """Move an identity column past its highest stored value.

        Values that were generated before are never generated again.

        Raises
        ------
        ColumnNotFoundError, DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN
            The column does not exist, or is not an identity column.
        ConcurrentAppendException, MetadataChangedException
            Another commit added rows.

        References
        ----------
        PROTOCOL.md#identity-columns
        """
        return self._altered(partial(sync_identity, path=column_path(name)))

    def add_constraint(self, name: str, expression: str) -> AlterTable:
        """Add a CHECK constraint: a SQL condition that must be true for every row.

        Executors check all rows of the table first. Rows that others append meanwhile are a
        conflict.

        Raises
        ------
        DELTA_CONSTRAINT_ALREADY_EXISTS
            A constraint has this name, in any case.
        DELTA_NEW_CHECK_CONSTRAINT_VIOLATION
            Existing rows violate it; the error has their number and examples.
        DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE, DELTA_NON_BOOLEAN_CHECK_CONSTRAINT,
        DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT,
        DELTA_AGGREGATE_IN_CHECK_CONSTRAINT, DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT,
        DELTA_UDF_IN_CHECK_CONSTRAINT
            The expression is not a condition on a row of the table.
        ConcurrentAppendException
            Another commit added rows.

        References
        ----------
        PROTOCOL.md#check-constraints
        """
        return self._altered(partial(add_constraint, name=name, expression=expression))

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> AlterTable:
        """Drop a CHECK constraint, given by its name in any case.

        Raises
        ------
        DELTA_CONSTRAINT_DOES_NOT_EXIST
            There is no such constraint, and `if_exists` is False.

        References
        ----------
        PROTOCOL.md#check-constraints
        """
        return self._altered(partial(drop_constraint, name=name, if_exists=if_exists))

    def cluster_by(self, *columns: str) -> AlterTable:
        """Change the columns that the table is clustered by, at most four; without any, none.

        Existing files stay as they are.

        Raises
        ------
        DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED
            The table is partitioned.
        ColumnNotFoundError, InvalidArgumentError
            The table cannot be clustered by these columns.

        References
        ----------
        PROTOCOL.md#clustered-table
        """
        return self._altered(partial(cluster_by, names=columns))

    def _altered(self, statement: Callable[[Snapshot], Alteration]) -> AlterTable:
        alter(self._spark, self._path, statement)
        return self


def _columns(columns: str | StructType) -> tuple[StructField, ...]:
    schema = DataType.fromDDL(columns) if isinstance(columns, str) else columns
    if not isinstance(schema, StructType) or not schema.fields:
        problem = f"{columns} is not a list of columns"
        raise InvalidArgumentError(argument="columns", problem=problem)
    return tuple(schema.fields)


def _position(after: str | None, *, first: bool) -> Position | None:
    if after is None:
        return Position() if first else None
    path = column_path(after)
    if first or len(path) > 1:
        problem = f"{after} must be the name of a column in the same struct, without first=True"
        raise InvalidArgumentError(argument="after", problem=problem)
    return Position(path[0])
