"""Names of columns and fields: `base.protocol.column_names` against Spark's resolver."""

from __future__ import annotations

from collections import defaultdict

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.table_schema import quoted

# Letters of Unicode 14 to 16, which Python may know and Java 17 does not.
NEW = {*map(chr, (*range(0x1C89, 0x1C8B), 0x2C2F, 0x2C5F, *range(0xA7C0, 0xA7C2),
                  *range(0xA7CB, 0xA7DD)))}  # fmt: skip
ALL = [chr(code) for code in range(0x21, 0x10000) if not 0xD800 <= code < 0xE000]
CHARACTERS = [character for character in ALL if character not in NEW]


def members() -> dict[str, list[str]]:
    found = defaultdict(list)
    for character in CHARACTERS:
        found[name_key(character)].append(character)
    return found


def test_characters_have_one_key_exactly_if_java_finds_them_equal(spark: SparkSession) -> None:
    """All characters of the Basic Multilingual Plane, with Java's order that ignores case."""
    jvm = spark._jvm
    assert jvm is not None
    text = "\n".join(CHARACTERS)
    first = {key: group[0] for key, group in members().items()}
    others = "\n".join(first[name_key(character)] for character in CHARACTERS)
    resolver = jvm.org.apache.spark.sql.catalyst.analysis.package.caseInsensitiveResolution()
    assert resolver.apply(text, others)
    distinct = jvm.java.util.TreeSet(jvm.java.lang.String.CASE_INSENSITIVE_ORDER)
    distinct.addAll(jvm.java.util.regex.Pattern.compile("\n").splitAsStream(text).toList())
    assert distinct.size() == len(first)


@pytest.mark.slow
def test_fields_are_resolved_by_every_name_of_the_same_key(spark: SparkSession) -> None:
    groups = [group for group in members().values() if len(group) > 1]
    struct = F.struct(*(F.lit(n).alias(group[0]) for n, group in enumerate(groups)))
    names = [(n, name) for n, group in enumerate(groups) for name in group]
    fields = ", ".join(f"s.{quoted(name)}" for _, name in names)
    (row,) = spark.range(1).select(struct.alias("s")).selectExpr(f"array({fields})").collect()
    assert row[0] == [n for n, _ in names]


@pytest.mark.parametrize(
    ("name", "other", "is_same"),
    [
        ("Σdate", "ςDATE", True),
        ("ıd", "ID", True),
        ("İd", "id", True),
        ("ſum", "sum", True),
        ("\N{KELVIN SIGN}", "k", True),
        ("µ", "Μ", True),
        ("straße", "strasse", False),
        ("ﬁ", "fi", False),
        ("é", "e", False),
    ],
)
def test_names_that_lower_and_casefold_compare_otherwise(
    spark: SparkSession, name: str, other: str, *, is_same: bool
) -> None:
    assert (name_key(name) == name_key(other)) == is_same
    assert spark.range(1).toDF(name).drop(other).columns == ([] if is_same else [name])
