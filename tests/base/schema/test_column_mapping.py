"""Physical names and field ids, at every level."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import physical_field, physical_name, physical_type
from sparkdelta.base.schema.statistics_schema import statistics_schema
from tests.support.errors import raises


def _field(name: str, data_type: object, number: int | None = None) -> StructField:
    metadata: dict[str, object] = {"delta.columnMapping.physicalName": f"col-{name}"}
    if number is not None:
        metadata["delta.columnMapping.id"] = number
    return StructField(name, data_type, True, metadata)  # type: ignore[arg-type]


INNER = StructType([_field("x", LongType(), 4)])
SCHEMA = StructType(
    [
        _field("l", ArrayType(INNER), 1),
        _field("m", MapType(StringType(), INNER), 2),
        _field("s", LongType()),
    ]
)


@pytest.mark.parametrize("mode", [ColumnMappingMode.NAME, ColumnMappingMode.ID])
def test_names_at_every_level(mode: ColumnMappingMode) -> None:
    """PROTOCOL.md#reader-requirements-for-column-mapping"""
    physical = physical_type(SCHEMA, mode)
    assert isinstance(physical, StructType)
    assert physical.names == ["col-l", "col-m", "col-s"]
    assert physical["col-l"].dataType.elementType.names == ["col-x"]
    assert physical["col-m"].dataType.valueType.names == ["col-x"]


def test_ids_in_id_mode_only() -> None:
    by_id = physical_type(SCHEMA, ColumnMappingMode.ID)
    assert [f.metadata for f in by_id] == [{"parquet.field.id": 1}, {"parquet.field.id": 2}, {}]
    assert by_id["col-l"].dataType.elementType["col-x"].metadata == {"parquet.field.id": 4}
    by_name = physical_type(SCHEMA, ColumnMappingMode.NAME)
    assert [f.metadata for f in by_name] == [{}, {}, {}]
    assert physical_field(SCHEMA["l"], ColumnMappingMode.NONE).name == "l"


def test_nothing_of_a_file_is_promised_to_be_there() -> None:
    inner = StructType([StructField("x", ArrayType(LongType(), False), False)])
    declared = StructField("m", MapType(LongType(), inner, False), False)
    nullable = StructType([StructField("x", ArrayType(LongType()))])
    wanted = StructField("m", MapType(LongType(), nullable))
    assert physical_field(declared, ColumnMappingMode.NONE) == wanted


def test_a_missing_physical_name() -> None:
    with raises("DELTA_INVALID_COLUMN_MAPPING"):
        physical_name(StructField("x", LongType()), ColumnMappingMode.NAME)
    assert physical_name(StructField("x", LongType()), ColumnMappingMode.NONE) == "x"


def test_statistics_have_physical_names() -> None:
    """PROTOCOL.md#per-file-statistics"""
    schema = StructType([*SCHEMA.fields, _field("o", INNER, 9), _field("p", LongType(), 10)])
    statistics = statistics_schema(schema, ("P",), ColumnMappingMode.NAME)
    assert statistics["minValues"].dataType.names == ["col-s", "col-o"]
    assert statistics["minValues"].dataType["col-o"].dataType.names == ["col-x"]
    assert statistics["nullCount"].dataType.names == ["col-l", "col-m", "col-s", "col-o"]


def test_a_table_of_partition_columns_only_has_no_bounds() -> None:
    schema = StructType([StructField("p", LongType())])
    assert statistics_schema(schema, ("p",), ColumnMappingMode.NONE).names == [
        "numRecords", "tightBounds",
    ]  # fmt: skip
