"""Names of the field ids in Parquet files, for sessions that cannot read columns by field id.

References
----------
PROTOCOL.md#reader-requirements-for-column-mapping
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, MapType, StringType, StructField, StructType

from sparkdelta.base.parquet.parquet_schema_workers import FIELD_ID
from sparkdelta.base.storage.worker_files import StoredFiles

if TYPE_CHECKING:
    import pandas as pd

FIELD_NAMES = StructType(
    [
        StructField("file", StringType()),
        StructField("names", MapType(IntegerType(), StringType())),
    ]
)
"""file: the given path; names: the name of each field id, for fields at all levels."""


def field_names(files: DataFrame, storage: StoredFiles) -> DataFrame:
    """Read the field ids and names of files from their footers, on the executors.

    Parameters
    ----------
    files
        file STRING (absolute, decoded).
    storage
        The access to files on workers.

    Returns
    -------
    DataFrame
        The columns of `FIELD_NAMES`, one row per file.
    """

    def read(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd  # takes a while, and only workers need it

        for batch in batches:
            names = [_names(storage, file) for file in batch["file"]]
            yield pd.DataFrame({"file": batch["file"], "names": names})

    return files.select("file").mapInPandas(read, FIELD_NAMES)


def _names(storage: StoredFiles, path: str) -> dict[int, str]:
    with storage.open(path) as file:
        return dict(_ids(pyarrow.parquet.read_schema(file)))


def _ids(fields: pa.Schema | pa.DataType) -> Iterator[tuple[int, str]]:
    for field in fields:
        if FIELD_ID in (field.metadata or {}):
            yield int(field.metadata[FIELD_ID]), field.name
        yield from _ids(_children(field.type))


def _children(data_type: pa.DataType) -> list[pa.Field]:
    return [data_type.field(index) for index in range(data_type.num_fields)]
