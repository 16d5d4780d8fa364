"""Version checksums against the reference model, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.reference_model import State


def assert_checksums(table: str) -> list[int]:
    """Every version checksum of a table whose log has all commits is right.

    Returns
    -------
    list of int
        The versions that have one.
    """
    log, state, checked = Path(table, "_delta_log"), State(), []
    for version in range(len([p for p in log.glob("*.json") if p.stem.isdigit()])):
        lines = (log / f"{version:020d}.json").read_text(encoding="utf-8").splitlines()
        state.apply([json.loads(line) for line in lines])
        file = log / f"{version:020d}.crc"
        if not file.exists():
            continue
        found = json.loads(file.read_text(encoding="utf-8"))
        checked.append(version)
        sizes = [add["size"] for add in state.adds.values()]
        wanted = {
            "numFiles": len(sizes),
            "tableSizeBytes": sum(sizes),
            "protocol": (state.protocol or {})["protocol"],
            "setTransactions": sorted(state.transactions.values(), key=lambda t: t["appId"]),
            "domainMetadata": sorted(state.live_domains.values(), key=lambda d: d["domain"]),
        }
        assert {name: found.get(name) for name in wanted} == wanted
        assert found["metadata"] == (state.metadata or {})["metaData"]
        assert sum(found["fileSizeHistogram"]["fileCounts"]) == len(sizes)
        assert sum(found["fileSizeHistogram"]["totalBytes"]) == sum(sizes)
        assert lines[0].count(found["txnId"]) == 1
        if "allFiles" in found:
            paths = {add["path"] for add in state.adds.values()}
            assert {add["path"] for add in found["allFiles"]} == paths
    return checked
