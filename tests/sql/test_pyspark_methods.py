"""Each public method of PySpark's readers, writers and catalog is decided about: it is replaced in
enabled sessions, refuses Delta tables, or looks up no table.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType

import pytest

from sparkdelta.base.spark.classic_builders import ClassicBuilders
from sparkdelta.sql.pyspark.pyspark_merging import MergeWriter
from sparkdelta.sql.pyspark.pyspark_methods import METHODS

_OPTIONS = "format option options schema"
_FILES = "csv jdbc json orc parquet text xml"  # the format is another one
UNTOUCHED: Mapping[str, str] = {
    # Names of databases, functions, views and catalogs; lists of names; files of a path.
    # createExternalTable calls createTable.
    "Catalog": """
        clearCache createDatabase createExternalTable currentCatalog currentDatabase databaseExists
        dropDatabase dropGlobalTempView dropTempView dropView functionExists getDatabase getFunction
        listCatalogs listDatabases listFunctions listViews refreshByPath
        registerFunction setCurrentCatalog setCurrentDatabase
    """,
    # The table is that of a reader before. writeTo names a table, and its writer looks it up.
    "DataFrame": """
        agg alias approxQuantile asTable checkpoint coalesce colRegex collect columns corr
        cov createGlobalTempView createOrReplaceGlobalTempView createOrReplaceTempView
        createTempView crossJoin crosstab cube describe distinct drop dropDuplicates
        dropDuplicatesWithinWatermark drop_duplicates dropna dtypes exceptAll executionInfo exists
        explain fillna filter first foreach foreachPartition freqItems groupBy groupby groupingSets
        head hint inputFiles intersect intersectAll isEmpty isLocal isStreaming is_cached join
        lateralJoin limit localCheckpoint mapInArrow mapInPandas melt metadataColumn na
        nearestByJoin observe offset orderBy pandas_api plot printSchema randomSplit rdd
        registerTempTable repartition repartitionById repartitionByRange replace rollup
        sameSemantics sample sampleBy scalar schema select selectExpr semanticHash show sort
        sortWithinPartitions sparkSession sql_ctx stat storageLevel subtract summary tail take to
        toArrow toDF toJSON toLocalIterator toPandas to_koalas to_pandas_on_spark transform
        transpose union unionAll unionByName unpersist unpivot where withColumn withColumnRenamed
        withColumns withColumnsRenamed withMetadata withWatermark write writeStream writeTo zip
        zipWithIndex
    """,
    "DataFrameReader": f"{_OPTIONS} {_FILES}",
    "DataFrameWriter": f"{_OPTIONS} {_FILES} bucketBy clusterBy mode partitionBy sortBy",
    "DataFrameWriterV2": f"{_OPTIONS} clusterBy partitionedBy tableProperty using",
    "DataStreamReader": f"{_OPTIONS} {_FILES} name",
    "DataStreamWriter": """
        clusterBy foreach foreachBatch format option options outputMode partitionBy queryName
        trigger
    """,
}
"""The methods of each class that work as they are, as they look up no table."""
REFUSED = {
    "Catalog.analyzeTable",
    "Catalog.getCreateTableString",
    "Catalog.recoverPartitions",
    "DataFrameReader.changes",
    "DataStreamReader.changes",
}
"""Replaced methods that refuse Delta tables."""
_CONNECT = {
    "Catalog": "catalog",
    "DataFrame": "dataframe",
    "DataFrameReader": "readwriter",
    "DataFrameWriter": "readwriter",
    "DataFrameWriterV2": "readwriter",
    "DataStreamReader": "streaming.readwriter",
    "DataStreamWriter": "streaming.readwriter",
}


def _public(owner: type) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def _of_connect(name: str) -> type:
    module: ModuleType = importlib.import_module(f"pyspark.sql.connect.{_CONNECT[name]}")
    owner: type = getattr(module, name)
    return owner


@pytest.mark.every_case
@pytest.mark.parametrize("kind", ["classic", "connect"])
@pytest.mark.parametrize("name", UNTOUCHED)
def test_every_public_method_is_decided_about(name: str, kind: str) -> None:
    owner = ClassicBuilders.classes[name] if kind == "classic" else _of_connect(name)
    replaced = {
        method for each, _, method in (key.partition(".") for key in METHODS) if each == name
    }
    untouched = set(UNTOUCHED[name].split())
    undecided = sorted(_public(owner) - replaced - untouched)
    assert undecided == [], f"decide whether these methods of {name} look up a table"
    assert not replaced & untouched


def test_refused_methods_are_replaced_ones() -> None:
    assert METHODS.keys() >= REFUSED


def test_replaced_methods_are_of_the_classes_that_are_walked() -> None:
    assert {key.partition(".")[0] for key in METHODS} == {
        *UNTOUCHED,
        "SparkSession",
        "captured",
    }


def test_the_writer_of_a_merge_has_all_methods_of_pysparks() -> None:
    from pyspark.sql.merge import MergeIntoWriter

    for ours, theirs in ((MergeWriter, MergeIntoWriter), *_clauses(MergeIntoWriter)):
        methods = {name for name in _public(theirs) if not name.startswith("When")}
        assert methods <= _public(ours)


def _clauses(writer: type) -> list[tuple[type, type]]:
    merging = importlib.import_module("sparkdelta.sql.pyspark.pyspark_merging")
    names = ("WhenMatched", "WhenNotMatched", "WhenNotMatchedBySource")
    return [(getattr(merging, name), getattr(writer, name)) for name in names]
