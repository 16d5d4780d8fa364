"""Value classes for the actions other than file actions, and for `Sidecar`.

References
----------
PROTOCOL.md#actions, PROTOCOL.md#format-specification, PROTOCOL.md#protocol-evolution,
PROTOCOL.md#change-metadata, PROTOCOL.md#transaction-identifiers, PROTOCOL.md#domain-metadata,
PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkdelta.base.protocol.wire_values import WireForm, optional_integer, optional_string
from sparkdelta.exceptions import DeltaError, MalformedLogFileError

_SHOWN_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Format(WireForm):
    """The file format of the data files."""

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Format:
        """Parse the wire form; missing fields get their defaults."""
        provider = document.get("provider")
        return cls(
            provider="parquet" if provider is None else str(provider),
            options=_strings_by_name(document.get("options")),
        )


@dataclass(frozen=True, slots=True)
class Protocol(WireForm):
    """The versions and features that a reader or writer of the table must implement."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        shown = [f"reader={self.min_reader_version}", f"writer={self.min_writer_version}"]
        reader_features, writer_features = self.reader_features or (), self.writer_features or ()
        if reader_features:
            shown.append(f"reader_features=[{', '.join(reader_features)}]")
        only = [name for name in writer_features if name not in reader_features]
        if only:
            shown.append(f"writer_only_features=[{', '.join(only)}]")
        return f"Protocol({', '.join(shown)})"

    @classmethod
    def from_dict(cls, document: Mapping[str, object], *, path: str = "the table") -> Protocol:
        """Parse the wire form; `path` is the table's root, for error messages."""
        return cls(
            min_reader_version=_protocol_version(document, "minReaderVersion", path),
            min_writer_version=_protocol_version(document, "minWriterVersion", path),
            reader_features=_strings(document.get("readerFeatures")),
            writer_features=_strings(document.get("writerFeatures")),
        )


@dataclass(frozen=True, slots=True)
class Metadata(WireForm):
    """The identity, schema and properties of the table.

    `schema_string` is None if the action has no schema: the table has a log but no columns yet.
    """

    id: str
    name: str | None = None
    description: str | None = None
    format: Format = field(default_factory=Format)
    schema_string: str | None = None
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None

    def __repr__(self) -> str:
        shown = [f"id={self.id!r}"]
        shown += [
            f"{name}={value!r}"
            for name, value in (("name", self.name), ("description", self.description))
            if value is not None
        ]
        if self.format != Format():
            shown.append(f"format={self.format!r}")
        shown.append(f"columns=[{_shown_columns(self.schema_string)}]")
        if self.partition_columns:
            shown.append(f"partition_columns=[{', '.join(self.partition_columns)}]")
        if self.configuration:
            shown.append(f"configuration={dict(self.configuration)!r}")
        return f"Metadata({', '.join(shown)})"

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Metadata:
        """Parse the wire form; required fields that a faulty writer left out become empty."""
        data_format = document.get("format")
        return cls(
            id=optional_string(document.get("id")) or "",
            name=optional_string(document.get("name")),
            description=optional_string(document.get("description")),
            format=Format.from_dict(data_format if isinstance(data_format, Mapping) else {}),
            schema_string=optional_string(document.get("schemaString")),
            partition_columns=_strings(document.get("partitionColumns")) or (),
            configuration=_strings_by_name(document.get("configuration")),
            created_time=optional_integer(document.get("createdTime")),
        )


@dataclass(frozen=True, slots=True)
class TransactionIdentifier:
    """The version of an application's most recent transaction on the table."""

    app_id: str
    version: int
    last_updated: int | None = None

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> TransactionIdentifier:
        """Parse the wire form."""
        return cls(
            app_id=str(document["appId"]),
            version=optional_integer(document.get("version")) or 0,
            last_updated=optional_integer(document.get("lastUpdated")),
        )


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """The configuration of a metadata domain, or its removal."""

    domain: str
    configuration: str
    removed: bool = False

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> DomainMetadata:
        """Parse the wire form."""
        return cls(
            domain=str(document["domain"]),
            configuration=optional_string(document.get("configuration")) or "",
            removed=document.get("removed") is True,
        )

    def document(self, *, path: str, version: int | None) -> Mapping[str, object]:
        """Return the configuration as a JSON object, as system domains (``delta.*``) require."""
        try:
            document = json.loads(self.configuration)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            problem = (
                f"the configuration of domain {self.domain} is not a JSON object: "
                f"{self.configuration}"
            )
            raise MalformedLogFileError(path=path, version=version, problem=problem)
        return document


@dataclass(frozen=True, slots=True)
class Sidecar(WireForm):
    """A sidecar file, which holds file actions of a V2 checkpoint."""

    path: str
    size_in_bytes: int = 0
    modification_time: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Sidecar:
        """Parse the wire form."""
        return cls(
            path=str(document["path"]),
            size_in_bytes=optional_integer(document.get("sizeInBytes")) or 0,
            modification_time=optional_integer(document.get("modificationTime")) or 0,
            tags=_strings_by_name(document.get("tags")),
        )


def _shown_columns(schema_string: str | None) -> str:
    """Return the names of the first columns and the number of further ones."""
    try:
        names = [str(field["name"]) for field in json.loads(schema_string or "")["fields"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "unknown"
    more = len(names) - _SHOWN_COLUMNS
    return ", ".join(names[:_SHOWN_COLUMNS]) + (f", ... {more} more" if more > 0 else "")


def _protocol_version(document: Mapping[str, object], name: str, path: str) -> int:
    version = optional_integer(document.get(name))
    if version is None:
        raise DeltaError.of(
            "DELTA_INVALID_PROTOCOL", path=path, problem=f"{name} is missing or not a number"
        )
    return version


def _strings(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        return None
    return tuple(str(item) for item in value)


def _strings_by_name(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): _wire_text(item) for name, item in value.items() if item is not None}


def _wire_text(value: object) -> str:
    # Some writers store booleans without quotes.
    return str(value).lower() if isinstance(value, bool) else str(value)
