"""The `_last_checkpoint` file, a hint where to start listing; it may be stale or corrupt.

References
----------
PROTOCOL.md#last-checkpoint-file-schema, PROTOCOL.md#json-checksum
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard
from urllib.parse import quote

from sparkdelta.base.protocol.exact_json import ExactNumber, json_text
from sparkdelta.base.protocol.log_files import Version

_CHECKSUM = "checksum"


@lru_cache(maxsize=64)  # read with every load, but rarely changes
def parse_last_checkpoint(data: bytes) -> Version | None:
    """Return the version in the hint; None if it is empty, malformed or its checksum is wrong."""
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique_names,
            parse_int=ExactNumber,
            parse_float=ExactNumber,
            parse_constant=_reject_constant,
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    if not _is_intact(document):
        return None
    version = _integer(document.get("version"))
    if version is None or not 0 <= version < 2**63:
        return None
    return version


def last_checkpoint_bytes(document: Mapping[str, object], *, optional: Sequence[str] = ()) -> bytes:
    """Serialize the content of `_last_checkpoint` and add its checksum.

    Parameters
    ----------
    document
        The fields without a checksum.
    optional
        Fields to drop, one after the other, until delta-spark computes the same checksum. It
        otherwise retries for seconds before it lists the log.
    """
    fields = dict(document)
    for name in optional:
        if checksum(fields) == _spark_checksum(fields):
            break
        fields.pop(name, None)
    return json_text({**fields, _CHECKSUM: checksum(fields)}).encode()


def canonical_json(value: object) -> str:
    """Return the canonical form of a JSON document, without its top-level checksum.

    Examples
    --------
    >>> canonical_json({"k1": "v1", "checksum": "<anything>", "k3": 23})
    '"k1"="v1","k3"=23'
    """
    if not isinstance(value, Mapping) and not _is_array(value):
        return _canonical_scalar(value)
    pairs = sorted(_leaves(value), key=lambda pair: pair[0].encode())
    return ",".join(f"{path}={leaf}" for path, leaf in pairs)


def checksum(document: Mapping[str, object]) -> str:
    """Return the MD5 digest of the document's canonical form, in hexadecimal."""
    return _md5(canonical_json(document))


def _is_intact(document: Mapping[str, object]) -> bool:
    expected = document.get(_CHECKSUM)
    try:
        return expected is None or expected in (checksum(document), _spark_checksum(document))
    except (UnicodeEncodeError, RecursionError):  # lone surrogates; too many levels
        return False


def _spark_checksum(document: Mapping[str, object]) -> str:
    # delta-spark sorts "path=value" strings, so that element 10 of an array precedes element 1.
    return _md5(",".join(sorted(f"{path}={leaf}" for path, leaf in _leaves(document))))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if path or name != _CHECKSUM:
                yield from _leaves(item, (*path, _quoted(name)))
    elif _is_array(value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, str(index)))
    else:
        yield "+".join(path), _canonical_scalar(value)


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _canonical_scalar(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, ExactNumber):
        return _quoted(value)
    return value if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="")}"'


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a name occurs more than once")
    return document


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _integer(value: object) -> int | None:
    if not isinstance(value, ExactNumber):
        return None
    try:
        return int(value)
    except ValueError:
        return None
