"""The rules of VACUUM: names that it passes over, its retention period and its last run.

References
----------
PROTOCOL.md#vacuum-protocol-check, PROTOCOL.md#data-files
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping

from sparkdelta.base.protocol.file_paths import scheme_and_authority
from sparkdelta.base.protocol.log_files import Version, is_data_directory
from sparkdelta.base.protocol.retention import deleted_file_retention_ms
from sparkdelta.exceptions import VacuumRetentionNegativeError, VacuumRetentionTooShortError

LAST_VACUUM_INFO = "_last_vacuum_info"
"""The file in `_delta_log` about the last run, as delta-spark names it."""

HOUR_MS = 3_600_000

KNOWN_HIDDEN = ("_delta_index", "_change_data")
"""Prefixes of the names that belong to the table in spite of the underscore."""

UNFINISHED = "_temporary"
"""The directories in which Spark keeps new files until a write is complete."""

UNIFORM_METADATA = "metadata"
"""The directory of Iceberg metadata."""

_UNIFORM_FORMATS = "delta.universalFormat.enabledFormats"
_COVERED_VERSION = "latestCommitVersionOutsideOfRetentionWindow"
_LOGGED_SCHEMES = frozenset({"wasb", "wasbs", "abfs", "abfss", "adl", "gs", "file", "hdfs"})


def is_passed_over(
    name: str, partition_columns: Collection[str], *, is_uniform: bool, directory: str = ""
) -> bool:
    """True if VACUUM leaves alone a file or directory of this name.

    Parameters
    ----------
    directory
        The path of its directory below the table's root. What a write of this package left when
        its process died is not passed over.
    partition_columns
        Logical and physical names; a directory ``_c=1`` belongs to column ``_c``.
    is_uniform
        True if the table has Iceberg metadata in `metadata`.

    Examples
    --------
    >>> [is_passed_over(n, ["_c"], is_uniform=False) for n in ("_log", "_c=1", "_change_data", "f")]
    [True, False, False, False]
    >>> written = "data-3a0d65cd-4056-49b8-937b-95f9e3ee90e5/_temporary/0"
    >>> [is_passed_over("_temporary", [], is_uniform=False, directory=d) for d in ("", written)]
    [True, False]
    """
    if name == UNFINISHED and any(map(is_data_directory, directory.split("/"))):
        return False
    if name == UNIFORM_METADATA:
        return is_uniform
    return (
        name.startswith(("_", "."))
        and not name.startswith(KNOWN_HIDDEN)
        and not any(name.startswith(f"{column}=") for column in partition_columns)
    )


def has_uniform_metadata(properties: Mapping[str, str]) -> bool:
    """True if the table keeps Iceberg metadata beside its data files."""
    return "iceberg" in properties.get(_UNIFORM_FORMATS, "").lower()


def vacuum_retention_ms(
    hours: float | None, properties: Mapping[str, str], *, path: str, is_checked: bool
) -> int:
    """Return the retention period of a run in milliseconds.

    Parameters
    ----------
    hours
        By default that of `delta.deletedFileRetentionDuration`.
    is_checked
        True if it must not be shorter than the property.

    Raises
    ------
    VacuumRetentionNegativeError, VacuumRetentionTooShortError

    Examples
    --------
    >>> vacuum_retention_ms(None, {}, path="t", is_checked=True) // HOUR_MS
    168
    """
    least = deleted_file_retention_ms(properties)
    if hours is None:
        return least
    if not 0 <= hours < math.inf:
        raise VacuumRetentionNegativeError(path=path, hours=hours)
    wanted = int(hours * HOUR_MS)
    if is_checked and wanted < least:
        raise VacuumRetentionTooShortError(
            path=path, hours=hours, least_hours=math.ceil(least / HOUR_MS)
        )
    return wanted


def is_logged(table_root: str) -> bool:
    """True if delta-spark commits the start and end of VACUUM to storage of this kind."""
    scheme = scheme_and_authority(table_root).partition(":")[0].lower()
    return scheme in _LOGGED_SCHEMES


def last_vacuum_bytes(version: Version | None) -> bytes:
    """Serialize the newest version of which VACUUM has deleted all removed files.

    Examples
    --------
    >>> last_vacuum_bytes(5)
    b'{"latestCommitVersionOutsideOfRetentionWindow":5}'
    """
    document = {} if version is None else {_COVERED_VERSION: version}
    return json.dumps(document, separators=(",", ":")).encode()


def parse_last_vacuum(content: bytes) -> Version | None:
    """Parse `last_vacuum_bytes`; None if it names no version or is not valid.

    Examples
    --------
    >>> parse_last_vacuum(last_vacuum_bytes(5)), parse_last_vacuum(b"{}"), parse_last_vacuum(b"x")
    (5, None, None)
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    version = document.get(_COVERED_VERSION) if isinstance(document, dict) else None
    return version if type(version) is int and version >= 0 else None
