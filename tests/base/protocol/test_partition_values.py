"""Partition values of every type, in every form that writers use."""

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal, Inexact, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.partition_values import parse_partition_value
from sparkdelta.exceptions import InvalidPartitionValueError

UTC = timezone.utc
TYPES = [
    "string",
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "decimal(5,2)",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("text", [None, ""])
def test_null_and_empty_are_null(text, data_type):
    assert parse_partition_value(text, data_type) is None


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("x y", "string", "x y"),
        (" ", "string", " "),
        ("__HIVE_DEFAULT_PARTITION__", "string", "__HIVE_DEFAULT_PARTITION__"),
        ("-128", "byte", -128),
        ("32767", "short", 32767),
        ("+7", "integer", 7),
        ("-9223372036854775808", "long", -(2**63)),
        ("1.5", "float", 1.5),
        ("0.1", "float", 0.10000000149011612),
        ("1.0E-5", "double", 1e-5),
        ("-Infinity", "double", -math.inf),
        ("Infinity", "float", math.inf),
        ("-0.0", "double", -0.0),
        ("12.5", "decimal(5,2)", Decimal("12.50")),
        ("-0.005", "decimal(5,2)", Decimal("-0.01")),
        ("1E+2", "decimal(5,2)", Decimal("100.00")),
        ("9" * 38, "decimal(38,0)", Decimal("9" * 38)),
        ("-0." + "9" * 38, "decimal(38,38)", Decimal("-0." + "9" * 38)),
        ("true", "boolean", True),
        ("False", "boolean", False),
        ("1970-01-01", "date", date(1970, 1, 1)),
        ("0001-01-01", "date", date(1, 1, 1)),
        ("\\u0001\\u0002\\u0003", "binary", b"\x01\x02\x03"),
        ("\\u0001\\u00FF", "binary", b"\x01\xff"),
        ("\u0001\u0002\u0003", "binary", b"\x01\x02\x03"),
        ("é", "binary", b"\xc3\xa9"),
        ("\\u0001x", "binary", b"\\u0001x"),
        ("1970-01-01 00:00:00", "timestamp", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1970-01-01 00:00:00.123456", "timestamp", datetime(1970, 1, 1, 0, 0, 0, 123456, UTC)),
        ("1970-01-01T00:00:00.123456Z", "timestamp", datetime(1970, 1, 1, 0, 0, 0, 123456, UTC)),
        ("2024-06-30T10:00:00+02:00", "timestamp", datetime(2024, 6, 30, 8, tzinfo=UTC)),
        ("2024-06-30T10:00:00-0130", "timestamp", datetime(2024, 6, 30, 11, 30, tzinfo=UTC)),
        ("2024-06-30 10:00:00 UTC", "timestamp", datetime(2024, 6, 30, 10, tzinfo=UTC)),
        ("2024-06-30", "timestamp", datetime(2024, 6, 30, tzinfo=UTC)),
        ("2024-06-30 10:00:00.5", "timestamp", datetime(2024, 6, 30, 10, 0, 0, 500000, UTC)),
        ("1970-01-01 00:00:00", "timestamp_ntz", datetime(1970, 1, 1)),
        ("1970-01-01 00:00:00.123456", "timestamp_ntz", datetime(1970, 1, 1, 0, 0, 0, 123456)),
        ("1970-01-01T00:00:00.123456Z", "timestamp_ntz", datetime(1970, 1, 1, 0, 0, 0, 123456)),
    ],
)
def test_values(text, data_type, value):
    found = parse_partition_value(text, data_type)
    assert found == value
    assert type(found) is type(value)


def test_not_a_number():
    assert math.isnan(parse_partition_value("NaN", "double"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-15 12:00:00", datetime(2024, 1, 15, 17, tzinfo=UTC)),
        ("2024-07-15 12:00:00", datetime(2024, 7, 15, 16, tzinfo=UTC)),
        ("2024-07-15T12:00:00Z", datetime(2024, 7, 15, 12, tzinfo=UTC)),
        # Spark takes the earlier of two moments, and moves on by the gap where there is none.
        ("2024-11-03 01:30:00", datetime(2024, 11, 3, 5, 30, tzinfo=UTC)),
        ("2024-03-10 02:30:00", datetime(2024, 3, 10, 7, 30, tzinfo=UTC)),
    ],
)
def test_timestamps_without_a_zone_are_of_the_writers_zone(text, expected):
    assert parse_partition_value(text, "timestamp", time_zone="America/New_York") == expected


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("x", "integer"),
        ("1.0", "integer"),
        ("1_000", "long"),
        ("128", "byte"),
        ("2147483648", "integer"),
        ("1_0.5", "double"),
        ("x", "float"),
        ("1000", "decimal(5,2)"),
        ("NaN", "decimal(5,2)"),
        ("x", "decimal(5,2)"),
        ("yes", "boolean"),
        ("2024-13-01", "date"),
        ("2024-02-30", "timestamp"),
        ("noon", "timestamp"),
        ("2024-01-01 25:00:00", "timestamp_ntz"),
        ("x", "struct"),
    ],
)
def test_values_of_another_type_are_refused(text, data_type):
    with pytest.raises(InvalidPartitionValueError) as caught:
        parse_partition_value(text, data_type, column="p")
    error = caught.value
    assert (error.column, error.value, error.data_type) == ("p", text, data_type)


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_round_trip(value):
    assert parse_partition_value(str(value), "long") == value


@given(st.floats(allow_nan=False))
def test_doubles_round_trip(value):
    assert parse_partition_value(repr(value), "double") == value


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=4, max_value=10**14, min_value=-(10**14)
    )
)
def test_decimals_round_trip(value):
    assert parse_partition_value(str(value), "decimal(20,4)") == value


def test_decimals_are_not_rounded_by_the_callers_context():
    with localcontext(Context(prec=2, traps=[Inexact])):
        assert parse_partition_value("1234.5", "decimal(20,4)") == Decimal("1234.5000")
        assert parse_partition_value("-0.00005", "decimal(20,4)") == Decimal("-0.0001")


@given(st.dates())
def test_dates_round_trip(value):
    assert parse_partition_value(value.isoformat(), "date") == value


@given(st.datetimes())
def test_timestamps_round_trip(value):
    text = value.isoformat(sep=" ")
    assert parse_partition_value(text, "timestamp_ntz") == value
    moment = value.replace(tzinfo=UTC)
    assert parse_partition_value(text, "timestamp") == moment
    assert parse_partition_value(f"{value.isoformat()}Z", "timestamp") == moment


@given(st.datetimes(datetime(1900, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_offsets_round_trip(value, minutes):
    moment = value.replace(tzinfo=UTC)
    zoned = moment.astimezone(timezone(timedelta(minutes=minutes)))
    assert parse_partition_value(zoned.isoformat(), "timestamp") == moment


@given(st.binary(min_size=1))
def test_escaped_bytes_round_trip(value):
    escaped = "".join(f"\\u00{byte:02X}" for byte in value)
    assert parse_partition_value(escaped, "binary") == value
