"""Every table of ``delta-spec-testdata/tables``: facts of the snapshot, rows, refusals."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta
from sparkdelta.exceptions import VersionNotFoundError
from tests.conformance import expectations
from tests.conformance.expectations import parameters
from tests.conformance.reading import CorpusReader, SnapshotFacts, changed_rows
from tests.support.corpus import Case, CaseRead, ChangeRead, corpus_or_skip, load_cases
from tests.support.errors import raises
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = pytest.mark.conformance

CASES = load_cases(corpus_or_skip())
READABLE = [
    case
    for case in CASES
    if not case.expect_error and case.name not in expectations.REFUSED_AS_UNSUPPORTED
]
REFUSED = [case for case in CASES if case.expect_error]
UNSUPPORTED = [case for case in CASES if case.name in expectations.REFUSED_AS_UNSUPPORTED]
TRUNCATED = [case for case in READABLE if case.document["versions"]["earliest_readable"]]
READS = [read for case in CASES for read in case.reads]
CHANGES = [read for case in CASES for read in case.change_reads]
UNVERIFIED = "not gating: no two independent readers agree on this one"


def test_sizes() -> None:
    gating = [read for read in READS if read.verified and not read.expect_error]
    assert {
        "cases": len(CASES),
        "verified cases": sum(case.verified for case in CASES),
        "refused cases": len(REFUSED),
        "verified reads": sum(not read.filtered for read in gating),
        "verified filtered reads": sum(read.filtered for read in gating),
        "refused reads": sum(read.expect_error is not None for read in READS),
        "unverified reads": sum(not read.verified for read in READS),
        "change data reads": len(CHANGES),
    } == {
        "cases": expectations.CASES,
        "verified cases": expectations.VERIFIED_CASES,
        "refused cases": expectations.REFUSED_CASES,
        "verified reads": expectations.VERIFIED_READS,
        "verified filtered reads": expectations.VERIFIED_FILTERED_READS,
        "refused reads": expectations.REFUSED_READS,
        "unverified reads": expectations.UNVERIFIED_READS,
        "change data reads": expectations.CASE_CDF_READS,
    }
    assert len({read.id for read in READS}) == len(READS)


def test_expectations() -> None:
    """Every case that may be refused as unsupported says so itself."""
    assert all(case.document["allow_unsupported"] for case in UNSUPPORTED)
    assert len(UNSUPPORTED) == len(expectations.REFUSED_AS_UNSUPPORTED)
    assert {case.expect_error for case in REFUSED} <= set(expectations.CASE_ERRORS)


@pytest.mark.parametrize("snapshot", parameters(case for case in READABLE if case.verified))
def test_facts(snapshot: Case, reader: CorpusReader) -> None:
    assert actual_facts(reader.facts(snapshot.query), snapshot) == expected_facts(snapshot)


@pytest.mark.parametrize("counted_tombstones", parameters(c for c in READABLE if c.verified))
def test_num_tombstones(counted_tombstones: Case, reader: CorpusReader) -> None:
    expected = counted_tombstones.document["num_tombstones"]
    assert reader.num_tombstones(counted_tombstones.query) == expected


@pytest.mark.parametrize("snapshot", parameters(case for case in READABLE if not case.verified))
def test_unverified_facts(snapshot: Case, reader: CorpusReader) -> None:
    if actual_facts(reader.facts(snapshot.query), snapshot) != expected_facts(snapshot):
        pytest.xfail(UNVERIFIED)


@pytest.mark.parametrize("case", parameters(REFUSED))
def test_refused(case: Case, spark: SparkSession) -> None:
    assert case.expect_error is not None
    expected = expectations.CASE_ERRORS[case.expect_error]
    with raises(expected) as loading:
        load_snapshot(spark, case.query.location)
    with raises(expected) as reading:
        read_delta(spark, case.query.location)
    for error in (loading.value, reading.value):
        assert error.getCondition() == expected
        if error.getCondition() == "DELTA_STATE_RECOVER_ERROR":
            assert error.what == case.expect_error.removeprefix("missing_")


@pytest.mark.parametrize("case", parameters(UNSUPPORTED))
def test_unsupported(case: Case, spark: SparkSession) -> None:
    with raises(*expectations.UNSUPPORTED):
        read_delta(spark, case.query.location)


@pytest.mark.parametrize("case", parameters(TRUNCATED))
def test_before_the_earliest_version(case: Case, spark: SparkSession) -> None:
    earliest = case.document["versions"]["earliest_readable"]
    with pytest.raises(VersionNotFoundError):
        load_snapshot(spark, case.query.location, version=earliest - 1)


@pytest.mark.parametrize(
    "read", parameters(read for read in READS if read.verified and not read.expect_error)
)
def test_rows(read: CaseRead, reader: CorpusReader) -> None:
    if read.id.startswith(tuple(expectations.READS_REFUSED_AS_UNSUPPORTED)):
        with raises(*expectations.UNSUPPORTED):
            reader.rows(read.query)
        return
    check_rows(read, reader)


@pytest.mark.parametrize(
    "counted_files",
    parameters(
        read
        for case in READABLE
        for read in case.reads
        if read.verified
        and read.num_files is not None
        and read.expect_error in (None, "missing_data_file")
        # The latest version is among the facts.
        and read.query.version != case.document["versions"]["latest"]
    ),
)
def test_num_files(counted_files: CaseRead, reader: CorpusReader) -> None:
    assert reader.num_files(counted_files.query) == counted_files.num_files


@pytest.mark.parametrize("read", parameters(read for read in READS if read.expect_error))
def test_refused_read(read: CaseRead, reader: CorpusReader) -> None:
    assert read.expect_error is not None
    with raises(expectations.CASE_ERRORS[read.expect_error]):
        reader.rows(read.query)


@pytest.mark.parametrize("read", parameters(read for read in READS if not read.verified))
def test_unverified_rows(read: CaseRead, reader: CorpusReader) -> None:
    if read.id.split(":")[0] in expectations.REFUSED_AS_UNSUPPORTED:
        with raises(*expectations.UNSUPPORTED):
            reader.rows(read.query)
        return
    try:
        check_rows(read, reader)
    except AssertionError as difference:
        pytest.xfail(f"{UNVERIFIED}: {difference}")


@pytest.mark.parametrize("changes", parameters(CHANGES))
def test_changes(changes: ChangeRead, spark: SparkSession) -> None:
    assert changes.rows_file is not None
    assert_same_rows(changed_rows(spark, changes), parquet_rows(changes.rows_file))


def check_rows(read: CaseRead, reader: CorpusReader) -> None:
    """Fail unless the read returns the rows of each form in which the case has them."""
    rows = reader.rows(read.query)
    assert rows.num_rows == read.num_rows
    if read.rows_file is not None:
        assert_same_rows(rows, parquet_rows(read.rows_file))
    elif read.variant_json_file is not None:
        assert_same_rows(rows, parquet_rows(read.variant_json_file), variants_as_json=True)


def expected_facts(case: Case) -> dict[str, Any]:
    """Return what ``case.json`` says about the latest version."""
    document = case.document
    facts = {
        "version": document["versions"]["latest"],
        "protocol": {
            "minReaderVersion": document["protocol"]["minReaderVersion"],
            "minWriterVersion": document["protocol"]["minWriterVersion"],
            "readerFeatures": _sorted(document["protocol"].get("readerFeatures")),
            "writerFeatures": _sorted(document["protocol"].get("writerFeatures")),
        },
        "metadata_id": document["metadata_id"],
        "table_name": document["table_name"],
        "partition_columns": document["partition_columns"],
        "configuration": document["configuration"],
        "schema": _without_metadata(document["schema"]),
        "schema_string_sha256": document["schema_string_sha256"],
        "num_files": document["num_files"],
        "app_transactions": document["app_transactions"],
        "domain_metadata": document["domain_metadata"],
    }
    if (live_files := case.live_files()) is not None:
        facts["live_files"] = Counter(live_files)
    return facts


def actual_facts(facts: SnapshotFacts, case: Case) -> dict[str, Any]:
    """Return what the snapshot says, in the words of ``case.json``."""
    schema_string = facts.metadata["schemaString"]
    actual = {
        "version": facts.version,
        "protocol": facts.protocol,
        "metadata_id": facts.metadata["id"],
        "table_name": facts.metadata["name"],
        "partition_columns": facts.metadata["partitionColumns"],
        "configuration": facts.metadata["configuration"],
        "schema": _without_metadata(facts.schema),
        "schema_string_sha256": hashlib.sha256(schema_string.encode()).hexdigest(),
        "num_files": len(facts.live_files),
        "app_transactions": facts.transactions,
        "domain_metadata": facts.domain_metadata,
    }
    if case.live_files() is not None:
        actual["live_files"] = Counter(facts.live_files)
    return actual


def _sorted(features: list[str] | None) -> list[str] | None:
    return None if features is None else sorted(features)


def _without_metadata(schema: Any) -> Any:
    """Return a schema in JSON form without field metadata, which Spark's types may rewrite."""
    if isinstance(schema, dict):
        return {key: _without_metadata(value) for key, value in schema.items() if key != "metadata"}
    if isinstance(schema, list):
        return [_without_metadata(item) for item in schema]
    return schema
