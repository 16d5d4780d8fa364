"""Fixtures of the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from pyspark.sql import SparkSession

from tests.conformance.reading import CorpusReader
from tests.support.corpus import Case, CaseRead, Spec


@pytest.fixture(scope="session")
def corpus_reader(spark: SparkSession) -> Iterator[CorpusReader]:
    session = spark.newSession()
    # Timestamp literals of the workloads' predicates are in the session time zone, UTC.
    session.conf.set("spark.sql.session.timeZone", "UTC")
    corpus_reader = CorpusReader(session)
    yield corpus_reader
    corpus_reader.close()


@pytest.fixture(scope="module")
def reader(corpus_reader: CorpusReader, request: pytest.FixtureRequest) -> CorpusReader:
    """Read the corpus: all that the selected tests of the module need is started, in their order.

    The name of a test's parameter says what of its query is needed. With ``--dist loadfile`` a
    worker runs whole modules, so that no query runs twice.
    """
    start = {
        "read": corpus_reader.start_rows,
        "snapshot": corpus_reader.start_facts,
        "counted_files": corpus_reader.start_num_files,
        "scanned": corpus_reader.start_rows,
        "counted_tombstones": corpus_reader.start_num_tombstones,
    }
    for item in request.session.items:
        of_module = isinstance(item, pytest.Function) and item.path == request.path
        if of_module and "reader" in item.fixturenames:
            for name, parameter in item.callspec.params.items():
                start[name](cast("Case | CaseRead | Spec", parameter).query)
    return corpus_reader
