"""Files of any Hadoop file system on the driver, through the JVM of classic Spark."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError

from sparkdelta.base.jvm.hadoop import Hadoop
from sparkdelta.base.jvm.jvm import (
    hadoop_path,
    is_not_found,
    storage_errors,
    texts,
)
from sparkdelta.base.protocol.file_paths import scheme_and_authority
from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.storage.log_store import FileEntry, in_parallel
from sparkdelta.base.storage.table_files import MOVE_ATTEMPTS, relative_directory, relative_path
from sparkdelta.base.storage.worker_files import StoredEntry, is_data_file

_FILE_STATUS = re.compile(
    r"FileStatus\{path=(?P<path>.*?); isDirectory=(?P<directory>true|false)"
    r"(?:; length=(?P<length>\d+).*?)?; modification_time=(?P<modified>\d+);",
    re.DOTALL,
)


_MAX_PIECE = 4 << 20
"""The most bytes that one call moves from or to the JVM, which encodes them in memory."""


class Listed(NamedTuple):
    """The status of a file or directory in a Hadoop listing."""

    name: str
    is_directory: bool
    size_bytes: int
    modification_time_ms: int


def listed(jvm: Any, statuses: Any) -> list[Listed]:
    """Convert an array of Hadoop file statuses in one JVM call. Three calls per file would take one
    second per 1,000 files.
    """
    matches = list(_FILE_STATUS.finditer(texts(jvm, statuses)))
    if len(matches) == len(statuses):
        return [
            Listed(
                match["path"].rpartition("/")[2],
                match["directory"] == "true",
                int(match["length"] or 0),
                int(match["modified"]),
            )
            for match in matches
        ]
    return [
        Listed(s.getPath().getName(), s.isDirectory(), s.getLen(), s.getModificationTime())
        for s in statuses
    ]


def renaming(
    hadoop: Hadoop, path: Any, hadoop_conf: Mapping[str, str], *, overwriting: bool = False
) -> Callable[[Any, Any], None]:
    """Return a function that renames files and directories of the file system of a path: Hadoop's
    `FileContext`, as a rename of `FileSystem` may overwrite or fail silently.
    """
    jvm = hadoop.jvm
    rename = getattr(jvm.org.apache.hadoop.fs, "Options$Rename")
    options = hadoop.gateway.new_array(rename, 1)
    options[0] = rename.OVERWRITE if overwriting else rename.NONE
    configuration = hadoop.configuration(hadoop_conf)
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), configuration)

    def renamed(source: Any, target: Any) -> None:
        context.rename(source, target, options)

    return renamed


@dataclass(frozen=True, slots=True)
class HadoopFiles:
    """`WorkerFiles` of any Hadoop file system, on the driver, or with a `WorkerHadoop`.

    For storages that Arrow cannot open by itself, such as HDFS.
    """

    hadoop: Hadoop
    hadoop_conf: Mapping[str, str]
    _file_systems: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file at an absolute, decoded path for random access.

        Raises
        ------
        FileNotFoundError
            The file does not exist.
        """
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(errno.ENOENT, "no such data file", path)
        with storage_errors(path):
            stream = self._file_system(path).open(hadoop_path(self.hadoop.jvm, path))
        return pa.PythonFile(_HadoopFile(self.hadoop.jvm, stream, size), mode="r")

    def create(self, path: str) -> pa.NativeFile:
        """Create a file at an absolute, decoded path and open it for writing."""
        with storage_errors(path):
            stream = self._file_system(path).create(hadoop_path(self.hadoop.jvm, path), False)
        return pa.PythonFile(_NewHadoopFile(stream), mode="w")

    def size(self, path: str) -> int | None:
        """Return the size in bytes of a file at an absolute, decoded path, or None if it does not
        exist.

        Raises
        ------
        OSError
            The file system fails.
        """
        try:
            status = self._status(path)
        except Py4JJavaError as error:
            if is_not_found(error):
                return None
            raise OSError(str(error.java_exception)) from error
        return int(status.getLen()) if status.isFile() else None

    def modification_time(self, path: str) -> int:
        with storage_errors(path):
            return int(self._status(path).getModificationTime())

    def is_near(self, path: str) -> bool:  # noqa: ARG002 - all files are behind the JVM
        return False

    def delete(self, path: str, *, is_directory: bool) -> bool:
        system, place = self._file_system(path), hadoop_path(self.hadoop.jvm, path)
        try:
            with storage_errors(path):
                if is_directory and len(system.listStatus(place)):
                    return False
                return bool(system.delete(place, False))
        except FileNotFoundError:
            return False

    def data_files(self, directory: str) -> list[tuple[str, int, int]]:
        """List data files as `WorkerFiles.data_files` does."""
        system = self._file_system(directory)
        files = (
            (f"{directory}/{entry.name}", entry.size_bytes, entry.modification_time_ms)
            for entry in files_below(self.hadoop, system, directory)
        )
        return sorted(file for file in files if is_data_file(file[0].removeprefix(directory)))

    def entries(self, directory: str) -> list[StoredEntry]:
        """List entries as `WorkerFiles.entries` does."""
        found = _children(self.hadoop, self._file_system(directory), directory)
        return [StoredEntry(*entry) for entry in found]

    def _status(self, path: str) -> Any:
        return self._file_system(path).getFileStatus(hadoop_path(self.hadoop.jvm, path))

    def _file_system(self, path: str) -> Any:
        """Return the file system of a path; it is cached because creating a Hadoop configuration
        takes milliseconds.
        """
        where = scheme_and_authority(path)
        if where not in self._file_systems:
            configuration = self.hadoop.configuration(self.hadoop_conf)
            self._file_systems[where] = hadoop_path(self.hadoop.jvm, path).getFileSystem(
                configuration
            )
        return self._file_systems[where]


def files_below(hadoop: Hadoop, system: Any, root: str, directory: str = "") -> Iterator[FileEntry]:
    """Yield the files below a directory of a root, without the log, while they are
    listed; the names are paths relative to the root.
    """
    pending = [directory]
    while pending:
        directory = pending.pop()
        prefix = f"{directory}/" if directory else ""
        for entry in _children(hadoop, system, f"{root}/{directory}"):
            name = f"{prefix}{entry.name}"
            if not entry.is_directory:
                yield FileEntry(name, entry.size_bytes, entry.modification_time_ms)
            elif name != LOG_DIRECTORY:
                pending.append(name)


def _children(hadoop: Hadoop, system: Any, directory: str) -> list[Listed]:
    """Return the entries of a directory; none if it does not exist."""
    try:
        with storage_errors(directory):
            statuses = system.listStatus(hadoop_path(hadoop.jvm, directory))
    except FileNotFoundError:
        return []
    return listed(hadoop.jvm, statuses)


@dataclass(frozen=True, slots=True)
class HadoopTableFiles:
    """`TableFiles` on any Hadoop file system of the session.

    On HDFS and object stores there are no symbolic links; on a local disk Hadoop follows them.
    """

    hadoop: Hadoop
    table_root: str
    hadoop_conf: Mapping[str, str]
    can_move: bool = False

    def list_files(self, directory: str = "") -> Iterator[FileEntry]:
        relative = relative_directory(self.table_root, directory)
        if relative and self.stat(relative) is not None:  # Hadoop lists a file as itself
            return iter(())
        return files_below(self.hadoop, self._file_system(), self.table_root, relative)

    def stat(self, path: str) -> FileEntry | None:
        relative = relative_path(self.table_root, path)
        try:
            with storage_errors(path):
                status = self._file_system().getFileStatus(self._path(relative))
        except FileNotFoundError:
            return None
        if not status.isFile():
            return None
        return FileEntry(relative, status.getLen(), status.getModificationTime())

    def delete(self, paths: Sequence[str]) -> None:
        found = [self._path(relative_path(self.table_root, path)) for path in paths]
        with storage_errors(self.table_root):
            system = self._file_system()
            in_parallel(lambda path: system.delete(path, False), found)

    def delete_directory(self, directory: str) -> None:
        path = self._path(relative_path(self.table_root, directory))
        with storage_errors(self.table_root):
            self._file_system().delete(path, True)

    def copy(self, source: str, target: str) -> None:
        paths = [self._path(relative_path(self.table_root, path)) for path in (source, target)]
        if self.stat(source) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        jvm = self.hadoop.jvm
        system, configuration = self._file_system(), self.hadoop.configuration({})
        copy = jvm.org.apache.hadoop.fs.FileUtil.copy
        with storage_errors(self.table_root):
            if system.exists(paths[1]):  # FileUtil would copy into a directory
                raise _exists(target)
            try:
                copy(system, paths[0], system, paths[1], False, False, configuration)
            except Py4JJavaError as error:
                if "AlreadyExists" in str(error.java_exception.getClass().getName()):
                    raise _exists(target) from None
                system.delete(paths[1], False)
                raise

    def move(self, moves: Mapping[str, str]) -> None:
        rename = renaming(self.hadoop, self._path(""), self.hadoop_conf)
        system = self._file_system()

        def move(names: tuple[str, str]) -> None:
            source, target = (self._path(relative_path(self.table_root, name)) for name in names)
            for attempt in range(MOVE_ATTEMPTS):
                try:
                    with storage_errors(names[0]):
                        rename(source, target)
                    return
                except FileNotFoundError:
                    if attempt + 1 == MOVE_ATTEMPTS or not system.exists(source):
                        raise
                with storage_errors(names[1]):
                    system.mkdirs(target.getParent())

        in_parallel(move, [*moves.items()])

    def move_directory(self, source: str, target: str) -> None:
        self.move({source: target})

    def _path(self, relative: str) -> Any:
        return hadoop_path(self.hadoop.jvm, f"{self.table_root}/{relative}")

    def _file_system(self) -> Any:
        with storage_errors(self.table_root):
            return self._path("").getFileSystem(self.hadoop.configuration(self.hadoop_conf))


def _exists(path: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, "the file exists", path)


class _HadoopFile(io.RawIOBase):
    """A Hadoop input stream with the interface of Python files."""

    def __init__(self, jvm: Any, stream: Any, size: int) -> None:
        self._read_bytes = jvm.org.apache.commons.io.IOUtils.toByteArray
        self._stream, self._size, self._place = stream, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._place, 0)
        wanted = left if size < 0 else min(size, left)
        self._stream.seek(self._place)
        self._place += wanted
        found = bytearray()
        while len(found) < wanted:
            piece = min(_MAX_PIECE, wanted - len(found))
            found += self._read_bytes(self._stream, piece)
        return bytes(found)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class _NewHadoopFile(io.RawIOBase):
    """A Hadoop output stream with the interface of Python files."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        pending = memoryview(data).cast("B")
        for start in range(0, len(pending), _MAX_PIECE):
            self._stream.write(bytearray(pending[start : start + _MAX_PIECE]))
        return len(pending)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
