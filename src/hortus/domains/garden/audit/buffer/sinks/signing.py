"""AWS Signature Version 4 of one request with its whole body.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from hortus.kube.secret import Secret

_ALGORITHM = "AWS4-HMAC-SHA256"


class AwsCredentials(NamedTuple):
    """An access key; `session` is the token of temporary ones."""

    access_key: str
    secret_key: Secret
    session: Secret | None = None


def signed_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    credentials: AwsCredentials,
    *,
    region: str,
    now: datetime,
    service: str = "s3",
) -> dict[str, str]:
    """`headers` with those that sign them and `body`."""
    parts = urlsplit(url)
    time = now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    all_of_them = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    all_of_them |= {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": time}
    if credentials.session is not None:
        all_of_them["x-amz-security-token"] = credentials.session.reveal()
    names = ";".join(sorted(all_of_them))
    request = "\n".join(
        [
            method,
            quote(unquote(parts.path), safe="/-_.~"),
            parts.query,
            *(f"{name}:{all_of_them[name]}" for name in sorted(all_of_them)),
            "",
            names,
            digest,
        ]
    )
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = "\n".join([_ALGORITHM, time, scope, hashlib.sha256(request.encode()).hexdigest()])
    signature = hmac.new(_key(credentials, time[:8], region, service), text.encode(), "sha256").hexdigest()
    all_of_them["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    del all_of_them["host"]
    return all_of_them


def _key(credentials: AwsCredentials, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{credentials.secret_key.reveal()}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key
