"""The clauses of a MERGE: as the user gives them, and with a value for each column of the table.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#default-columns, PROTOCOL.md#generated-columns,
PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from functools import partial

from pyspark.sql import Column
from pyspark.sql.types import NullType, StructField, StructType

from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.schema.schema_merging import merged_schema
from sparkdelta.base.schema.table_constraints import RowRules, row_rules
from sparkdelta.base.schema.table_schema import RESERVED_PREFIX, field_named, quoted
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.definition.schema_changes import with_merged_schema
from sparkdelta.table.rows.assigned_row_frames import Assigned, Assignments, ColumnValue, Origin
from sparkdelta.table.rows.assignments import column_path, is_default, update_assignments

SOURCE = "__sparkdelta_source__"


class Clause(Enum):
    """The kind of a clause: the rows that it applies to, and the action on them."""

    MATCHED_UPDATE = ("WHEN MATCHED", "UPDATE")
    MATCHED_DELETE = ("WHEN MATCHED", "DELETE")
    NOT_MATCHED_INSERT = ("WHEN NOT MATCHED", "INSERT")
    NOT_MATCHED_BY_SOURCE_UPDATE = ("WHEN NOT MATCHED BY SOURCE", "UPDATE")
    NOT_MATCHED_BY_SOURCE_DELETE = ("WHEN NOT MATCHED BY SOURCE", "DELETE")

    def __init__(self, rows: str, action: str) -> None:
        self.rows = rows
        self.action = action

    def __str__(self) -> str:
        return f"{self.rows} {self.action}"

    @property
    def is_matched(self) -> bool:
        """True if it applies to rows of the target that match one of the source."""
        return self.rows == "WHEN MATCHED"

    @property
    def is_not_matched(self) -> bool:
        """True if it applies to rows of the source that match none of the target."""
        return self is Clause.NOT_MATCHED_INSERT

    @property
    def is_not_matched_by_source(self) -> bool:
        """True if it applies to rows of the target that match none of the source."""
        return self.rows == "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A clause as the user gives it.

    Attributes
    ----------
    values
        The values that it assigns, by the names of columns; None for all columns of the source, and
        for a delete.
    """

    kind: Clause
    condition: str | Column | None = None
    values: Mapping[str, str | Column] | None = None


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """A clause with a value for each column of the table.

    Attributes
    ----------
    assignments
        For the columns of the table after the merge; expressions refer to target and source under
        their aliases, and to `source_column`. None for a delete.
    """

    kind: Clause
    condition: str | Column | None
    assignments: Assignments | None


@dataclass(frozen=True, slots=True)
class ResolvedMerge:
    """The clauses of a merge and the table that it leaves.

    Attributes
    ----------
    clauses
        In the user's order.
    evolves
        True if the schema may evolve, see `can_convert`.
    """

    change: DefinitionChange
    clauses: tuple[ResolvedClause, ...]
    evolves: bool

    def of_kinds(self, *kinds: Clause) -> dict[int, ResolvedClause]:
        """Return the clauses of these kinds by their index."""
        return {n: clause for n, clause in enumerate(self.clauses) if clause.kind in kinds}


def source_column(name: str) -> str:
    """Return the SQL text of a column of the source, whatever the names of the target's are."""
    return quoted(SOURCE + name)


def resolve_clauses(
    clauses: Sequence[MergeClause],
    table: DefinitionChange,
    source: StructType,
    *,
    target_alias: str | None,
    evolves: bool,
    path: str,
) -> ResolvedMerge:
    """Return the clauses with a value for each column, and the table with its new columns.

    Parameters
    ----------
    table
        The table as it is, or as an earlier part of the operation leaves it.
    source
        The columns of the source.
    target_alias
        May precede the names of assigned columns.
    evolves
        True if the table gets the columns and fields that only the source has, if a clause assigns
        them.
    """
    _check_order(clauses, path)
    change = table
    if evolves:
        new = _assigned_fields(clauses, table.after.schema, source, target_alias)
        change = with_merged_schema(table, new, path=path) if new.fields else table
    after = change.after
    resolution = _Resolution(
        after.schema,
        source,
        row_rules(after.schema, after.protocol, after.properties, path=path),
        target_alias,
        evolves,
    )
    resolved = tuple(
        ResolvedClause(clause.kind, clause.condition, resolution.assignments(clause))
        for clause in clauses
    )
    return ResolvedMerge(change, resolved, evolves)


_NON_LAST = {
    "WHEN MATCHED": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "WHEN NOT MATCHED": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "WHEN NOT MATCHED BY SOURCE": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


def _check_order(clauses: Sequence[MergeClause], path: str) -> None:
    if not clauses:
        raise DeltaError.of("DELTA_MERGE_MISSING_WHEN", path=path)
    for rows, error in _NON_LAST.items():
        same = [clause for clause in clauses if clause.kind.rows == rows]
        for number, clause in enumerate(same[:-1], start=1):
            if clause.condition is None:
                raise DeltaError.of(error, number=number)


def _assigned_fields(
    clauses: Sequence[MergeClause], table: StructType, source: StructType, alias: str | None
) -> StructType:
    """Return the columns and fields of the source whose names clauses assign.

    WHEN NOT MATCHED BY SOURCE clauses add none.
    """
    known = merged_schema(table, source)
    paths: set[ColumnPath] = set()
    for clause in clauses:
        if clause.kind.action == "DELETE" or clause.kind.is_not_matched_by_source:
            continue
        if clause.values is None:
            return _fields_of(source, table, None)
        for name in clause.values:
            path = column_path(known, name, alias=alias, unknown=partial(unresolved, clause.kind))
            paths.add(tuple(name_key(part) for part in path))
    return _fields_of(source, table, paths)


def _fields_of(
    struct: StructType, table: StructType, paths: Set[ColumnPath] | None, base: ColumnPath = ()
) -> StructType:
    """Return the fields of these paths with all that is inside, or all fields; without fields of
    type VOID, whose values the table's columns can have.
    """
    fields = []
    for field in struct.fields:
        path = (*base, name_key(field.name))
        own, within = field_named(table, field.name), None if paths and path in paths else paths
        if isinstance(field.dataType, StructType):
            known = own.dataType if own is not None else None
            known = known if isinstance(known, StructType) else StructType()
            inner = _fields_of(field.dataType, known, within, path)
            if inner.fields:
                fields.append(StructField(field.name, inner, field.nullable, field.metadata))
        elif within is None and not isinstance(field.dataType, NullType):
            fields.append(field)
        elif within is None and own is None:
            raise DeltaError.of("DELTA_MERGE_ADD_VOID_COLUMN", column=".".join((*base, field.name)))
    return StructType(fields)


@dataclass(frozen=True, slots=True)
class _Resolution:
    """Values for the columns of a table after a merge.

    Attributes
    ----------
    alias
        Of the table.
    """

    schema: StructType
    source: StructType
    rules: RowRules
    alias: str | None
    evolves: bool

    def assignments(self, clause: MergeClause) -> Assignments | None:
        if clause.kind.action == "DELETE":
            return None
        if clause.values is None:
            return {f.name: self._star_value(f.name, clause.kind) for f in self.schema.fields}
        if clause.kind is Clause.NOT_MATCHED_INSERT:
            return self._inserted(clause.values)
        return update_assignments(
            self.schema,
            clause.values,
            self.rules,
            alias=self.alias,
            unknown=partial(unresolved, clause.kind),
        )

    def _star_value(self, name: str, kind: Clause) -> ColumnValue:
        given = [own for own in self.source.names if name_key(own) == name_key(name)]
        inserts = kind is Clause.NOT_MATCHED_INSERT
        if len(given) > 1:
            raise DeltaError.of("DELTA_DUPLICATE_COLUMNS_FOUND", columns=given)
        if given:
            self._check_identity(name, inserts=inserts)
            keeps_fields = self.evolves and not inserts
            return Assigned(source_column(given[0]), keeps_fields=keeps_fields)
        if not self.evolves:
            raise unresolved(kind, name, self.source.names)
        return Origin.FILLED if inserts or name in self.rules.generated else Origin.KEPT

    def _inserted(self, given: Mapping[str, str | Column]) -> Assignments:
        values: dict[str, ColumnValue] = {}
        for text, value in given.items():
            unknown = partial(unresolved, Clause.NOT_MATCHED_INSERT)
            name, *field = column_path(self.schema, text, alias=self.alias, unknown=unknown)
            if field:
                raise DeltaError.of(
                    "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION", column=".".join((name, *field))
                )
            if name in values:
                raise DeltaError.of("DELTA_DUPLICATE_COLUMNS_ON_INSERT", columns=[name])
            if is_default(value):
                values[name] = Origin.FILLED
            else:
                self._check_identity(name, inserts=True)
                values[name] = Assigned(value)
        return {name: values.get(name, Origin.FILLED) for name in self.schema.names}

    def _check_identity(self, name: str, *, inserts: bool) -> None:
        """Refuse a value for an identity column that must generate its own."""
        identity = self.rules.identities.get(name)
        if identity is None:
            return
        if not inserts:
            raise DeltaError.of("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", column=name)
        if not identity.allows_explicit_values:
            raise DeltaError.of("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", column=name)


def unresolved(clause: object, name: str, available: Sequence[str]) -> DeltaError:
    """Return the error for a name that is none of the columns that a part of the merge can use."""
    visible = [column for column in available if not column.startswith(RESERVED_PREFIX)]
    return DeltaError.of(
        "DELTA_MERGE_UNRESOLVED_EXPRESSION", column=name, clause=str(clause), available=visible
    )
