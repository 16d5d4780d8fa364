"""Assignment of fresh row ids, and the high water mark of assigned ones.

`table.commit.row_id_frames` implements the same rule for commits with too many files for the
driver; `tests/table/commit/test_row_id_frames.py` compares the two.

References
----------
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.wide_statistics import num_records
from sparkdelta.base.protocol.wire_values import optional_integer
from sparkdelta.exceptions import DeltaError, MalformedLogFileError

ROW_TRACKING_DOMAIN = "delta.rowTracking"
NO_ROW_IDS = -1
MAX_ROW_ID = 2**63 - 1


def high_water_mark(domain: DomainMetadata | None, *, path: str, version: Version) -> int:
    """Return the highest row id that was ever assigned, or -1 if none was.

    A domain without a high water mark is an error: new row ids might be duplicates.
    """
    if domain is None or domain.removed:
        return NO_ROW_IDS
    document = domain.document(path=path, version=version)
    mark = optional_integer(document.get("rowIdHighWaterMark", document.get("highWaterMark")))
    if mark is None:
        problem = f"{ROW_TRACKING_DOMAIN} has no high water mark: {domain.configuration}"
        raise MalformedLogFileError(path=path, version=version, problem=problem)
    return mark


def high_water_mark_domain(mark: int) -> DomainMetadata:
    """Return the domain for a high water mark, with the field name that existing engines read."""
    configuration = json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":"))
    return DomainMetadata(ROW_TRACKING_DOMAIN, configuration)


def with_row_ids(
    adds: Sequence[AddFile], *, mark: int, version: Version, path: str
) -> tuple[tuple[AddFile, ...], int]:
    """Assign row ids and commit versions to adds that have none, which need `numRecords`.

    Parameters
    ----------
    mark
        The high water mark before the commit.
    version
        The version of the commit.

    Returns
    -------
    tuple
        All adds, and the new high water mark.
    """
    assigned = []
    for add in adds:
        if add.base_row_id is not None:  # a file that is committed again keeps its row ids
            assigned.append(add)
            continue
        count = num_records(add.stats)
        if count is None:
            raise DeltaError.of(
                "DELTA_INVALID_COMMIT",
                path=path,
                problem=f"{add.path} has no numRecords, which row ids require",
            )
        base = mark + 1
        assigned.append(replace(add, base_row_id=base, default_row_commit_version=version))
        mark += count
    return tuple(assigned), mark
