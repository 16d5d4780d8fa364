"""Conditions and assigned values of another type than they should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sparkdelta import DeltaTable

TABLE = DeltaTable(None, "/no/table", {})


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: TABLE.update({"a": "1"}), ValueError, "cannot be None"),
        (lambda: TABLE.update("a", {}), ValueError, "must assign a column"),
        (lambda: TABLE.update(1, {}), TypeError, "must be a Spark SQL Column or a string"),
        (lambda: TABLE.update(set=1), TypeError, "must be a dict"),
        (lambda: TABLE.update(set={"a": 1}), TypeError, "Values of dict in set must contain only"),
        (lambda: TABLE.update(set={1: "a"}), TypeError, "Keys of dict in set must contain only"),
        (lambda: TABLE.delete(1), TypeError, "must be a Spark SQL Column or a string"),
        (lambda: TABLE.merge(1, "a"), TypeError, "must be DataFrame"),
        (lambda: TABLE.merge(None, "a"), ValueError, "cannot be None"),
        (lambda: TABLE.restoreToVersion("0"), ValueError, "version needs to be an int"),
        (lambda: TABLE.restoreToVersion(None), ValueError, "cannot be None"),
        (lambda: TABLE.restoreToTimestamp(1), ValueError, "timestamp needs to be a string"),
        (lambda: TABLE.cloneAtTimestamp(1, "/t"), ValueError, "timestamp needs to be a string"),
        (lambda: TABLE.upgradeTableProtocol("a", 3), ValueError, "readerVersion needs to be"),
        (lambda: TABLE.upgradeTableProtocol(1, [3]), ValueError, "writerVersion needs to be"),
        (lambda: TABLE.addFeatureSupport([]), ValueError, "featureName needs to be a string"),
        (lambda: TABLE.dropFeatureSupport(1), ValueError, "featureName needs to be a string"),
        (lambda: TABLE.dropFeatureSupport("a", {}), ValueError, "truncateHistory needs to be"),
    ],
)  # fmt: skip
def test_methods_of_a_table_refuse_arguments_in_the_words_of_delta_spark(
    call: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call()
