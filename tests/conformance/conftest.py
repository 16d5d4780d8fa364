"""Fixtures of the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from pyspark.sql import SparkSession

from tests.conformance.reading import CorpusReader
from tests.support.corpus import Case, CaseRead, Spec


@pytest.fixture(scope="session")
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[CorpusReader]:
    """Read the corpus: all that the selected tests need is started here, in their order.

    The name of a test's parameter says what of its query is needed.
    """
    session = spark.newSession()
    # Timestamp literals of the workloads' predicates are in the session time zone, UTC.
    session.conf.set("spark.sql.session.timeZone", "UTC")
    corpus_reader = CorpusReader(session)
    start = {
        "read": corpus_reader.start_rows,
        "snapshot": corpus_reader.start_facts,
        "counted_files": corpus_reader.start_num_files,
        "scanned": corpus_reader.start_rows,
        "counted_tombstones": corpus_reader.start_num_tombstones,
    }
    for item in request.session.items:
        if isinstance(item, pytest.Function) and "reader" in item.fixturenames:
            for name, parameter in item.callspec.params.items():
                start[name](cast("Case | CaseRead | Spec", parameter).query)
    yield corpus_reader
    corpus_reader.close()
