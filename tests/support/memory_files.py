"""A table's files in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass
class MemoryFiles:
    """`StoredFiles` in a dictionary."""

    files: dict[str, bytes] = field(default_factory=dict)

    @contextmanager
    def create(self, path: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        yield content
        self.files[path] = content.getvalue()

    def open(self, path: str) -> pa.NativeFile:
        if path not in self.files:
            raise FileNotFoundError(path)
        return pa.BufferReader(self.files[path])
