"""An S3 server (moto) in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

BUCKET = "bucket"


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
