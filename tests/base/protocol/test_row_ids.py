"""Assignment of fresh row ids."""

from __future__ import annotations

import pytest

from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.row_ids import with_row_ids
from tests.support.errors import raises


def add(stats: str | None) -> AddFile:
    return AddFile("f", {}, 1, 0, True, stats)


def test_files_get_consecutive_row_ids() -> None:
    adds = [add(f'{{"numRecords":{count}}}') for count in (3, 0, 2)]
    assigned, mark = with_row_ids(adds, mark=9, version=7, path="file:/t")
    assert [each.base_row_id for each in assigned] == [10, 13, 13]
    assert {each.default_row_commit_version for each in assigned} == {7}
    assert mark == 14


@pytest.mark.parametrize(
    "stats", [None, "", "{", "[1]", "{}", *(f'{{"numRecords":{n}}}' for n in ("-1", "1.5", "true"))]
)
def test_a_file_without_a_number_of_rows_is_refused(stats: str | None) -> None:
    with raises("DELTA_INVALID_COMMIT"):
        with_row_ids([add(stats)], mark=9, version=7, path="file:/t")
