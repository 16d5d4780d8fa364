"""GEOMETRY and GEOGRAPHY in schemas (delta-io/delta#4726)."""

import json

import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType

from sparkdelta.base.protocol.feature_registry import TableFeature
from sparkdelta.base.schema.needed_features import needed_features
from sparkdelta.base.schema.spatial_types import SPATIAL_TYPES, has_spatial, is_unreadable
from sparkdelta.base.schema.statistics_columns import statistics_columns
from sparkdelta.base.schema.table_schema import parse_table_schema
from sparkdelta.base.schema.written_schema import check_columns, check_partition_columns
from tests.support.errors import raises

pytestmark = pytest.mark.skipif(
    not SPATIAL_TYPES, reason="Spark reads and writes the types since version 4.2"
)


def parsed(*types: object) -> StructType:
    fields = [
        {"name": f"c{number}", "type": kind, "nullable": True, "metadata": {}}
        for number, kind in enumerate(types)
    ]
    text = json.dumps({"type": "struct", "fields": fields})
    return parse_table_schema(text, path="file:/t")


def geometry() -> DataType:
    return parsed("geometry(OGC:CRS84)").fields[0].dataType


def test_types_of_every_writer_are_read() -> None:
    names = ("geometry(OGC:CRS84)", "geometry(EPSG:3857)", "geography(OGC:CRS84, SPHERICAL)")
    assert [field.dataType.jsonValue() for field in parsed(*names)] == list(names)
    inner = {
        "type": "array",
        "elementType": "geography(OGC:CRS84, spherical)",
        "containsNull": True,
    }
    other = parsed("geography(OGC:CRS84, spherical)", inner)
    assert other.simpleString() == "struct<c0:geography(4326),c1:array<geography(4326)>>"


@pytest.mark.parametrize("name", ["geometry(EPSG:0)", "geography(OGC:CRS84, VINCENTY)"])
def test_types_that_spark_lacks_are_refused_by_column(name: str) -> None:
    assert is_unreadable(name)
    with raises("DELTA_UNSUPPORTED_DATA_TYPES") as raised:
        parsed("long", name)
    assert (raised.value.column, raised.value.data_type) == ("c1", name)


def test_tables_need_the_feature_at_any_depth() -> None:
    nested = StructType([StructField("a", ArrayType(geometry()))])
    assert has_spatial(nested)
    assert not has_spatial(ArrayType(StringType()))
    assert needed_features(nested, {}) == {TableFeature.GEOSPATIAL}


def test_columns_have_no_statistics_and_no_partitions() -> None:
    schema = StructType([StructField("g", geometry()), StructField("n", IntegerType())])
    assert statistics_columns(schema, (), {}) == (("n",),)
    with raises("DELTA_INVALID_PARTITION_COLUMN"):
        check_partition_columns(schema, ["g"])


def test_values_of_several_coordinate_systems_are_refused() -> None:
    with raises("DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED"):
        check_columns(StructType([StructField("a", ArrayType(type(geometry())("ANY")))]))
