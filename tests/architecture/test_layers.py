"""Tests of the imports between layers, and of what each layer may use."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sparkdelta"
MODULES = sorted(PACKAGE.rglob("*.py"))

ACTIONS = {
    "collect", "count", "first", "head", "take", "show", "isEmpty", "toPandas", "toArrow",
    "toLocalIterator", "foreach", "foreachPartition", "rdd", "cache", "persist", "checkpoint",
    "localCheckpoint", "tail",
}  # fmt: skip
DRIVER_READS = {
    "collect", "first", "head", "take", "show", "isEmpty", "toPandas", "toArrow",
    "toLocalIterator", "tail",
}  # fmt: skip
JVM_ROOM = "sparkdelta/base/jvm/"
JVM = {"_jvm", "_jsparkSession", "_jdf", "_jsc", "_gateway", "_jc"}
SESSION_CHANGES = {"set", "unset"}
NAMES_OF_NAMES = {"name", "n", "column", "field", "given", "wanted", "str"}
LOWER_CASE = {
    "sparkdelta/exceptions.py",
    "sparkdelta/base/predicates/analyzed_text.py",
    "sparkdelta/base/predicates/condition_text.py",
    "sparkdelta/base/protocol/column_names.py",
    "sparkdelta/base/protocol/isolation_levels.py",
    "sparkdelta/base/protocol/settable_properties.py",
    "sparkdelta/sql/pyspark/pyspark_writing.py",
    "sparkdelta/sql/statements/cached_tables.py",
    "sparkdelta/sql/statements/options.py",
    "sparkdelta/sql/grammar/relations.py",
    "sparkdelta/sql/statements/create_statements.py",
    "sparkdelta/operations/alter/altered_constraints.py",
    "sparkdelta/operations/alter/altered_properties.py",
    "sparkdelta/operations/alter/dropped_features.py",
}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _attributes(path: Path) -> Iterator[ast.Attribute]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node


def _is_function_of_spark(node: ast.Attribute) -> bool:
    """`F.count`, `F.first`: columns, not actions."""
    return isinstance(node.value, ast.Name) and node.value.id == "F"


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.stem.endswith(("_frames", "_workers", "worker_files"))],
    ids=_name,
)
def test_frames_start_nothing(path: Path) -> None:
    used = {n.attr for n in _attributes(path) if not _is_function_of_spark(n)} & ACTIONS
    assert not used, f"{used}: frames are lazy"
    assert "SparkSession" not in path.read_text(encoding="utf-8"), "and know no session"


def test_rows_reach_the_driver_through_one_module() -> None:
    """`connect_storage.py` reads files through Spark: it has no other way to bytes. The `head` of
    `object_files.py` is a request of an object store.
    """
    users = {
        _name(path)
        for path in MODULES
        if any(n.attr in DRIVER_READS and not _is_function_of_spark(n) for n in _attributes(path))
    } - {"sparkdelta/base/storage/object_files.py"}
    assert users == {"sparkdelta/base/spark/driver.py", "sparkdelta/base/spark/connect_storage.py"}


READS_OF_ONE_ROW = {"read_row", "has_rows", "count_rows"}


def test_each_read_of_the_driver_has_a_name_and_a_bound() -> None:
    """The name is a text of its own, which Spark's UI and errors show, or that of the caller."""
    calls = [
        (f"{_name(path)}:{call.lineno}", call, {each.arg: each.value for each in call.keywords})
        for path in MODULES
        for call in _calls_of_driver_reads(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert len(calls) > 50
    assert not [
        place
        for place, call, given in calls
        if "bound" not in given and ast.unparse(call.func) not in READS_OF_ONE_ROW
    ]
    assert not [place for place, _, given in calls if not _is_name(given.get("what"))]


def _calls_of_driver_reads(module: ast.Module) -> Iterator[ast.Call]:
    names = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == "sparkdelta.base.spark.driver"
        for alias in node.names
        if alias.name.startswith("read_") or alias.name in READS_OF_ONE_ROW
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def _is_name(what: ast.expr | None) -> bool:
    if isinstance(what, ast.Name):
        return what.id == "what"
    return isinstance(what, ast.Constant) and isinstance(what.value, str) and bool(what.value)


def _calls_of(path: Path, method: str) -> Iterator[ast.Call]:
    """Yield the calls of a method in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ):
            yield node


def test_frames_of_arrow_tables_are_made_in_one_place() -> None:
    """Spark Connect 4.0.0 drops all chunks of an Arrow table but the first; other local data has
    a schema."""
    makers = {
        _name(path)
        for path in MODULES
        for call in _calls_of(path, "createDataFrame")
        if len(call.args) + len(call.keywords) == 1
    }
    assert makers == {"sparkdelta/base/spark/local_data.py"}


def test_groups_keep_the_columns_that_they_are_grouped_by() -> None:
    """`spark.sql.retainGroupColumns` may be false: `grouped` puts them among the aggregates."""
    users = {_name(path) for path in MODULES if any(c.args for c in _calls_of(path, "groupBy"))}
    assert users == {"sparkdelta/base/spark/row_groups.py"}


def test_only_one_room_knows_the_jvm() -> None:
    users = {_name(path) for path in MODULES if any(n.attr in JVM for n in _attributes(path))}
    assert all(name.startswith(JVM_ROOM) for name in users), users


def test_only_the_engine_knows_the_kind_of_session() -> None:
    """Others ask `engine_of(spark)` for behaviour."""
    engine = "sparkdelta.base.spark"
    kinds = {
        "pyspark.sql.connect", "pyspark.sql.classic", "sparkdelta.base.jvm",
        f"{engine}.classic_builders", f"{engine}.classic_conditions", f"{engine}.classic_engine",
        f"{engine}.connect_builders", f"{engine}.connect_catalog", f"{engine}.connect_engine",
        f"{engine}.connect_sessions", f"{engine}.connect_storage", f"{engine}.server_store",
    }  # fmt: skip
    users = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names = [node.value]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            if any(name == kind or name.startswith(f"{kind}.") for name in names for kind in kinds):
                users.add("/".join(path.relative_to(PACKAGE).parts[:2]))
    assert users == {"base/spark", "base/jvm"}


def test_nobody_sets_a_setting_of_the_users_session() -> None:
    """A `conf.set` is only ever on a session of our own."""
    owners = []
    for path in MODULES:
        for node in _attributes(path):
            if node.attr in SESSION_CHANGES and "conf" in ast.dump(node.value):
                owners.append((_name(path), ast.unparse(node.value)))
    assert not [
        of for _, of in owners if not of.startswith(("sibling", "configuration", "without_jar"))
    ]
    assert {name for name, _ in owners} <= {
        "sparkdelta/base/spark/connect_sessions.py", "sparkdelta/base/jvm/hadoop.py",
            "sparkdelta/base/jvm/jvm.py",
        "sparkdelta/base/jvm/jvm_scans.py", "sparkdelta/base/spark/library_sessions.py",
    }  # fmt: skip


CONTEXT_FUNCTIONS = {"getcontext", "localcontext", "setcontext"}
ROUNDING_METHODS = {
    "scaleb", "quantize", "normalize", "to_integral", "to_integral_value", "to_integral_exact",
    "fma", "plus", "minus", "remainder_near",
}  # fmt: skip
ROUNDING_FUNCTIONS = {"abs", "round", "sum", "divmod", "pow"}


def _rounds(node: ast.AST) -> bool:
    """True if a node may round a Decimal to the digits of the caller's context."""
    if isinstance(node, ast.BinOp):
        return "Decimal(" in ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return _may_be_decimal(node.operand)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        is_given = any(keyword.arg == "context" for keyword in node.keywords)
        return node.func.attr in ROUNDING_METHODS and not is_given
    is_named = isinstance(node.func, ast.Name) and node.func.id in ROUNDING_FUNCTIONS
    return is_named and any(map(_may_be_decimal, node.args))


def _may_be_decimal(operand: ast.expr) -> bool:
    text = ast.unparse(operand)
    return text.split(".")[-1] == "value" or "Decimal(" in text


def test_no_decimal_is_rounded_by_a_context() -> None:
    """Python rounds the results of arithmetic, and of a sign, to 28 digits, and the caller may have
    asked for fewer: a DECIMAL has 38.
    """
    found = set()
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not names & CONTEXT_FUNCTIONS, _name(path)
        if "Decimal" in names:
            found |= {ast.unparse(node) for node in ast.walk(tree) if _rounds(node)}
    assert found <= {"-child.value"}, "which is an int or a float"


def test_names_of_columns_are_compared_by_their_key() -> None:
    """Lower case is for other names: of functions, options, properties, features and queries."""
    lowered = {
        _name(path)
        for path in MODULES
        for node in _attributes(path)
        if node.attr in ("lower", "casefold") and _last_name(node.value) in NAMES_OF_NAMES
    }
    assert lowered == LOWER_CASE


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_names_say_what_is_inside() -> None:
    vague = ("utils", "helpers", "common", "misc", "manager", "impl", "base")
    assert not [p for p in MODULES if any(word in p.stem.split("_") for word in vague)]
    classes = {
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    assert not {name for name in classes if name.endswith(("Manager", "Impl"))}


def _files_of_git() -> list[str]:
    """The files that git has or would take; skips where it cannot tell."""
    if not (ROOT / ".git").exists():
        pytest.skip("git: there is no .git beside the package")
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("git: not installed")
    if listed.returncode != 0:
        pytest.skip(f"git: {listed.stderr.splitlines()[0]}")
    return listed.stdout.splitlines()


def test_the_top_level_is_what_it_is_said_to_be() -> None:
    top = {name.split("/")[0] for name in _files_of_git() if (ROOT / name).exists()}
    wanted = {"pyproject.toml", "sparkdelta", "jobs", "tests", "notebooks", "Makefile"}
    assert wanted <= top
    unexpected = {
        name for name in top - wanted if not name.startswith(".") and not name.endswith(".md")
    }
    assert not unexpected


SPARK_ERRORS = {
    "AnalysisException", "IllegalArgumentException", "ParseException", "PySparkException",
    "PythonException", "SPARK_ERRORS",
}  # fmt: skip


def _caught(handler: ast.ExceptHandler) -> set[str]:
    return {node.id for node in ast.walk(handler.type or handler) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_handlers_of_spark_errors_let_ours_pass_first(path: Path) -> None:
    """A `DeltaError` is also an exception of PySpark, whose handlers would take it for Spark's."""
    for block in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        passed: set[str] = set()
        for handler in block.handlers if isinstance(block, ast.Try) else ():
            caught = _caught(handler)
            assert not caught & SPARK_ERRORS or "DeltaError" in passed | caught, handler.lineno
            passed |= caught
