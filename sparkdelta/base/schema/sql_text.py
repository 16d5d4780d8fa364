"""SQL text for constants, types and `from_json`, with the same meaning under any session settings.

One SQL expression takes a single JVM call, whereas a tree of Columns takes at least one call per
node, which dominates the planning time of queries on small tables.
"""

from __future__ import annotations

import re

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, UserDefinedType

from sparkdelta.base.schema.table_schema import quoted

SESSION_CATALOG = "spark_catalog"
"""Spark's name of the catalog that the names of tables are in."""

# Without quotes, backslashes and "${", whose meaning depends on session settings.
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;/@+*^()\[\]|{}<>\"=-]*")
_NAME = re.compile(r"[A-Za-z0-9_.]+|`(?:[^`]|``)+`")


def is_name(text: str) -> bool:
    """Return True if a user's expression is just a name or a number, safe inside other SQL."""
    return _NAME.fullmatch(text) is not None


def text_literal(text: str) -> str:
    """Return a string as a SQL literal."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS string)"


def type_text(data_type: DataType) -> str:
    """Return a type as SQL text, with quoted field names.

    SQL has no names of user-defined types; files have the type that their values are stored as.
    """
    if isinstance(data_type, UserDefinedType):
        return type_text(data_type.sqlType())
    if isinstance(data_type, StructType):
        fields = (f"{quoted(field.name)}: {type_text(field.dataType)}" for field in data_type)
        return f"struct<{', '.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"array<{type_text(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"map<{type_text(data_type.keyType)}, {type_text(data_type.valueType)}>"
    return simple_type_text(data_type.simpleString())


def simple_type_text(simple_name: str) -> str:
    """Return a type given by simple name as SQL text.

    TIMESTAMP is made explicit, because its meaning depends on a session setting.
    """
    return "timestamp_ltz" if simple_name == "timestamp" else simple_name


def from_json_text(json: str, schema: DataType, **options: str) -> str:
    """Return a `from_json` call on a SQL expression."""
    pairs = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    options_map = f", map({pairs})" if pairs else ""  # Spark rejects an empty map of options
    return f"from_json({json}, {text_literal(type_text(schema))}{options_map})"
