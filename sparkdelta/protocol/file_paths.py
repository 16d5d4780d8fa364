"""The paths of files in the log: URIs, relative to the table's root or absolute.

`frames.log.file_keys` has the same rules for columns; `tests/contracts/test_paths.py` compares the
two.

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
    """The path that a URI of the log stands for; a plus sign is a plus sign.

    Examples
    --------
    >>> decode_path("a%20b+c/p%3D1%252F2.parquet")
    'a b+c/p=1%2F2.parquet'
    """
    return unquote(uri_path)


def is_absolute(path: str) -> bool:
    """Whether a path does not depend on the table's root.

    A colon alone does not make a path absolute: directories of partitions hold times of day.

    Examples
    --------
    >>> is_absolute("s3a://b/f"), is_absolute("/f"), is_absolute("t=12:30/f")
    (True, True, False)
    """
    return path.startswith("/") or _SCHEME.match(path) is not None


def resolve(table_root: str, path: str) -> str:
    """Where a file of the log is: its decoded path, below the table's root unless it is absolute.

    Parameters
    ----------
    table_root
        The table's root as Spark names it, decoded.

    Examples
    --------
    >>> resolve("file:/my table", "p%20q/f.parquet"), resolve("s3a://b/t", "/u/f.parquet")
    ('file:/my table/p q/f.parquet', 's3a://b/u/f.parquet')
    """
    canonical = canonical_path(path, table_root)
    return canonical if is_absolute(path) else f"{table_root.rstrip('/')}/{canonical}"


def canonical_path(path: str, table_root: str) -> str:
    """The key of a file: equal for all spellings of one path of the log.

    An absolute path has scheme and authority, those of the table's root where it names none, and no
    empty authority; a relative one stays relative.

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
    """What comes before the path of a location: ``s3a://bucket`` of ``s3a://bucket/table``."""
    match = _LOCATION.match(table_root)
    if match is None:
        return ""
    return f"{match['scheme']}:" + (f"//{match['authority']}" if match["authority"] else "")


def plain_path(path: str) -> str:
    """One spelling of a path or URI: Hadoop folds slashes, and its listings add an empty
    authority.
    """
    scheme, colon, rest = path.partition(":")
    if not rest.startswith("//") or rest.startswith("///"):
        return f"{scheme}{colon}{re.sub('/+', '/', rest)}"
    return f"{scheme}://{re.sub('/+', '/', rest[2:])}"
