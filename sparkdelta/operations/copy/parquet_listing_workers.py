"""Listing of the files of a Parquet directory, as Spark lists it.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkdelta.exceptions import ConvertNonParquetError
from sparkdelta.operations.vacuum.file_listing_workers import FileLister

IS_HIDDEN = "[_.][^=]*"
"""Regular expression of hidden names, which are left out; names with ``=`` are of partitions."""

_OF_OTHERS = {"_spark_metadata": "Spark's file stream sink", ".hoodie": "Hudi"}
"""Hidden directories of other systems, which determine the files to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetLister(FileLister):
    """Lists all files and directories but hidden ones.

    Raises
    ------
    ConvertNonParquetError
        Not all files are to be read.
    """

    visible: str = ""

    def _is_hidden(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        if name in _OF_OTHERS:
            raise ConvertNonParquetError(source=_OF_OTHERS[name], table=self.root)
        return name.startswith(("_", ".")) and "=" not in name
