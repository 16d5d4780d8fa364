"""The identity of a logical file: its canonical path and the unique id of its deletion vector.

`protocol.file_paths` has the same rules for values; `tests/contracts/test_paths.py` compares the
two.
"""

from __future__ import annotations

from sparkdelta.protocol.file_paths import scheme_and_authority
from sparkdelta.schema.sql_text import text_literal


def canonical_path(path: str, *, table_root: str) -> str:
    """Equal for all spellings of one path in the log; see `protocol.file_paths.canonical_path`.

    Parameters
    ----------
    path
        STRING, in SQL, as what is returned.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    decoded = decoded_path(path)
    root = text_literal(f"{scheme_and_authority(table_root)}/")
    return (
        f"CASE WHEN startswith({path}, '/') "
        f"THEN concat({root}, trim(LEADING '/' FROM {decoded})) "
        f"WHEN startswith({path}, 'file:/') THEN regexp_replace({decoded}, '^file:/+', 'file:/') "
        f"ELSE {decoded} END"
    )


def decoded_path(path: str) -> str:
    """The path that a URI of the log stands for; see `protocol.file_paths.decode_path`.

    Parameters
    ----------
    path
        STRING, in SQL, as what is returned.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    # url_decode is for forms: it takes "+" for a blank. A malformed escape stays as it is.
    return (
        f"CASE WHEN contains({path}, '%') "
        f"THEN coalesce(try_url_decode(replace({path}, '+', '%2B')), {path}) ELSE {path} END"
    )


def deletion_vector_id(deletion_vector: str) -> str:
    """`deletionVector.uniqueId`, and an empty string where there is no deletion vector.

    Parameters
    ----------
    deletion_vector
        STRUCT, in SQL, as what is returned.

    References
    ----------
    PROTOCOL.md#derived-fields
    """
    vector = f"({deletion_vector})"
    offset = f"CAST({vector}.offset AS string)"
    unique_id = (
        f"concat({vector}.storageType, {vector}.pathOrInlineDv, "
        f"coalesce(concat('@', {offset}), ''))"
    )
    return f"CASE WHEN {vector}.storageType IS NULL THEN '' ELSE coalesce({unique_id}, '') END"


def absolute_path(path: str, *, table_root: str) -> str:
    """Where a file of the log is: its path, decoded, under the table's root unless it is absolute.

    Parameters
    ----------
    path
        STRING, in SQL, as what is returned.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    canonical = canonical_path(path, table_root=table_root)
    return (
        f"CASE WHEN regexp_like({path}, '^(/|[a-zA-Z][a-zA-Z0-9+.-]*:/)') THEN {canonical} "
        f"ELSE concat({text_literal(f'{table_root}/')}, {canonical}) END"
    )
