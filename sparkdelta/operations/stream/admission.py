"""The limit on the files of a stream's batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sparkdelta.base.storage.stream_source import ReadLimit


@dataclass(slots=True)
class Admission:
    """The remaining limit of a batch.

    A file is admitted if any of it is left, so that each batch reads at least one.
    """

    files: int
    size: float
    has_admitted: bool = False

    @classmethod
    def of(cls, limit: ReadLimit, *, most: int) -> Admission:
        """Return the admission of a new batch of up to `most` files."""
        files = most if limit.max_files is None else min(limit.max_files, most)
        return cls(files, float("inf") if limit.max_bytes is None else limit.max_bytes)

    @property
    def is_full(self) -> bool:
        return self.files <= 0 or self.size <= 0

    def admit(self, sizes: pa.ChunkedArray) -> int:
        """Admit files in their order, and return their number."""
        before = np.concatenate([[0], np.cumsum(sizes.to_numpy())])
        admitted = min(len(sizes), self.files, int(np.searchsorted(before, self.size)))
        self._take(admitted, before[admitted])
        return admitted

    def admit_all(self, files: int, size: int) -> bool:
        """Admit all of some files, or none of them."""
        if self.has_admitted and (files > self.files or size > self.size):
            return False
        self._take(files, size)
        return True

    def _take(self, files: int, size: float) -> None:
        self.has_admitted = self.has_admitted or files > 0
        self.files -= files
        self.size -= size
