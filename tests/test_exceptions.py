"""Errors as data: every use of a condition fits its text, and a message finds its error again."""

import ast
import inspect
import pickle
import re
from pathlib import Path

import pytest
from pyspark import errors

from sparkdelta import error_conditions, exceptions
from sparkdelta.error_conditions import CONDITIONS
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeletionVectorError,
    DeltaError,
    InvalidArgumentError,
    LogFileNotFoundError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
    from_message,
)

ROOT = Path(__file__).parents[1]
SOURCES = [*sorted((ROOT / "sparkdelta").rglob("*.py")), *sorted((ROOT / "jobs").rglob("*.py"))]
CLASSES = {
    name: cls
    for name, cls in vars(exceptions).items()
    if inspect.isclass(cls) and issubclass(cls, DeltaError)
}
OWN = {
    ROOT / "sparkdelta" / name
    for name in ("exceptions.py", "error_conditions.py", "error_names.py")
}
CONDITION = re.compile(
    r"(?:DIFFERENT_)?DELTA_[A-Z0-9_]+|NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
    r"|INVALID_PARTITION_OPERATION\.[A-Z_]+|CANNOT_UP_CAST_DATATYPE"
)


def leaf_of(error):
    """Return the class of `exceptions` that an error is raised as, without those of PySpark."""
    return next(cls for cls in type(error).__mro__ if cls in CLASSES.values())


def make(condition):
    fields = {name: f"<{name}>" for name in CONDITIONS[condition].fields}
    return DeltaError.of(condition, **fields), fields


def test_the_data_is_read_in_full():
    lines = error_conditions._ENTRIES.splitlines()
    heads = [line for line in lines if line and not line.startswith("    ")]
    assert [head.split()[0] for head in heads] == list(CONDITIONS)
    for name, condition in CONDITIONS.items():
        assert CONDITION.fullmatch(name)
        assert re.fullmatch(r"[0-9A-Z]{5}", condition.sql_state)
        assert condition.class_name in CLASSES
        assert condition.text.endswith((".", "}"))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_error_of_each_condition(condition):
    error, fields = make(condition)
    assert leaf_of(error) is CLASSES[CONDITIONS[condition].class_name]
    assert error.getCondition() == error.getErrorClass() == error.error_class == condition
    assert error.getSqlState() == error.sql_state == CONDITIONS[condition].sql_state
    assert error.message_parameters == fields
    assert {name: getattr(error, name) for name in fields} == fields
    assert str(error) == f"[{condition}] {error.message} SQLSTATE: {error.sql_state}"
    assert error.message == CONDITIONS[condition].text.format(**fields)
    assert (error.getMessage(), error.getQueryContext()) == (str(error), [])
    assert error.getBreakingChangeInfo() is None


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_error_is_also_what_delta_spark_raises(condition):
    error, _ = make(condition)
    theirs = {getattr(errors, name) for name in CONDITIONS[condition].spark_classes}
    assert theirs <= set(type(error).__mro__)
    bases = {base for cls in (*theirs, CLASSES["DeltaError"]) for base in cls.__mro__}
    others = {cls for cls in type(error).__mro__ if cls.__module__.startswith("pyspark")} - bases
    assert others == set()
    assert type(make(condition)[0]) is type(error)
    assert (type(error).__name__, type(error).__module__) == (
        CONDITIONS[condition].class_name,
        "sparkdelta.exceptions",
    )


@pytest.mark.parametrize(
    ("condition", "text"),
    {
        "DELTA_COLUMN_NOT_FOUND": "not found",
        "DELTA_SCHEMA_NOT_PROVIDED": "schema is not provided",
        "DELTA_NON_PARTITION_COLUMN_REFERENCE": (
            "Predicate references non-partition column '<column>'. "
            "Only the partition columns may be referenced: [<available>]"
        ),
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": "NOT NULL constraint violated for column: <column>",
        "DELTA_PARTITION_COLUMN_NOT_FOUND": "Partition column <column> not found in",
        "DELTA_TABLE_ALREADY_EXISTS": "already exists",
        "DELTA_TABLE_NOT_FOUND": "<path> is not a Delta table",
        "DELTA_TIMESTAMP_INVALID": (
            "The provided timestamp (<value>) cannot be converted to a valid timestamp"
        ),
        "DELTA_ZORDERING_ON_PARTITION_COLUMN": (
            "<column> is a partition column. Z-Ordering can only be performed on data columns"
        ),
    }.items(),
)
def test_a_message_has_the_words_that_programs_look_for(condition, text):
    error, _ = make(condition)
    assert text in str(error)


def test_a_missing_path_has_sparks_words():
    assert "Path does not exist" in str(TableNotFoundError(path="/t"))


def test_direct_calls_and_restored_errors_have_the_classes_of_their_condition():
    error = TableNotFoundError(path="/t")
    for each in (error, pickle.loads(pickle.dumps(error)), from_message(str(error))):
        assert isinstance(each, errors.AnalysisException)
        assert isinstance(each, TableNotFoundError)
    assert not isinstance(StorageError(path="/t", problem="p"), errors.AnalysisException)


def test_a_value_that_cannot_be_cast_is_what_spark_raises_for_numbers_and_times():
    error, _ = make("DELTA_CAST_INVALID_INPUT")
    assert isinstance(error, errors.NumberFormatException)
    assert isinstance(error, errors.DateTimeException)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_error_survives_pickling(condition):
    error, _ = make(condition)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.args) == (str(error), error.args)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_message_of_spark_finds_its_error_again(condition):
    error, fields = make(condition)
    found = from_message(
        f"PythonException: worker.py line 3\nError: {error}\n\tat org.apache.spark"
    )
    assert leaf_of(found) is leaf_of(error)
    assert (found.getCondition(), found.message) == (condition, error.message)
    others = CONDITIONS[condition].other_fields
    assert found.message_parameters == {**fields, **dict.fromkeys(others, "unknown")}
    assert all(getattr(found, name) is None for name in others)
    assert vars(pickle.loads(pickle.dumps(found))) == vars(found)


@pytest.mark.parametrize("cls", CLASSES.values())
def test_each_class_has_one_condition_that_is_raised_as_it(cls):
    assert [c.error_class for c in CLASSES.values()].count(cls.error_class) == 1
    assert cls.__name__ in exceptions.__doc__
    if cls.error_class not in CONDITIONS:  # the base class of a group
        error = cls("text")
        assert str(error) == f"[{cls.error_class}] text SQLSTATE: XXKDS"
        return
    condition = CONDITIONS[cls.error_class]
    assert CLASSES[condition.class_name] is cls
    assert cls.sql_state == condition.sql_state
    error = cls(**dict.fromkeys(condition.fields, "x"))
    assert vars(error) == vars(
        DeltaError.of(cls.error_class, **dict.fromkeys(condition.fields, "x"))
    )


def test_parameters_have_the_names_of_delta_spark():
    error = DeltaError.of("DELTA_CONFLICT_SET_COLUMN", columns=["v", "c.a"])
    assert error.getMessageParameters() == {"columnList": "[`v`, `c.a`]"}
    assert error.message_parameters == {"columns": "v, c.a"}
    assert InvalidArgumentError(argument="a", problem="p").getMessageParameters() == {
        "input": "a",
        "name": "a",
        "explain": "p",
    }
    assert StorageError(path="/t", problem="p").getMessageParameters() == {
        "path": "/t",
        "problem": "p",
    }


@pytest.mark.parametrize("condition", CONDITIONS)
def test_delta_sparks_values_need_no_other_fields(condition):
    error, _ = make(condition)
    assert error.getMessageParameters() is not None
    for statement in ("", "ALTER TABLE", "DESCRIBE HISTORY", "INSERT INTO", "MERGE INTO"):
        error, _ = make(condition)
        error.name_as_delta_spark(statement, ("spark_catalog", "db", "t"))
        assert "{" not in "".join(error.getMessageParameters().values())
        copy = pickle.loads(pickle.dumps(error))
        assert copy.getCondition() == error.getCondition()
        assert copy.getMessageParameters() == error.getMessageParameters()


def test_an_error_has_the_names_of_delta_spark():
    error = TableNotFoundError(path="/t")
    assert (error.getCondition(), error.getSqlState()) == ("DELTA_TABLE_NOT_FOUND", "42P01")
    error.name_as_delta_spark("DESCRIBE HISTORY")
    assert (error.getCondition(), error.getSqlState()) == ("DELTA_TABLE_ONLY_OPERATION", "0AKDD")
    assert error.getMessageParameters() == {"tableName": "`/t`", "operation": "DESCRIBE HISTORY"}
    assert str(error).startswith("[DELTA_TABLE_ONLY_OPERATION] /t is not a Delta table.")
    assert error.error_class == "DELTA_TABLE_NOT_FOUND"
    error.name_as_delta_spark("SELECT *")
    assert error.getCondition() == "DELTA_TABLE_ONLY_OPERATION"  # the inner block knows more


def test_an_error_has_the_names_of_sparks_error():
    theirs = errors.AnalysisException(
        errorClass="NOT_IMPLEMENTED", messageParameters={"feature": "x"}
    )
    error = InvalidArgumentError(argument="a", problem="p").named(theirs)
    assert error.getCondition() == "DELTA_ILLEGAL_OPTION"
    error.name_as_delta_spark()
    assert error.getCondition() == "NOT_IMPLEMENTED"
    assert error.getMessageParameters() == {"feature": "x"}


@pytest.mark.parametrize(
    ("statement", "table", "condition"),
    [
        ("SELECT *", (), "PATH_NOT_FOUND"),
        ("ALTER TABLE", (), "DELTA_MISSING_DELTA_TABLE"),
        ("DESCRIBE DETAIL", (), "DELTA_MISSING_DELTA_TABLE"),
    ],
)
def test_the_statement_decides(statement, table, condition):
    error = TableNotFoundError(path="/t")
    error.name_as_delta_spark(statement, table)
    assert error.getCondition() == condition


def test_missing_and_unknown_fields_are_errors_of_the_program():
    for fields in ({}, {"path": "/t", "version": 1}):
        with pytest.raises(TypeError, match="DELTA_SCHEMA_NOT_SET has the fields"):
            DeltaError.of("DELTA_SCHEMA_NOT_SET", **fields)
    with pytest.raises(TypeError, match="DELTA_ILLEGAL_OPTION has the fields"):
        InvalidArgumentError(problem="p")
    with pytest.raises(KeyError, match="DELTA_NO_SUCH_CONDITION"):
        DeltaError.of("DELTA_NO_SUCH_CONDITION")


def conditions_of(call: ast.Call) -> list[str | None]:
    """Return the conditions of the errors that a call makes; None for that of a variable."""
    name = ast.unparse(call.func)
    if name == "DeltaError.of":
        first = call.args[0]
        choices = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
        return [node.value if isinstance(node, ast.Constant) else None for node in choices]
    leaf = CLASSES.get(name)
    return [leaf.error_class] if leaf and leaf.error_class in CONDITIONS else []


def problems(source: str) -> list[str]:
    """Return the unknown conditions of a module, and those that get other fields than they have.

    The conditions of delta-spark in calls of `DeltaError.named` are left out. A call with a
    condition from a variable passes the fields of all conditions that the module
    names outside of such calls.
    """
    nodes = list(ast.walk(ast.parse(source)))
    uses: list[tuple[str, set[str | None]]] = []
    passed_on, in_calls = [], set()
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "named":
            in_calls.update(id(node) for node in call.args[:1])
            continue
        fields = {argument.arg for argument in call.keywords}
        if ast.unparse(call.func) == "TableNotFoundError":
            fields.add("advice")  # it has a default
        for condition in conditions_of(call):
            if condition is None:
                passed_on.append(fields)
            else:
                in_calls.update(call.args[:1] and (id(node) for node in ast.walk(call.args[0])))
                uses.append((condition, fields))
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) and id(node) not in in_calls else None
        if isinstance(text, str) and CONDITION.fullmatch(text):
            known = set(CONDITIONS[text].fields) if text in CONDITIONS else set()
            uses.extend((text, fields) for fields in passed_on or [known])
    return [
        f"{condition} {sorted(map(str, fields))}"
        for condition, fields in uses
        if condition not in CONDITIONS or fields != set(CONDITIONS[condition].fields)
    ]


def test_each_call_names_a_condition_and_passes_its_fields():
    slips = {
        path: problems(path.read_text(encoding="utf-8")) for path in SOURCES if path not in OWN
    }
    assert {path: found for path, found in slips.items() if found} == {}


@pytest.mark.parametrize(
    "source",
    [
        'DeltaError.of("DELTA_SCHEMA_NOT_SETT", path=p)',
        'DeltaError.of("DELTA_SCHEMA_NOT_SET")',
        'DeltaError.of("DELTA_SCHEMA_NOT_SET", path=p, version=3)',
        'DeltaError.of("DELTA_SCHEMA_NOT_SET", **fields)',
        'DeltaError.of("DELTA_SCHEMA_NOT_SET" if x else "DELTA_FILE_NOT_FOUND", path=p)',
        "InvalidArgumentError(argument=a)",
        'error = "DELTA_SCHEMA_NOT_SETT"',
        'error = "DELTA_FILE_NOT_FOUND"\nDeltaError.of(error, path=p)',
    ],
)
def test_slips_are_found(source):
    assert len(problems(source)) == 1


def test_each_condition_is_used():
    data = ROOT / "sparkdelta" / "error_conditions.py"
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES if path != data)
    assert CONDITIONS.keys() <= {
        m[1] for m in re.finditer(rf'["\[]({CONDITION.pattern})["\]]', text)
    }


def test_a_text_raised_by_a_query():
    text = "[USER_RAISED_EXCEPTION] [DELTA_VERSION_NOT_FOUND] gone SQLSTATE: P0001\n== DataFrame =="
    found = from_message(text)
    assert isinstance(found, VersionNotFoundError)
    assert (found.message, found.version) == ("gone", None)


@pytest.mark.parametrize("text", ["", "[DELTA_NO_SUCH_CLASS] x", "DELTA_SCHEMA_NOT_SET"])
def test_other_texts(text):
    assert from_message(text) is None


def test_sequences_and_unknown_fields_as_text():
    error = DeltaError.of("DELTA_UNSUPPORTED_FEATURES_FOR_READ", path="/t", features=("a", "b"))
    assert error.features == ("a", "b")
    assert error.message_parameters["features"] == "a, b"
    assert "unknown" in str(LogFileNotFoundError(path="/t", version=None, file="f"))


@pytest.mark.parametrize("number", [3, 9])
def test_a_message_has_the_most_similar_columns_and_the_field_all(number):
    columns = [f"c{n}" for n in range(number)] + ["name"]
    error = ColumnNotFoundError(column="nome", available=columns)
    assert error.message.partition(": ")[2].startswith("name, c0, c1, c2")
    assert error.message.count(",") == min(number, 4)
    assert error.available == columns


def test_groups():
    with pytest.raises(StorageError):
        raise StorageError(path="s3://x", problem="No route to host")
    for condition, classes in {
        "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH": (DeletionVectorError, StorageError),
        "DELTA_ILLEGAL_OPTION": (exceptions.TableError, ValueError),
        "DELTA_INVALID_ARGUMENT_TYPE": (exceptions.TableError, TypeError),
        "DELTA_UNKNOWN_ARGUMENT": (exceptions.TableError, TypeError),
        "DELTA_CANNOT_RESTORE_TABLE_VERSION": (VersionNotFoundError,),
        "DELTA_CANNOT_REPLACE_MISSING_TABLE": (TableNotFoundError,),
        "DELTA_MERGE_UNRESOLVED_EXPRESSION": (ColumnNotFoundError,),
        "DELTA_CONCURRENT_WRITE": (exceptions.DeltaConcurrentModificationException,),
    }.items():
        assert all(isinstance(make(condition)[0], cls) for cls in classes)
