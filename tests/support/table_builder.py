"""Small Delta tables made by hand: data files by pyarrow, deletion vectors by pyroaring.

Nothing here uses the package under test.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from tests.support.log_writer import Action, write_commit

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = 1681511377

ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row_id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row_commit_version",
}
"""Properties of a table whose data files may store row ids and row commit versions."""


def field(
    name: str, data_type: Any, *, nullable: bool = True, metadata: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A field of a schemaString."""
    return {
        "name": name,
        "type": data_type,
        "nullable": nullable,
        "metadata": dict(metadata or {}),
    }


def struct_of(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """A struct type of a schemaString."""
    return {"type": "struct", "fields": list(fields)}


def array_of(element: Any) -> dict[str, Any]:
    """An array type of a schemaString."""
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    """A map type of a schemaString."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


ID = field("id", "long")
"""The schema of tables for which columns do not matter."""


def protocol(
    reader: int = 1, writer: int = 2, features: Sequence[str] | None = None
) -> dict[str, Any]:
    """A protocol action; with features, of versions 3 and 7."""
    if features is None:
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
    writer_only = {
        "inCommitTimestamp",
        "rowTracking",
        "domainMetadata",
        "clustering",
        "generatedColumns",
    }
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [name for name in features if name not in writer_only],
            "writerFeatures": list(features),
        }
    }


def metadata(
    *fields: Mapping[str, Any],
    partitioned_by: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    table_id: str = "0",
) -> dict[str, Any]:
    """A metaData action."""
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct_of(*(fields or (ID,)))),
            "partitionColumns": list(partitioned_by),
            "configuration": dict(configuration or {}),
            "createdTime": 1_600_000_000_000,
        }
    }


def add(path: str, **fields: Any) -> dict[str, Any]:
    """An add action, of a file that need not exist."""
    defaults = {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": {"path": path, **defaults, **fields}}


def remove(path: str, **fields: Any) -> dict[str, Any]:
    """A remove action."""
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **fields}}


def removal_of(action: Action, **fields: Any) -> dict[str, Any]:
    """The remove action of an add action's logical file."""
    vector = action["add"].get("deletionVector")
    known = {} if vector is None else {"deletionVector": vector}
    return remove(action["add"]["path"], **known, **fields)


def write_data(
    table: Path,
    name: str,
    rows: pa.Table,
    partition_values: Mapping[str, str | None] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Write a data file and return its add action."""
    file = table / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)
    return add(
        quote(name, safe="/=:+"),
        partitionValues=dict(partition_values or {}),
        size=file.stat().st_size,
        stats=json.dumps({"numRecords": rows.num_rows}),
        **fields,
    )


def ids(start: int, stop: int) -> pa.Table:
    """Rows of the one column `id`."""
    return pa.table({"id": pa.array(range(start, stop), pa.int64())})


def bitmap(positions: Iterable[int]) -> bytes:
    """A deletion vector as the protocol stores it, by pyroaring.

    PROTOCOL.md#deletion-vector-format
    """
    by_high: dict[int, list[int]] = {}
    for position in positions:
        by_high.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    parts = [struct.pack("<iq", _MAGIC, len(by_high))]
    for high in sorted(by_high):
        parts += [struct.pack("<I", high), BitMap(by_high[high]).serialize()]
    return b"".join(parts)


def vector_file(*bitmaps: bytes) -> tuple[bytes, list[int]]:
    """The content of a deletion vector file, and the offset of each vector in it.

    PROTOCOL.md#deletion-vector-file-storage-format
    """
    content, offsets = bytearray([1]), []
    for data in bitmaps:
        offsets.append(len(content))
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    return bytes(content), offsets


def z85(data: bytes) -> str:
    """Base85 in ZeroMQ's alphabet, filled up with zeros."""
    padded = data + bytes(-len(data) % 4)
    text = []
    for (number,) in struct.iter_unpack(">I", padded):
        text += [_Z85[number // 85**place % 85] for place in range(4, -1, -1)]
    return "".join(text)


def inline_vector(positions: Sequence[int]) -> dict[str, Any]:
    """A descriptor that holds its deletion vector."""
    data = bitmap(positions)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data),
        "sizeInBytes": len(data),
        "cardinality": len(set(positions)),
    }


def write_vectors(
    table: Path, *positions: Sequence[int], number: int = 1, prefix: str = ""
) -> list[dict[str, Any]]:
    """Write one deletion vector file and return the descriptors of its vectors (type `u`)."""
    uuid_bytes = number.to_bytes(16, "big")
    text = uuid_bytes.hex()
    uuid = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    bitmaps = [bitmap(p) for p in positions]
    content, offsets = vector_file(*bitmaps)
    file = table / prefix / f"deletion_vector_{uuid}.bin"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return [
        {
            "storageType": "u",
            "pathOrInlineDv": prefix + z85(uuid_bytes),
            "offset": offset,
            "sizeInBytes": len(data),
            "cardinality": len(set(deleted)),
        }
        for offset, data, deleted in zip(offsets, bitmaps, positions, strict=True)
    ]


def vector_path(table: Path, descriptor: Mapping[str, Any]) -> Path:
    """The only deletion vector file below a table's root."""
    (file,) = table.rglob("deletion_vector_*.bin")
    return file


def create(table: Path, *actions: Action, **metadata_fields: Any) -> Path:
    """Version 0 of a table with the column `id`: protocol 1/2, metaData and the given actions."""
    write_commit(table, 0, [protocol(), metadata(**metadata_fields), *actions])
    return table
