"""Files of a Delta log, written by hand: what they hold is what the test says, valid or not."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Action = Mapping[str, Any]

_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _MAP),
        ("deletionVector", _VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
    ]
)
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("deletionVector", _VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("createdTime", pa.int64()),
        ("configuration", _MAP),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
DOMAIN = pa.struct(
    [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
)
SIDECAR = pa.struct(
    [
        ("path", pa.string()),
        ("sizeInBytes", pa.int64()),
        ("modificationTime", pa.int64()),
        ("tags", _MAP),
    ]
)
CHECKPOINT_METADATA = pa.struct([("version", pa.int64()), ("tags", _MAP)])

CHECKPOINT = pa.schema(
    [
        ("txn", TXN),
        ("add", ADD),
        ("remove", REMOVE),
        ("metaData", METADATA),
        ("protocol", PROTOCOL),
        ("domainMetadata", DOMAIN),
        ("checkpointMetadata", CHECKPOINT_METADATA),
        ("sidecar", SIDECAR),
    ]
)
"""The columns of a checkpoint, PROTOCOL.md#checkpoint-schema."""

UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def log_directory(table: Path) -> Path:
    """The table's log, made if need be."""
    directory = table / "_delta_log"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def json_lines(actions: Sequence[Action]) -> str:
    """One action per line, as in a commit."""
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def write_commit(
    table: Path, version: int, actions: Sequence[Action] | str, *, time_ms: int | None = None
) -> Path:
    """`<version>.json`; a text is written as it is, no actions as an empty line.

    Its modification time is 1,000 s after that of the version before, unless given.
    """
    text = actions if isinstance(actions, str) else json_lines(actions) or "\n"
    file = log_directory(table) / f"{version:020d}.json"
    file.write_text(text, encoding="utf-8")
    set_time(file, 1_700_000_000_000 + version * 1_000_000 if time_ms is None else time_ms)
    return file


def set_time(file: Path, time_ms: int) -> None:
    """Set a modification time to the millisecond."""
    os.utime(file, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def write_compaction(table: Path, start: int, end: int, actions: Sequence[Action]) -> Path:
    """`<start>.<end>.compacted.json`."""
    file = log_directory(table) / f"{start:020d}.{end:020d}.compacted.json"
    file.write_text(json_lines(actions), encoding="utf-8")
    return file


def write_checksum(table: Path, version: int, document: Mapping[str, Any] | str) -> Path:
    """`<version>.crc`."""
    file = log_directory(table) / f"{version:020d}.crc"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


def write_last_checkpoint(table: Path, document: Mapping[str, Any] | str) -> Path:
    """`_last_checkpoint`."""
    file = log_directory(table) / "_last_checkpoint"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


def write_checkpoint(table: Path, version: int, actions: Sequence[Action]) -> Path:
    """A classic checkpoint."""
    file = log_directory(table) / f"{version:020d}.checkpoint.parquet"
    write_parquet(file, actions)
    return file


def write_parts(table: Path, version: int, parts: Sequence[Sequence[Action]]) -> list[Path]:
    """A multi-part checkpoint."""
    files = []
    for number, actions in enumerate(parts, 1):
        name = f"{version:020d}.checkpoint.{number:010d}.{len(parts):010d}.parquet"
        files.append(log_directory(table) / name)
        write_parquet(files[-1], actions)
    return files


def write_v2_checkpoint(
    table: Path,
    version: int,
    actions: Sequence[Action],
    *,
    sidecars: Sequence[Sequence[Action]] = (),
    as_json: bool = False,
    uuid: str | None = UUID,
) -> Path:
    """A V2 checkpoint, UUID-named or (without `uuid`) classic-named; file actions in sidecars."""
    top: list[Action] = [{"checkpointMetadata": {"version": version, "tags": {}}}, *actions]
    for number, part in enumerate(sidecars):
        name = f"{version:08d}{number:08d}-{UUID}.parquet"
        directory = log_directory(table) / "_sidecars"
        directory.mkdir(exist_ok=True)
        write_parquet(directory / name, part, columns=("add", "remove"))
        size = (directory / name).stat().st_size
        top.append({"sidecar": {"path": name, "sizeInBytes": size, "modificationTime": 1}})
    middle = "" if uuid is None else f".{uuid}"
    extension = "json" if as_json else "parquet"
    file = log_directory(table) / f"{version:020d}.checkpoint{middle}.{extension}"
    if as_json:
        file.write_text(json_lines(top), encoding="utf-8")
    else:
        write_parquet(file, top)
    return file


def write_parquet(
    file: Path, actions: Sequence[Action], *, columns: Sequence[str] = tuple(CHECKPOINT.names)
) -> None:
    """Actions as rows, a column for each kind."""
    arrays = [
        pa.array([_value(a.get(name), CHECKPOINT.field(name).type) for a in actions],
                 CHECKPOINT.field(name).type)
        for name in columns
    ]  # fmt: skip
    pq.write_table(pa.table(arrays, names=list(columns)), file)


def _value(value: Any, data_type: pa.DataType) -> Any:
    """Maps as pyarrow wants them, and nothing that the type does not have."""
    if value is None:
        return None
    if pa.types.is_struct(data_type):
        return {field.name: _value(value.get(field.name), field.type) for field in data_type}
    if pa.types.is_map(data_type):
        return list(value.items())
    return value
