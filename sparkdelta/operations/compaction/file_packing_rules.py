"""Packing of small files into bins, each of which becomes one file."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file to be packed.

    Attributes
    ----------
    group
        Only files of the same group share a bin.
    is_worth_it
        True if it is worth rewriting alone, as one with a deletion vector.
    """

    group: Hashable
    size: int
    is_worth_it: bool = False


def packed(files: Sequence[PackedFile], *, capacity: int | None) -> list[range]:
    """Return the bins of files that are ordered by group and size, each as a range of their
    indexes.

    A bin takes the next file as long as all of them have at most `capacity` bytes; without one, all
    files of a group. A bin with one file is left out, unless the file is worth rewriting alone.
    """
    bins: list[range] = []
    start, used = 0, 0
    for index, file in enumerate(files):
        is_other = index > start and file.group != files[start].group
        is_full = capacity is not None and used + file.size > capacity
        if index > start and (is_other or is_full):
            bins.append(range(start, index))
            start, used = index, 0
        used += file.size
    bins.append(range(start, len(files)))
    return [each for each in bins if len(each) > 1 or any(files[n].is_worth_it for n in each)]


def batches(
    bins: Iterable[range], files: Sequence[PackedFile], *, max_bytes: int, max_files: int,
    max_bins: int,
) -> Iterator[list[range]]:  # fmt: skip
    """Cut bins into batches within these limits; a bin beyond one of them is a batch of its own."""
    batch: list[range] = []
    num_bytes = num_files = 0
    for each in bins:
        size = sum(files[index].size for index in each)
        is_full = (
            num_bytes + size > max_bytes
            or num_files + len(each) > max_files
            or len(batch) == max_bins
        )
        if batch and is_full:
            yield batch
            batch, num_bytes, num_files = [], 0, 0
        batch.append(each)
        num_bytes, num_files = num_bytes + size, num_files + len(each)
    if batch:
        yield batch
