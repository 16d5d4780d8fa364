"""Tables of many rows, plain, partitioned and with deletion vectors: what scans are measured on."""

from __future__ import annotations

import json
import os
import shutil
import struct
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tests.support.bitmaps import encode

STORED = {
    "id": ("long", "id"),
    "quantity": ("integer", "CAST(pmod(xxhash64(id), 1000) AS INT)"),
    "amount": ("double", "rand(7) * 1000"),
    "customer": ("long", "pmod(xxhash64(id, 1), 1000000)"),
    "is_paid": ("boolean", "id % 7 = 0"),
    "city": ("string", "concat('city-', pmod(xxhash64(id, 2), 500))"),
    "note": ("string", "substr(md5(CAST(id AS STRING)), 1, 12)"),
    "at": ("timestamp", "timestamp_micros(1700000000000000 + id * 1000000)"),
}
"""Eight columns: their type in the table's schema, and what Spark computes them from."""

PARTITION = "region"


def stored_rows(ids: DataFrame) -> DataFrame:
    """The rows with these ids, with the columns of `STORED`."""
    return ids.selectExpr(*(f"{sql} AS {name}" for name, (_, sql) in STORED.items()))


def write_data_files(
    spark: SparkSession, directory: Path, *, files: int, rows_per_file: int
) -> list[Path]:
    """Parquet files with the columns of `STORED`, each with the same number of rows."""
    rows = spark.range(0, files * rows_per_file, 1, files)
    stored_rows(rows).write.parquet(str(directory / "parts"))
    written = []
    for number, part in enumerate(sorted((directory / "parts").glob("*.parquet"))):
        written.append(part.rename(directory / f"part-{number:05}.parquet"))
    shutil.rmtree(directory / "parts")
    return written


def write_table(files: Sequence[Path], root: Path, *, rows_per_file: int) -> None:
    """Make the directory of `files` a table: version 0 has them all, with bounds of `id`."""
    adds = [_add(file.name, file, rows_per_file, bounds=_bounds(file)) for file in files]
    write_commit(root, 0, [*_opening([]), *adds])


def write_partitioned_table(
    files: Sequence[Path], root: Path, *, rows_per_file: int, directories: int
) -> None:
    """A table with the same files, linked, in partition directories."""
    values = [f"region-{number % directories}" for number in range(len(files))]
    names = [f"{PARTITION}={value}/{file.name}" for value, file in zip(values, files, strict=True)]
    _write_linked(files, root, names, values, rows_per_file)


def write_mixed_table(
    files: Sequence[Path], root: Path, *, rows_per_file: int, tuples: int
) -> None:
    """Write a table as `write_partitioned_table` does, with all files in one directory."""
    values = [f"region-{number % tuples}" for number in range(len(files))]
    _write_linked(files, root, [file.name for file in files], values, rows_per_file)


def _write_linked(
    files: Sequence[Path], root: Path, names: Sequence[str], values: Sequence[str], rows: int
) -> None:
    adds = []
    for file, name, value in zip(files, names, values, strict=True):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(file, root / name)
        adds.append(_add(name, file, rows, {PARTITION: value}))
    write_commit(root, 0, [*_opening([PARTITION]), *adds])


def write_small_files(spark: SparkSession, root: Path, *, files: int) -> list[str]:
    """A table of files with few rows, links to one another; their paths. Made once."""
    paths = [root / f"part-{number:06}.parquet" for number in range(files)]
    if not (root / "_delta_log").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        (original,) = write_data_files(spark, root / "original", files=1, rows_per_file=10)
        for number, path in enumerate(paths):
            if number % 10_000 == 0:  # file systems bound the links of one file
                last = path
                shutil.copy(original, path)
            else:
                os.link(last, path)
        shutil.rmtree(root / "original")
        write_table(paths, root, rows_per_file=10)
    return [str(path) for path in paths]


def write_deletion_vectors(
    files: Sequence[Path], root: Path, *, rows_per_file: int, fractions: Sequence[float]
) -> list[int]:
    """One more version of a table for each fraction of rows to delete, spread evenly.

    Returns
    -------
    list of int
        How many rows are left at each version.
    """
    random = np.random.default_rng(7)
    before: list[dict[str, Any] | None] = [None] * len(files)
    left = []
    for version, fraction in enumerate(fractions, start=1):
        vectors = []
        for _ in files:
            keep = random.random(rows_per_file) >= fraction
            vectors.append(np.flatnonzero(~keep))
        descriptors = write_vectors(root, vectors)
        actions = []
        for file, old, new in zip(files, before, descriptors, strict=True):
            remove = {"path": file.name, "deletionTimestamp": 0, "dataChange": True}
            actions.append({"remove": remove | ({"deletionVector": old} if old else {})})
            add = _add(file.name, file, rows_per_file)
            add["add"]["deletionVector"] = new
            actions.append(add)
        write_commit(root, version, actions)
        before = list(descriptors)
        left.append(len(files) * rows_per_file - sum(len(vector) for vector in vectors))
    return left


def write_vectors(root: Path, vectors: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """One file with a deletion vector for every data file; their descriptors."""
    path = root / f"deletion_vector_{uuid.uuid4()}.bin"
    content = bytearray([1])
    descriptors = []
    for vector in vectors:
        data = encode(vector)
        descriptors.append(
            {
                "storageType": "p",
                "pathOrInlineDv": path.as_uri(),
                "offset": len(content),
                "sizeInBytes": len(data),
                "cardinality": len(vector),
            }
        )
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    path.write_bytes(content)
    return descriptors


def _bounds(file: Path) -> dict[str, Any]:
    metadata = pq.read_metadata(file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    ids = [group.column(list(STORED).index("id")).statistics for group in groups]
    return {
        "minValues": {"id": min(each.min for each in ids)},
        "maxValues": {"id": max(each.max for each in ids)},
    }


def _add(
    name: str,
    file: Path,
    rows: int,
    partition_values: dict[str, str] | None = None,
    bounds: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "add": {
            "path": name,
            "partitionValues": partition_values or {},
            "size": file.stat().st_size,
            "modificationTime": file.stat().st_mtime_ns // 1_000_000,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows, **(bounds or {})}),
        }
    }


def _opening(partition_columns: list[str]) -> list[dict[str, Any]]:
    types = {name: data_type for name, (data_type, _) in STORED.items()}
    types |= dict.fromkeys(partition_columns, "string")
    fields = [
        {"name": name, "type": data_type, "nullable": True, "metadata": {}}
        for name, data_type in types.items()
    ]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": partition_columns,
        "configuration": {"delta.enableDeletionVectors": "true"},
    }
    return [{"protocol": protocol}, {"metaData": metadata}]


def write_commit(root: Path, version: int, actions: Sequence[dict[str, Any]]) -> None:
    log = root / "_delta_log"
    log.mkdir(exist_ok=True)
    info = {"commitInfo": {"timestamp": 0, "operation": "WRITE", "engineInfo": "benchmark"}}
    lines = [json.dumps(action) + "\n" for action in (info, *actions)]
    (log / f"{version:020}.json").write_text("".join(lines), encoding="utf-8")
