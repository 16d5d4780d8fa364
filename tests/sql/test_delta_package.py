"""The package `delta` of this library, in interpreters of their own, and `sparkdelta run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from sparkdelta import startup
from sparkdelta.__main__ import main

pytestmark = pytest.mark.classic("starts classic sessions in other processes")

ROOT = Path(__file__).parents[2]

IMPORTS = """
import sparkdelta.as_delta
import delta, delta.connect, delta.exceptions.base, delta.pip_utils
from delta import DeltaTable, configure_spark_with_delta_pip
from delta.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException
from delta.tables import DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTable as Table
from importlib.util import find_spec
from pyspark.sql import SparkSession
import sparkdelta, sparkdelta.exceptions as errors

assert DeltaTable is Table is delta.connect.DeltaTable is sparkdelta.DeltaTable
assert ConcurrentAppendException is errors.ConcurrentAppendException
assert issubclass(ConcurrentAppendException, DeltaConcurrentModificationException)
assert find_spec("delta").origin == find_spec("delta.tables").origin == "sparkdelta"
builder = SparkSession.builder
assert configure_spark_with_delta_pip(builder, ["a:b:1"]) is builder
assert builder._options["spark.jars.packages"] == "a:b:1"
try:
    configure_spark_with_delta_pip("builder")
except TypeError:
    print("done")
"""

INSTALLED = """
import sparkdelta.as_delta
import delta
assert delta.__file__.endswith("__init__.py"), delta
try:
    import delta.tables
except ModuleNotFoundError:
    print("done")
"""

PROGRAM = """
import sys
from delta import DeltaTable
import delta.tables
from pyspark.sql import SparkSession

assert "sparkdelta" in sys.modules
SparkSession.Builder.getOrCreate.__wrapped__
print(SparkSession.Builder.getOrCreate.__module__, sys.argv[1:])
"""


WORKER = """
import zipimport

import pyspark.sql.session as sessions

assert isinstance(sessions.__loader__, zipimport.zipimporter), sessions.__loader__
print(sessions.SparkSession.Builder.getOrCreate.__wrapped__.__name__)
"""

WITH_SPARK = """
from delta import DeltaTable
from delta.exceptions import DeltaConcurrentModificationException
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sql("CREATE TABLE t (id BIGINT, next BIGINT GENERATED ALWAYS AS (id + 1)) USING delta")
spark.sql("INSERT INTO t (id) VALUES (1), (2)")
spark.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)")
rows = spark.range(1, 4)
merge = DeltaTable.forName(spark, "t").alias("t").merge(rows.alias("s"), "t.id = s.id")
merge.whenMatchedDelete().whenNotMatchedInsert(values={"id": "s.id"}).execute()
rows.write.saveAsTable("p", format="parquet")
print(spark.table("t").collect(), spark.newSession().sql("SELECT * FROM p, t").count())
"""
SETTINGS = (
    "--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension "
    "--conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog "
    "pyspark-shell"
)


def run(
    *arguments: str, cwd: Path, path: Path | None = None, fails: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run Python in a directory, where the package and another path can be imported."""
    paths = [str(ROOT), *([] if path is None else [str(path)])]
    answer = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert fails or answer.returncode == 0, answer.stderr
    return answer


@pytest.fixture
def no_delta_spark() -> None:
    script = "from importlib.util import find_spec; print(find_spec('delta'))"
    if run("-c", script, cwd=ROOT).stdout.strip() != "None":
        pytest.skip("delta-spark's package is installed")


@pytest.mark.usefixtures("no_delta_spark")
def test_the_package_has_our_objects_under_delta_sparks_names(tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()  # a directory of data is not a package
    assert run("-c", IMPORTS, cwd=tmp_path).stdout == "done\n"


def test_an_installed_package_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").touch()
    assert run("-c", INSTALLED, cwd=tmp_path, path=tmp_path).stdout == "done\n"


@pytest.mark.full
@pytest.mark.usefixtures("no_delta_spark")
def test_a_program_imports_delta_and_has_replaced_builders(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "sitecustomize.py").write_text("print('theirs')")
    answer = run("-m", "sparkdelta", "run", "-m", "program", "-v", cwd=tmp_path, path=tmp_path)
    assert answer.stdout.splitlines()[-2:] == ["theirs", "pyspark.sql.session ['-v']"]


def test_a_worker_imports_pyspark_from_its_zip_file(tmp_path: Path) -> None:
    libraries = Path(pyspark.__file__).parent / "python" / "lib"
    paths = [*libraries.glob("*.zip"), Path(startup.__file__).parent]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-c", WORKER]
    answer = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
    assert answer.stdout == b"getOrCreate\n"


def test_a_program_that_does_not_import_pyspark_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys; print({'pyspark', 'sparkdelta'} & sys.modules.keys())"
    )
    assert run("-m", "sparkdelta", "run", "program.py", cwd=tmp_path).stdout == "set()\n"


def test_a_program_must_be_given() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run"])


def test_an_unknown_program_is_named(tmp_path: Path) -> None:
    answer = run("-m", "sparkdelta", "run", "no-such-program", cwd=tmp_path, fails=True)
    assert answer.returncode == 1
    assert "no-such-program" in answer.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("no_delta_spark")
def test_a_program_runs_with_delta_sparks_settings_and_without_its_jar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", SETTINGS)
    (tmp_path / "program.py").write_text(WITH_SPARK)
    answer = run("-m", "sparkdelta", "run", "program.py", cwd=tmp_path)
    assert answer.stdout == "[Row(id=3, next=4)] 3\n"
