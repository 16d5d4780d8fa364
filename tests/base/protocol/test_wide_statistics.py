"""Statistics of files that get a deletion vector.

PROTOCOL.md#per-file-statistics
"""

import json

import pytest

from sparkdelta.base.protocol.wide_statistics import num_records, wide_statistics

BOUNDS = '"minValues":{"a":1.10,"s":"é"},"maxValues":{"a":12345678901234567890.123456789}'

DEEP = "[" * 100_000


def widened(stats, rows=10, deleted=0):
    return wide_statistics(stats, num_records=rows, cardinality=deleted)


def test_bounds_and_unknown_members_stay_as_they_are():
    text = f'{{"numRecords":10,{BOUNDS},"new":[1E5,{{"x":null}},true],"nullCount":{{"a":0}}'
    assert widened(f'{text},"tightBounds":true}}') == f'{text},"tightBounds":false}}'


def test_text_is_not_escaped_but_lone_surrogates_are():
    """Whoever wrote the bounds, delta-rs takes some escaped characters for others."""
    stats = '{"numRecords":10,"minValues":{"\\ud840\\udc00":"\\ud840\\udc00"},"new":"\\ud840"'
    expected = '{"numRecords":10,"minValues":{"𠀀":"𠀀"},"new":"\\ud840"'
    assert widened(f"{stats}}}") == f'{expected},"tightBounds":false}}'


@pytest.mark.parametrize("tight", [',"tightBounds":true', ""])
def test_a_column_of_nulls_only_stays_one(tight):
    """Bounds are tight unless stated otherwise; the count of wide bounds is that of all rows."""
    counts = {"all": 7, "some": 3, "none": 0, "s": {"all": 7, "some": 6}}
    stats = f'{{"numRecords":10,"nullCount":{json.dumps(counts)}{tight}}}'
    found = json.loads(widened(stats, deleted=3))
    expected = {"all": 10, "some": 3, "none": 0, "s": {"all": 10, "some": 6}}
    assert found == {"numRecords": 10, "nullCount": expected, "tightBounds": False}


def test_wide_statistics_are_not_widened_twice():
    stats = '{"numRecords":10,"nullCount":{"a":7,"b":10},"tightBounds":false}'
    assert widened(stats, deleted=3) == stats


@pytest.mark.parametrize("stats", [None, "", "no JSON", "[]", "{}", '{"numRecords":null}', DEEP])
def test_files_without_statistics_get_their_number_of_rows(stats):
    """PROTOCOL.md#writer-requirement-for-deletion-vectors"""
    assert num_records(stats) is None
    assert widened(stats) == '{"numRecords":10,"tightBounds":false}'


@pytest.mark.parametrize(
    ("text", "known"), [("12", 12), ("-1", None), ("1.5", None), ("true", None)]
)
def test_the_number_of_rows(text, known):
    assert num_records(f'{{"numRecords":{text}}}') == known
