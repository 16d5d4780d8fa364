"""Data files with columns that their table does not have, as after `DROP COLUMNS`.

References
----------
PROTOCOL.md#column-mapping
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StringType, StructField, StructType, VariantType

from sparkdelta.base.protocol.column_names import stored_name_key
from sparkdelta.base.schema.type_folds import parts
from sparkdelta.base.storage.worker_files import StoredFiles

OTHER_COLUMNS = StructType([StructField("file", StringType())])
"""The files with other columns."""


@dataclass(frozen=True, slots=True)
class ColumnChecker:
    """A search for files that hold other columns than these.

    Attributes
    ----------
    files
        The access to files.
    schema
        The columns by their physical names, with the materialized columns of row ids.
    """

    files: StoredFiles
    schema: StructType

    def with_others(self, paths: Iterable[str]) -> list[str]:
        """Return the files with a column or nested field that the table does not have."""
        return [path for path in paths if _has_others(self._columns(path), self.schema)]

    def _columns(self, path: str) -> list[pa.Field]:
        with self.files.open(path) as file:
            return list(pyarrow.parquet.read_schema(file))


def files_with_others(files: DataFrame, checker: ColumnChecker) -> DataFrame:
    """Read the footers of files on the executors.

    Parameters
    ----------
    files
        file STRING (absolute, decoded); each partition is a task.

    Returns
    -------
    DataFrame
        file STRING: those with other columns.
    """

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = checker.with_others(batch.column(0).to_pylist())
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], names=["file"])

    return files.select("file").mapInArrow(check, OTHER_COLUMNS)


def _has_others(stored: list[pa.Field], known: DataType) -> bool:
    """Return True if one of the fields, or of those inside them, is not part of a type."""
    if isinstance(known, VariantType):
        return False
    if isinstance(known, StructType):
        types = {stored_name_key(field.name): field.dataType for field in known.fields}
        pairs = [(field, types.get(stored_name_key(field.name))) for field in stored]
    else:
        inner = [part for _, part in parts(known)]
        pairs = list(zip_longest(stored, inner)) if len(stored) >= len(inner) else []
    return any(part is None or _has_others(_inside(field.type), part) for field, part in pairs)


def _inside(data_type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    return [data_type.field(index) for index in range(data_type.num_fields)]
