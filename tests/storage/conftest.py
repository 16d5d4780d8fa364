"""One table's log for every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.log_writer import set_time

FILES = {
    "00000000000000000000.json": b'{"a":1}\n',
    "00000000000000000001.json": b"",
    "00000000000000000001.checkpoint.parquet": b"PAR1",
    "_last_checkpoint": b"{}",
    "00000000000000000002.crc": bytes(range(256)),
}


@pytest.fixture(params=["table", "my table %20+[x]{y}"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The directory of a log with some files and a directory that looks like a commit."""
    directory = tmp_path / request.param / "_delta_log"
    directory.mkdir(parents=True)
    for name, content in FILES.items():
        (directory / name).write_bytes(content)
        set_time(directory / name, 1_700_000_000_123)
    (directory / "00000000000000000009.json").mkdir()
    (directory / "_sidecars").mkdir()
    (directory / "_sidecars" / "s.parquet").write_bytes(b"side")
    return directory
