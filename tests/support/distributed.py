"""Scans by executors alone, however few files there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from sparkdelta.table.scan import Scan


@contextmanager
def distributed_scans() -> Iterator[None]:
    """Make every scan of a block a distributed one."""
    with patch.object(Scan, "_rows", Scan._distributed_rows):
        yield
