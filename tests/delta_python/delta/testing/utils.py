"""`DeltaTestCase` with `sparkdelta.enable` in the place of delta-spark's extension and catalog."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf
from pyspark.testing.sqlutils import ReusedSQLTestCase

import sparkdelta


class DeltaTestCase(ReusedSQLTestCase):
    """A test case with an enabled session, `tempPath` and `tempFile`."""

    @classmethod
    def conf(cls) -> SparkConf:
        settings = {
            "spark.app.name": cls.__name__,
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        }
        return super().conf().setAll(list(settings.items()))

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        sparkdelta.enable(cls.spark)

    def setUp(self) -> None:
        super().setUp()
        self.tempPath = tempfile.mkdtemp()
        self.tempFile = str(Path(self.tempPath) / "tempFile")

    def tearDown(self) -> None:
        super().tearDown()
        shutil.rmtree(self.tempPath, ignore_errors=True)

    @contextmanager
    def tempTable(self) -> Iterator[str]:
        name = f"table_{uuid.uuid4().hex}"
        with self.table(name):
            yield name
