"""Suites of tests that run in the environment of a program, and how many of them pass.

The table of COMPATIBILITY.md has these numbers, and ``make clients`` compares each run with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from tests.versions import PINNED


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tests that pytest runs in an environment of their own.

    Attributes
    ----------
    title
        In the table of COMPATIBILITY.md.
    requirements
        The packages to install beside this one.
    tests
        The arguments of pytest.
    checkout
        The variable that names the directory in which they run; without it, they are skipped.
        None for tests of ours.
    plugin
        A module beside this one that pytest loads.
    variables, settings
        Of their environment, and of Spark.
    distribution
        A package and its version that the tests ask pip's metadata for.
    spark
        The version of PySpark, if the program does not allow the newest.
    passed, with_delta_spark, on_connect
        How many tests pass: here, with delta-spark, and here on Spark Connect. None if they were
        not run there.
    failures, connect_failures
        The reason for each test that fails here, and on Spark Connect, by its name.
    """

    title: str
    requirements: tuple[str, ...]
    tests: tuple[str, ...]
    checkout: str | None = None
    plugin: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    distribution: tuple[str, str] | None = None
    spark: str | None = None
    passed: int
    with_delta_spark: int | None = None
    on_connect: int | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    connect_failures: Mapping[str, str] = field(default_factory=dict)

    def row(self) -> list[str]:
        """Return the row of the table in COMPATIBILITY.md."""
        counts = (self.passed, self.on_connect, self.with_delta_spark)
        on_connect = _texts(self.connect_failures, "on Spark Connect, ")
        texts = [*_texts(self.failures), *on_connect]
        return [self.title, *("" if n is None else str(n) for n in counts), "; ".join(texts)]


def _texts(failures: Mapping[str, str], prefix: str = "") -> list[str]:
    """Return a text for each reason, with the names of its tests."""
    names = {
        reason: [k for k, v in failures.items() if v == reason] for reason in failures.values()
    }
    return [
        f"{prefix}{', '.join(f'`{name}`' for name in tests)}: {reason}"
        for reason, tests in names.items()
    ]


class _DbtSuite(TypedDict):
    """The fields that the suites of dbt-spark share."""

    requirements: tuple[str, ...]
    checkout: str
    plugin: str
    variables: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """delta-spark, as the settings of a session and the packages that it needs."""

    requirements: tuple[str, ...]
    settings: Mapping[str, str]


PEER = Peer(
    requirements=(f"pyspark=={PINNED}", "delta-spark==4.4.0"),
    settings={
        "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
)

_PYTEST = ("pytest<8.4", "pytest-mock", "filelock", "pandas", "pyarrow")
_KEDRO = (*_PYTEST, "kedro-datasets==9.6.0", "aiobotocore", "aiohttp", "deltalake", "hdfs", "s3fs")
# Its extra `pyspark` demands Spark 4.0, which has no delta-spark 4.4; sqlglot 30 breaks its SQL.
_IBIS = (
    *(*_PYTEST, "ibis-framework==12.0.0", "numpy", "packaging", "pyarrow-hotfix", "rich"),
    "sqlglot<30",
)

# Newer versions of dbt-core download a part of theirs from a site of its own.
DBT = ("dbt-core>=1.10,<1.11", "dbt-spark==1.11.0")

_DBT_PYTEST = ("-p", "delta_profile", "--profile", "delta")
_DBT_SUITE = _DbtSuite(
    requirements=(*DBT, "dbt-tests-adapter==1.20.0", "pytest", "pytest-mock", "freezegun"),
    checkout="DBT_SPARK_CHECKOUT",
    plugin="delta_profile",
    variables={"DBT_DATABRICKS_HOST_NAME": "none", "DBT_DATABRICKS_TOKEN": "none"},
)

_SIZES = "expects the size of an older Spark's files"
_IN_THE_JVM = "asks Spark's catalog inside the JVM, which knows no Delta tables"

SUITES = {
    "mack": Suite(
        title="mack 0.5.0: our tests",
        requirements=(*_PYTEST, "mack==0.5.0"),
        tests=("mack_project/checks.py",),
        passed=9,
        on_connect=9,
    ),
    "mack-suite": Suite(
        title="mack: its tests",
        requirements=(*_PYTEST, "mack==0.5.0", "chispa"),
        tests=("tests",),
        checkout="MACK_CHECKOUT",
        passed=27,
        with_delta_spark=28,
        failures={
            "test_delta_file_sizes": _SIZES,
            "test_show_delta_file_sizes": _SIZES,
            "test_rename_delta_table": _IN_THE_JVM,
        },
    ),
    "kedro": Suite(
        title="kedro-datasets 9.6.0: our tests",
        requirements=_KEDRO,
        tests=("kedro_project/checks.py",),
        passed=4,
        on_connect=4,
    ),
    "kedro-suite": Suite(
        title="kedro-datasets: its tests of Delta and Databricks datasets",
        requirements=(*_KEDRO, "matplotlib", "moto"),
        tests=("tests/spark/test_deltatable_dataset.py", "tests/databricks"),
        checkout="KEDRO_DATASETS_CHECKOUT",
        distribution=("delta-spark", "4.4.0"),
        passed=38,
        with_delta_spark=38,
    ),
    "ibis": Suite(
        title="ibis 12.0.0: our tests",
        requirements=_IBIS,
        tests=("ibis_project/checks.py",),
        spark="4.0",
        passed=5,
        on_connect=5,
    ),
    "ibis-suite": Suite(
        title="ibis: its tests of Delta tables",
        requirements=(
            *(*_IBIS, "hypothesis", "pytest-benchmark", "pytest-randomly", "pytest-snapshot"),
            *("pytest-timeout", "pytest-xdist", "requests"),
        ),
        tests=(
            *("-p", "no:randomly", "-o", "filterwarnings=default", "-m", "pyspark", "-k", "delta"),
            "ibis/backends/tests/test_export.py",
            "ibis/backends/pyspark/tests",
        ),
        checkout="IBIS_CHECKOUT",
        spark="4.0",
        passed=2,
    ),
    "pandas_on_spark": Suite(
        title="pandas on Spark: our tests",
        requirements=("pytest", "pandas<3", "pyarrow"),
        tests=("pandas_on_spark_project/checks.py",),
        passed=7,
        on_connect=7,
    ),
    "pandera": Suite(
        title="pandera 0.35.0: our tests",
        requirements=("pytest", "pandera==0.35.0", "pandas<3", "pyarrow"),
        tests=("pandera_project/checks.py",),
        passed=5,
    ),
    "great_expectations": Suite(
        title="great_expectations 1.24.1: our tests",
        requirements=("pytest", "great_expectations==1.24.1", "pandas<3", "pyarrow"),
        tests=("great_expectations_project/checks.py",),
        passed=3,
    ),
    "dbt-suite": Suite(
        title="dbt-spark 1.11.0: its functional tests of basics, schema changes and predicates",
        tests=(
            *_DBT_PYTEST,
            "tests/functional/adapter/test_basic.py",
            "tests/functional/adapter/incremental/test_incremental_merge_exclude_columns.py",
            "tests/functional/adapter/incremental/test_incremental_on_schema_change.py",
            "tests/functional/adapter/incremental/test_incremental_predicates.py",
        ),
        passed=20,
        with_delta_spark=20,
        **_DBT_SUITE,
    ),
    "dbt-delta-suite": Suite(
        title="dbt-spark: its functional tests of strategies, unique keys, clones, constraints, "
        "comments and stored failures, with Delta as the default format",
        tests=(
            *_DBT_PYTEST,
            *("-k", "not Pyodbc and not HTTP and not ConstraintQuoted"),  # of other connections
            "tests/functional/adapter/test_constraints.py",
            "tests/functional/adapter/dbt_clone",
            "tests/functional/adapter/incremental/test_incremental_unique_id.py",
            "tests/functional/adapter/incremental_strategies",
            "tests/functional/adapter/persist_docs",
            "tests/functional/adapter/test_store_test_failures.py",
        ),
        settings={"spark.sql.sources.default": "delta"},
        passed=24,
        with_delta_spark=22,
        failures={
            "test_can_clone_true": "replaces a table that has rows by a shallow clone, which "
            "fails with delta-spark, too",
            **dict.fromkeys(
                (
                    *("test__constraints_ddl", "test__constraints_enforcement_rollback"),
                    "test__model_constraints_ddl",
                ),
                "`SET NOT NULL` for a nullable column, which fails with delta-spark, too",
            ),
            **dict.fromkeys(
                (
                    *("test__one_unique_key", "test__unary_unique_key_list"),
                    *("test__duplicated_unary_unique_key_list", "test__trinary_unique_key_list"),
                    "test_tests_run_successfully_and_are_stored_as_expected",
                ),
                "dbt-spark's method `session` writes a null of a seed as the text `None`",
            ),
        },
        **_DBT_SUITE,
    ),
}

_FAST = tuple(SUITES[name] for name in ("mack", "pandera", "pandas_on_spark"))
FAST = Suite(
    title="Two builds of dbt, and tests of ours, in one session",
    requirements=(
        *DBT,
        *dict.fromkeys(package for suite in _FAST for package in suite.requirements),
    ),
    tests=(
        *("--import-mode=importlib", "dbt_project/checks.py"),
        *(test for suite in _FAST for test in suite.tests),
    ),
    passed=6 + sum(suite.passed for suite in _FAST),
)
