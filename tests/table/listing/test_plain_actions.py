"""Tests that actions are parsed without Spark as Spark parses them, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType, StructType

from sparkdelta.base.schema.action_schemas import CHECKPOINT_METADATA, METADATA, PROTOCOL, SIDECAR
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.table.listing.log_line_frames import damaged_lines, parse_log_lines
from sparkdelta.table.listing.plain_actions import plain_actions

ACTIONS = (
    StructType()
    .add("protocol", PROTOCOL)
    .add("metaData", METADATA)
    .add("sidecar", SIDECAR)
    .add("checkpointMetadata", CHECKPOINT_METADATA)
)
_LINE = StructType().add("version", LongType()).add("line", StringType())


def _lines(*texts: str) -> pa.Table:
    return pa.table({"version": pa.array([7] * len(texts), pa.int64()), "line": [*texts]})


def _by_spark(spark: SparkSession, *texts: str) -> list[dict[str, Any]]:
    lines = local_frame(spark, _lines(*texts), _LINE)
    return [row.asDict(recursive=True) for row in parse_log_lines(lines, actions=ACTIONS).collect()]


PLAIN = [
    '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["a"]}}',
    '{"protocol":{"minReaderVersion":-2147483648,"minWriterVersion":2147483647,"more":[{}]}}',
    (
        ' { "metaData" : {"id": "ä😀", "format": {"provider": "parquet", "options": {"a": null}},'
        ' "schemaString": "{\\"a\\\\n\\"}", "partitionColumns": [], "configuration": {"x": "y"}}}\r'
    ),
    '{"metaData":{"id":null,"format":null,"partitionColumns":[null,"a"],"createdTime":0}}',
    '{"sidecar":{"path":"a","sizeInBytes":9223372036854775807,"modificationTime":-1,"tags":{}}}',
    '{"sidecar":{"path":"a"}} ',
    '{"sidecar":null,"checkpointMetadata":{"version":1,"tags":null}}',
    '{"add":{"path":1},"other":1e5}',
    "{}",
    " \t",
    "",
]
NOT_PLAIN = [
    '{"protocol":{"minReaderVersion":"3"}}',
    '{"protocol":{"minReaderVersion":3.0}}',
    '{"protocol":{"minReaderVersion":2147483648}}',
    '{"protocol":{"minReaderVersion":true}}',
    '{"protocol":{"readerFeatures":"a"}}',
    '{"protocol":[]}',
    '{"metaData":{"id":5}}',
    '{"metaData":{"configuration":{"a":1}}}',
    '{"metaData":{"configuration":{"a":"b","a":"c"}}}',
    '{"sidecar":{"path":"\\ud800"}}',
    '{"sidecar":{"path":"a\tb"}}',
    '{"other":NaN}',
    "{'sidecar':{'path':'a'}}",
    '{"sidecar":{"path":"a"}',
    '{"sidecar":{"path":"a"}}{"sidecar":{"path":"b"}}',
    "[]",
    "null",
    "5",
    "[" * 100_000,
]


def test_plain_lines_are_parsed_as_spark_parses_them(spark: SparkSession) -> None:
    found = plain_actions(_lines(*PLAIN), ACTIONS)
    assert found == _by_spark(spark, *PLAIN)
    assert len(PLAIN) - len(found or []) == 2, "blank lines"


@pytest.mark.parametrize("line", NOT_PLAIN, ids=[text[:40] for text in NOT_PLAIN])
def test_other_lines_are_sparks(line: str) -> None:
    assert plain_actions(_lines(PLAIN[0], line), ACTIONS) is None


_KINDS = {
    StringType: st.text(max_size=5),
    LongType: st.integers(-(2**63), 2**63 - 1),
    IntegerType: st.integers(-(2**31), 2**31 - 1),
    BooleanType: st.booleans(),
}


def _documents(data_type: Any) -> st.SearchStrategy[Any]:
    if isinstance(data_type, StructType):
        fields = {field.name: _values(field.dataType) for field in data_type}
        return st.fixed_dictionaries({}, optional=fields)
    if isinstance(data_type, ArrayType):
        return st.lists(_values(data_type.elementType), max_size=2)
    if type(data_type) in _KINDS:
        return _KINDS[type(data_type)]
    return st.dictionaries(st.text(max_size=3), _values(data_type.valueType), max_size=2)


def _values(data_type: Any) -> st.SearchStrategy[Any]:
    """Values of the type, and now and then of another one."""
    other = st.sampled_from([None, 1.5, 2**63, 2**31, "1", "true", True, [], {}])
    return st.one_of(*[_documents(data_type)] * 5, other)


@settings(max_examples=30)
@given(lines=st.lists(_values(ACTIONS), max_size=30), is_ascii=st.booleans())
def test_what_is_plain_is_the_same_by_spark(
    spark: SparkSession, lines: list[Any], is_ascii: bool
) -> None:
    texts = [json.dumps(each, ensure_ascii=is_ascii) for each in lines]
    plain = [text for text in texts if plain_actions(_lines(text), ACTIONS) is not None]
    damaged = damaged_lines(local_frame(spark, _lines(*plain), _LINE), actions=ACTIONS)
    assert not damaged.collect()
    assert plain_actions(_lines(*plain), ACTIONS) == _by_spark(spark, *plain)
