"""Symlink manifests, written by executors.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta.base.protocol.manifest_files import MANIFEST_NAME, MANIFESTS, partition_directory
from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.exceptions import DeltaError

VALUES, FILE = "values", "file"
WRITTEN = StructType([StructField("directory", StringType()), StructField("files", LongType())])
_WRITTEN_ARROW = pa.schema([("directory", pa.string()), ("files", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestWriter:
    """A writer of manifests, one for each partition, in the place of the old one.

    Attributes
    ----------
    files
        Access to the files of the table.
    table_root
        The absolute, decoded path of the table.
    names
        The partition columns.
    """

    files: StoredFiles
    table_root: str
    names: tuple[str, ...]

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert batches of VALUES and FILE to `WRITTEN`, see `write_manifests`."""
        rows = (row for batch in batches for row in batch.to_pylist())
        written = [
            {"directory": directory, "files": self.write_one(directory, (r[FILE] for r in group))}
            for directory, group in groupby(rows, key=self._directory)
        ]
        yield pa.RecordBatch.from_pylist(written, schema=_WRITTEN_ARROW)

    def write_one(self, directory: str, files: Iterable[str]) -> int:
        """Write the manifest of a partition directory; return the number of files."""
        within = "/".join(filter(None, (MANIFESTS, directory, MANIFEST_NAME)))
        path, count = f"{self.table_root}/{within}", 0
        is_local, local = path.startswith("file:"), path.removeprefix("file:")
        # No reader sees half of it: elsewhere, a file appears once it is complete.
        target = f"{path.removesuffix(MANIFEST_NAME)}.{MANIFEST_NAME}-{uuid4()}"
        if is_local:
            self._check_inside(path)
        with self.files.create(target if is_local else path) as manifest:
            for file in files:
                manifest.write(f"{file}\n".encode())
                count += 1
        if is_local:
            with suppress(FileNotFoundError):  # Hadoop's, of the manifest that is replaced
                os.unlink(f"{local.removesuffix(MANIFEST_NAME)}.{MANIFEST_NAME}.crc")
            os.replace(target.removeprefix("file:"), local)
        return count

    def _directory(self, row: dict[str, Sequence[str | None]]) -> str:
        return partition_directory(self.names, row[VALUES])

    def _check_inside(self, path: str) -> None:
        """Raise if a symbolic link leads out of the table."""
        root, real = (
            os.path.realpath(place.removeprefix("file:")) for place in (self.table_root, path)
        )
        if not real.startswith(f"{root}/{MANIFESTS}/"):
            raise DeltaError.of("DELTA_PATH_OUTSIDE_TABLE", path=path, table_root=self.table_root)


def write_manifests(files: DataFrame, writer: ManifestWriter) -> DataFrame:
    """Write the manifests of data files, whenever the DataFrame is computed.

    Parameters
    ----------
    files
        values ARRAY<STRING>, the partition values; file STRING, the absolute, decoded path. Files
        of one partition follow one another in one partition of the DataFrame.

    Returns
    -------
    DataFrame
        The columns of `WRITTEN`, one row per manifest.
    """
    return files.select(VALUES, FILE).mapInArrow(writer.write, WRITTEN)
