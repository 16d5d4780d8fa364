"""An S3 server (moto) in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.jars import HADOOP, Dependency, JarsUnavailable, resolved_jars

BUCKET = "bucket"
_SDK = "2.35.4"
_ACCELERATOR = Dependency(
    "software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1", is_alone=True
)
"""Hadoop's file system has its classes in signatures, and does not use it unless told to."""
_SPARKS_OWN = ("commons-codec-", "httpclient-", "httpcore-", "netty-", "slf4j-api-")
_OTHERS = ("netty-nio-",)


def s3_jars(scratch: Path) -> Sequence[Path]:
    """The JARs by which Spark reads and writes S3: without the bundle of all of Amazon's services,
    which has half a gigabyte. The test is skipped if they cannot be had.
    """
    parts = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    needed = (
        Dependency("org.apache.hadoop", "hadoop-aws", HADOOP, is_alone=True),
        _ACCELERATOR,
        *(Dependency("software.amazon.awssdk", part, _SDK) for part in parts),
    )
    try:
        found = resolved_jars(scratch, *needed)
    except JarsUnavailable as unavailable:
        pytest.skip(f"S3: {unavailable}")
    return [
        jar for jar in found if jar.name.startswith(_OTHERS) or not jar.name.startswith(_SPARKS_OWN)
    ]


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Yield Hadoop's settings of a server with one empty bucket."""
    import boto3
    import moto.server as moto
    from werkzeug.serving import make_server

    application = moto.DomainDispatcherApplication(moto.create_backend_app)
    server = make_server("127.0.0.1", 0, _in_turn(application), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1",
        aws_access_key_id="key", aws_secret_access_key="secret",
    )  # fmt: skip
    client.create_bucket(Bucket=BUCKET)
    yield {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.access.key": "key",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.path.style.access": "true",
    }
    server.shutdown()
    thread.join()


@contextmanager
def s3_session_settings(scratch: Path) -> Iterator[dict[str, str]]:
    """Yield the settings of sessions that reach a server with one empty bucket."""
    jars = s3_jars(scratch)
    with s3_server() as hadoop:
        settings = {f"spark.hadoop.{name}": value for name, value in hadoop.items()}
        yield {"spark.jars": ",".join(map(str, jars)), **settings}


_Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def _in_turn(application: _Application) -> _Application:
    """Return the application restricted to one request at a time.

    S3 looks for an object and puts it in one step. moto does it in two: of racing writers two may
    be told that they won.
    """
    turn = threading.Lock()

    def respond(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with turn:
            return list(application(environment, start))

    return respond
