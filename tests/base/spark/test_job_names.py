"""Jobs that we start are named for Spark's user interface, and nothing of the user's is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from sparkdelta import clean_log, load_snapshot, verify, write_checkpoint, write_delta
from sparkdelta.base.spark.job_names import jobs_of, named_jobs

DESCRIPTION = "spark.job.description"


@pytest.fixture
def described(spark: SparkSession) -> Iterator[None]:
    """A user who names jobs, too."""
    spark.sparkContext.setJobDescription("mine")
    yield
    spark.sparkContext.setLocalProperty(DESCRIPTION, None)  # type: ignore[arg-type]


def names(spark: SparkSession, since: int) -> list[str | None]:
    """The descriptions of the jobs from a number on, as the user interface shows them."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    found = [jobs.apply(index) for index in range(jobs.size())]
    described = {job.jobId(): job.description() for job in found if job.jobId() >= since}
    return [described[n].get() if described[n].isDefined() else None for n in sorted(described)]


def next_job(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.slow
@pytest.mark.usefixtures("described")
def test_every_job_says_what_of_which_table(spark: SparkSession, table_path: str) -> None:
    start, root = next_job(spark), f"file:{table_path}"
    rows = spark.range(4)
    write_delta(rows, table_path)
    write_delta(rows, table_path, mode="append")
    write_delta(rows, table_path, mode="overwrite")
    write_checkpoint(spark, table_path)
    snapshot = load_snapshot(spark, table_path)
    snapshot.scan("id > 1").to_df()
    clean_log(spark, table_path)
    verify(spark, table_path, footers=True)
    found = names(spark, start)
    assert f"sparkdelta: data files, version 1 of {root}" in found
    assert f"sparkdelta: files of a scan, version 2 of {root}" in found
    assert not [name for name in found if not str(name).startswith("sparkdelta: ")]
    assert not [name for name in found if table_path not in str(name)]
    assert spark.sparkContext.getLocalProperty(DESCRIPTION) == "mine"


def test_threads_and_errors_leave_names_alone(spark: SparkSession) -> None:
    context, both = spark.sparkContext, threading.Barrier(2)
    before = context.getLocalProperty(DESCRIPTION)

    def seen(step: str) -> tuple[str | None, str | None]:
        with jobs_of(step), named_jobs(spark, step, version=1):
            both.wait()
            inside = context.getLocalProperty(DESCRIPTION)
            both.wait()
        return inside, context.getLocalProperty(DESCRIPTION)

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(seen, ["a", "b"]))
    assert found == [(f"sparkdelta: {s}, version 1 of {s}", None) for s in "ab"]
    with pytest.raises(ValueError, match="x"), named_jobs(spark, "step"):
        raise ValueError("x")
    assert context.getLocalProperty(DESCRIPTION) == before


def test_an_inner_name_counts(spark: SparkSession) -> None:
    context = spark.sparkContext
    with jobs_of("t", 1), named_jobs(spark, "outer"):
        with jobs_of("u"), named_jobs(spark, "inner"):
            assert context.getLocalProperty(DESCRIPTION) == "sparkdelta: inner, u"
        assert context.getLocalProperty(DESCRIPTION) == "sparkdelta: outer, version 1 of t"
