"""The statement that replaces the columns of a table.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#column-mapping, PROTOCOL.md#type-widening
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.protocol.protocol_upgrades import (
    CURRENT_DEFAULT,
    FIELD_FEATURES,
    IDENTITY_START,
)
from sparkdelta.base.schema.column_alterations import path_text
from sparkdelta.base.schema.declared_columns import bounded_text, declared_type
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR
from sparkdelta.base.schema.type_folds import parts_together, with_parts
from sparkdelta.base.schema.written_schema import check_columns
from sparkdelta.exceptions import DeltaError, UnsupportedColumnChangeError
from sparkdelta.operations.alter.altered_columns import (
    ColumnChange,
    altered,
    changed_field,
    checked_drop,
    new_field,
    retyped,
    shown_field,
)
from sparkdelta.table.definition.alteration import Alteration
from sparkdelta.table.definition.rule_expressions import check_default
from sparkdelta.table.snapshot.snapshot import Snapshot

_REFUSED = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
_GENERATION = FIELD_FEATURES.keys() - {CURRENT_DEFAULT}


def replace_columns(snapshot: Snapshot, columns: Sequence[StructField]) -> Alteration:
    """Return the alteration that replaces columns and fields; no data file is written.

    See `sparkdelta.api.alter.AlterTable.replace_columns`.
    """
    table = snapshot.configuration
    if any(IDENTITY_START in (column.metadata or {}) for column in table.schema.fields):
        raise DeltaError.of(
            "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED", path=snapshot.path
        )
    try:
        return _replaced(snapshot, columns)
    except DeltaError as error:
        if error.error_class == _REFUSED:
            error.named(
                _REFUSED,
                details=error.problem,
                oldSchema=table.schema.treeString(),
                newSchema=StructType(list(columns)).treeString(),
            )
        raise


def _replaced(snapshot: Snapshot, columns: Sequence[StructField]) -> Alteration:
    table = snapshot.configuration
    replacement = _Replacement(any_names=table.is_mapped)
    schema = replacement.struct(table.schema, StructType(list(columns)), ())
    for declared, column in zip(columns, schema.fields, strict=True):
        if CURRENT_DEFAULT in (declared.metadata or {}):
            check_default(snapshot.log.spark, column)
    if replacement.dropped and not table.is_mapped:
        names = ", ".join(map(path_text, replacement.dropped))
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
            problem=f"{names} would be dropped, which needs column mapping; enable it first, "
            "set_properties({'delta.columnMapping.mode': 'name'})",
        )
    properties = checked_drop(snapshot, replacement.dropped)
    for path, data_type in replacement.retyped:
        try:
            schema = retyped(snapshot, schema, path, data_type)
        except UnsupportedColumnChangeError as error:
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                problem=f"{error.column} is {error.before} and would be {error.after}; "
                f"{error.problem}",
            ) from error
    shown = {"columns": [shown_field((column.name,), column) for column in columns]}
    return altered(snapshot, schema, "REPLACE COLUMNS", shown, None, properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replacement:
    """The dropped and retyped columns of a replacement, collected on the way.

    Attributes
    ----------
    any_names
        True if new columns may have any characters in their names.
    retyped
        The paths of columns with their declared types.
    """

    any_names: bool
    dropped: list[ColumnPath] = field(default_factory=list)
    retyped: list[tuple[ColumnPath, DataType]] = field(default_factory=list)

    def struct(self, before: StructType, after: StructType, path: ColumnPath) -> StructType:
        """Reorder a struct's fields like `after`, keeping their types."""
        names = [name_key(name) for name in after.names]
        if repeated := tuple(n for n in after.names if names.count(name_key(n)) > 1):
            raise DeltaError.of("DELTA_DUPLICATE_COLUMNS_FOUND", columns=repeated)
        rest = {name_key(each.name): each for each in before.fields}
        fields, new = [], []
        for declared in map(bounded_text, after.fields):
            existing = rest.pop(name_key(declared.name), None)
            if existing is None:
                new.append(path_text((*path, declared.name)))
                fields.append(self._new(declared, new[-1]))
            else:
                fields.append(self._field(existing, declared, (*path, existing.name)))
        dropped = [(*path, each.name) for each in rest.values()]
        if new and dropped:
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                problem=f"{', '.join(map(path_text, dropped))} would be dropped and "
                f"{', '.join(new)} added, which could be meant as a renaming; rename columns, or "
                "drop some and add others in a statement each",
            )
        self.dropped.extend(dropped)
        return StructType(fields)

    def _new(self, declared: StructField, shown: str) -> StructField:
        if not declared.nullable:
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                problem=f"{shown} is NOT NULL, but existing rows have no value for a new column",
            )
        new = new_field(declared)
        check_columns(StructType([new]), any_names=self.any_names)
        return new

    def _field(self, existing: StructField, declared: StructField, path: ColumnPath) -> StructField:
        if existing.nullable and not declared.nullable:
            raise _may_be_null(path)
        metadata, new_metadata = existing.metadata or {}, declared.metadata or {}
        if any(new_metadata[key] != metadata.get(key) for key in _GENERATION & new_metadata.keys()):
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                problem=f"{path_text(path)} would be generated otherwise",
            )
        bound = new_metadata.get(CHAR_OR_VARCHAR)
        if declared.dataType == existing.dataType and bound != metadata.get(CHAR_OR_VARCHAR):
            self.retyped.append(
                (path, declared.dataType if bound is None else declared_type(bound))
            )
        data_type = self._type(existing.dataType, declared.dataType, path)
        change = ColumnChange(
            comment=new_metadata.get("comment"),
            default=new_metadata.get(CURRENT_DEFAULT),
            drop_not_null=declared.nullable,
        )
        return changed_field(
            StructField(existing.name, data_type, existing.nullable, existing.metadata), change
        )

    def _type(self, before: DataType, after: DataType, path: ColumnPath) -> DataType:
        if isinstance(before, StructType) and isinstance(after, StructType):
            return self.struct(before, after, path)
        pairs = parts_together(before, after)
        if pairs:
            if _holds_null(before) and not _holds_null(after):
                raise _may_be_null(path)
            return with_parts(before, [self._type(o, a, (*path, n)) for n, o, a in pairs])
        if before != after:
            self.retyped.append((path, after))
        return before


def _holds_null(data_type: DataType) -> bool:
    return (isinstance(data_type, ArrayType) and data_type.containsNull) or (
        isinstance(data_type, MapType) and data_type.valueContainsNull
    )


def _may_be_null(path: ColumnPath) -> DeltaError:
    return DeltaError.of(
        "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        problem=f"{path_text(path)} would be NOT NULL, but existing rows may have nulls in it",
    )
