"""Requests to S3 are signed as Amazon's own client signs them."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from sparkdelta.base.storage import s3_requests
from sparkdelta.base.storage.s3_requests import Credentials, S3Requests, open_s3

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


class _Clock(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return NOW

    @classmethod
    def utcnow(cls) -> datetime:
        return NOW.replace(tzinfo=None)


@pytest.mark.parametrize("token", [None, "temporary"])
@pytest.mark.parametrize("query", ["", "list-type=2&prefix=a%20b%2F"])
def test_signature_is_that_of_botocore(
    monkeypatch: pytest.MonkeyPatch, token: str | None, query: str
) -> None:
    auth = pytest.importorskip("botocore.auth")
    request = pytest.importorskip("botocore.awsrequest").AWSRequest
    keys = pytest.importorskip("botocore.credentials").Credentials("AKID", "secret", token)
    monkeypatch.setattr(s3_requests, "datetime", _Clock)
    monkeypatch.setattr(auth, "get_current_datetime", lambda **_: NOW.replace(tzinfo=None))
    client = S3Requests(
        "https://b.s3.r.amazonaws.com", "", "", "r", Credentials("AKID", "secret", token)
    )
    headers = {"if-none-match": "*"}
    signed = client._signed("PUT", "/a%20b/%25%2B.json", query, b"data", headers)
    url = f"https://b.s3.r.amazonaws.com/a%20b/%25%2B.json?{query}".rstrip("?")
    theirs = request("PUT", url, headers=dict(headers), data=b"data")
    theirs.headers["X-Amz-Content-SHA256"] = signed["x-amz-content-sha256"]
    theirs.context["payload_signing_enabled"] = True
    auth.S3SigV4Auth(keys, "s3", "r").add_auth(theirs)
    assert signed["authorization"] == theirs.headers["Authorization"]


def test_credentials_of_the_environment_sign_where_settings_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    region = {"fs.s3a.endpoint.region": "eu-west-1"}
    client = open_s3("s3a://bucket/a/b", region)
    assert client.credentials == Credentials("key", "secret", "token")
    assert client.endpoint == "https://bucket.s3.eu-west-1.amazonaws.com"
    assert (client.base, client.prefix) == ("", "a/b/")
    ours = open_s3("s3a://bucket", {**region, "fs.s3a.access.key": "a", "fs.s3a.secret.key": "b"})
    assert ours.credentials == Credentials("a", "b")
    anonymous = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    public = open_s3("s3a://a.bucket", {**region, "fs.s3a.aws.credentials.provider": anonymous})
    assert public.credentials is None
    assert (public.endpoint, public.base) == ("https://s3.eu-west-1.amazonaws.com", "/a.bucket")
