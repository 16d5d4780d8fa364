"""Golden tables about types and values in data files."""

from __future__ import annotations

from tests.golden.workbench import DeltaSparkBench, delta_spark_table

TIMESTAMP_TYPE = "spark.sql.parquet.outputTimestampType"
REBASE = "spark.sql.parquet.datetimeRebaseModeInWrite"
REBASE_INT96 = "spark.sql.parquet.int96RebaseModeInWrite"
OLD_VALUES = (
    "INSERT INTO {t} VALUES (1, '0001-01-01', '0001-01-01 00:00:00'), (2, '1582-10-04',"
    " '1582-10-04 23:59:59.999999'),"
    " (3, '1582-10-15', '1582-10-15 00:00:00.000001'), (4, '1899-12-31', '1899-12-31 12:00:00.5'),"
    " (5, '1969-12-31', '1969-12-31 23:59:59.999999'), (6, '9999-12-31', '9999-12-31"
    " 23:59:59.999999'),"
    " (7, NULL, NULL), (8, '2024-02-29', '2024-02-29 01:02:03.456789')"
)


@delta_spark_table("types-primitive", "types", "null")
def types_primitive(bench: DeltaSparkBench) -> None:
    """Every primitive type with least, greatest, ordinary and null values."""
    bench.create(
        "i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f32 FLOAT, f64 DOUBLE, d9 DECIMAL(9,3),"
        " d18 DECIMAL(18,0), d38 DECIMAL(38,18), b BOOLEAN, s STRING, bin BINARY, d DATE,"
        " ts TIMESTAMP"
    )
    bench.sql(
        "INSERT INTO {t} VALUES (-128, -32768, -2147483648, -9223372036854775808, -3.4028235e38,"
        " -1.7976931348623157e308, -999999.999, -999999999999999999,"
        " -99999999999999999999.999999999999999999, false, '', X'', '0001-01-01',"
        " '0001-01-01 00:00:00'), (127, 32767, 2147483647, 9223372036854775807, 3.4028235e38,"
        " 1.7976931348623157e308, 999999.999, 999999999999999999,"
        " 99999999999999999999.999999999999999999, true, 'snow 雪 \\n \\t \" end', X'00FF7F80',"
        " '9999-12-31', '9999-12-31 23:59:59.999999'), (0, 0, 0, 0, 0, 0, 0, 0, 0, false, 'null',"
        " X'00', '1970-01-01', '1970-01-01 00:00:00'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
        " NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )


@delta_spark_table("char-varchar", "types", "char")
def char_varchar(bench: DeltaSparkBench) -> None:
    """CHAR and VARCHAR, strings to the protocol; Spark pads the CHAR when it reads."""
    bench.create("v VARCHAR(5), c CHAR(5)")
    bench.sql("INSERT INTO {t} VALUES ('', 'a'), ('abcde', 'abcde'), (NULL, NULL)")


@delta_spark_table("types-nested", "types", "nested")
def types_nested(bench: DeltaSparkBench) -> None:
    """Structs, arrays and maps within one another; empty ones, null ones, null elements; NOT NULL
    fields.
    """
    bench.create(
        "id INT NOT NULL, s STRUCT<a: INT NOT NULL, b: STRUCT<c: ARRAY<INT>, d: MAP<STRING, INT>>>,"
        " aa ARRAY<ARRAY<STRING>>, ms MAP<INT, STRUCT<x: BINARY, y: DECIMAL(20,2)>>,"
        " mm MAP<STRUCT<k: INT>, MAP<STRING, ARRAY<TIMESTAMP>>>, am ARRAY<MAP<STRING, DATE>>"
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', named_struct('c', array(1, NULL),"
        " 'd', map('k', NULL))),"
        " array(array('x', NULL), NULL, array()), map(1, named_struct('x', X'01', 'y', 1.25), 2,"
        " NULL),"
        " map(named_struct('k', 1), map('t', array(timestamp'2024-01-01 00:00:00', NULL))),"
        " array(map('d', date'2024-01-01'), NULL, map()))",
        "INSERT INTO {t} VALUES (2, named_struct('a', 2, 'b', NULL), array(), map(), map(),"
        " array()),"
        " (3, named_struct('a', 3, 'b', named_struct('c', array(), 'd', map())), NULL, NULL,"
        " NULL, NULL)",
    )


@delta_spark_table("floats-special", "types", "nan")
def floats_special(bench: DeltaSparkBench) -> None:
    """NaN, both infinities, both zeros and subnormal numbers; files of NaN only have odd
    statistics.
    """
    bench.create("id INT, f FLOAT, d DOUBLE, l ARRAY<DOUBLE>")
    bench.sql(
        "INSERT INTO {t} VALUES (1, float('NaN'), double('NaN'), array(double('NaN'), NULL,"
        " double('-Infinity')))",
        "INSERT INTO {t} VALUES (2, float('Infinity'), double('Infinity'), NULL),"
        " (3, float('-Infinity'), double('-Infinity'), NULL),"
        " (4, float('-0.0'), double('-0.0'), array(double('-0.0'))), (5, 0, 0, array(0D)),"
        " (6, 1.4E-45, 4.9E-324, NULL), (7, float('NaN'), NULL, NULL)",
    )


@delta_spark_table("timestamps-ntz", "timestampNtz", "partitioned")
def timestamps_ntz(bench: DeltaSparkBench) -> None:
    """timestamp without time zone in data, nested and as partition column."""
    bench.create(
        "id INT, at TIMESTAMP_NTZ, s STRUCT<l: ARRAY<TIMESTAMP_NTZ>>, p TIMESTAMP_NTZ", "p"
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, '2024-03-31 02:30:00.000001', named_struct('l',"
        " array(timestamp_ntz'1500-01-01 00:00:00',"
        " NULL)), '2024-03-31 02:30:00'), (2, '0001-01-01 00:00:00', NULL, '1500-02-28"
        " 23:59:59.999999'),"
        " (3, NULL, NULL, NULL), (4, '9999-12-31 23:59:59.999999', NULL, '2024-03-31 02:30:00')"
    )


@delta_spark_table("old-dates-micros", "types", "old_dates")
def old_dates_micros(bench: DeltaSparkBench) -> None:
    """Dates before 1582 and timestamps before 1900, timestamps as microseconds."""
    bench.create("id INT, d DATE, ts TIMESTAMP")
    with bench.settings({TIMESTAMP_TYPE: "TIMESTAMP_MICROS"}):
        bench.sql(OLD_VALUES)


@delta_spark_table("old-dates-int96", "types", "old_dates", "int96")
def old_dates_int96(bench: DeltaSparkBench) -> None:
    """Dates before 1582 and timestamps before 1900, timestamps as INT96; nested ones too."""
    bench.create("id INT, d DATE, ts TIMESTAMP")
    with bench.settings({TIMESTAMP_TYPE: "INT96"}):
        bench.sql(OLD_VALUES)


@delta_spark_table("old-dates-legacy-calendar", "types", "old_dates", "int96", "legacy_calendar")
def old_dates_legacy_calendar(bench: DeltaSparkBench) -> None:
    """Files in the hybrid calendar of Spark 2 (their footers say so), as microseconds and INT96."""
    bench.create("id INT, d DATE, ts TIMESTAMP")
    legacy = {REBASE: "LEGACY", REBASE_INT96: "LEGACY"}
    with bench.settings({TIMESTAMP_TYPE: "TIMESTAMP_MICROS", **legacy}):
        bench.sql(OLD_VALUES)
    with bench.settings({TIMESTAMP_TYPE: "INT96", **legacy}):
        bench.sql(OLD_VALUES)


@delta_spark_table("timestamps-millis", "types", "timestamp_millis")
def timestamps_millis(bench: DeltaSparkBench) -> None:
    """Timestamps as milliseconds in the files."""
    bench.create("id INT, d DATE, ts TIMESTAMP")
    with bench.settings({TIMESTAMP_TYPE: "TIMESTAMP_MILLIS"}):
        bench.sql(OLD_VALUES)


VARIANTS = (
    "INSERT INTO {t} SELECT id, parse_json(v), named_struct('v', parse_json(v)),"
    " array(parse_json(v)) FROM VALUES"
    """ (1, '{"a": 1, "b": [1, "two", null, {"c": 3.5}]}'), (2, '[]'), (3, '"text 雪"'),"""
    """ (4, '12345678901234567890'), (5, 'null'), (6, NULL), (7, 'true'),"""
    """ (8, '{"a": "not a number", "z": 1e100}') AS s(id, v)"""
)


@delta_spark_table("variant", "variantType")
def variant(bench: DeltaSparkBench) -> None:
    """Variants at top level, in a struct and in an array; deletion vectors; a checkpoint."""
    bench.create(
        "id INT, v VARIANT, s STRUCT<v: VARIANT>, l ARRAY<VARIANT>", enableDeletionVectors="true"
    )
    bench.sql(VARIANTS, "DELETE FROM {t} WHERE id = 3")
    bench.checkpoint()
    bench.sql("INSERT INTO {t} (id, v) VALUES (9, parse_json('{}'))")


@delta_spark_table("variant-preview", "variantType-preview")
def variant_preview(bench: DeltaSparkBench) -> None:
    """The feature under its preview name."""
    with bench.settings({"spark.databricks.delta.variant.forceUsePreviewTableFeature": "true"}):
        bench.create("id INT, v VARIANT")
        bench.sql("""INSERT INTO {t} SELECT 1, parse_json('{"a": [1, 2]}')""")


@delta_spark_table("variant-shredded", "variantType", "variantShredding-preview")
def variant_shredded(bench: DeltaSparkBench) -> None:
    """Shredded variants: one file by a given schema, one by an inferred one, one not shredded."""
    bench.create("id INT, v VARIANT", enableVariantShredding="true")
    values = """(1, '{"a": 1, "b": "x"}'), (2, '{"a": 2, "c": [1]}'), (3, '{"a": "no"}'),
        (4, '7'), (5, NULL)"""
    insert = f"INSERT INTO {{t}} SELECT id, parse_json(v) FROM VALUES {values} AS s(id, v)"
    shred = {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.allowReadingShredded": "true",
    }
    forced = {"spark.sql.variant.forceShreddingSchemaForTest": "a INT, b STRING, c ARRAY<INT>"}
    with bench.settings({**shred, **forced, "spark.sql.variant.inferShreddingSchema": "false"}):
        bench.sql(insert)
    with bench.settings({**shred, "spark.sql.variant.inferShreddingSchema": "true"}):
        bench.sql(insert)
    with bench.settings({"spark.sql.variant.writeShredding.enabled": "false"}):
        bench.sql(insert)


@delta_spark_table("variant-shredded-stable", "variantType", "variantShredding")
def variant_shredded_stable(bench: DeltaSparkBench) -> None:
    """Shredded variants under the feature's final name."""
    with bench.settings(
        {"spark.databricks.delta.variantShredding.forceUsePreviewTableFeature": "false"}
    ):
        bench.create("id INT, v VARIANT", enableVariantShredding="true")
        with bench.settings({"spark.sql.variant.writeShredding.enabled": "true"}):
            bench.sql("""INSERT INTO {t} SELECT 1, parse_json('{"a": [1, 2], "b": {"c": 1.5}}')""")


@delta_spark_table("void-column", "types", "void")
def void_column(bench: DeltaSparkBench) -> None:
    """A column of type void, which no data file holds."""
    bench.append(bench.spark.sql("SELECT 1 AS id, NULL AS nothing, 'a' AS name"))
    bench.sql("INSERT INTO {t} VALUES (2, NULL, 'b')")


@delta_spark_table("empty", "empty")
def empty(bench: DeltaSparkBench) -> None:
    """No row at any version: never written, then filled and emptied again."""
    bench.create("id INT, name STRING, part DATE", "part")
    bench.sql(
        "INSERT INTO {t} VALUES (1, 'a', '2024-01-01')", "DELETE FROM {t}", "TRUNCATE TABLE {t}"
    )
