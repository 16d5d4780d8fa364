"""A client of S3's protocol that needs only Python's standard library, for workers on which
nothing is installed.

It has the methods of an `obstore` store that log stores use. Its credentials come from Hadoop's
settings or, as in Hadoop's default chain, of the environment, the container or the instance;
others, such as profiles, if botocore is installed.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import hmac
import http.client
import json
import os
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from email.message import Message
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from sparkdelta.base.storage.worker_files import s3_arguments

_ATTEMPTS = 6
_RETRIED = (409, 429, 500, 502, 503, 504)
_SECONDS = 60
_NO_RESPONSE_SECONDS = 2  # of a metadata service that is not there
_PLAIN = "/-_.~"
_METADATA = "http://169.254.169.254/latest"
_CONTAINER = "http://169.254.170.2"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The keys that sign requests; without a token if they are not temporary."""

    access_key: str
    secret_key: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """The contents of an object."""

    data: bytes

    def bytes(self) -> bytes:
        """Return the contents."""
        return self.data


@dataclass(frozen=True, slots=True)
class S3Requests:
    """The objects below a prefix of a bucket, each request signed by version 4.

    Attributes
    ----------
    endpoint
        Scheme and host.
    base
        The path of the bucket at the endpoint: empty if the host names it.
    prefix
        Precedes all paths; empty, or with a slash at its end.
    credentials
        None to sign nothing.
    """

    endpoint: str
    base: str
    prefix: str
    region: str
    credentials: Credentials | None

    def put(self, path: str, data: Any, *, mode: str = "overwrite", use_multipart: bool) -> None:
        """Write an object; with the mode "create", an existing one is a FileExistsError."""
        assert not use_multipart
        headers = {"if-none-match": "*"} if mode == "create" else {}
        self._request("PUT", path, bytes(data), headers=headers)

    def get(self, path: str, *, options: Any = None) -> Body:
        """Read an object or a range of it: (start, end), or {"offset": start}."""
        part, headers = (options or {}).get("range"), {}
        if isinstance(part, tuple):
            headers = {"range": f"bytes={part[0]}-{part[1] - 1}"}
        elif part is not None:
            headers = {"range": f"bytes={part['offset']}-"}
        return Body(self._request("GET", path, headers=headers)[1])

    def head(self, path: str) -> dict[str, Any]:
        """Return the status of an object."""
        found, _ = self._request("HEAD", path)
        modified = datetime.strptime(found["last-modified"], "%a, %d %b %Y %H:%M:%S %Z")
        return {
            "path": path,
            "size": int(found["content-length"]),
            "last_modified": modified.replace(tzinfo=timezone.utc),
        }

    def copy(self, source: str, target: str, *, overwrite: bool = True) -> None:
        """Copy an object within the bucket; without `overwrite`, through this process."""
        if not overwrite:
            self.put(target, self.get(source).bytes(), mode="create", use_multipart=False)
            return
        bucket = self.base.strip("/") or urlsplit(self.endpoint).netloc.partition(".s3")[0]
        place = quote(f"/{bucket}/{self.prefix}{source}", safe=_PLAIN)
        _, body = self._request("PUT", target, headers={"x-amz-copy-source": place})
        if b"<Error>" in body:
            raise OSError(errno.EIO, body.decode("utf-8", "replace"), target)

    def delete(self, paths: str | Sequence[str]) -> None:
        """Delete objects in requests of up to 1,000; missing objects are no error."""
        found = [paths] if isinstance(paths, str) else [*paths]
        for start in range(0, len(found), 1000):
            root = ET.Element("Delete")
            ET.SubElement(root, "Quiet").text = "true"
            for path in found[start : start + 1000]:
                ET.SubElement(ET.SubElement(root, "Object"), "Key").text = self.prefix + path
            data = ET.tostring(root)
            checksum = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
            _, body = self._request(
                "POST", None, data, {"delete": ""}, headers={"content-md5": checksum}
            )
            for error in _all(body, "Error"):
                raise OSError(errno.EIO, str(error.get("Message")), str(error.get("Key")))

    def list(self, prefix: str | None = None, *, chunk_size: int = 1000) -> Iterator[Any]:
        """Yield the objects below a directory, in batches."""
        for objects, _ in self._pages(prefix, {"max-keys": str(chunk_size)}):
            yield objects

    def list_with_delimiter(self, prefix: str | None = None) -> dict[str, Any]:
        """Return the objects and the directories of a directory."""
        pages = [*self._pages(prefix, {"delimiter": "/"})]
        return {
            "objects": [each for objects, _ in pages for each in objects],
            "common_prefixes": [each for _, prefixes in pages for each in prefixes],
        }

    def _pages(self, prefix: str | None, query: Mapping[str, str]) -> Iterator[tuple[Any, Any]]:
        start = f"{self.prefix}{prefix.rstrip('/')}/" if prefix else self.prefix
        query = {"list-type": "2", "prefix": start, **query}
        while True:
            _, body = self._request("GET", None, query=query)
            objects = [
                {
                    "path": found["Key"].removeprefix(self.prefix),
                    "size": int(found["Size"]),
                    "last_modified": datetime.fromisoformat(
                        found["LastModified"].replace("Z", "+00:00")
                    ),
                }
                for found in _all(body, "Contents")
                if not found["Key"].endswith("/")  # a marker of a directory
            ]
            found = _all(body, "CommonPrefixes")
            yield objects, [each["Prefix"].removeprefix(self.prefix) for each in found]
            page = _fields(_parsed(body))
            if page.get("IsTruncated") != "true":
                return
            query = {**query, "continuation-token": page["NextContinuationToken"]}

    def _request(
        self,
        method: str,
        path: str | None,
        body: bytes = b"",
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Message, bytes]:
        """Send a request about an object, or about the bucket, and return headers and body."""
        place = f"{self.base}/" if path is None else f"{self.base}/{self.prefix}{path}"
        target = quote(place, safe=_PLAIN)
        text = urlencode(sorted((query or {}).items()), quote_via=quote, safe="-_.~")
        for attempt in range(1, _ATTEMPTS + 1):
            signed = self._signed(method, target, text, body, headers or {})
            try:
                status, found, data = _send(self.endpoint, method, target, text, body, signed)
            except (OSError, http.client.HTTPException) as error:
                if attempt == _ATTEMPTS:
                    raise OSError(errno.EIO, f"{self.endpoint}: {error}", path) from error
            else:
                if status < 300 or status == 416:  # a range behind the end
                    return found, data if status < 300 else b""
                if status == 404 and path is not None:
                    raise FileNotFoundError(errno.ENOENT, "no such object", path)
                if status == 412:
                    raise FileExistsError(errno.EEXIST, "the object exists", path)
                if status not in _RETRIED or attempt == _ATTEMPTS:
                    problem = data[:500].decode("utf-8", "replace") or f"status {status}"
                    raise OSError(errno.EIO, f"{method} of S3: {problem}", path)
            time.sleep(0.1 * 2**attempt)
        raise AssertionError

    def _signed(
        self, method: str, target: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> dict[str, str]:
        now = datetime.now(timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        digest = hashlib.sha256(body).hexdigest()
        signed = {**headers, "host": urlsplit(self.endpoint).netloc, "x-amz-date": stamp}
        signed["x-amz-content-sha256"] = digest
        keys = self.credentials
        if keys is None:
            return signed
        if keys.token:
            signed["x-amz-security-token"] = keys.token
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
        request = "\n".join((method, target, query, lines, names, digest))
        scope = f"{day}/{self.region}/s3/aws4_request"
        hashed = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{keys.secret_key}".encode()
        for part in (day, self.region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}"
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return signed


def open_s3(table_root: str, settings: Mapping[str, str]) -> S3Requests:
    """Return a client for a table's bucket, configured like Hadoop.

    Raises
    ------
    OSError
        There are no credentials.
    """
    bucket, _, prefix = table_root.partition("://")[2].partition("/")
    found = s3_arguments(bucket, settings)
    scheme = str(found.get("scheme", "https"))
    custom = found.get("endpoint_override") or os.environ.get("AWS_ENDPOINT_URL_S3")
    region = found.get("region") or os.environ.get("AWS_REGION")
    region = str(region or os.environ.get("AWS_DEFAULT_REGION") or "")
    if custom:
        host = str(custom).partition("://")[2] or str(custom)
        scheme = str(custom).partition("://")[0] if "://" in str(custom) else scheme
        in_path = found.get("force_virtual_addressing") is not True
        endpoint = f"{scheme}://{host if in_path else f'{bucket}.{host}'}".rstrip("/")
        region = region or "us-east-1"
    else:
        in_path = "." in bucket  # no certificate is for such a name
        region = region or _region_of(bucket)
        host = f"s3.{region}.amazonaws.com"
        endpoint = f"https://{host if in_path else f'{bucket}.{host}'}"
    return S3Requests(
        endpoint=endpoint,
        base=f"/{bucket}" if in_path else "",
        prefix=f"{prefix.rstrip('/')}/" if prefix else "",
        region=region,
        credentials=_credentials(found, region),
    )


def _region_of(bucket: str) -> str:
    _, found, _ = _send("https://s3.amazonaws.com", "HEAD", f"/{bucket}", "", b"", {})
    return found.get("x-amz-bucket-region", "us-east-1")


def _credentials(arguments: Mapping[str, Any], region: str) -> Credentials | None:
    if arguments.get("anonymous"):
        return None
    if "access_key" in arguments and "secret_key" in arguments:
        token = arguments.get("session_token")
        return Credentials(arguments["access_key"], arguments["secret_key"], token)
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    key, secret, token = map(os.environ.get, names)
    if key and secret:
        return Credentials(key, secret, token)
    with suppress(ImportError):
        from botocore.session import get_session  # type: ignore[import-untyped]

        if (found := get_session().get_credentials()) is not None:
            return Credentials(found.access_key, found.secret_key, found.token)
    for source in (_of_web_identity, _of_container, _of_instance):
        with suppress(OSError, http.client.HTTPException, ValueError, KeyError):
            if (keys := source(region)) is not None:
                return keys
    raise OSError(errno.EACCES, "the workers have no credentials for S3")


def _of_web_identity(region: str) -> Credentials | None:
    file, role = map(os.environ.get, ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"))
    if not file or not role:
        return None
    with open(file, encoding="utf-8") as opened:
        query = {
            "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": role,
            "RoleSessionName": os.environ.get("AWS_ROLE_SESSION_NAME", "sparkdelta"),
            "WebIdentityToken": opened.read(),
        }  # fmt: skip
    body = _get(f"https://sts.{region}.amazonaws.com/", urlencode(query))
    [found] = _all(body, "Credentials")
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])


def _of_container(_: str) -> Credentials | None:
    relative = os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    url = (
        _CONTAINER + relative if relative else os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    )
    if not url:
        return None
    token = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if file := os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        with open(file, encoding="utf-8") as opened:
            token = opened.read().strip()
    return _of_json(_get(url, headers={"authorization": token} if token else {}))


def _of_instance(_: str) -> Credentials | None:
    headers = {"x-aws-ec2-metadata-token-ttl-seconds": "300"}
    token = _get(f"{_METADATA}/api/token", method="PUT", headers=headers).decode()
    headers = {"x-aws-ec2-metadata-token": token}
    roles = f"{_METADATA}/meta-data/iam/security-credentials/"
    role = _get(roles, headers=headers).decode().partition("\n")[0]
    return _of_json(_get(roles + role, headers=headers))


def _of_json(body: bytes) -> Credentials:
    found = json.loads(body)
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["Token"])


def _get(
    url: str, query: str = "", *, method: str = "GET", headers: Mapping[str, str] | None = None
) -> bytes:
    parts = urlsplit(url)
    seconds = _SECONDS if parts.scheme == "https" else _NO_RESPONSE_SECONDS
    status, _, body = _send(
        f"{parts.scheme}://{parts.netloc}", method, parts.path, query or parts.query, b"",
        headers or {}, seconds,
    )  # fmt: skip
    if status >= 300:
        raise OSError(errno.EIO, f"status {status}", url)
    return body


def _send(
    endpoint: str,
    method: str,
    target: str,
    query: str,
    body: bytes,
    headers: Mapping[str, str],
    seconds: float = _SECONDS,
) -> tuple[int, Message, bytes]:
    parts = urlsplit(endpoint)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=seconds)
    try:
        connection.request(method, f"{target}?{query}" if query else target, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def _all(body: bytes, tag: str) -> list[dict[str, str]]:
    """Return the fields of all elements of a name."""
    return [_fields(each) for each in _parsed(body).iter() if _name(each) == tag]


def _parsed(body: bytes) -> ET.Element:
    return ET.fromstring(body)  # noqa: S314 - an answer of the store that has the table


def _fields(element: ET.Element) -> dict[str, str]:
    return {_name(child): child.text or "" for child in element}


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
