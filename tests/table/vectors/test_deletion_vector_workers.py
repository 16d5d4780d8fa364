"""Bitmaps decoded on executors against pyroaring, and what travels to the workers."""

from __future__ import annotations

import pickletools
import random
import subprocess
import sys
from typing import Any

import pytest
from pyroaring import BitMap
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.exceptions import from_message
from sparkdelta.table.vectors import deletion_vector_workers
from sparkdelta.table.vectors.deletion_vector_workers import decode_deletion_vectors, is_deleted
from tests.support.errors import is_error
from tests.support.table_builder import bitmap, inline_vector, vector_file, z85

VECTORS = (
    "content BINARY, descriptors ARRAY<STRUCT<file: STRING, storageType: STRING, "
    "pathOrInlineDv: STRING, offset: INT, sizeInBytes: INT, cardinality: BIGINT>>"
)
LAST = 300_001
SETS: dict[str, list[int]] = {
    "one": [0],
    "edges of chunks": [65_535, 65_536, 131_071, 131_072],
    "edges of words": [63, 64, 127, 128],
    "a run": list(range(1000, 90_000)),
    "every second, dense": list(range(0, 70_000, 2)),
    "sparse and far": [5, 3_000_000],
    "random": sorted(random.Random(1).sample(range(300_000), 5_000)),
    "nothing": [],
}


def _descriptor(file: str, data: bytes, offset: int | None, count: int) -> dict[str, Any]:
    return {
        "file": file, "storageType": "u", "pathOrInlineDv": z85(bytes(16)), "offset": offset,
        "sizeInBytes": len(data), "cardinality": count,
    }  # fmt: skip


@pytest.mark.slow
def test_bitmaps_against_pyroaring(spark: SparkSession) -> None:
    """One content with many vectors, and every vector inline too. PROTOCOL.md#deletion-vectors"""
    bitmaps = {name: bitmap(positions) for name, positions in SETS.items()}
    content, offsets = vector_file(*bitmaps.values())
    stored = [
        _descriptor(name, data, offset, len(SETS[name]))
        for (name, data), offset in zip(bitmaps.items(), offsets, strict=True)
    ]
    inline = [
        {"file": f"inline {name}", "offset": None, **inline_vector(positions)}
        for name, positions in SETS.items()
        if len(positions) < 10
    ]
    frame = spark.createDataFrame([(content, stored), (None, inline)], VECTORS)
    decoded = decode_deletion_vectors(frame)
    indexes = decoded.select(
        "file", "chunks", F.explode(F.sequence(F.lit(0), F.lit(LAST))).alias("n")
    )
    positions = indexes.filter(is_deleted("chunks", "CAST(n AS BIGINT)"))
    found = {
        row["file"]: BitMap(row["n"])
        for row in positions.groupBy("file").agg(F.collect_list("n").alias("n")).collect()
    }
    expected = {name: BitMap(p for p in positions if p <= LAST) for name, positions in SETS.items()}
    expected |= {f"inline {n}": expected[n] for n in SETS if len(SETS[n]) < 10}
    assert found == {name: positions for name, positions in expected.items() if positions}


def test_a_file_without_a_bitmap_loses_nothing(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr(is_deleted("CAST(NULL AS ARRAY<ARRAY<BIGINT>>)", "id"))
    assert {row[0] for row in frame.collect()} == {False}


DATA = bitmap([1, 2, 3])
CONTENT, (OFFSET,) = vector_file(DATA)


def _changed(index: int) -> bytes:
    changed = bytearray(CONTENT)
    changed[index] ^= 0xFF
    return bytes(changed)


BROKEN: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "checksum": ("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH", _changed(-1), {}),
    "data": ("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH", _changed(-6), {}),
    "version": ("DELTA_DELETION_VECTOR_INVALID_FORMAT", _changed(0), {}),
    "size in the file": ("DELTA_DELETION_VECTOR_SIZE_MISMATCH", _changed(4), {}),
    "size in the log": (
        "DELTA_DELETION_VECTOR_SIZE_MISMATCH",
        CONTENT,
        {"sizeInBytes": len(DATA) - 1},
    ),
    "cut short": ("DELTA_DELETION_VECTOR_SIZE_MISMATCH", CONTENT[:-2], {}),
    "offset beyond": ("DELTA_DELETION_VECTOR_SIZE_MISMATCH", CONTENT, {"offset": 1000}),
    "no content": ("DELTA_DELETION_VECTOR_INVALID_FORMAT", b"", {}),
    "cardinality": ("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH", CONTENT, {"cardinality": 2}),
    "magic": (
        "DELTA_DELETION_VECTOR_INVALID_FORMAT",
        vector_file(b"\x00" + DATA[1:])[0],
        {},
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_damage_is_an_error(spark: SparkSession, what: str) -> None:
    """PROTOCOL.md#deletion-vector-file-storage-format"""
    expected, content, changes = BROKEN[what]
    descriptor = {**_descriptor("f", DATA, OFFSET, 3), **changes}
    frame = spark.createDataFrame([(content, [descriptor])], VECTORS)
    with pytest.raises(PySparkException) as raised:
        decode_deletion_vectors(frame).collect()
    assert is_error(from_message(str(raised.value)), expected)


def test_workers_need_not_have_the_package() -> None:
    """Nothing in the serialized decoder is imported from the package."""
    pickled = cloudpickle.dumps(deletion_vector_workers._decode)
    modules = set()
    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "STACK_GLOBAL":
            modules.add(strings[-2])
        elif opcode.name == "GLOBAL":
            modules.add(str(argument).split(" ")[0])
        elif isinstance(argument, str):
            strings.append(argument)
    assert "numpy" in pickled.decode("latin-1"), "the test looks at the wrong thing"
    assert not [name for name in modules if name.split(".")[0] == "sparkdelta"]


PROGRAM = """
import pickle, sys
assert not [name for name in sys.modules if name.startswith("sparkdelta")]
sys.modules["sparkdelta"] = None
decode = pickle.load(open(sys.argv[1], "rb"))
import pandas as pd
batch = pd.DataFrame({"content": [None], "descriptors": [[{
    "file": "f", "storageType": "i", "pathOrInlineDv": sys.argv[2], "offset": None,
    "sizeInBytes": int(sys.argv[3]), "cardinality": int(sys.argv[4])}]]})
for frame in decode(iter([batch])):
    print(frame["file"][0], len(frame["chunks"][0]))
"""


def test_the_decoder_runs_where_the_package_is_not(tmp_path: Any) -> None:
    vector = inline_vector([3, 70_000])
    file = tmp_path / "decoder.pickle"
    file.write_bytes(cloudpickle.dumps(deletion_vector_workers._decode))
    for cardinality, expected in ((2, "f 2"), (3, "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH")):
        arguments = [str(file), vector["pathOrInlineDv"], str(vector["sizeInBytes"])]
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments, str(cardinality)],
            capture_output=True, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert expected in result.stdout + result.stderr
