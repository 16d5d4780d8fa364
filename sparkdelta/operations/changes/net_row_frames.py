"""Net changes: the rows in which two versions differ, from the rows of differing files.

References
----------
PROTOCOL.md#row-tracking
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructField,
    StructType,
)

from sparkdelta.base.protocol.change_types import CHANGE_TYPE, ChangeType
from sparkdelta.base.schema.spatial_types import UNORDERED_TYPES
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.row_groups import grouped

KIND = "__sparkdelta_kind"
"""`ChangeType.INSERT` in rows of the later version, `ChangeType.DELETE` in the other rows."""

ROW_ID = "__sparkdelta_row_id"
COMPARED_BY = "sparkdelta.comparedBy"
"""Metadata key of CHANGE_TYPE with the way in which rows were compared: `row_id`, or `values` of
whole rows."""

_BEFORE, _AFTER, _COUNT = "__sparkdelta_before", "__sparkdelta_after", "__sparkdelta_count"


def changed_by_row_id(rows: DataFrame, fields: Iterable[StructField]) -> DataFrame:
    """Return the changed rows, if each row has an id that it keeps.

    `rows` have the fields, KIND and ROW_ID, and no id twice with one kind. The result has the
    fields and CHANGE_TYPE, with a pre- and a postimage of each row whose values differ.
    """
    fields = [*fields]
    row = f"struct({', '.join(quoted(field.name) for field in fields)})"
    sides = grouped(
        rows,
        [ROW_ID],
        _side(ChangeType.DELETE, row, _BEFORE),
        _side(ChangeType.INSERT, row, _AFTER),
    )
    before, after = quoted(_BEFORE), quoted(_AFTER)
    images = [
        f"struct({side} AS row, '{kind.value}' AS kind)"
        for side, kind in (
            (after, ChangeType.INSERT), (before, ChangeType.DELETE),
            (before, ChangeType.UPDATE_PREIMAGE), (after, ChangeType.UPDATE_POSTIMAGE),
        )
    ]  # fmt: skip
    row_type = StructType(fields)
    is_same = f"{_comparable(before, row_type)} <=> {_comparable(after, row_type)}"
    changes = (
        f"CASE WHEN {before} IS NULL THEN array({images[0]}) "
        f"WHEN {after} IS NULL THEN array({images[1]}) "
        f"WHEN {is_same} THEN NULL ELSE array({images[2]}, {images[3]}) END"
    )
    changed = sides.selectExpr(f"inline({changes})")
    return _named(changed, fields, compared_by="row_id")


def changed_by_values(rows: DataFrame, fields: Iterable[StructField]) -> DataFrame:
    """Return the rows that occur more often in one version, repeated by the difference.

    `rows` have the fields and KIND. The result has the fields and CHANGE_TYPE, an insert or a
    delete.
    """
    fields = [*fields]
    row = f"struct({', '.join(quoted(field.name) for field in fields)})"
    keys = [
        F.expr(_comparable(quoted(field.name), field.dataType)).alias(f"__sparkdelta_{index}")
        for index, field in enumerate(fields)
    ]
    sign = F.when(F.col(KIND) == ChangeType.INSERT.value, 1).otherwise(-1)
    # The rows themselves, as keys have maps as arrays, and neither NaNs nor zeros as they were.
    is_kept = any(_has(field.dataType, (MapType, FloatType, DoubleType)) for field in fields)
    kept = [_side(ChangeType.DELETE, row, _BEFORE), _side(ChangeType.INSERT, row, _AFTER)]
    counted = grouped(rows, keys, F.sum(sign).alias(_COUNT), *(kept if is_kept else ()))
    names = ", ".join(
        f"{quoted(f'__sparkdelta_{index}')} AS {quoted(field.name)}"
        for index, field in enumerate(fields)
    )
    count = quoted(_COUNT)
    value = (
        f"IF({count} > 0, {quoted(_AFTER)}, {quoted(_BEFORE)})" if is_kept else f"struct({names})"
    )
    kind = f"IF({count} > 0, '{ChangeType.INSERT.value}', '{ChangeType.DELETE.value}')"
    times = f"CAST(abs({count}) AS INT)"
    entry = f"struct({value} AS row, {kind} AS kind)"
    changed = counted.filter(f"{count} != 0").selectExpr(f"inline(array_repeat({entry}, {times}))")
    return _named(changed, fields, compared_by="values")


def incomparable_columns(fields: Iterable[StructField]) -> list[str]:
    """Return the columns whose values cannot be compared: a VARIANT value has several forms, a
    GEOMETRY or GEOGRAPHY no equality.
    """
    return [field.name for field in fields if _has(field.dataType, UNORDERED_TYPES)]


def _named(changed: DataFrame, fields: list[StructField], *, compared_by: str) -> DataFrame:
    """Return the fields of `row`, and `kind` with the way in which the rows were compared."""
    row = F.col("row")
    columns = (row[field.name].alias(field.name, metadata=field.metadata) for field in fields)
    kind = F.col("kind").alias(CHANGE_TYPE, metadata={COMPARED_BY: compared_by})
    return changed.select(*columns, kind)


def _side(kind: ChangeType, row: str, name: str) -> Column:
    of_kind = F.when(F.col(KIND) == kind.value, F.expr(row))
    return F.any_value(of_kind, ignoreNulls=True).alias(name)


def _has(data_type: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    if isinstance(data_type, kinds):
        return True
    if isinstance(data_type, StructType):
        return any(_has(field.dataType, kinds) for field in data_type)
    if isinstance(data_type, ArrayType):
        return _has(data_type.elementType, kinds)
    if isinstance(data_type, MapType):
        return _has(data_type.keyType, kinds) or _has(data_type.valueType, kinds)
    return False


def _comparable(value: str, data_type: DataType, depth: int = 0) -> str:
    """Return SQL for a value that can be grouped by: a map becomes an array ordered by key."""
    if not _has(data_type, (MapType,)):
        return value
    one = f"e{depth}"
    if isinstance(data_type, StructType):
        fields = (
            f"{_comparable(f'{value}.{quoted(field.name)}', field.dataType, depth)} AS f{index}"
            for index, field in enumerate(data_type)
        )
        return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(fields)}) END"
    if isinstance(data_type, ArrayType):
        inner = _comparable(one, data_type.elementType, depth + 1)
        return f"transform({value}, {one} -> {inner})"
    assert isinstance(data_type, MapType)
    inner = _comparable(f"{one}.value", data_type.valueType, depth + 1)
    order = "CASE WHEN a.key < b.key THEN -1 WHEN a.key > b.key THEN 1 ELSE 0 END"
    entries = f"array_sort(map_entries({value}), (a, b) -> {order})"
    return f"transform({entries}, {one} -> struct({one}.key AS key, {inner} AS value))"
