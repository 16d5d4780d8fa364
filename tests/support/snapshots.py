"""A snapshot's frames as plain values, in the form of the reference model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sparkdelta import DeltaError, Snapshot
from sparkdelta.exceptions import from_message
from tests.support.reference_model import State, file_key

Comparable = dict[str, Any]
SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""PySpark converts only some of the JVM's exceptions."""


def keys(frame: DataFrame) -> list[tuple[str, str]]:
    """The keys of the logical files of a frame of adds or removes, doubled ones twice."""
    rows = frame.select("path", "deletionVector").collect()
    return sorted(file_key(row.asDict(recursive=True)) for row in rows)


def paths(snapshot: Snapshot) -> list[str]:
    """The paths of the live files."""
    return sorted(row["path"] for row in snapshot.add_files().select("path").collect())


def replayed(snapshot: Snapshot) -> Comparable:
    """The whole state of a snapshot, as `expected` gives it for the model."""
    transactions = snapshot.transactions().collect()
    domains = snapshot.domain_metadata().collect()
    return {
        "adds": keys(snapshot.add_files()),
        "removes": keys(snapshot.remove_files()),
        "transactions": sorted((row["appId"], row["version"]) for row in transactions),
        "domains": sorted((row["domain"], row["configuration"]) for row in domains),
        "id": snapshot.metadata.id,
        "reader": snapshot.protocol.min_reader_version,
    }


def expected(state: State) -> Comparable:
    """The whole state of the reference model."""
    assert state.metadata is not None
    assert state.protocol is not None
    return {
        "adds": sorted(file_key(fields) for fields in state.adds.values()),
        "removes": sorted(state.removes),
        "transactions": sorted((n, t["version"]) for n, t in state.transactions.items()),
        "domains": sorted((n, d["configuration"]) for n, d in state.live_domains.items()),
        "id": state.metadata["metaData"]["id"],
        "reader": state.protocol["protocol"]["minReaderVersion"],
    }


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows as sorted tuples."""
    return sorted(map(tuple, frame.collect()), key=repr)


def raised_by(query: Callable[[], object]) -> DeltaError:
    """The error that a call raises, be it when a frame is made or inside Spark."""
    try:
        result = query()
    except DeltaError as error:
        return error
    except SPARK_ERRORS as error:
        found = from_message(str(error))
        if found is None:
            raise
        return found
    raise AssertionError(f"nothing was raised, the result is {result!r}")
