"""File actions that are too many to be values, as lines in a local file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from pyspark.sql import DataFrame

from sparkdelta.frames.commit_lines import ADDS_DATA, HAS_VECTOR, LINE, REMOVES_DATA
from sparkdelta.table.driver import stream_rows

_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommitSpool:
    """`FileLines` in a temporary file of the driver's machine, gone once it is closed."""

    adds_data: bool
    removes_data: bool
    has_vectors: bool
    _file: IO[bytes]

    @classmethod
    def of(cls, lines: DataFrame) -> CommitSpool:
        """Bring the lines of `frames.commit_lines` here; the driver holds a partition at a time."""
        file = tempfile.TemporaryFile(prefix="sparkdelta-")  # noqa: SIM115 - closed by `close`
        adds_data = removes_data = has_vectors = False
        try:
            rows = stream_rows(
                lines,
                what="file actions of a large commit",
            )
            for row in rows:
                file.write(row[LINE].encode("utf-8") + b"\n")
                adds_data = adds_data or row[ADDS_DATA]
                removes_data = removes_data or row[REMOVES_DATA]
                has_vectors = has_vectors or row[HAS_VECTOR]
        except BaseException:
            file.close()
            raise
        return cls(adds_data, removes_data, has_vectors, file)

    def chunks(self) -> Iterator[bytes]:
        """The lines in pieces, from the beginning."""
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK_BYTES):
            yield chunk

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()
