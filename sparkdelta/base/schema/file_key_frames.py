"""SQL for the identity of a logical file: canonical path and unique id of the deletion vector.

`base.protocol.file_paths` implements the same rules in Python;
`tests/base/protocol/test_path_contracts.py` compares the two.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#derived-fields
"""

from __future__ import annotations

from sparkdelta.base.protocol.file_paths import scheme_and_authority
from sparkdelta.base.schema.sql_text import text_literal


def canonical_path(path: str, *, table_root: str) -> str:
    """Return SQL (STRING) for `base.protocol.file_paths.canonical_path`."""
    decoded = decoded_path(path)
    root = text_literal(f"{scheme_and_authority(table_root)}/")
    return (
        f"CASE WHEN startswith({path}, '/') "
        f"THEN concat({root}, trim(LEADING '/' FROM {decoded})) "
        f"WHEN startswith({path}, 'file:/') THEN regexp_replace({decoded}, '^file:/+', 'file:/') "
        f"ELSE {decoded} END"
    )


def is_absolute(uri: str) -> str:
    """Return SQL (BOOLEAN) for `base.protocol.file_paths.is_absolute`."""
    return f"regexp_like({uri}, '^(/|[a-zA-Z][a-zA-Z0-9+.-]*:/)')"


def decoded_path(path: str) -> str:
    """Return SQL (STRING) for `base.protocol.file_paths.decode_path`."""
    # url_decode decodes "+" to a space, as in forms. A path with a malformed escape is unchanged.
    return (
        f"CASE WHEN contains({path}, '%') "
        f"THEN coalesce(try_url_decode(replace({path}, '+', '%2B')), {path}) ELSE {path} END"
    )


def deletion_vector_id(deletion_vector: str) -> str:
    """Return SQL for `deletionVector.uniqueId` (STRING); empty without a deletion vector."""
    vector = f"({deletion_vector})"
    offset = f"CAST({vector}.`offset` AS string)"
    unique_id = (
        f"concat({vector}.storageType, {vector}.pathOrInlineDv, "
        f"coalesce(concat('@', {offset}), ''))"
    )
    return f"CASE WHEN {vector}.storageType IS NULL THEN '' ELSE coalesce({unique_id}, '') END"


def absolute_path(path: str, *, table_root: str) -> str:
    """Return SQL (STRING) for the absolute, decoded path of a file in the log."""
    canonical = canonical_path(path, table_root=table_root)
    return (
        f"CASE WHEN {is_absolute(path)} THEN {canonical} "
        f"ELSE concat({text_literal(f'{table_root}/')}, {canonical}) END"
    )


def plain_path(path: str) -> str:
    """Return SQL (STRING) for `base.protocol.file_paths.plain_path` of an absolute path."""
    # Two slashes after the scheme begin an authority, three or more do not.
    without_authority = f"regexp_replace({path}, '^([^:/]*:)/{{3,}}', '$1/')"
    single = f"regexp_replace({without_authority}, '(?<!^[^:/]{{0,40}}:)/+', '/')"
    return f"CASE WHEN contains({path}, '//') THEN {single} ELSE {path} END"
