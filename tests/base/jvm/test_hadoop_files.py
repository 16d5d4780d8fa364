"""Files that the driver reads through Hadoop: what Arrow reads, where it reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta.base.jvm import jvm_scans
from sparkdelta.base.jvm.hadoop import SessionHadoop
from sparkdelta.base.jvm.hadoop_files import HadoopFiles
from sparkdelta.base.storage.worker_files import ArrowFiles


@pytest.fixture
def files(spark: SparkSession) -> HadoopFiles:
    return HadoopFiles(SessionHadoop(spark), {})


def test_a_file_is_read_at_any_place(files: HadoopFiles, tmp_path: Path) -> None:
    path = tmp_path / "my file%20"
    path.write_bytes(bytes(range(256)) * 2)
    with files.open(f"file:{path}") as file:
        assert file.size() == 512
        assert file.read_at(3, 510) == b"\xfe\xff"
        file.seek(256)
        assert file.read() == bytes(range(256))
        assert file.read(1) == b""
    with pytest.raises(FileNotFoundError):
        files.open(f"file:{tmp_path}/gone")


def test_field_ids_are_matched_by_the_reader_that_always_does(spark: SparkSession) -> None:
    """Whatever the user's session was built with: a sibling begins with that."""
    known = jvm_scans.scan_session(spark, by_id=True).conf().getAll()
    for reader in ("enableVectorizedReader", "enableNestedColumnVectorizedReader"):
        assert known.get(f"spark.sql.parquet.{reader}").get() == "true"


def test_sizes(files: HadoopFiles, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"123")
    assert files.size(f"file:{tmp_path}/f") == 3
    assert files.size(f"file:{tmp_path}/gone") is None
    assert files.size(f"file:{tmp_path}") is None
    with pytest.raises(OSError, match="nowhere"):
        files.size("nowhere://host/f")


def test_the_same_data_files(files: HadoopFiles, tmp_path: Path) -> None:
    """Hadoop and workers list the same files, without those that Spark hides."""
    shown = ["a.parquet", "p=1/q=%20/c.parquet", "p=_x/b c.parquet"]
    for name in [*shown, "_h.parquet", ".x/d.parquet", "_t/e.parquet", "f.crc"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), tmp_path / name)
    directory = f"file:{tmp_path}"
    found = files.data_files(directory)
    assert found == ArrowFiles().data_files(directory)
    assert [path for path, *_ in found] == [f"{directory}/{name}" for name in shown]
    with files.open(found[0][0]) as file:
        assert pq.ParquetFile(file).metadata.num_rows == 1
    assert files.data_files(f"{directory}/gone") == []


@pytest.mark.full
def test_the_same_entries(files: HadoopFiles, tmp_path: Path) -> None:
    for name in ("a b", "d/e", "_h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = sorted(files.entries(f"file:{tmp_path}"))
    assert [entry[:2] for entry in found] == [("_h", False), ("a b", False), ("d", True)]
    assert [entry for entry in found if not entry.is_directory] == [
        entry for entry in sorted(ArrowFiles().entries(f"file:{tmp_path}")) if entry.name != "d"
    ]
    assert files.entries(f"file:{tmp_path}/gone") == []
