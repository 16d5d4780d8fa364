"""delta-spark's own Python tests, run against this library.

They come from a checkout of delta-io/delta that `DELTA_PYTHON_TESTS` names; without one, this
module is skipped. They run as they are, but for their session: the package `delta` is ours, and the
classes and texts of errors that they expect are delta-spark's.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import ClassVar
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession
from pyspark.testing.sqlutils import SQLTestUtils

import sparkdelta.as_delta  # makes the package `delta`

_CHECKOUT = "DELTA_PYTHON_TESTS"
if _CHECKOUT not in os.environ:
    reason = f"delta-spark's Python tests: set {_CHECKOUT} to a checkout of delta-io/delta"
    pytest.skip(reason, allow_module_level=True)

pytestmark = [pytest.mark.conformance, pytest.mark.every_case]

SUITE = Path(os.environ[_CHECKOUT], "python", "delta", "tests")
FILES = {
    "test_deltatable": 43,
    "test_exceptions": 9,
    "test_exceptions_init": 2,
    "test_pip_utils": 2,
    "test_sql": 5,
    "test_version": 5,
}
"""The number of tests in each file."""

ON_CONNECT = ("test_deltatable", "test_sql")
"""The files that run on Spark Connect, too. delta-spark's own tests of it are the first of them,
and tests of the exceptions that its plugin sends."""

OWN_PROCESS = "test_pip_utils"
"""It makes a session of its own, and stops it."""

_TABLES = "test_deltatable.DeltaTableTests"
_RAISED_IN_JVM = "it raises exceptions of classes in delta-spark's JAR"
_CONVERTED_FROM_JVM = "PySpark converts exceptions of classes in delta-spark's JAR"
EXCLUDED: Mapping[str, str] = {
    f"{_TABLES}.test_dropFeatureSupport": "the features exist only in delta-spark's own tests",
    f"{_TABLES}.test_verify_paritionedBy_compatibility": "it calls classes in delta-spark's JAR",
    "test_exceptions.DeltaExceptionTests": _RAISED_IN_JVM,
    "test_exceptions_init.DeltaClassicExceptionConversionInstalledTests": _CONVERTED_FROM_JVM,
    "test_pip_utils.PipUtilsCustomJarsTests": "it downloads delta-spark's JAR",
}
"""Tests and classes of tests, with the reasons why they fail here."""


class DeltaTestCase(SQLTestUtils, unittest.TestCase):
    """The base class of the tests: an enabled session stands for delta-spark's extension."""

    spark: ClassVar[SparkSession]

    def setUp(self) -> None:
        self.tempPath = tempfile.mkdtemp()
        self.tempFile = str(Path(self.tempPath) / "tempFile")

    def tearDown(self) -> None:
        shutil.rmtree(self.tempPath, ignore_errors=True)

    @contextmanager
    def tempTable(self) -> Iterator[str]:
        name = f"table_{uuid.uuid4().hex}"
        with self.table(name):
            yield name


def _cases() -> list[unittest.TestCase]:
    utils = ModuleType("delta.testing.utils")
    vars(utils)["DeltaTestCase"] = DeltaTestCase
    package = {"delta.testing": ModuleType("delta.testing"), "delta.testing.utils": utils}
    cases: list[unittest.TestCase] = []
    with patch.dict(sys.modules, package):
        for name in FILES:
            spec = importlib.util.spec_from_file_location(name, SUITE / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
                cases += suite
    return cases


def _parameter(case: unittest.TestCase) -> object:
    test = case.id()
    reason = EXCLUDED.get(test) or EXCLUDED.get(test.rpartition(".")[0])
    marks = () if reason is None else pytest.mark.xfail(reason=reason, strict=True)
    return pytest.param(case, id=case.id(), marks=marks)


CASES = _cases()


def test_each_test_of_each_file_runs_or_has_a_reason() -> None:
    tests = [case.id() for case in CASES]
    assert Counter(test.partition(".")[0] for test in tests) == FILES
    classes = [test.rpartition(".")[0] for test in tests]
    assert len(set(tests)) == len(tests)
    assert EXCLUDED.keys() <= {*tests, *classes}


@pytest.mark.connect
@pytest.mark.parametrize(
    "case",
    [_parameter(case) for case in CASES if case.id().startswith(ON_CONNECT)],
)
def test_delta_spark_on_connect(
    case: unittest.TestCase, connect_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # for PySpark's functions
    sparkdelta.enable(connect_session)
    try:
        type(case).spark = connect_session
        case.debug()
    finally:
        sparkdelta.disable(connect_session)


@pytest.mark.parametrize("case", [*map(_parameter, CASES)])
def test_delta_spark(case: unittest.TestCase, enabled: SparkSession) -> None:
    if case.id().startswith(OWN_PROCESS):
        program = "import sparkdelta.as_delta, sys, unittest; unittest.main(None, argv=sys.argv)"
        subprocess.run([sys.executable, "-c", program, case.id()], cwd=SUITE, check=True)
        return
    if "version_sbt" in case.id() and not (SUITE.parents[2] / "version.sbt").exists():
        pytest.skip("the checkout has no version.sbt")
    type(case).spark = enabled
    case.debug()
