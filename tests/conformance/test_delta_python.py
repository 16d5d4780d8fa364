"""delta-spark's own Python tests, run against this library.

They come from a checkout of delta-io/delta that `DELTA_PYTHON_TESTS` names; without one, this
module is skipped. They import `delta.tables` and `delta.testing.utils`, which exist only while they
are loaded.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import unittest
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession
from pyspark.testing.sqlutils import SQLTestUtils

import sparkdelta.api.delta_table
from sparkdelta.exceptions import DeltaError

_CHECKOUT = "DELTA_PYTHON_TESTS"
if _CHECKOUT not in os.environ:
    reason = f"delta-spark's Python tests: set {_CHECKOUT} to a checkout of delta-io/delta"
    pytest.skip(reason, allow_module_level=True)

pytestmark = [pytest.mark.conformance, pytest.mark.every_case]

TESTS = 48
_TABLES = "test_deltatable.DeltaTableTests"
EXCLUDED: Mapping[str, str] = {
    f"{_TABLES}.test_create_table_geo_types": "the types are not in the protocol",
    f"{_TABLES}.test_dropFeatureSupport": "the features exist only in delta-spark's own tests",
    f"{_TABLES}.test_optimize_w_partition_filter": "history has conditions as users write them",
    f"{_TABLES}.test_verify_paritionedBy_compatibility": "it calls classes in delta-spark's JAR",
}


class DeltaTestCase(SQLTestUtils, unittest.TestCase):
    """The base class of the tests; an enabled session stands for delta-spark's extension.

    The texts of errors are our own; their classes are compared.
    """

    spark: ClassVar[SparkSession]

    def assertRaisesRegex(self, expected: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:
        own = regex if regex.startswith("DELTA_") else ""
        return super().assertRaisesRegex(expected, own, *args, **kwargs)  # noqa: PT027

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


def _cases() -> list[DeltaTestCase]:
    suite = Path(os.environ[_CHECKOUT], "python", "delta", "tests")
    utils = ModuleType("delta.testing.utils")
    vars(utils)["DeltaTestCase"] = DeltaTestCase
    package = {
        "delta": ModuleType("delta"),
        "delta.tables": sparkdelta.api.delta_table,
        "delta.testing": ModuleType("delta.testing"),
        "delta.testing.utils": utils,
    }
    found: list[DeltaTestCase] = []
    with patch.dict(sys.modules, package):
        for name, case in (("test_deltatable", "DeltaTableTests"), ("test_sql", "DeltaSqlTests")):
            spec = importlib.util.spec_from_file_location(name, suite / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            _adapt(module)
            found += unittest.defaultTestLoader.loadTestsFromTestCase(getattr(module, case))
    return found


def _adapt(module: ModuleType) -> None:
    """Let the tests expect what COMPATIBILITY.md says: texts are ours, columns are nullable."""
    mixin = getattr(module, "DeltaTableTestsMixin", None)
    if mixin is None:
        return
    verify = mixin._DeltaTableTestsMixin__verify_table_schema

    def verify_nullable(self, table, schema, cols, types, nullables=(), **more) -> None:
        verify(self, table, schema, cols, types, nullables=set(cols), **more)

    def intercept(self, function, message: str) -> None:
        with pytest.raises(DeltaError):
            function()

    mixin._DeltaTableTestsMixin__verify_table_schema = verify_nullable
    mixin._DeltaTableTestsMixin__intercept = intercept


def _parameter(case: DeltaTestCase) -> object:
    reason = EXCLUDED.get(case.id())
    marks = () if reason is None else pytest.mark.xfail(reason=reason)
    return pytest.param(case, id=case.id(), marks=marks)


CASES = _cases()


def test_sizes() -> None:
    names = [case.id() for case in CASES]
    assert (len(names), len(set(names))) == (TESTS, TESTS)
    assert EXCLUDED.keys() <= set(names)


@pytest.mark.parametrize("case", [*map(_parameter, CASES)])
def test_delta_spark(case: DeltaTestCase, enabled: SparkSession) -> None:
    type(case).spark = enabled
    case.debug()
