"""Columns declared as CHAR and VARCHAR: enabled sessions pad CHAR values, as delta-spark's do, and
the functions of this library return them as they are stored.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

import json

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import read_delta

_TYPES = {"c": "char(3)", "v": "varchar(3)"}


def _table(spark: SparkSession, path: str) -> str:
    """Make a table whose files have the values 'a' and 'a ', each in a file of its own."""
    name = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {name} (id INT, c CHAR(3), v VARCHAR(3))")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'a')")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'a ', 'a '), (3, null, null)")
    return name


def _ids(spark: SparkSession, name: str, where: str) -> list[int]:
    return [
        row.id for row in spark.sql(f"SELECT id FROM {name} WHERE {where} ORDER BY id").collect()
    ]


def test_char_values_are_padded_where_they_are_read_and_compared(
    enabled: SparkSession, table_path: str
) -> None:
    name = _table(enabled, table_path)
    lengths = enabled.sql(f"SELECT id, length(c), length(v) FROM {name} ORDER BY id").collect()
    assert [tuple(row) for row in lengths] == [(1, 3, 1), (2, 3, 2), (3, None, None)]
    assert _ids(enabled, name, "c = 'a'") == [1, 2]
    assert _ids(enabled, name, "c IN ('a', 'b')") == [1, 2]
    assert _ids(enabled, name, "v = 'a'") == [1]
    assert enabled.read.format("delta").load(table_path).filter(F.col("c") == "a  ").count() == 2
    stored = read_delta(enabled, table_path, where="c = 'a'").collect()
    assert [tuple(row) for row in stored] == [(1, "a", "a")]


def test_delete_finds_char_values_of_any_padding(enabled: SparkSession, table_path: str) -> None:
    name = _table(enabled, table_path)
    enabled.sql(f"DELETE FROM {name} WHERE c = 'a'")
    assert _ids(enabled, name, "TRUE") == [3]


def test_settings_leave_char_values_as_they_are_stored(
    enabled: SparkSession, table_path: str
) -> None:
    name = _table(enabled, table_path)
    enabled.conf.set("spark.sql.readSideCharPadding", "false")
    try:
        lengths = enabled.sql(f"SELECT length(c) FROM {name} ORDER BY id").collect()
        assert [row[0] for row in lengths] == [1, 2, None]
        assert _ids(enabled, name, "c = 'a'") == [1, 2]  # Spark pads what it compares
    finally:
        enabled.conf.unset("spark.sql.readSideCharPadding")


def test_new_tables_keep_the_declared_types_of_rows(enabled: SparkSession, table_path: str) -> None:
    name, copy = _table(enabled, table_path), f"{table_path}_copy"
    enabled.sql(f"CREATE TABLE delta.`{copy}` AS SELECT id, c, v, c || 'x' AS e FROM {name}")
    fields = json.loads(enabled.read.format("delta").load(copy).schema.json())["fields"]
    declared = {f["name"]: f["metadata"].get("__CHAR_VARCHAR_TYPE_STRING") for f in fields}
    assert declared == {"id": None, **_TYPES, "e": None}


def test_nested_char_values_are_padded(enabled: SparkSession, table_path: str) -> None:
    name = f"delta.`{table_path}`"
    columns = "s STRUCT<c: CHAR(3), n: INT>, a ARRAY<CHAR(2)>, m MAP<CHAR(2), CHAR(4)>"
    enabled.sql(f"CREATE TABLE {name} ({columns})")
    values = "named_struct('c', 'x', 'n', 1), array('y', null), map('k', 'v')"
    enabled.sql(f"INSERT INTO {name} VALUES ({values}), (null, null, null)")
    rows = enabled.sql(f"SELECT * FROM {name} ORDER BY s IS NULL").collect()
    assert tuple(rows[0]) == (("x  ", 1), ["y ", None], {"k ": "v   "})
    assert tuple(rows[1]) == (None, None, None)
