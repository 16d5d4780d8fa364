"""Tests of the rules that a table has for its rows, and of where they may stand."""

import json

import pytest
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.schema.table_constraints import Constraint, Identity, row_rules, with_marks
from tests.support.errors import raises

ALL = Protocol(1, 6)
INVARIANT = json.dumps({"expression": {"expression": "x > 3"}})


def column(name, data_type=None, **metadata):
    return StructField(name, data_type or IntegerType(), True, metadata)


def rules(*fields, protocol=ALL, configuration=None):
    return row_rules(StructType(list(fields)), protocol, configuration or {}, path="/t")


def test_constraints_have_names():
    """CHECK Constraints; Column Invariants"""
    found = rules(
        column("x", **{"delta.invariants": INVARIANT}),
        configuration={"delta.constraints.b": "x > 1", "delta.constraints.a": "x > 0", "a": "b"},
    )
    assert found.constraints == (
        Constraint("a", "x > 0"), Constraint("b", "x > 1"), Constraint("invariant of x", "x > 3"),
    )  # fmt: skip


def test_rules_of_unsupported_features_are_inactive():
    """Active Features"""
    identity = {"delta.identity.start": 1, "delta.identity.step": 1}
    fields = (column("x", **{"delta.invariants": INVARIANT, "CURRENT_DEFAULT": "1"}),
              column("i", LongType(), **identity))  # fmt: skip
    configuration = {"delta.constraints.a": "x > 0"}
    found = rules(*fields, protocol=Protocol(1, 7, None, ()), configuration=configuration)
    assert found == rules(column("y"))
    features = ("allowColumnDefaults",)
    assert rules(*fields, protocol=Protocol(1, 7, None, features)).defaults == {"x": "1"}


@pytest.mark.parametrize("metadata", [{"delta.invariants": "x > 3"}, {"delta.invariants": "{}"}])
def test_an_invariant_that_is_none(metadata):
    with raises("DELTA_INVALID_SCHEMA"):
        rules(column("x", **metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        {"delta.identity.start": 1},
        {"delta.identity.start": 1, "delta.identity.step": 0},
        {"delta.identity.start": 1, "delta.identity.step": "1"},
        {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.highWaterMark": "2"},
    ],
)
def test_an_identity_that_is_none(metadata):
    """Identity Columns"""
    with raises("DELTA_INVALID_SCHEMA"):
        rules(column("i", LongType(), **metadata))
    with raises("DELTA_INVALID_SCHEMA"):
        rules(column("i", **{"delta.identity.start": 1, "delta.identity.step": 1}))


def test_rules_inside_arrays_are_refused():
    inner = ArrayType(StructType([column("x", **{"delta.invariants": INVARIANT})]))
    with raises("DELTA_WRITE_NOT_IMPLEMENTED") as raised:
        rules(column("a", inner))
    assert raised.value.missing == ("invariants (a.x)",)


@pytest.mark.parametrize(
    ("start", "step", "mark", "first"),
    [(1, 1, None, 1), (1, 1, 1, 2), (5, 10, 4, 5), (5, 10, 15, 25), (5, 10, 16, 25),
     (-1, -2, None, -1), (-1, -2, -3, -5), (0, -5, -7, -10), (0, -5, 9, 0)],
)  # fmt: skip
def test_the_next_value(start, step, mark, first):
    """Identity Columns: start + k * step beyond the mark."""
    assert Identity(start, step, mark, allows_explicit_values=False).next_value == first


def test_a_new_mark_changes_nothing_else():
    text = json.dumps({"type": "struct", "fields": [
        {"name": "ü", "type": "long", "nullable": True, "metadata": {"a": 1}, "unknown": 2},
        {"name": "s", "type": "string", "nullable": True, "metadata": {}}]})  # fmt: skip
    wanted = json.loads(text)
    wanted["fields"][0]["metadata"]["delta.identity.highWaterMark"] = 2**63 - 1
    assert json.loads(with_marks(text, {"ü": 2**63 - 1})) == wanted
    assert with_marks(text, {}) == json.dumps(
        json.loads(text), separators=(",", ":"), ensure_ascii=False
    )
