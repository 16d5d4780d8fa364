"""Files of a table that the log names by the way of symbolic links.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

RELATIVE = StructType([StructField("path", StringType())])


def linked_files(paths: DataFrame, root: str) -> DataFrame:
    """Return the paths, relative to the root, of the files below it that absolute paths on a local
    disk lead to.

    Parameters
    ----------
    paths
        path STRING (decoded, without scheme).
    root
        The path of the table on the local disk.

    Returns
    -------
    DataFrame
        path STRING.
    """

    def resolve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        below = f"{os.path.realpath(root)}/"
        for batch in batches:
            real = map(os.path.realpath, batch.column(0).to_pylist())
            found = [path.removeprefix(below) for path in real if path.startswith(below)]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], names=["path"])

    return paths.select("path").mapInArrow(resolve, RELATIVE)
