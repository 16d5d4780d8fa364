"""The names that a Parquet file gives to field ids, for sessions that cannot scan by id."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, MapType, StringType, StructField, StructType

FIELD_NAMES = StructType(
    [
        StructField("file", StringType()),
        StructField("names", MapType(IntegerType(), StringType())),
    ]
)
"""file: as given; names: field id to name, of all fields at every level."""

_FIELD_ID = b"PARQUET:field_id"


def field_names(files: DataFrame) -> DataFrame:
    """The `FIELD_NAMES` of files, read from their footers on the executors.

    Parameters
    ----------
    files
        file STRING, absolute and decoded.

    References
    ----------
    PROTOCOL.md#reader-requirements-for-column-mapping
    """
    return files.select("file").mapInPandas(_read_footers, FIELD_NAMES)


def _read_footers(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        names = [dict(_ids(_schema(file))) for file in batch["file"]]
        yield pd.DataFrame({"file": batch["file"], "names": names})


def _schema(file: str) -> pa.Schema:
    if file.startswith("file:"):
        return pyarrow.parquet.read_schema(file.removeprefix("file:"))
    file_system, path = pyarrow.fs.FileSystem.from_uri(quote(file, safe=":/@"))
    return pyarrow.parquet.read_schema(path, filesystem=file_system)


def _ids(fields: pa.Schema | pa.DataType) -> Iterator[tuple[int, str]]:
    for field in fields:
        if _FIELD_ID in (field.metadata or {}):
            yield int(field.metadata[_FIELD_ID]), field.name
        yield from _ids(_children(field.type))


def _children(data_type: pa.DataType) -> list[pa.Field]:
    return [data_type.field(index) for index in range(data_type.num_fields)]
