""" "Writer Requirements for IcebergCompatV2": ids of elements, keys and values in footers."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkdelta.base.parquet.footer_rules import TAIL_BYTES, footer_bytes, with_field_ids

PARTS = pa.struct([("x", pa.int32()), ("list", pa.list_(pa.map_(pa.string(), pa.float64())))])
TABLE = pa.table(
    {
        "a": pa.array([1, None], pa.int64()),
        "l": pa.array([[1, None], None], pa.list_(pa.int32())),
        "s": pa.array([{"x": 1, "list": [[("k", 1.5)]]}, None], PARTS),
        "d": pa.array([True, None]),
    }
)
LIST = ("s", "list")
KEY_VALUE = (*LIST, "list", "element", "key_value")
IDS = {
    ("l", "list", "element"): 5,
    (*LIST, "list", "element"): 300,
    (*KEY_VALUE, "key"): 2**31 - 1,
    (*KEY_VALUE, "value"): 70_000,
    ("d",): 0,
}


def parquet(**options):
    written = io.BytesIO()
    pq.write_table(TABLE, written, **options)
    return written.getvalue()


def rewritten(data, ids):
    begin = len(data) - TAIL_BYTES - footer_bytes(data[-TAIL_BYTES:])
    footer = with_field_ids(data[begin:-TAIL_BYTES], ids)
    return data[:begin] + footer + len(footer).to_bytes(4, "little") + data[-4:]


def found_ids(data):
    """The ids by the names from the columns on, as another reader of Parquet tells them."""
    ids, path = {}, []
    for line in str(pq.ParquetFile(io.BytesIO(data)).schema).splitlines()[2:]:
        text = line.strip()
        if text == "}":
            path = path[:-1]
            continue
        words = text.rstrip("{;").split()
        number = next(at for at, word in enumerate(words) if word.startswith("field_id="))
        field_id, name = int(words[number].removeprefix("field_id=")), words[number + 1]
        if field_id >= 0:
            ids[(*path, name)] = field_id
        if text.endswith("{"):
            path = [*path, name]
    return ids


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"version": "1.0", "compression": "gzip"},
        {"write_page_index": True, "row_group_size": 1},
    ],
)
def test_ids_are_added_and_all_else_stays(options):
    data = parquet(**options)
    assert not set(IDS) & set(found_ids(data))
    new = rewritten(data, IDS)
    assert {path: number for path, number in found_ids(new).items() if path in IDS} == IDS
    before, after = (pq.ParquetFile(io.BytesIO(each)) for each in (data, new))
    assert after.read().equals(TABLE)
    assert after.metadata.to_dict() | {"serialized_size": 0} == (
        before.metadata.to_dict() | {"serialized_size": 0}
    )
    # An id that is there gives way to another.
    again = {("l", "list", "element"): 6}
    assert found_ids(rewritten(new, again)) == found_ids(new) | again
    assert rewritten(new, IDS) == new


def test_many_columns():
    """A list of 15 elements or more has another header."""
    table = pa.table({f"c{n}": pa.array([[n]]) for n in range(40)})
    written = io.BytesIO()
    pq.write_table(table, written)
    ids = {(f"c{n}", "list", "element"): n + 1 for n in range(40)}
    assert found_ids(rewritten(written.getvalue(), ids)) == ids


def test_files_without_the_columns_are_refused():
    data = parquet()
    with pytest.raises(ValueError, match="without"):
        rewritten(data, {("l", "element"): 1})
    for tail in (b"PAR1", data[-8:-4] + b"PARE"):
        with pytest.raises(ValueError, match="not a Parquet file"):
            footer_bytes(tail)
