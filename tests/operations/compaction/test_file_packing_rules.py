"""Packing of files into bins, and of bins into commits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.operations.compaction.file_packing_rules import PackedFile, batches, packed

FILES = st.lists(
    st.builds(PackedFile, st.integers(0, 3), st.integers(0, 20), st.booleans()), max_size=40
).map(lambda files: sorted(files, key=lambda file: (file.group, file.size)))


def test_bins_of_a_partition() -> None:
    files = [PackedFile("a", size) for size in (1, 2, 3, 5)] + [PackedFile("b", 1)]
    assert packed(files, capacity=6) == [range(3)]
    assert packed(files, capacity=11) == [range(4)]
    assert packed([PackedFile("a", 9, is_worth_it=True)], capacity=6) == [range(1)]
    assert packed([], capacity=6) == []


@given(FILES, st.integers(1, 30))
def test_bins_hold_what_fits(files: list[PackedFile], capacity: int) -> None:
    bins = packed(files, capacity=capacity)
    inside = [index for each in bins for index in each]
    assert inside == sorted(set(inside))
    for each in bins:
        assert len({files[index].group for index in each}) == 1
        assert len(each) > 1 or files[each.start].is_worth_it
        assert len(each) == 1 or sum(files[index].size for index in each) <= capacity
    assert not [n for n, file in enumerate(files) if file.is_worth_it and n not in inside]


@given(FILES, st.integers(1, 60), st.integers(1, 10), st.integers(1, 5))
def test_batches_keep_all_bins_within_limits(
    files: list[PackedFile], max_bytes: int, max_files: int, max_bins: int
) -> None:
    bins = packed(files, capacity=20)
    limits = {"max_bytes": max_bytes, "max_files": max_files, "max_bins": max_bins}
    found = list(batches(bins, files, **limits))
    assert [each for batch in found for each in batch] == bins
    for batch in found:
        assert len(batch) <= max_bins
        indexes = [index for each in batch for index in each]
        within = sum(files[n].size for n in indexes) <= max_bytes and len(indexes) <= max_files
        assert within or len(batch) == 1
