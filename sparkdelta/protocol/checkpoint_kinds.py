"""The kinds of checkpoints that are written, and which of them a table gets.

References
----------
PROTOCOL.md#checkpoint-specs, PROTOCOL.md#checkpoint-naming-scheme
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.log_files import LogFile, LogFileKind, Version, classic_checkpoint_name
from sparkdelta.protocol.table_features import TableFeature, is_supported

CHECKPOINT_POLICY = "delta.checkpointPolicy"
WRITE_STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
WRITE_STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"

CLASSIC_NAME_INTERVAL = 100
"""Of the V2 checkpoints of this many versions at least one has the classic name, by which clients
without the feature find the protocol and fail clearly."""

MAX_JSON_SIDECARS = 10_000
"""A checkpoint with more sidecars is Parquet at the top level, which executors read; JSON is read
by the driver, without a job."""


class CheckpointKind(Enum):
    """Spec and name of a checkpoint.

    References
    ----------
    PROTOCOL.md#allowed-combinations-for-checkpoint-spec---checkpoint-file-naming
    """

    CLASSIC = "classic"
    V2_CLASSIC = "v2-classic"
    V2_JSON = "v2-json"
    V2_PARQUET = "v2-parquet"

    @property
    def is_v2(self) -> bool:
        return self is not CheckpointKind.CLASSIC

    @property
    def is_json(self) -> bool:
        return self is CheckpointKind.V2_JSON

    @property
    def has_classic_name(self) -> bool:
        return self in (CheckpointKind.CLASSIC, CheckpointKind.V2_CLASSIC)

    def file_name(self, version: Version, uuid: str) -> str:
        """The name of the checkpoint's own file."""
        if self.has_classic_name:
            return classic_checkpoint_name(version)
        return f"{version:020d}.checkpoint.{uuid}.{'json' if self.is_json else 'parquet'}"


def checkpoint_kind(
    asked: str | None, protocol: Protocol, configuration: Mapping[str, str]
) -> CheckpointKind:
    """The kind that is asked for, or else that the table's policy says; V2_JSON stands for V2.

    Raises
    ------
    InvalidArgumentError
        There is no such kind, or the table does not have the feature that it needs.

    References
    ----------
    PROTOCOL.md#v2-checkpoint-table-feature, PROTOCOL.md#table-properties
    """
    has_feature = is_supported(protocol, TableFeature.V2_CHECKPOINT)
    if asked is None:
        wants_v2 = configuration.get(CHECKPOINT_POLICY, "").lower() == "v2"
        return CheckpointKind.V2_JSON if wants_v2 and has_feature else CheckpointKind.CLASSIC
    kinds = {kind.value: kind for kind in CheckpointKind}
    if asked not in kinds:
        problem = f"{asked!r} is not one of {', '.join(kinds)}"
        raise InvalidArgumentError(argument="kind", problem=problem)
    if kinds[asked].is_v2 and not has_feature:
        problem = (
            f"{asked} requires the table feature v2Checkpoint, which the table does not support"
        )
        raise InvalidArgumentError(argument="kind", problem=problem)
    return kinds[asked]


def needs_classic_name(files: Collection[LogFile], version: Version) -> bool:
    """Whether a V2 checkpoint should have the classic name this time, given the log's files.

    References
    ----------
    PROTOCOL.md#handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints
    """
    first = version - CLASSIC_NAME_INTERVAL
    return not any(
        file.kind is LogFileKind.CLASSIC_CHECKPOINT and first < file.version <= version
        for file in files
    )
