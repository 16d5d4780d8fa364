"""Tests of the tags that describe the contents of sidecars."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkdelta.table.checkpoint.sidecar_tag_rules import SidecarTags, may_hold, parse_sidecar_tags

ADDS = SidecarTags(
    num_adds=3, num_removes=0, fingerprint="f", partition_values='{"a":1}', add_bytes=30
)
REMOVES = SidecarTags(num_adds=0, num_removes=2, fingerprint="f", first_deletion=5, last_deletion=9)
OLDER = replace(ADDS, add_bytes=None)


@pytest.mark.parametrize("tags", [ADDS, REMOVES, OLDER])
def test_they_come_back(tags: SidecarTags) -> None:
    """PROTOCOL.md#sidecar-file-information"""
    wire = tags.as_tags()
    assert all(name.startswith("sparkdelta.") for name in wire)
    assert parse_sidecar_tags(wire) == tags


@pytest.mark.parametrize(
    "change",
    [
        {"sparkdelta.numAdds": ""},
        {"sparkdelta.numRemoves": "x"},
        {"sparkdelta.numRemoves": "-1"},
        {"sparkdelta.minDeletionTimestamp": "?"},
    ],
)
def test_tags_in_part_are_another_writers(change: dict[str, str]) -> None:
    assert parse_sidecar_tags({**REMOVES.as_tags(), **change}) is None


def test_tags_of_others() -> None:
    assert parse_sidecar_tags({}) is None
    assert may_hold({}, "add")
    assert may_hold({}, "remove")


def test_tags_show_the_kinds_of_actions_in_a_sidecar() -> None:
    assert may_hold(ADDS.as_tags(), "add")
    assert not may_hold(ADDS.as_tags(), "remove")
    assert may_hold(REMOVES.as_tags(), "remove")
    assert not may_hold(REMOVES.as_tags(), "add")
