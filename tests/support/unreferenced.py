"""The files of a table on a local disk that no commit names, and whether they were reported."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

from sparkdelta.base.protocol.deletion_vectors import dv_file_name


def unreferenced(path: str) -> list[Path]:
    """Data files, change data files and deletion vectors, relative to the table."""
    named = set()
    for log in Path(path, "_delta_log").glob("*.json"):
        for action in map(json.loads, log.read_text().splitlines()):
            file = action.get("add") or action.get("cdc") or {}
            vector = file.get("deletionVector", {}).get("pathOrInlineDv")
            named |= {unquote(file["path"])} if file else set()
            named |= {dv_file_name(vector)} if vector else set()
    files = (f for kind in ("parquet", "bin") for f in Path(path).rglob(f"*.{kind}"))
    found = [f.relative_to(path) for f in files if "_delta_log" not in f.parts]
    return [file for file in found if str(file) not in named]


def assert_reported(path: str, log: str) -> list[Path]:
    """Return `unreferenced`, which a log names, or the directories where they lie."""
    files = unreferenced(path)
    for file in files:
        places = [str(Path(path, place)) for place in (file, *[*file.parents][:-1])]
        assert any(place in log for place in places), file
    return files
