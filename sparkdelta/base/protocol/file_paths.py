"""File paths in the log: URIs that are absolute or relative to the table's root.

`base.schema.file_key_frames` implements the same rules for columns;
`tests/base/protocol/test_path_contracts.py` compares the two.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

import re
from urllib.parse import unquote

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(?=/)")
_LOCATION = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):(?://(?P<authority>[^/]*))?")


def decode_path(uri_path: str) -> str:
    """Decode the percent-encoding of a URI in the log, where a plus sign stands for itself."""
    return unquote(uri_path)


def is_absolute(path: str) -> bool:
    """Return True if a path does not depend on the table's root.

    A colon alone does not make a path absolute, because partition directories can contain times of
    day.

    Examples
    --------
    >>> is_absolute("s3a://b/f"), is_absolute("/f"), is_absolute("t=12:30/f")
    (True, True, False)
    """
    return path.startswith("/") or _SCHEME.match(path) is not None


def resolve(table_root: str, path: str) -> str:
    """Return the decoded, absolute path of a file, given its URI-encoded path in the log.

    Examples
    --------
    >>> resolve("file:/my table", "p%20q/f.parquet"), resolve("s3a://b/t", "/u/f.parquet")
    ('file:/my table/p q/f.parquet', 's3a://b/u/f.parquet')
    """
    canonical = canonical_path(path, table_root)
    return canonical if is_absolute(path) else f"{table_root.rstrip('/')}/{canonical}"


def canonical_path(path: str, table_root: str) -> str:
    """Return the canonical form of a path in the log, equal for all spellings of one path.

    An absolute path without scheme gets the scheme and authority of the table's root, and empty
    authorities are removed; a relative path stays relative.

    Examples
    --------
    >>> {canonical_path(p, "file:/t") for p in ("file:///a%20b", "file:/a b", "/a%20b")}
    {'file:/a b'}
    """
    decoded = decode_path(path)
    if path.startswith("/"):
        return f"{scheme_and_authority(table_root)}/{decoded.lstrip('/')}"
    if scheme := _SCHEME.match(path):
        if scheme[0].lower() == "file:":
            return f"file:/{decoded[len(scheme[0]) :].lstrip('/')}"
        return decoded
    return decoded


def scheme_and_authority(table_root: str) -> str:
    """Return the part of a location before its path: ``s3a://bucket`` of ``s3a://bucket/table``."""
    match = _LOCATION.match(table_root)
    if match is None:
        return ""
    return f"{match['scheme']}:" + (f"//{match['authority']}" if match["authority"] else "")


def plain_path(path: str) -> str:
    """Return a URI or path with repeated slashes collapsed and an empty authority removed.

    Hadoop collapses slashes as well, and its listings add an empty authority.

    Examples
    --------
    >>> plain_path("file:///t//f"), plain_path("s3a://b//t//f"), plain_path("//t//f")
    ('file:/t/f', 's3a://b/t/f', '/t/f')
    """
    match = _LOCATION.match(path)
    return scheme_and_authority(path) + re.sub("/+", "/", path[match.end() if match else 0 :])
