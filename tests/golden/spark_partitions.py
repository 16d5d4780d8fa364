"""Golden tables about partition values of every type and in every written form."""

from __future__ import annotations

from tests.golden.workbench import DeltaSparkBench, delta_spark_table

UTC_TIMESTAMPS = "spark.databricks.delta.write.utcTimestampPartitionValues"


@delta_spark_table(
    "partition-strings",
    "partitioned",
    "partition_type_string",
    "uri_encoding",
    "checkpoint_classic",
)
def partition_strings(bench: DeltaSparkBench) -> None:
    """Strings with spaces, percent, slash, equals, colon, ampersand, hash, plus, quotes, unicode,
    null, empty.
    """
    bench.create("id INT, p STRING, q STRING", "p, q")
    values = [
        "' lead and trail '",
        "'100%'",
        "'%20'",
        "'a/b'",
        "'a=b'",
        "'12:30'",
        "'a&b'",
        "'#1'",
        "'a+b'",
        "'snow 雪 ü'",
        "'it\\'s \"q\"'",
        "'back\\\\slash'",
        "'new\\nline'",
        "'NULL'",
        "'__HIVE_DEFAULT_PARTITION__'",
        "'?*[x]{y}|<>'",
        "NULL",
        "''",
        "'.'",
        "'😀'",
    ]
    rows = ", ".join(f"({number}, {value}, 'q')" for number, value in enumerate(values))
    bench.sql(f"INSERT INTO {{t}} VALUES {rows}")
    bench.checkpoint()
    bench.sql("INSERT INTO {t} VALUES (100, NULL, NULL), (101, 'x', ''), (102, 'a/b', NULL)")
    bench.sql("DELETE FROM {t} WHERE p IN ('%20', 'a+b') OR id = 16")


@delta_spark_table(
    "partition-numbers", "partitioned", "partition_types", "nan", "checkpoint_classic"
)
def partition_numbers(bench: DeltaSparkBench) -> None:
    """Boolean, every integer, float, double (NaN, -Infinity, -0.0) and decimal partition columns,
    nulls.
    """
    bench.create(
        "id INT, b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, m"
        " DECIMAL(10,3),"
        " w DECIMAL(38,0)",
        "b, i8, i16, i32, i64, f, d, m, w",
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, true, 127, 32767, 2147483647, 9223372036854775807,"
        " float('NaN'), double('NaN'), 1234567.890,"
        " 99999999999999999999999999999999999999), (2, false, -128, -32768, -2147483648,"
        " -9223372036854775808,"
        " float('-Infinity'), double('-Infinity'), -0.001, -1), (3, NULL, NULL, NULL, NULL, NULL,"
        " NULL, NULL, NULL, NULL),"
        " (4, true, 0, 0, 0, 0, float('-0.0'), double('-0.0'), 0, 0), (5, false, -1, -1, -1, -1,"
        " 1.5E-10, -1.5E300,"
        " 100, 10), (6, true, 1, 1, 1, 1, float('Infinity'), double('Infinity'), 1.5, 1)"
    )
    bench.checkpoint()
    bench.sql("DELETE FROM {t} WHERE b AND i8 = 1")


@delta_spark_table(
    "partition-dates", "partitioned", "partition_types", "old_dates", "checkpoint_classic"
)
def partition_dates(bench: DeltaSparkBench) -> None:
    """Dates and timestamps, before 1582 and with microseconds, the latter in both written forms."""
    bench.create("id INT, d DATE, ts TIMESTAMP", "d, ts")
    rows = (
        "('1582-10-04', '1582-10-04 23:59:59.999999'), ('0001-01-01', '0001-01-01 00:00:00'),"
        " ('2024-02-29', '2024-02-29 01:02:03.456789'), ('1969-12-31', '1969-12-31 23:59:59.1'),"
        " ('9999-12-31', '9999-12-31 00:00:00'), (NULL, NULL)"
    )
    bench.sql(
        f"INSERT INTO {{t}} SELECT 1, CAST(d AS DATE), CAST(t AS TIMESTAMP) FROM VALUES {rows} AS"
        f" s(d, t)"
    )
    with bench.settings({UTC_TIMESTAMPS: "false"}):
        bench.sql(
            f"INSERT INTO {{t}} SELECT 2, CAST(d AS DATE), CAST(t AS TIMESTAMP) FROM VALUES"
            f" {rows} AS s(d, t)"
        )
    bench.checkpoint()
    bench.sql("DELETE FROM {t} WHERE ts = timestamp'2024-02-29 01:02:03.456789' AND id = 1")


@delta_spark_table("partition-binary", "partitioned", "partition_types")
def partition_binary(bench: DeltaSparkBench) -> None:
    """A binary partition column; values are UTF-8 texts, which is what delta-spark can write."""
    bench.create("id INT, p BINARY", "p")
    bench.sql("INSERT INTO {t} VALUES (1, X'6162'), (2, X'C3BC20E99BAA'), (3, NULL), (4, X'4142')")


@delta_spark_table("partition-columns-first", "partitioned", "column_order")
def partition_columns_first(bench: DeltaSparkBench) -> None:
    """Partition columns before and between data columns, in another order than partitionColumns."""
    bench.create("p2 INT, a STRING, p1 STRING, b INT", "p1, p2")
    bench.sql(
        "INSERT INTO {t} VALUES (2, 'a', 'one', 1), (1, 'b', 'two', 2)",
        "UPDATE {t} SET p2 = 3 WHERE a = 'a'",
    )


@delta_spark_table("partition-columns-in-files", "partitioned", "materializePartitionColumns")
def partition_columns_in_files(bench: DeltaSparkBench) -> None:
    """The data files hold the partition columns too; the log's values count."""
    bench.create(
        "id INT, p STRING, d DATE", "p, d", enableMaterializePartitionColumnsFeature="true"
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, 'a', '2024-01-01'), (2, 'b', NULL), (3, NULL, '2024-01-01')"
    )
