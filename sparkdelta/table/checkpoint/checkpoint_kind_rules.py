"""The kinds of checkpoints that are written, and the choice among them.

References
----------
PROTOCOL.md#checkpoint-specs, PROTOCOL.md#checkpoint-naming-scheme,
PROTOCOL.md#allowed-combinations-for-checkpoint-spec---checkpoint-file-naming,
PROTOCOL.md#v2-checkpoint-table-feature, PROTOCOL.md#table-properties,
PROTOCOL.md#handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.log_files import (
    LogFile,
    LogFileKind,
    Version,
    classic_checkpoint_name,
)
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.exceptions import InvalidArgumentError

CHECKPOINT_POLICY = "delta.checkpointPolicy"
WRITE_STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
WRITE_STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"

CLASSIC_NAME_INTERVAL = 100
"""Number of versions within which at least one V2 checkpoint gets the classic name.

Clients that do not support V2 checkpoints find the table's protocol in it and fail with a clear
error."""

MAX_JSON_SIDECARS = 10_000
"""Highest number of sidecars of a V2 checkpoint with a JSON top-level file.

The driver reads JSON without a Spark job; with more sidecars the top-level file is Parquet, which
executors read."""


class CheckpointKind(Enum):
    """The spec (classic or V2) and naming scheme of a checkpoint."""

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
        """Return the name of the checkpoint's top-level file."""
        if self.has_classic_name:
            return classic_checkpoint_name(version)
        return f"{version:020d}.checkpoint.{uuid}.{'json' if self.is_json else 'parquet'}"


def checkpoint_kind(
    requested: str | None, protocol: Protocol, configuration: Mapping[str, str]
) -> CheckpointKind:
    """Return the requested kind of checkpoint, or by default the kind of the table's policy.

    For the policy ``v2`` the kind is V2_JSON.
    """
    has_feature = is_supported(protocol, TableFeature.V2_CHECKPOINT)
    if requested is None:
        wants_v2 = configuration.get(CHECKPOINT_POLICY, "").lower() == "v2"
        return CheckpointKind.V2_JSON if wants_v2 and has_feature else CheckpointKind.CLASSIC
    kinds = {kind.value: kind for kind in CheckpointKind}
    if requested not in kinds:
        problem = f"{requested!r} is not one of {', '.join(kinds)}"
        raise InvalidArgumentError(argument="kind", problem=problem)
    if kinds[requested].is_v2 and not has_feature:
        problem = (
            f"{requested} requires the table feature v2Checkpoint, which the table does not support"
        )
        raise InvalidArgumentError(argument="kind", problem=problem)
    return kinds[requested]


def needs_classic_name(files: Collection[LogFile], version: Version) -> bool:
    """Return True if the V2 checkpoint of a version should have the classic name.

    `files` are a listing of the log.
    """
    first = version - CLASSIC_NAME_INTERVAL
    return not any(
        file.kind is LogFileKind.CLASSIC_CHECKPOINT and first < file.version <= version
        for file in files
    )
