"""Totals of the live files: numbers of files, bytes, deletion vectors and deleted rows.

References
----------
PROTOCOL.md#file-size-histogram-schema, PROTOCOL.md#deleted-record-counts-histogram-schema
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_MB = 2**20


def _megabytes(start: int, stop: int, step: int) -> range:
    return range(start * _MB, (stop + 1) * _MB, step * _MB)


SIZE_BOUNDARIES: tuple[int, ...] = (
    0,
    *(2**power for power in range(13, 23)),
    *_megabytes(8, 40, 4),
    *_megabytes(48, 120, 8),
    *_megabytes(124, 144, 4),
    *_megabytes(160, 576, 16),
    *_megabytes(640, 1408, 64),
    *_megabytes(1536, 2048, 128),
    *_megabytes(2304, 4096, 256),
    *(2**power for power in range(33, 39)),
)
"""Lower bounds, in bytes, of the default bins of file sizes.

delta-spark has the same ones, and adds up only histograms with equal boundaries. A checksum keeps
the boundaries of the previous version if these differ."""

DELETED_BOUNDARIES: tuple[int, ...] = (0, *(10**power for power in range(8)), 2**31 - 1)
"""Lower bounds of the bins of deleted record counts."""


@dataclass(frozen=True, slots=True)
class FileSizeHistogram:
    """A histogram of files and bytes by file size; each bin ends at the next boundary."""

    boundaries: tuple[int, ...]
    file_counts: tuple[int, ...]
    total_bytes: tuple[int, ...]

    @classmethod
    def from_dict(cls, document: object) -> FileSizeHistogram | None:
        """Parse the wire form; None if it is not a valid histogram."""
        if not isinstance(document, Mapping):
            return None
        names = ("sortedBinBoundaries", "fileCounts", "totalBytes")
        lists = [whole_numbers(document.get(name)) for name in names]
        boundaries, counts, sizes = lists
        if not boundaries or counts is None or sizes is None or boundaries[0] != 0:
            return None
        if len(counts) != len(boundaries) or len(sizes) != len(boundaries):
            return None
        if any(a >= b for a, b in pairwise(boundaries)):
            return None
        return cls(boundaries, counts, sizes)

    def to_dict(self) -> dict[str, object]:
        """Return the wire form."""
        return {
            "sortedBinBoundaries": list(self.boundaries),
            "fileCounts": list(self.file_counts),
            "totalBytes": list(self.total_bytes),
        }


@dataclass(frozen=True, slots=True)
class FileBin:
    """Totals of the files that share a bin in both histograms; negative for removed files."""

    size_bin: int
    deleted_bin: int
    files: int
    size_bytes: int
    deletion_vectors: int
    deleted_records: int


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Totals of the live files of a version, or the changes of these totals by a commit."""

    num_files: int
    size_bytes: int
    num_deletion_vectors: int
    num_deleted_records: int
    sizes: FileSizeHistogram
    deleted_counts: tuple[int, ...]

    @classmethod
    def of(cls, bins: Iterable[FileBin], boundaries: Sequence[int]) -> FileTotals:
        """Sum up bins that were counted with these boundaries of file sizes."""
        counts, sizes = [0] * len(boundaries), [0] * len(boundaries)
        deleted = [0] * len(DELETED_BOUNDARIES)
        vectors = records = 0
        for each in bins:
            counts[each.size_bin] += each.files
            sizes[each.size_bin] += each.size_bytes
            deleted[each.deleted_bin] += each.files
            vectors += each.deletion_vectors
            records += each.deleted_records
        return cls(
            num_files=sum(counts),
            size_bytes=sum(sizes),
            num_deletion_vectors=vectors,
            num_deleted_records=records,
            sizes=FileSizeHistogram(tuple(boundaries), tuple(counts), tuple(sizes)),
            deleted_counts=tuple(deleted),
        )

    def plus(self, change: FileTotals) -> FileTotals | None:
        """Return the totals after a change; None if it does not belong to these files.

        It does not if its boundaries differ, or if a total becomes negative or inconsistent.
        """
        if change.sizes.boundaries != self.sizes.boundaries:
            return None
        total = FileTotals(
            num_files=self.num_files + change.num_files,
            size_bytes=self.size_bytes + change.size_bytes,
            num_deletion_vectors=self.num_deletion_vectors + change.num_deletion_vectors,
            num_deleted_records=self.num_deleted_records + change.num_deleted_records,
            sizes=FileSizeHistogram(
                self.sizes.boundaries,
                _sums(self.sizes.file_counts, change.sizes.file_counts),
                _sums(self.sizes.total_bytes, change.sizes.total_bytes),
            ),
            deleted_counts=_sums(self.deleted_counts, change.deleted_counts),
        )
        return total if total._is_possible() else None

    def _is_possible(self) -> bool:
        counts = (
            self.num_deletion_vectors,
            self.num_deleted_records,
            *self.sizes.file_counts,
            *self.sizes.total_bytes,
            *self.deleted_counts,
        )
        return (
            min(counts) >= 0
            and self.num_files == sum(self.sizes.file_counts) == sum(self.deleted_counts)
            and self.size_bytes == sum(self.sizes.total_bytes)
        )


def _sums(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def whole_numbers(value: object) -> tuple[int, ...] | None:
    """Return the numbers of a JSON array that consists of integers, else None."""
    if not isinstance(value, list):
        return None
    is_whole = all(isinstance(item, int) and not isinstance(item, bool) for item in value)
    return tuple(value) if is_whole else None
