"""Golden tables about columns: mapping, odd names, schema evolution, type widening."""

from __future__ import annotations

from tests.golden.workbench import DeltaSparkBench, delta_spark_table

NESTED = (
    "id BIGINT, name STRING, `Nested` STRUCT<a: INT, b: STRUCT<c: STRING, d: DATE>>,"
    " list ARRAY<STRUCT<x: INT, y: STRING>>, dict MAP<STRING, STRUCT<v: DOUBLE>>"
)
NESTED_ROW = (
    "({0}, 'n{0}', named_struct('a', {0}, 'b', named_struct('c', 'c{0}', 'd', date'2024-01-0{0}')),"
    " array(named_struct('x', {0}, 'y', 'y{0}'), NULL), map('k{0}', named_struct('v', {0}.5)))"
)


def _evolve_mapped(bench: DeltaSparkBench) -> None:
    bench.sql(
        f"INSERT INTO {{t}} VALUES {NESTED_ROW.format(1)}, {NESTED_ROW.format(2)}",
        "ALTER TABLE {t} RENAME COLUMN name TO `full name`",
        "ALTER TABLE {t} RENAME COLUMN Nested.b.c TO `c, renamed`",
        "ALTER TABLE {t} DROP COLUMN list.element.x",
        "ALTER TABLE {t} ADD COLUMNS (added INT, Nested.b.e TIMESTAMP, name STRING)",
    )
    bench.sql(
        "INSERT INTO {t} (id, `full name`, Nested, list, dict, added, name) VALUES (3, 'n3',"
        " named_struct('a', 3, 'b', named_struct('c', 'c3', 'd', NULL, 'e', timestamp'2024-05-06"
        " 07:08:09')),"
        " array(named_struct('y', 'y3')), map(), 33, 'a new name')"
    )


@delta_spark_table(
    "column-mapping-name", "columnMapping", "columnMapping_name", "nested", "checkpoint_classic"
)
def column_mapping_name(bench: DeltaSparkBench) -> None:
    """Name mode from creation: nested fields; renamed, dropped and added after writes; a
    checkpoint.
    """
    bench.create(NESTED, columnMapping__mode="name", checkpointInterval="5")
    _evolve_mapped(bench)


@delta_spark_table("column-mapping-id", "columnMapping", "columnMapping_id", "nested")
def column_mapping_id(bench: DeltaSparkBench) -> None:
    """Id mode from creation: nested fields; renamed, dropped and added after writes."""
    bench.create(NESTED, columnMapping__mode="id")
    _evolve_mapped(bench)


@delta_spark_table("column-mapping-upgraded", "columnMapping", "columnMapping_name", "odd_names")
def column_mapping_upgraded(bench: DeltaSparkBench) -> None:
    """A plain table upgraded to name mode: old physical names are the logical ones; then swapped
    names.
    """
    bench.create("a INT, b INT, s STRUCT<x: INT, y: INT>")
    bench.sql("INSERT INTO {t} VALUES (1, 10, named_struct('x', 100, 'y', 1000))")
    bench.set(columnMapping__mode="name")
    bench.sql(
        "ALTER TABLE {t} RENAME COLUMN a TO c",
        "ALTER TABLE {t} RENAME COLUMN b TO a",
        "ALTER TABLE {t} RENAME COLUMN c TO b",
        "ALTER TABLE {t} ADD COLUMNS (`new (col)` INT)",
    )
    bench.sql("INSERT INTO {t} VALUES (20, 2, named_struct('x', 200, 'y', 2000), 7)")


@delta_spark_table(
    "column-mapping-partitioned", "columnMapping", "columnMapping_name", "partitioned", "odd_names"
)
def column_mapping_partitioned(bench: DeltaSparkBench) -> None:
    """Name mode with odd names, a renamed partition column, predicates over them, a checkpoint."""
    bench.create(
        "`id, (key)` BIGINT, `Größe` DOUBLE, `a=b;c{}` STRING, `tab\tname` INT, `p art.1` STRING,"
        " `雪 / %` INT",
        "`p art.1`, `雪 / %`",
        columnMapping__mode="name",
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, 1.5, 'x', 1, 'a b', 1), (2, 2.5, 'y', 2, 'c/d', NULL), (3,"
        " NULL, NULL, NULL, NULL, 3)",
        "ALTER TABLE {t} RENAME COLUMN `p art.1` TO `part=2`",
        "INSERT INTO {t} VALUES (4, 4.5, 'z', 4, 'a b', 1)",
        "DELETE FROM {t} WHERE `part=2` = 'c/d'",
    )
    bench.checkpoint()
    bench.sql("UPDATE {t} SET `Größe` = -1 WHERE `id, (key)` = 1")


@delta_spark_table("column-mapping-dropped", "columnMapping", "op_drop_feature")
def column_mapping_dropped(bench: DeltaSparkBench) -> None:
    """Mapping removed again: the files are rewritten, columnMapping.mode is none."""
    bench.create("id INT, name STRING", columnMapping__mode="name")
    bench.sql(
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')", "ALTER TABLE {t} RENAME COLUMN name TO label"
    )
    with bench.settings({"spark.databricks.delta.columnMapping.allowRemoval": "true"}):
        bench.set(columnMapping__mode="none")
    bench.sql("INSERT INTO {t} VALUES (3, 'c')")


@delta_spark_table("iceberg-compat-v2", "columnMapping", "icebergCompatV2")
def iceberg_compat_v2(bench: DeltaSparkBench) -> None:
    """IcebergCompatV2: name mode with nested field ids of lists and maps in the schema."""
    bench.create(
        "id INT, list ARRAY<INT>, dict MAP<STRING, ARRAY<INT>>, at TIMESTAMP, part DATE",
        "part",
        columnMapping__mode="name",
        enableIcebergCompatV2="true",
        enableDeletionVectors="false",
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, array(1, NULL), map('a', array(1)), '1815-12-10"
        " 01:02:03.000004', '2024-01-01'),"
        " (2, NULL, NULL, NULL, NULL)"
    )


@delta_spark_table("odd-names", "odd_names", "partitioned")
def odd_names(bench: DeltaSparkBench) -> None:
    """Names that need no mapping: dots, mixed case, unicode, quotes, percent, SQL words; mixed-case
    partition.
    """
    bench.create(
        "`a.b` INT, `MixedCase` STRING, `ünï-cödé` STRING, `it's` INT, `100%` INT, `select` INT,"
        " `_c` INT,"
        " `s.t` STRUCT<`u.v`: INT, `W`: INT>, `Part.One` STRING",
        "`Part.One`",
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, 'm', 'u', 2, 3, 4, 5, named_struct('u.v', 6, 'W', 7), 'P'), "
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "UPDATE {t} SET mixedcase = 'changed' WHERE `PART.ONE` = 'P'",
    )


@delta_spark_table("schema-evolution", "schema_evolution", "nested", "checkpoint_classic")
def schema_evolution(bench: DeltaSparkBench) -> None:
    """Columns and nested fields added by merged schemas and ALTER TABLE; reordered; nullability
    relaxed.
    """
    bench.create("id INT NOT NULL, s STRUCT<a: INT>, l ARRAY<STRUCT<x: INT>>")
    bench.sql("INSERT INTO {t} VALUES (1, named_struct('a', 1), array(named_struct('x', 1)))")
    wider = bench.spark.sql(
        "SELECT 2 AS id, named_struct('a', 2, 'b', 'two') AS s,"
        " array(named_struct('x', 2, 'y', 'two')) AS l, map('k', 2) AS m"
    )
    bench.append(wider, mergeSchema="true")
    bench.sql(
        "ALTER TABLE {t} ADD COLUMNS (first_now STRING COMMENT 'a comment' FIRST, s.z DATE)",
        "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
    )
    bench.checkpoint()
    bench.sql(
        "INSERT INTO {t} (first_now, id, s, l, m) VALUES ('f', NULL, named_struct('a', 3, 'b',"
        " 'three', 'z',"
        " date'2024-03-03'), NULL, NULL)"
    )


@delta_spark_table("type-widening", "typeWidening", "stats")
def type_widening(bench: DeltaSparkBench) -> None:
    """Every supported change of a top-level column, with files from before and after, a checkpoint
    between.
    """
    bench.create(
        "b2s TINYINT, b2i TINYINT, s2l SMALLINT, i2l INT, f2d FLOAT, b2d TINYINT, i2d INT, d2n"
        " DATE,"
        " dec DECIMAL(5,2), dscale DECIMAL(5,2), i2dec INT, l2dec BIGINT, kept INT",
        enableTypeWidening="true",
        feature__timestampNtz="supported",
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, -128, 32767, -2147483648, 1.1, 127, 2147483647, '1582-10-04',"
        " 123.45,"
        " -999.99, -2147483648, 9223372036854775807, 1), (NULL, NULL, NULL, NULL, NULL, NULL,"
        " NULL, NULL,"
        " NULL, NULL, NULL, NULL, 2)"
    )
    changes = {
        "b2s": "SMALLINT",
        "b2i": "INT",
        "s2l": "BIGINT",
        "i2l": "BIGINT",
        "f2d": "DOUBLE",
        "b2d": "DOUBLE",
        "i2d": "DOUBLE",
        "d2n": "TIMESTAMP_NTZ",
        "dec": "DECIMAL(18,2)",
        "dscale": "DECIMAL(20,6)",
        "i2dec": "DECIMAL(12,2)",
        "l2dec": "DECIMAL(24,4)",
    }
    bench.sql(
        f"ALTER TABLE {{t}} ALTER COLUMN {', '.join(f'{c} TYPE {t}' for c, t in changes.items())}"
    )
    bench.checkpoint()
    bench.sql(
        "INSERT INTO {t} VALUES (300, 70000, 5000000000, 5000000000, 1e300, 0.1, 1e18,"
        " '2024-01-01 01:02:03.000004',"
        " 1234567890123456.78, 12345678901234.123456, 1234567890.12, 99999999999999999999.1234, 3)",
        "UPDATE {t} SET kept = 10 WHERE kept = 1",
    )


@delta_spark_table("type-widening-nested", "typeWidening", "nested")
def type_widening_nested(bench: DeltaSparkBench) -> None:
    """Changed types within a struct, an array, a map's keys and values; one field changed twice."""
    bench.create(
        "id INT, s STRUCT<a: TINYINT, f: FLOAT>, l ARRAY<SMALLINT>, m MAP<TINYINT, INT>,"
        " deep ARRAY<STRUCT<v: MAP<STRING, ARRAY<INT>>>>",
        enableTypeWidening="true",
    )
    bench.sql(
        "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'f', 1.5), array(1, NULL), map(1, 1),"
        " array(named_struct('v', map('k', array(1, NULL))), NULL)), (2, NULL, NULL, NULL, NULL)",
        "ALTER TABLE {t} ALTER COLUMN s.a TYPE SMALLINT",
        "ALTER TABLE {t} ALTER COLUMN s.f TYPE DOUBLE",
        "INSERT INTO {t} VALUES (3, named_struct('a', 300, 'f', 1e300), array(2), map(2, 2), NULL)",
        "ALTER TABLE {t} ALTER COLUMN s.a TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN l.element TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN m.key TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN m.value TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN deep.element.v.value.element TYPE BIGINT",
        "INSERT INTO {t} VALUES (4, named_struct('a', 5000000000, 'f', 0), array(5000000000),"
        " map(70000, 5000000000),"
        " array(named_struct('v', map('k', array(5000000000)))))",
    )


@delta_spark_table(
    "type-widening-mixed", "typeWidening", "columnMapping", "deletionVectors", "partitioned"
)
def type_widening_mixed(bench: DeltaSparkBench) -> None:
    """Widened data and partition columns together with id mode, a rename and deletion vectors."""
    bench.create(
        "id INT, v SMALLINT, p TINYINT",
        "p",
        enableTypeWidening="true",
        columnMapping__mode="id",
        enableDeletionVectors="true",
    )
    bench.sql(
        "INSERT INTO {t} SELECT id, id * 2, id % 2 FROM range(0, 8, 1, 1)",
        "DELETE FROM {t} WHERE id IN (1, 2)",
        "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
        "ALTER TABLE {t} RENAME COLUMN v TO `wide v`",
        "ALTER TABLE {t} ALTER COLUMN p TYPE INT",
        "INSERT INTO {t} VALUES (100, 5000000000, 70000), (101, NULL, 1)",
        "DELETE FROM {t} WHERE id IN (3, 101)",
    )
