"""The columns of a checkpoint."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta.base.schema.action_schemas import ADD
from sparkdelta.base.schema.checkpoint_schema import CheckpointSchema

DAY = StructField("day", LongType())
SCHEMA = CheckpointSchema(StructType().add("numRecords", "long"), (("col-1", DAY),))


def test_statistics_by_the_tables_properties() -> None:
    """PROTOCOL.md#checkpoints-1"""
    parsed = ["partitionValues_parsed", "stats_parsed"]
    without = [name for name in ADD.names if name != "stats"]
    assert SCHEMA.add.names == [*ADD.names, *parsed]
    assert replace(SCHEMA, with_json=False).add.names == [*without, *parsed]
    assert replace(SCHEMA, with_struct=False).add.names == ADD.names
    assert replace(SCHEMA, partition_keys=()).add.names == [*ADD.names, "stats_parsed"]


def test_partition_values_have_physical_names() -> None:
    """PROTOCOL.md#checkpoint-schema"""
    assert SCHEMA.partition_values == StructType([StructField("col-1", LongType())])


def test_columns_of_each_file() -> None:
    """PROTOCOL.md#v1-spec, PROTOCOL.md#v2-spec, PROTOCOL.md#sidecar-files"""
    table_actions = ["txn", "metaData", "protocol", "domainMetadata"]
    assert SCHEMA.sidecar_file.names == ["add", "remove"]
    assert SCHEMA.classic_file.names == [*table_actions, "add", "remove"]
    # delta-spark refuses a file without the columns of file actions.
    assert SCHEMA.v2_file.names == [*SCHEMA.classic_file.names, "checkpointMetadata", "sidecar"]
    assert not {"stats", "tags"} & set(SCHEMA.sidecar_file["remove"].dataType.names)


def test_a_fingerprint_tells_types_and_layouts_apart() -> None:
    other = replace(SCHEMA, statistics=StructType().add("numRecords", "integer"))
    days = StructField("day", StringType())
    prints = {
        SCHEMA.fingerprint("clustered", [("a",), ("b",)]),
        SCHEMA.fingerprint("clustered", [("b",), ("a",)]),
        SCHEMA.fingerprint("clustered", [("a", "b")]),
        replace(SCHEMA, partition_keys=(("col-1", days),), with_struct=False).fingerprint("hash"),
        replace(SCHEMA, with_struct=False).fingerprint("hash"),
        SCHEMA.fingerprint("hash"),
        SCHEMA.fingerprint("clustered"),
        replace(SCHEMA, with_json=False).fingerprint("hash"),
        other.fingerprint("hash"),
    }
    assert len(prints) == 9
    assert SCHEMA.fingerprint("hash") == replace(SCHEMA).fingerprint("hash")
