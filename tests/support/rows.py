"""Exact comparison of rows, without an order.

Both sides are Arrow tables: what Spark returns (`DataFrame.toArrow`) and what a test expects
(Parquet read with pyarrow, without Spark). They are equal when names, order and types of the
columns are equal and the rows are equal as multisets. Values compare exactly:

- NaN equals NaN, whatever its payload; ``-0.0`` differs from ``0.0``, since a reader has to give
  back the stored value and SQL's idea of equality has no part in that;
- timestamps compare as microseconds (UTC, or without a zone), dates as days, so years before 1582
  or above 9999 need no calendar;
- maps have no order; decimals have their precision and scale in the type;
- a variant is the pair of its metadata and value bytes, or its JSON text where only that is known.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    VariantType,
    VariantVal,
)

Row = tuple[Hashable, ...]

# Above this many rows equality is first tried in Arrow; Python values would take some hundred MB.
_MANY_ROWS = 50_000
_SHOWN_ROWS = 5
_NAN = "NaN"
_MINUS_ZERO = "-0.0"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def spark_rows(frame: DataFrame) -> pa.Table:
    """Run the query and return its rows on the driver."""
    if not _holds_variant(frame.schema):
        return frame.toArrow()
    # toArrow() casts to a schema in which the bytes of a variant are never null, and Arrow
    # refuses that cast for a null variant; these are the same batches before the cast.
    private: Any = frame
    if hasattr(type(frame), "_to_table"):
        return private._to_table()[0]
    return pa.Table.from_batches(private._collect_as_arrow(empty_list_if_zero_records=False))


def _holds_variant(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_holds_variant(field.dataType) for field in data_type)
    if isinstance(data_type, ArrayType):
        return _holds_variant(data_type.elementType)
    if isinstance(data_type, MapType):
        return _holds_variant(data_type.valueType)
    return isinstance(data_type, VariantType)


def parquet_rows(path: Path) -> pa.Table:
    """Return the rows of a Parquet file, or of all Parquet files directly in a directory."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"no Parquet file in {path}")
    # File by file: the dataset reader would take "name=value" in the path for a partition.
    return pa.concat_tables([pq.ParquetFile(file).read() for file in files])


def assert_same_rows(
    actual: pa.Table | DataFrame, expected: pa.Table, *, variants_as_json: bool = False
) -> None:
    """Fail with a readable difference unless both tables hold the same rows.

    Parameters
    ----------
    actual, expected
        What was read and what has to be read.
    variants_as_json
        The expected rows hold variants as JSON text: compare the documents, not the bytes.
    """
    actual = spark_rows(actual) if isinstance(actual, DataFrame) else actual
    if variants_as_json:
        actual, expected = _with_json(actual, actual.schema), _with_json(expected, actual.schema)
    found, wanted = _columns(actual), _columns(expected)
    if found != wanted:
        raise AssertionError(
            f"columns differ\n  expected: {', '.join(wanted)}\n  actual:   {', '.join(found)}"
        )
    if _same_sorted(actual, expected):
        return
    found_rows, wanted_rows = Counter(python_rows(actual)), Counter(python_rows(expected))
    if found_rows != wanted_rows:
        raise AssertionError(_difference(actual.schema, found_rows, wanted_rows))


def without_void(actual: pa.Table) -> pa.Table:
    """Return the table without columns that are void or hold a void (Parquet cannot hold them)."""
    kept = [field.name for field in actual.schema if "void" not in _leaf_names(field.type)]
    return actual.select(kept)


def type_name(data_type: pa.DataType) -> str:
    """Return a type in Delta's words, blind to Arrow's ways to lay out one and the same type."""
    if is_variant(data_type):
        return "variant"
    if pa.types.is_struct(data_type):
        fields = ", ".join(f"{field.name}: {type_name(field.type)}" for field in data_type)
        return f"struct<{fields}>"
    if pa.types.is_map(data_type):
        return f"map<{type_name(data_type.key_type)}, {type_name(data_type.item_type)}>"
    if _is_list(data_type):
        return f"array<{type_name(data_type.value_type)}>"
    if pa.types.is_dictionary(data_type):
        return type_name(data_type.value_type)
    if pa.types.is_timestamp(data_type):
        return "timestamp" if data_type.tz else "timestamp_ntz"
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    for matches, name in _PRIMITIVES:
        if matches(data_type):
            return name
    return str(data_type)


_PRIMITIVES: Sequence[tuple[Callable[[pa.DataType], bool], str]] = (
    (pa.types.is_null, "void"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "byte"),
    (pa.types.is_int16, "short"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_int64, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date, "date"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
)


def is_variant(data_type: pa.DataType) -> bool:
    """True if a type is the Arrow form of a variant: a struct of metadata and value bytes."""
    return (
        pa.types.is_struct(data_type)
        and {field.name for field in data_type} == {"metadata", "value"}
        and all(pa.types.is_binary(field.type) for field in data_type)
    )


def _is_list(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def _leaf_names(data_type: pa.DataType) -> set[str]:
    if is_variant(data_type) or not pa.types.is_nested(data_type):
        return {type_name(data_type)}
    children = [data_type.field(i).type for i in range(data_type.num_fields)]
    return set().union(*(_leaf_names(child) for child in children))


def _columns(table: pa.Table) -> list[str]:
    return [f"{field.name}: {type_name(field.type)}" for field in table.schema]


def python_rows(table: pa.Table) -> list[Row]:
    """Return the rows as tuples of hashable values that are equal exactly when the rows are."""
    if table.num_columns == 0:
        return [()] * table.num_rows
    return list(zip(*(_python_column(column) for column in table.columns), strict=True))


def _python_column(column: pa.ChunkedArray) -> list[Hashable]:
    return [value for chunk in column.chunks for value in _python_values(chunk)]


def _python_values(array: pa.Array) -> list[Any]:
    data_type = array.type
    if pa.types.is_dictionary(data_type):
        return _python_values(array.dictionary_decode())
    if pa.types.is_timestamp(data_type):
        exact = array.cast(pa.timestamp("us", tz=data_type.tz))
        return list(exact.cast(pa.int64()).to_pylist())
    if pa.types.is_date32(data_type):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_floating(data_type):
        return [_exact_float(value) for value in array.to_pylist()]
    if pa.types.is_struct(data_type):
        fields = array.flatten()
        if is_variant(data_type) and data_type[0].name == "value":
            # Writers differ in the order of the two fields.
            fields = fields[::-1]
        rows = zip(*map(_python_values, fields), strict=True)
        tuples = list(rows) if fields else [()] * len(array)
        return [row if ok else None for row, ok in zip(tuples, _valid(array), strict=True)]
    if pa.types.is_map(data_type):
        keys, items = _python_values(array.keys), _python_values(array.items)
        entries = list(zip(keys, items, strict=True))
        return [None if part is None else _unordered(part) for part in _parts(array, entries)]
    if _is_list(data_type):
        parts = _parts(array, _python_values(array.values))
        return [None if part is None else tuple(part) for part in parts]
    return list(array.to_pylist())


def _valid(array: pa.Array) -> list[bool]:
    valid: list[bool] = array.is_valid().to_pylist()
    return valid


def _parts(array: pa.Array, children: list[Any]) -> Iterable[list[Any] | None]:
    # Offsets count from the start of the child array, also in a slice.
    bounds = array.offsets.to_pylist()
    for ok, start, end in zip(_valid(array), bounds, bounds[1:], strict=False):
        yield children[start:end] if ok else None


def _unordered(entries: Iterable[Hashable]) -> Hashable:
    return frozenset(Counter(entries).items())


def _exact_float(value: float | None) -> Hashable:
    if value is None or (value == value and value != 0):
        return value
    if value != value:
        return _NAN
    return _MINUS_ZERO if math.copysign(1.0, value) < 0 else value


def _same_sorted(actual: pa.Table, expected: pa.Table) -> bool:
    """True if two large flat tables are equal; False says only that this way cannot tell."""
    many = min(actual.num_rows, expected.num_rows) > _MANY_ROWS
    flat = all(_sorts_exactly(field.type) for field in (*actual.schema, *expected.schema))
    if not many or not flat or actual.num_rows != expected.num_rows:
        return False
    return bool(_sorted(actual).equals(_sorted(expected)))


def _sorts_exactly(data_type: pa.DataType) -> bool:
    inexact = pa.types.is_floating, pa.types.is_dictionary, pa.types.is_nested, pa.types.is_null
    return not any(matches(data_type) for matches in inexact)


def _sorted(table: pa.Table) -> pa.Table:
    # Columns by number: names may repeat or hold anything.
    numbered = table.rename_columns([str(i) for i in range(table.num_columns)])
    numbered = numbered.replace_schema_metadata(None)
    fields = [pa.field(f.name, f.type) for f in numbered.schema]
    numbered = numbered.cast(pa.schema(fields))
    keys = [(name, "ascending") for name in numbered.column_names]
    return numbered.sort_by(keys).combine_chunks()


def _with_json(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with canonical JSON text where `schema` has a variant, at any depth."""
    if table.column_names != schema.names:
        return table
    columns = [
        _json_column(column, field.type) if "variant" in _leaf_names(field.type) else column
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _json_column(column: pa.ChunkedArray, data_type: pa.DataType) -> pa.Array:
    return pa.array([_json_value(v, data_type) for v in column.to_pylist()], _json_type(data_type))


def _json_type(data_type: pa.DataType) -> pa.DataType:
    if is_variant(data_type):
        return pa.string()
    if pa.types.is_struct(data_type):
        return pa.struct([(field.name, _json_type(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_type, _json_type(data_type.item_type))
    if _is_list(data_type):
        return pa.list_(_json_type(data_type.value_type))
    return data_type


def _json_value(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if is_variant(data_type):
        is_text = isinstance(value, str)
        text = value if is_text else VariantVal(value["value"], value["metadata"]).toJson()
        return canonical_json(text)
    if pa.types.is_struct(data_type):
        return {field.name: _json_value(value[field.name], field.type) for field in data_type}
    if pa.types.is_map(data_type):
        return [(key, _json_value(item, data_type.item_type)) for key, item in value]
    if _is_list(data_type):
        return [_json_value(item, data_type.value_type) for item in value]
    return value


def canonical_json(text: str) -> str:
    """Return JSON text with sorted keys and without spaces."""
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _difference(schema: pa.Schema, found: Counter[Row], wanted: Counter[Row]) -> str:
    missing, unexpected = wanted - found, found - wanted
    totals = f"{wanted.total()} expected, {found.total()} actual"
    lines = [
        f"rows differ: {totals}, {missing.total()} missing, {unexpected.total()} unexpected",
        f"columns: {', '.join(f'{field.name}: {type_name(field.type)}' for field in schema)}",
    ]
    for label, rows in (("missing", missing), ("unexpected", unexpected)):
        shown = sorted(rows.items(), key=repr)[:_SHOWN_ROWS]
        lines += [f"{label} x{count}: {_shown(schema, row)}" for row, count in shown]
    lines += _nearest(schema, list(missing), list(unexpected))
    return "\n".join(lines)


def _nearest(schema: pa.Schema, missing: list[Row], unexpected: list[Row]) -> list[str]:
    """Name the columns in which the most similar pair of rows differs."""
    pairs = [(m, u) for m in missing[:100] for u in unexpected[:100]]
    if not pairs:
        return []
    missing_row, unexpected_row = min(pairs, key=lambda pair: len(_differing(*pair)))
    lines = ["most similar pair:"]
    for i in _differing(missing_row, unexpected_row):
        wanted = _shown_value(missing_row[i], schema[i].type)
        found = _shown_value(unexpected_row[i], schema[i].type)
        lines.append(f"  {schema[i].name}: expected {wanted}, actual {found}")
    return lines


def _differing(one: Row, other: Row) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def _shown(schema: pa.Schema, row: Row) -> str:
    values = (_shown_value(value, field.type) for value, field in zip(row, schema, strict=True))
    return f"({', '.join(values)})"


def _shown_value(value: Any, data_type: pa.DataType) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            if pa.types.is_date(data_type):
                return str((_EPOCH + timedelta(days=value)).date())
            if pa.types.is_timestamp(data_type):
                return str((_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None))
        except OverflowError:
            return f"{value} since 1970"
    if isinstance(value, frozenset):
        return "map " + repr(sorted((entry for entry, _ in value), key=repr))
    return repr(value)
