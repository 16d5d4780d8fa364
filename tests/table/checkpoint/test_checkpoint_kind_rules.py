"""Tests of the kind of checkpoint that a table gets, and of its name."""

from __future__ import annotations

import pytest

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.log_files import LogFileKind, parse_log_file
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.table.checkpoint.checkpoint_kind_rules import (
    CLASSIC_NAME_INTERVAL,
    CheckpointKind,
    checkpoint_kind,
    needs_classic_name,
)

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
PLAIN = Protocol(1, 2)
V2 = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))
POLICY = {"delta.checkpointPolicy": "v2"}


@pytest.mark.parametrize(
    ("asked", "protocol", "configuration", "wanted"),
    [
        (None, PLAIN, {}, CheckpointKind.CLASSIC),
        (None, V2, {}, CheckpointKind.CLASSIC),
        (None, V2, POLICY, CheckpointKind.V2_JSON),
        (None, V2, {"delta.checkpointPolicy": "V2"}, CheckpointKind.V2_JSON),
        (None, V2, {"delta.checkpointPolicy": "classic"}, CheckpointKind.CLASSIC),
        # A property counts only where its feature is supported.
        (None, PLAIN, POLICY, CheckpointKind.CLASSIC),
        ("classic", V2, POLICY, CheckpointKind.CLASSIC),
        ("v2-parquet", V2, {}, CheckpointKind.V2_PARQUET),
        ("v2-classic", V2, {}, CheckpointKind.V2_CLASSIC),
    ],
)
def test_kinds(
    asked: str | None,
    protocol: Protocol,
    configuration: dict[str, str],
    wanted: CheckpointKind,
) -> None:
    """PROTOCOL.md#v2-checkpoint-table-feature"""
    assert checkpoint_kind(asked, protocol, configuration) is wanted


@pytest.mark.parametrize(("asked", "protocol"), [("v2-json", PLAIN), ("multi-part", V2)])
def test_kinds_that_cannot_be(asked: str, protocol: Protocol) -> None:
    """PROTOCOL.md#uuid-named-checkpoint, PROTOCOL.md#multi-part-checkpoint"""
    with pytest.raises(InvalidArgumentError):
        checkpoint_kind(asked, protocol, {})


@pytest.mark.parametrize(
    ("kind", "name", "scheme"),
    [
        ("classic", f"{10:020d}.checkpoint.parquet", LogFileKind.CLASSIC_CHECKPOINT),
        ("v2-classic", f"{10:020d}.checkpoint.parquet", LogFileKind.CLASSIC_CHECKPOINT),
        ("v2-json", f"{10:020d}.checkpoint.{UUID}.json", LogFileKind.UUID_CHECKPOINT),
        ("v2-parquet", f"{10:020d}.checkpoint.{UUID}.parquet", LogFileKind.UUID_CHECKPOINT),
    ],
)
def test_names(kind: str, name: str, scheme: LogFileKind) -> None:
    """PROTOCOL.md#allowed-combinations-for-checkpoint-spec---checkpoint-file-naming"""
    assert CheckpointKind(kind).file_name(10, UUID) == name
    parsed = parse_log_file(name)
    assert parsed is not None
    assert (parsed.kind, parsed.version) == (scheme, 10)


def test_old_clients_find_a_classic_name_now_and_then() -> None:
    """PROTOCOL.md#handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints"""
    version = 3 * CLASSIC_NAME_INTERVAL

    def log(*names: str) -> list[object]:
        return [parse_log_file(name) for name in names]

    assert needs_classic_name([], version)
    assert needs_classic_name(log(f"{version - 1:020d}.checkpoint.{UUID}.json"), version)
    old = version - CLASSIC_NAME_INTERVAL
    assert needs_classic_name(log(f"{old:020d}.checkpoint.parquet"), version)
    assert not needs_classic_name(log(f"{old + 1:020d}.checkpoint.parquet"), version)
