"""Files on HDFS by the few verbs of `pathlib` that tests of the log use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True, order=True)
class HdfsPath:
    """A path of the file system at `server`."""

    spark: SparkSession = field(compare=False, repr=False)
    server: str
    path: PurePosixPath

    def __truediv__(self, name: str) -> HdfsPath:
        return HdfsPath(self.spark, self.server, self.path / name)

    @property
    def uri(self) -> str:
        return f"{self.server}{self.path}"

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def parent(self) -> HdfsPath:
        return HdfsPath(self.spark, self.server, self.path.parent)

    def exists(self) -> bool:
        return bool(self._system.exists(self._java))

    def is_file(self) -> bool:
        return bool(self._system.getFileStatus(self._java).isFile())

    def mkdir(self, *, parents: bool = True) -> None:
        assert parents
        assert self._system.mkdirs(self._java)

    def read_bytes(self) -> bytes:
        stream = self._system.open(self._java)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write_bytes(self, data: bytes) -> None:
        stream = self._system.create(self._java, True)
        stream.write(data)
        stream.close()

    def write_text(self, text: str) -> None:
        self.write_bytes(text.encode())

    def set_time(self, time_ms: int) -> None:
        self._system.setTimes(self._java, time_ms, -1)

    def unlink(self, *, missing_ok: bool) -> None:
        assert self._system.delete(self._java, False) or missing_ok

    def rglob(self, pattern: str) -> Iterator[HdfsPath]:
        assert pattern == "*"
        for status in self._system.listStatus(self._java):
            found = self / status.getPath().getName()
            yield found
            if status.isDirectory():
                yield from found.rglob(pattern)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    @property
    def _java(self) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.uri)

    @property
    def _system(self) -> Any:
        configuration = self.spark.sparkContext._jsc.hadoopConfiguration()
        return self._java.getFileSystem(configuration)
