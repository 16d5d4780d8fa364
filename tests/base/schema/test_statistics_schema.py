"""Tests of the stored statistics of a checkpoint that can be relied on."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from sparkdelta.base.schema.statistics_schema import reliable_statistics

pytestmark = pytest.mark.usefixtures("spark")  # which reads DDL
WANTED = (
    "minValues STRUCT<at: TIMESTAMP, local: TIMESTAMP_NTZ, n: BIGINT>, nullCount STRUCT<at: BIGINT>"
)


def ddl(text: str) -> StructType:
    return StructType.fromDDL(text)


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        (WANTED, WANTED),
        ("minValues STRUCT<at: TIMESTAMP_NTZ, n: INT>", "minValues STRUCT<n: INT>"),
        ("minValues STRUCT<at: DATE, local: DATE>", "minValues STRUCT<local: DATE>"),
        ("minValues STRUCT<local: TIMESTAMP, n: BIGINT>", "minValues STRUCT<n: BIGINT>"),
        ("minValues STRUCT<gone: TIMESTAMP>", "minValues STRUCT<gone: TIMESTAMP>"),
        ("nullCounts STRUCT<at: BIGINT>, more INT", "nullCounts STRUCT<at: BIGINT>, more INT"),
    ],
)
def test_no_conversion_asks_for_a_time_zone(stored: str, kept: str) -> None:
    """PROTOCOL.md#per-file-statistics"""
    assert reliable_statistics(ddl(stored), ddl(WANTED)) == ddl(kept)
