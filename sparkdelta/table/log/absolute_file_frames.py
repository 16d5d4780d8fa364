"""The files of one table as the log of another names them: by absolute paths.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vector-descriptor-schema,
PROTOCOL.md#derived-fields
"""

from __future__ import annotations

from sparkdelta.base.protocol.deletion_vectors import ENCODED_UUID_LENGTH, Z85
from sparkdelta.base.schema.action_schemas import DELETION_VECTOR
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.schema.sql_text import text_literal

# Anchored at both ends: to search for any other character takes ten times as long.
_PLAIN = "(?s)^(?!/)[a-zA-Z0-9_=./-]*+(?!.)"
_LOCATION = "^[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?"


def absolute_uri(path: str, *, table_root: str) -> str:
    """Return SQL for the absolute, percent-encoded form of a path in the log (STRING)."""
    # Relative paths of these characters look the same decoded and encoded.
    root = encoded_path(text_literal(f"{table_root}/"))
    return (
        f"CASE WHEN {path} RLIKE '{_PLAIN}' THEN concat({root}, {path}) "
        f"ELSE {encoded_path(absolute_path(path, table_root=table_root))} END"
    )


def encoded_path(path: str) -> str:
    """Return SQL that percent-encodes a decoded path (STRING), except for scheme and authority."""
    location = f"regexp_extract({path}, '{_LOCATION}', 0)"
    # url_encode encodes a space as "+", as in forms; a path may have these characters as they are.
    encoded = f"url_encode(substring({path}, length({location}) + 1))"
    for code, character in (("+", "%20"), ("%2F", "/"), ("%3A", ":"), ("%3D", "=")):
        encoded = f"replace({encoded}, '{code}', '{character}')"
    return f"concat({location}, {encoded})"


def absolute_vector(vector: str, *, table_root: str) -> str:
    """Return SQL for a deletion vector descriptor that names its file by an absolute path.

    Inline vectors are unchanged. The argument and the result have type `DELETION_VECTOR`.
    """
    name, root = f"{vector}.pathOrInlineDv", text_literal(f"{table_root}/")
    path = (
        f"CASE {vector}.storageType "
        f"WHEN 'u' THEN {encoded_path(f'concat({root}, {vector_file(name)})')} "
        f"WHEN 'p' THEN {absolute_uri(name, table_root=table_root)} ELSE {name} END"
    )
    facts = {
        "storageType": f"CASE {vector}.storageType WHEN 'u' THEN 'p' ELSE {vector}.storageType END",
        "pathOrInlineDv": path,
    }
    fields = (f"{facts.get(n, f'{vector}.{n}')} AS {n}" for n in DELETION_VECTOR.names)
    return f"CASE WHEN {vector}.storageType IS NOT NULL THEN struct({', '.join(fields)}) END"


def vector_file(path_or_inline_dv: str) -> str:
    """Return SQL for `base.protocol.deletion_vectors.dv_file_name`, of type STRING."""
    name, length = path_or_inline_dv, ENCODED_UUID_LENGTH
    prefix = f"left({name}, length({name}) - {length})"
    directory = f"CASE WHEN {prefix} = '' THEN '' ELSE concat({prefix}, '/') END"
    uuid = _uuid(f"right({name}, {length})")
    return f"concat({directory}, 'deletion_vector_', {uuid}, '.bin')"


def _uuid(encoded: str) -> str:
    """Return SQL for a UUID that is encoded in Base85 (Z85)."""
    digits = text_literal(Z85)
    words = (
        f"lpad(lower(hex(aggregate(sequence({start}, {start + 4}), 0L, (total, at) -> "
        f"total * 85 + instr({digits}, substring({encoded}, at, 1)) - 1))), 8, '0')"
        for start in range(1, ENCODED_UUID_LENGTH, 5)
    )
    groups = "'^(.{8})(.{4})(.{4})(.{4})(.{12})$', '$1-$2-$3-$4-$5'"
    return f"regexp_replace(concat({', '.join(words)}), {groups})"


def vector_uri(vector: str) -> str:
    """Return SQL for the URI (STRING) of a deletion vector's file, relative or absolute.

    Null for an inline vector, or without one.
    """
    name = f"{vector}.pathOrInlineDv"
    return (
        f"CASE {vector}.storageType WHEN 'u' THEN {encoded_path(vector_file(name))} "
        f"WHEN 'p' THEN {name} END"
    )
