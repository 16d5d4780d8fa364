"""Every gating spec of the packed workloads, but for those that are left out by name.

Rows, row counts, snapshots, failures, how many files a condition keeps, version checksums, and
writes that are done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkdelta import DeltaTable, alter_table, read_delta, verify, write_delta
from sparkdelta.operations.verify.verification import CHECKSUM
from tests.conformance import expectations
from tests.conformance.expectations import parameters
from tests.conformance.reading import CorpusReader, changed_rows
from tests.support.corpus import Spec, corpus_or_skip, load_cases, load_workloads
from tests.support.errors import raises
from tests.support.rows import assert_same_rows, parquet_rows, spark_rows, without_void

pytestmark = pytest.mark.conformance

WORKLOADS = load_workloads(corpus_or_skip())
GATING = [spec for spec in WORKLOADS.specs if expectations.left_out(spec) is None]
LEFT_OUT = [spec for spec in WORKLOADS.specs if expectations.left_out(spec) is not None]


def _specs(spec_type: str, *, fails: bool) -> list[Any]:
    return parameters(
        spec for spec in GATING if spec.type == spec_type and (spec.error is not None) == fails
    )


def test_sizes() -> None:
    specs = WORKLOADS.specs
    assert len(WORKLOADS.tables) == expectations.WORKLOAD_TABLES
    assert sum(table.gate for table in WORKLOADS.tables) == expectations.GATING_WORKLOAD_TABLES
    assert len(specs) == len({spec.id for spec in specs}) == expectations.SPECS
    assert Counter(spec.type for spec in GATING) == {
        "read": expectations.GATING_READS,
        "snapshot": expectations.GATING_SNAPSHOTS,
        "crc": expectations.GATING_CHECKSUMS,
        "cdf": expectations.GATING_CHANGES,
        "write": expectations.GATING_WRITES,
    }
    assert not any(spec.table.gate for spec in LEFT_OUT)
    assert len(LEFT_OUT) == expectations.NOT_GATING_SPECS


def test_expectations() -> None:
    """The names in the expectations are in the corpus, and those of errors fail there."""
    cases = load_cases(corpus_or_skip())
    names = {item.id for case in cases for item in (case, *case.reads)}
    assert set(expectations.KNOWN_GAPS) <= names | {spec.id for spec in GATING}
    failing = {spec.id for spec in GATING if spec.error is not None}
    codes = {spec.error["errorCode"] for spec in GATING if spec.error is not None}
    assert set(expectations.SPEC_ERROR_BY_ID) <= failing
    assert set(expectations.SPEC_ERRORS) <= codes


@pytest.mark.parametrize("read", _specs("read", fails=False))
def test_rows(read: Spec, reader: CorpusReader) -> None:
    assert read.expected is not None
    assert read.expected_data is not None
    rows = reader.rows(read.query)
    expected = parquet_rows(read.expected_data)
    assert rows.num_rows == expected.num_rows == read.expected["rowCount"]
    assert_same_rows(without_void(rows), expected)


def _counted() -> list[Spec]:
    return [
        spec
        for spec in GATING
        if spec.type == "read" and spec.query.where and spec.expected
        and spec.expected.get("fileCount") is not None
    ]  # fmt: skip


def test_file_counts_are_all_there() -> None:
    assert len(_counted()) == expectations.FILE_COUNTS
    assert set(expectations.MORE_FILES) <= {spec.id for spec in _counted()}
    assert len(expectations.MORE_FILES) <= 15


@pytest.mark.parametrize("scanned", parameters(_counted()))
def test_files_kept(scanned: Spec, reader: CorpusReader) -> None:
    """A read keeps no more files than delta-spark's, except in the cases that are named."""
    assert scanned.expected is not None
    kept = reader.num_scanned(scanned.query)
    if scanned.id in expectations.MORE_FILES:
        number, _ = expectations.MORE_FILES[scanned.id]
        assert kept == number > scanned.expected["fileCount"]
    else:
        assert kept <= scanned.expected["fileCount"]


@pytest.mark.parametrize("read", _specs("read", fails=True))
def test_refused_read(read: Spec, reader: CorpusReader) -> None:
    with raises(expectations.spec_error(read)):
        reader.rows(read.query)


@pytest.mark.parametrize("snapshot", _specs("snapshot", fails=False))
def test_snapshot(snapshot: Spec, reader: CorpusReader) -> None:
    assert snapshot.expected is not None
    facts = reader.facts(snapshot.query)
    actual = {
        "protocol": facts.protocol,
        "metadata": facts.metadata,
        "setTransactions": facts.transactions,
        "domainMetadata": facts.domain_metadata,
        "numFiles": len(facts.live_files),
        "sizeInBytes": sum(file.size for file in facts.live_files),
    }
    assert actual == expected_snapshot(snapshot.expected)
    if snapshot.query.version is not None:
        assert facts.version == snapshot.query.version


@pytest.mark.parametrize("snapshot", _specs("snapshot", fails=True))
def test_refused_snapshot(snapshot: Spec, reader: CorpusReader) -> None:
    with raises(expectations.spec_error(snapshot)):
        reader.facts(snapshot.query)


@pytest.mark.parametrize("checksum", _specs("crc", fails=False))
def test_version_checksum(checksum: Spec, spark: SparkSession) -> None:
    """The one that delta-spark wrote is that of the version's state."""
    verified = verify(spark, checksum.query.location, version=checksum.query.version)
    assert [check.num_checked for check in verified.checks if check.name == CHECKSUM] == [1]
    assert verified.is_clean, verified


@pytest.mark.parametrize("written", _specs("write", fails=False))
def test_write(written: Spec, spark: SparkSession, tmp_path: Path) -> None:
    """Commits that this package writes give every version the rows that it has in the corpus."""
    path = str(tmp_path / "table")
    for commit in written.commits:
        _write(spark, path, commit, written.table.directory)
    reads = [spec for spec in GATING if spec.table is written.table and spec.type == "read"]
    assert reads
    for read in reads:
        assert read.expected_data is not None
        rows = read_delta(spark, path, version=read.query.version, where=read.query.where)
        assert_same_rows(spark_rows(rows), parquet_rows(read.expected_data))


def _write(spark: SparkSession, path: str, commit: Mapping[str, Any], source: Path) -> None:
    operation, partition_by = commit["operation"], commit.get("partitionColumns", [])
    files = [str(source / name) for name in commit.get("dataFiles", [])]
    table = DeltaTable(spark, path, {})
    if operation == "delete":
        table.delete(commit["predicate"])
    elif operation == "update":
        table.update(commit["predicate"], commit["set"])
    elif operation == "update_properties":
        altered = alter_table(spark, path)
        if "set" in commit:
            altered.set_properties(commit["set"])
        if "remove" in commit:
            altered.unset_properties(commit["remove"])
    elif operation == "insert":
        write_delta(spark.read.parquet(*files), path, mode="append")
    elif operation == "evolve_schema":
        added = StructType.fromJson({"fields": commit["addColumns"]})
        write_delta(spark.createDataFrame([], added), path, mode="append", merge_schema=True)
    elif files:
        rows = spark.read.parquet(*files)
        write_delta(rows, path, mode="overwrite", overwrite_schema=True, partition_by=partition_by)
    else:
        is_new = operation == "create_table"
        builder = DeltaTable.create(spark) if is_new else DeltaTable.replace(spark)
        builder = builder.location(path).addColumns(StructType.fromJson(commit["schema"]))
        for name, value in commit.get("properties", {}).items():
            builder = builder.property(name, value)
        builder.partitionedBy(*partition_by).execute()


@pytest.mark.parametrize("changed", _specs("cdf", fails=False))
def test_changes(changed: Spec, spark: SparkSession) -> None:
    assert changed.changes is not None
    assert changed.expected_data is not None
    rows, expected = changed_rows(spark, changed.changes), parquet_rows(changed.expected_data)
    assert_same_rows(rows.select(expected.column_names), expected)


@pytest.mark.parametrize("changed", _specs("cdf", fails=True))
def test_refused_changes(changed: Spec, spark: SparkSession) -> None:
    assert changed.changes is not None
    with raises(expectations.spec_error(changed)):
        changed_rows(spark, changed.changes)


@pytest.mark.parametrize("spec", parameters(LEFT_OUT))
def test_left_out(spec: Spec) -> None:
    pytest.skip(f"{spec.id}: {expectations.left_out(spec)}")


def expected_snapshot(expected: Any) -> dict[str, Any]:
    """Return the expected snapshot with everything spelled out that the spec leaves out."""
    protocol = {"readerFeatures": None, "writerFeatures": None, **expected["protocol"]}
    for features in ("readerFeatures", "writerFeatures"):
        if protocol[features] is not None:
            protocol[features] = sorted(protocol[features])
    transactions = expected.get("setTransactions", [])
    domains = expected.get("domainMetadata", [])
    return {
        "protocol": protocol,
        "metadata": {"name": None, "description": None, **expected["metadata"]},
        "setTransactions": {entry["appId"]: entry["version"] for entry in transactions},
        "domainMetadata": {entry["domain"]: entry["configuration"] for entry in domains},
        "numFiles": expected["numFiles"],
        "sizeInBytes": expected["sizeInBytes"],
    }
