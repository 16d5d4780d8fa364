"""Copying of the data files and deletion vectors of another table.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_paths import plain_path, resolve
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.roaring_bitmaps import encode_chunks
from sparkdelta.base.storage.worker_files import WorkerFiles
from sparkdelta.exceptions import DeltaError, StorageError
from sparkdelta.table.rows.footer_statistics_workers import URI_CHARACTERS
from sparkdelta.table.vectors.deletion_vector_workers import read_deletion_vector
from sparkdelta.table.vectors.deletion_vector_writing_workers import (
    VECTOR_FILE_BYTES,
    write_vector_file,
)

ADD, COPY = "add", "copy"

FILE_TAG, VECTOR_TAG = "sparkdelta.clonedFile", "sparkdelta.clonedVector"
"""Tags of a copy: the absolute, decoded path of the data file that it is a copy of; and the ids of
the deletion vectors of that file and of the copy, with a space in between."""

CLONED = StructType([StructField(ADD, StringType())])
_CLONED_ARROW = to_arrow_schema(CLONED)
_CHUNK_BYTES = 8 << 20

Action: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneWriter:
    """A writer of copies of data files and deletion vectors into new files of another table.

    Every file has a new name: a task that runs twice leaves files to which no version refers.

    Attributes
    ----------
    files
        Access to the files of both tables.
    source_root, target_root
        The absolute, decoded paths of the tables.
    directory
        The directory for the copies, relative to the target's root.
    version
        The version of the source, for error messages.
    """

    files: WorkerFiles
    source_root: str
    target_root: str
    directory: str
    version: Version

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy the files of batches of `ADD` and `COPY`, see `write_clone`."""
        for batch in batches:
            rows: list[Action] = []
            stored: list[Action] = []
            for row in batch.to_pylist():
                add = self._with_file(json.loads(row[ADD]), row[COPY])
                (rows if self._vector(add) is None else stored).append(add)
            rows += self._with_vectors(stored)
            texts = [{ADD: json.dumps(add)} for add in rows]
            yield pa.RecordBatch.from_pylist(texts, schema=_CLONED_ARROW)

    def _with_file(self, add: Action, copy: str | None) -> Action:
        """Return the action with the path of the file's copy, which is made unless it exists."""
        source = plain_path(resolve(self.source_root, add["path"]))
        if copy is None:
            directories = [name for name in source.split("/")[:-1] if "=" in name]
            relative = "/".join([self.directory, *directories, f"{uuid4()}.parquet"])
            target = f"{self.target_root}/{relative}"
            self._copy(source, target, add["size"])
            copy = quote(relative, safe=URI_CHARACTERS)
            add["modificationTime"] = self.files.modification_time(target)
        vector = add.get("deletionVector")
        unique_id = DeletionVectorDescriptor.from_dict(vector).unique_id if vector else ""
        tags = {**(add.get("tags") or {}), FILE_TAG: source, VECTOR_TAG: f"{unique_id} {unique_id}"}
        return {**add, "path": copy, "tags": tags}

    def _copy(self, source: str, target: str, size: int) -> None:
        try:
            with self.files.open(source) as file:
                stored_size = int(file.size())
                if stored_size != size:
                    problem = f"it has {stored_size} bytes, and the log says {size}"
                    raise StorageError(path=source, problem=problem)
                with self.files.create(target) as written:
                    while chunk := file.read(_CHUNK_BYTES):
                        written.write(chunk)
        except FileNotFoundError:
            raise DeltaError.of("DELTA_FILE_NOT_FOUND", file=source, version=self.version) from None
        copied = self.files.size(target)
        if copied != size:
            problem = f"its copy {target} has {copied} bytes instead of {size}"
            raise StorageError(path=source, problem=problem)

    def _with_vectors(self, adds: list[Action]) -> Iterator[Action]:
        """Yield the actions with copies of their deletion vectors, many in one file."""
        pending: list[tuple[Action, bytes]] = []
        for add in adds:
            vector = self._vector(add)
            assert vector is not None
            try:
                rows = read_deletion_vector(vector, files=self.files, table_root=self.source_root)
            except FileNotFoundError:
                file = str(vector.absolute_path(self.source_root))
                raise DeltaError.of(
                    "DELTA_FILE_NOT_FOUND", file=file, version=self.version
                ) from None
            pending.append((add, encode_chunks(rows)))
            if sum(len(data) for _, data in pending) >= VECTOR_FILE_BYTES:
                yield from self._in_one_file(pending)
                pending = []
        yield from self._in_one_file(pending)

    def _in_one_file(self, vectors: list[tuple[Action, bytes]]) -> Iterator[Action]:
        if not vectors:
            return
        contents = [(data, add["deletionVector"]["cardinality"]) for add, data in vectors]
        written = write_vector_file(contents, self.files, self.target_root, self.directory)
        for (add, _), vector in zip(vectors, written, strict=True):
            before, _, _ = add["tags"][VECTOR_TAG].partition(" ")
            tags = {**add["tags"], VECTOR_TAG: f"{before} {vector.unique_id}"}
            yield {**add, "deletionVector": vector.to_dict(), "tags": tags}

    @staticmethod
    def _vector(add: Action) -> DeletionVectorDescriptor | None:
        """Return the deletion vector of a file, unless it is inline."""
        vector = add.get("deletionVector")
        descriptor = DeletionVectorDescriptor.from_dict(vector) if vector else None
        return None if descriptor is None or descriptor.is_inline else descriptor


def write_clone(files: DataFrame, writer: CloneWriter) -> DataFrame:
    """Copy data files and deletion vectors, whenever the DataFrame is computed.

    Parameters
    ----------
    files
        add STRING, the add action of each file of the source as JSON; copy STRING, the path of a
        copy of the data file in the target's log, null if there is none.

    Returns
    -------
    DataFrame
        `CLONED`: the add actions of the copies as JSON, with `FILE_TAG` and `VECTOR_TAG`.
    """
    return files.select(ADD, COPY).mapInArrow(writer.write, CLONED)
