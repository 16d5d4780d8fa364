"""The contract of a source of streaming queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """The most that a batch may read; None for no limit."""

    max_files: int | None = None
    max_bytes: int | None = None


class StreamSource(Protocol):
    """A source of streaming queries; several may read it at the same time, each from its thread.

    Offsets are JSON texts. A query is known by its id.
    """

    @property
    def description(self) -> str:
        """The name of the source in the progress of a query."""

    @property
    def schema(self) -> StructType: ...

    @property
    def limit(self) -> ReadLimit:
        """The default limit of a batch."""

    @property
    def is_limited(self) -> bool:
        """True if the user has limited batches."""

    def check_transferable(self) -> None:
        """Raise an error if Python workers cannot read the rows, see `tasks`."""

    def read_available(self, query: str) -> None:
        """Let a query read nothing that comes after its next call of `latest_offset`."""

    def latest_offset(self, query: str, start: str | None, limit: ReadLimit) -> str | None:
        """Return the end of the next batch: the start itself if there is nothing to read.

        `start` is the end of the last batch; None if there was none.
        """

    def batch(self, query: str, start: str | None, end: str) -> DataFrame | None:
        """Return the rows between two offsets in the columns of `schema`; None if there are none.

        They are read by scans for streams.
        """

    def tasks(
        self, query: str, start: str | None, end: str
    ) -> list[Callable[[], Iterator[pa.RecordBatch]]]:
        """Return functions for Python workers, which together read the rows of `batch`."""

    def stop(self, query: str) -> None:
        """Release the state of a query."""
