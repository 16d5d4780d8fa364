"""The clauses of a MERGE resolved for a table and a source; no Spark.

PROTOCOL.md#change-metadata, PROTOCOL.md#default-columns, PROTOCOL.md#generated-columns,
PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from sparkdelta.base.protocol.protocol_upgrades import GENERATION_EXPRESSION
from sparkdelta.base.schema.column_ids import MAX_COLUMN_ID
from sparkdelta.base.schema.declared_columns import identity_metadata
from sparkdelta.exceptions import DeltaError, InvalidColumnNameError
from sparkdelta.operations.merge.merge_clauses import (
    Clause,
    MergeClause,
    ResolvedMerge,
    resolve_clauses,
    source_column,
)
from sparkdelta.table.definition.definition_change import (
    DefinitionChange,
    TableDescription,
    created_table,
)
from sparkdelta.table.rows.assigned_row_frames import Assigned, AssignedFields, Assignments, Origin
from tests.support.errors import raises

INT, LONG, TEXT = IntegerType(), LongType(), StringType()
UPDATE, INSERT = MergeClause(Clause.MATCHED_UPDATE), MergeClause(Clause.NOT_MATCHED_INSERT)
DELETE = MergeClause(Clause.MATCHED_DELETE, "t.a > 1")
KEPT, FILLED = Origin.KEPT, Origin.FILLED


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in types.items()])


IDA = columns(id=INT, a=INT)
NESTED = columns(id=INT, st=columns(x=INT, y=INT))


def table(schema: StructType, properties: Mapping[str, str] | None = None) -> DefinitionChange:
    description = TableDescription(columns=tuple(schema), properties=properties or {})
    after = created_table(description).after
    return DefinitionChange(after, after)


def resolve(
    clauses: Sequence[MergeClause],
    target: StructType | DefinitionChange,
    source: StructType,
    *,
    evolves: bool = False,
) -> ResolvedMerge:
    change = table(target) if isinstance(target, StructType) else target
    return resolve_clauses(clauses, change, source, target_alias="t", evolves=evolves, path="p")


def values(merge: ResolvedMerge, clause: int = 0) -> Assignments:
    found = merge.clauses[clause].assignments
    assert found is not None
    return found


def update(**given: str) -> MergeClause:
    names = {name.replace("__", "."): value for name, value in given.items()}
    return MergeClause(Clause.MATCHED_UPDATE, None, names)


def insert(**given: str) -> MergeClause:
    return MergeClause(Clause.NOT_MATCHED_INSERT, None, update(**given).values)


def star(name: str, *, keeps_fields: bool = False) -> Assigned:
    return Assigned(source_column(name), keeps_fields=keeps_fields)


def test_stars_without_evolution_take_the_columns_of_the_table() -> None:
    """Columns of stars are matched in any case; other columns of the source are left out."""
    merge = resolve([DELETE, UPDATE, INSERT], IDA, columns(A=INT, ID=INT, more=INT))
    assert values(merge, 1) == values(merge, 2) == {"id": star("ID"), "a": star("A")}
    assert merge.clauses[0].assignments is None
    assert merge.change.before is merge.change.after


@pytest.mark.parametrize("clause", [UPDATE, INSERT])
def test_stars_without_evolution_need_all_columns(clause: MergeClause) -> None:
    generated = StructField("g", INT, True, {GENERATION_EXPRESSION: "a * 2"})
    for target in (columns(id=INT, a=INT, b=INT), StructType([*IDA, generated])):
        with raises("DELTA_MERGE_UNRESOLVED_EXPRESSION") as raised:
            resolve([clause], target, IDA)
        assert raised.value.column == target.names[2]
        assert raised.value.clause == str(clause.kind)
    with raises("DELTA_DUPLICATE_COLUMNS_FOUND"):
        resolve([clause], IDA, StructType([*IDA, StructField("A", INT)]))


def test_stars_with_evolution_take_the_columns_of_the_source() -> None:
    generated = StructField("g", INT, True, {GENERATION_EXPRESSION: "a * 2"})
    target = StructType([*columns(id=INT, a=INT, b=INT), generated])
    merge = resolve([UPDATE, INSERT], target, columns(more=TEXT, id=INT, a=LONG), evolves=True)
    assert merge.change.after.schema == StructType([*target, StructField("more", TEXT)])
    given = {name: star(name, keeps_fields=True) for name in ("id", "a", "more")}
    assert values(merge) == {**given, "b": KEPT, "g": FILLED}
    given = {name: star(name) for name in given}
    assert values(merge, 1) == {**given, "b": FILLED, "g": FILLED}
    assert merge.evolves


def test_new_columns_are_those_that_clauses_assign() -> None:
    """WHEN NOT MATCHED BY SOURCE clauses add none; types are those of the source's columns."""
    source = columns(id=INT, c=TEXT, d=INT, e=INT)
    by_source = MergeClause(Clause.NOT_MATCHED_BY_SOURCE_UPDATE, None, {"a": "1"})
    clauses = [update(t__c="5"), insert(id="s.id", D="s.d"), by_source]
    merge = resolve(clauses, IDA, source, evolves=True)
    assert merge.change.after.schema == columns(id=INT, a=INT, c=TEXT, d=INT)
    assert values(merge) == {"id": KEPT, "a": KEPT, "c": Assigned("5"), "d": KEPT}
    inserted = {"id": Assigned("s.id"), "a": FILLED, "c": FILLED, "d": Assigned("s.d")}
    assert values(merge, 1) == inserted
    assert values(merge, 2) == {"id": KEPT, "a": Assigned("1"), "c": KEPT, "d": KEPT}
    unknown = MergeClause(Clause.NOT_MATCHED_BY_SOURCE_UPDATE, None, {"c": "1"})
    for clause in (unknown, update(zz="1"), insert(zz="1")):
        with raises("DELTA_MERGE_UNRESOLVED_EXPRESSION"):
            resolve([clause], IDA, source, evolves=True)


def test_new_fields_of_structs() -> None:
    """A name that is assigned takes all its fields along, that of a field only this one."""
    source = columns(id=INT, st=columns(x=INT, Z=INT, w=columns(v=INT)), other=INT)
    for clause, added in [
        (update(st="s.st"), columns(Z=INT, w=columns(v=INT))),
        (update(st__z="s.st.z"), columns(Z=INT)),
        (update(st__w__v="1"), columns(w=columns(v=INT))),
        (update(st="s.other_struct", id="1"), columns(Z=INT, w=columns(v=INT))),
        (update(id="1"), columns()),
        (DELETE, columns()),
    ]:
        merge = resolve([clause], NESTED, source, evolves=True)
        found = merge.change.after.schema
        assert found == columns(id=INT, st=StructType([*columns(x=INT, y=INT), *added]))
    merge = resolve([update(st__z="1")], NESTED, source, evolves=True)
    assert values(merge)["st"] == AssignedFields({"Z": Assigned("1")})
    array = columns(l=ArrayType(columns(x=INT)))
    merge = resolve([UPDATE], array, columns(l=ArrayType(columns(y=INT))), evolves=True)
    assert merge.change.after.schema == columns(l=ArrayType(columns(x=INT, y=INT)))
    with raises("DELTA_MISSING_SET_COLUMN"):
        resolve([update(st__z="1")], NESTED, source)


def test_types_are_widened_by_columns_of_the_same_name_alone() -> None:
    """PROTOCOL.md#type-widening: where the table allows it, and the schema evolves."""
    widening = table(IDA, {"delta.enableTypeWidening": "true"})
    source = columns(id=INT, a=LONG, q=LONG)
    for clause, target, data_type in [
        (UPDATE, widening, LONG),
        (update(a="s.a"), widening, LONG),
        (update(id="s.q"), widening, INT),
        (UPDATE, table(IDA), INT),
    ]:
        after = resolve([clause], target, source, evolves=True).change.after
        assert after.schema["a"].dataType == data_type
        assert after.schema["id"].dataType == INT
    assert resolve([UPDATE], widening, source).change.after is widening.after


def test_new_columns_get_ids() -> None:
    """PROTOCOL.md#writer-requirements-for-column-mapping"""
    mapped = table(IDA, {"delta.columnMapping.mode": "name"})
    merge = resolve([UPDATE], mapped, StructType([*IDA, StructField("b c", INT)]), evolves=True)
    assert merge.change.after.schema["b c"].metadata["delta.columnMapping.id"] == 3
    assert merge.change.after.properties[MAX_COLUMN_ID] == "3"
    with pytest.raises(InvalidColumnNameError):
        resolve([UPDATE], IDA, StructType([*IDA, StructField("b c", INT)]), evolves=True)


def test_columns_without_a_type() -> None:
    """Null fits any column of the table, and makes no new one."""
    source = columns(id=INT, a=NullType(), st=columns(x=NullType()))
    target = columns(id=INT, a=INT, st=columns(x=INT))
    merge = resolve([UPDATE], target, source, evolves=True)
    assert merge.change.after.schema == target
    for new in (columns(c=NullType()), columns(st=columns(c=NullType()))):
        with raises("DELTA_MERGE_ADD_VOID_COLUMN"):
            resolve([UPDATE], target, new, evolves=True)


@pytest.mark.parametrize("by_default", [True, False])
def test_identity_columns(by_default: bool) -> None:
    """PROTOCOL.md#identity-columns: never updated, and inserted only if BY DEFAULT."""
    metadata = identity_metadata(1, 1, allows_explicit_values=by_default)
    target = StructType([*columns(id=INT), StructField("k", LONG, True, metadata)])
    source = columns(id=INT, k=LONG)
    for clause in (UPDATE, update(k="1")):
        with raises("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
            resolve([clause], target, source)
    for clause, value in ((INSERT, star("k")), (insert(k="1"), Assigned("1"))):
        if by_default:
            assert values(resolve([clause], target, source))["k"] == value
        else:
            with raises("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"):
                resolve([clause], target, source)
    assert values(resolve([insert(k="default")], target, source))["k"] is FILLED
    merge = resolve([UPDATE, INSERT], target, columns(id=INT), evolves=True)
    assert (values(merge)["k"], values(merge, 1)["k"]) == (KEPT, FILLED)


@pytest.mark.parametrize(
    ("clauses", "error"),
    [
        ([], "DELTA_MERGE_MISSING_WHEN"),
        ([UPDATE, DELETE], "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        ([INSERT, UPDATE, INSERT], "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION"),
        (
            [MergeClause(Clause.NOT_MATCHED_BY_SOURCE_DELETE)] * 2,
            "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        ),
        ([update(a="1", A="2")], "DELTA_CONFLICT_SET_COLUMN"),
        ([update(c="1")], "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        ([update(s__a="1")], "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        ([insert(a="1", A="2")], "DELTA_DUPLICATE_COLUMNS_ON_INSERT"),
        ([insert(st__x="1")], "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION"),
        ([insert(c="1")], "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ],
)
def test_wrong_input_is_refused(clauses: list[MergeClause], error: str | type[DeltaError]) -> None:
    with raises(error):
        resolve(clauses, columns(id=INT, a=INT, st=columns(x=INT)), IDA)


def test_the_last_clause_of_each_kind_needs_no_condition() -> None:
    conditions: list[Any] = ["a = 1", None]
    kinds = [Clause.MATCHED_DELETE, Clause.NOT_MATCHED_INSERT, Clause.NOT_MATCHED_BY_SOURCE_DELETE]
    clauses = [MergeClause(kind, each) for each in conditions for kind in kinds]
    merge = resolve(clauses, IDA, IDA)
    assert [each.kind for each in merge.clauses] == kinds * 2
    assert [each.condition for each in merge.clauses] == ["a = 1"] * 3 + [None] * 3
