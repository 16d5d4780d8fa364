"""The error tree: fields are attributes, and a text finds its class again."""

import inspect
import pickle
import string

import pytest

from sparkdelta import exceptions
from sparkdelta.error_conditions import CONDITIONS
from sparkdelta.exceptions import (
    DeletionVectorChecksumError,
    DeltaError,
    LogFileNotFoundError,
    StorageError,
    UnsupportedReaderFeaturesError,
    VersionNotFoundError,
    from_message,
)

CLASSES = [
    cls for cls in vars(exceptions).values() if inspect.isclass(cls) and issubclass(cls, DeltaError)
]
LEAVES = [cls for cls in CLASSES if cls.error_class in CONDITIONS]


def fields(leaf):
    parameters = inspect.signature(leaf).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def make(leaf):
    return leaf(**{name: f"<{name}>" for name in fields(leaf)})


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_leaf(leaf):
    error = make(leaf)
    assert error.getSqlState() == leaf.sql_state == CONDITIONS[leaf.error_class][0]
    assert len(leaf.sql_state) == 5
    assert error.getCondition() == error.getErrorClass() == leaf.error_class
    assert error.getMessageParameters() == {name: f"<{name}>" for name in fields(leaf)}
    assert str(error) == f"[{leaf.error_class}] {error.message} SQLSTATE: {leaf.sql_state}"
    for name in fields(leaf):
        assert getattr(error, name) == f"<{name}>"
    used = [name for _, name, *_ in string.Formatter().parse(CONDITIONS[leaf.error_class][1])]
    assert set(filter(None, used)) <= set(fields(leaf))


@pytest.mark.parametrize("leaf", LEAVES)
def test_an_error_survives_pickling(leaf):
    error = make(leaf)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is leaf
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_text_finds_its_class_again(leaf):
    error = make(leaf)
    text = f"PythonException: worker.py line 3\n{leaf.__name__}: {error}\n\tat org.apache.spark"
    found = from_message(text)
    assert type(found) is leaf
    assert found.message == error.message
    assert all(getattr(found, name) is None for name in fields(leaf))


def test_the_tree_is_drawn_in_full():
    assert len({cls.error_class for cls in CLASSES}) == len(CLASSES)
    assert {cls.error_class for cls in LEAVES} == set(CONDITIONS)
    for cls in CLASSES:
        assert cls.__name__ in exceptions.__doc__


def test_a_text_raised_by_a_query():
    text = "[USER_RAISED_EXCEPTION] [DELTA_VERSION_NOT_FOUND] gone SQLSTATE: P0001\n== DataFrame =="
    found = from_message(text)
    assert isinstance(found, VersionNotFoundError)
    assert (found.message, found.version) == ("gone", None)


@pytest.mark.parametrize("text", ["", "[DELTA_NO_SUCH_CLASS] x", "DELTA_SCHEMA_NOT_SET"])
def test_other_texts(text):
    assert from_message(text) is None


def test_sequences_and_unknown_fields_as_text():
    error = UnsupportedReaderFeaturesError(path="/t", features=("a", "b"))
    assert error.features == ("a", "b")
    assert error.message_parameters["features"] == "a, b"
    assert "unknown" in str(LogFileNotFoundError(path="/t", version=None, file="f"))


def test_groups():
    assert issubclass(DeletionVectorChecksumError, StorageError)
    with pytest.raises(StorageError):
        raise StorageError(path="s3://x", problem="No route to host")
