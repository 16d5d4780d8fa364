"""Constants and types as Spark SQL says them in every session.

An expression as one text takes one call into the JVM, as a tree of Columns one or more for every
node: the difference is most of the time in which a query over a small table is planned.
"""

from __future__ import annotations

import re

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sparkdelta.schema.table_schema import quoted

# Neither quotes nor backslashes nor "${": what these mean is a matter of settings.
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;/@+*^()\[\]|{}<>\"=-]*")


def text_literal(text: str) -> str:
    """A string constant."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS string)"


def type_text(data_type: DataType) -> str:
    """A type, with the names of its fields in whatever characters."""
    if isinstance(data_type, StructType):
        fields = (f"{quoted(field.name)}: {type_text(field.dataType)}" for field in data_type)
        return f"struct<{', '.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"array<{type_text(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"map<{type_text(data_type.keyType)}, {type_text(data_type.valueType)}>"
    # What TIMESTAMP alone means is a setting.
    return simple_type_text(data_type.simpleString())


def simple_type_text(simple_name: str) -> str:
    """A type by Spark's simple name of it."""
    return "timestamp_ltz" if simple_name == "timestamp" else simple_name


def from_json_text(json: str, schema: DataType, **options: str) -> str:
    """`from_json` of an expression in SQL."""
    pairs = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    given = f", map({pairs})" if pairs else ""  # a map of nothing has no texts, and is refused
    return f"from_json({json}, {text_literal(type_text(schema))}{given})"
