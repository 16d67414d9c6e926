"""Conversion of custom resources by webhook: ConversionReview of apiextensions.k8s.io/v1.

Objects are stored in the version they were written in; a request for another version gets the result of the webhook. It
is untrusted code, so its answer is checked object by object: it may not change identity or owners, and of the metadata
only labels and annotations are used. Converted objects are cached by their stored bytes, since the conversion of equal
bytes is equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec
import orjson

from hortus.apiserver.admission.calling import CallFailed, WebhookClient, shortened
from hortus.apiserver.resources.kind import Kind
from hortus.kube.errors import InternalError
from hortus.kube.objects import Object
from hortus.kube.shapes import decode_json
from hortus.schema import Structural

REVIEW_VERSION = "apiextensions.k8s.io/v1"
_SECONDS = 30.0
"""Time for one call (apiextensions-apiserver's conversion webhook timeout)."""
_BATCH = 500
"""Objects in one call."""
_REMEMBERED = 8 * 1024 * 1024
"""Bytes of converted objects kept for one CRD."""
_IDENTITY = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class _Answer(msgspec.Struct, rename="camel"):
    uid: str = ""
    converted_objects: list[dict[str, Any]] | None = None
    result: dict[str, Any] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Answer | None = None


class WebhookConverter:
    """The converter of one CRD. `webhook` is its `spec.conversion.webhook`, `schemas` are those of its versions by
    apiVersion: the results of the webhook are pruned by them."""

    def __init__(self, webhook: Object, schemas: Mapping[str, Mapping[str, Any]], client: WebhookClient) -> None:
        self._schemas = schemas
        self._compiled: dict[str, Structural] = {}
        self._config: Object = webhook.get("clientConfig") or {}
        self._versions = webhook.get("conversionReviewVersions") or []
        self._client = client
        self._known: dict[tuple[str, bytes, str], bytes] = {}
        """By logical cluster, because a service's name means another webhook in each; by stored bytes and version."""
        self._bytes = 0

    async def presented(self, cluster: str, values: Sequence[bytes], kind: Kind) -> list[bytes]:
        """Stored objects in the version of `kind`. Raises InternalError."""
        version = kind.resource.api_version
        wanted = [value for value in dict.fromkeys(values) if (cluster, value, version) not in self._known]
        made = await self.convert(cluster, [orjson.loads(value) for value in wanted], version)
        found = {value: kind.typed(obj) for value, obj in zip(wanted, made, strict=True)}
        result = [found.get(value) or self._known[cluster, value, version] for value in values]
        for value, shown in found.items():
            self._remember((cluster, value, version), shown)
        return result

    async def convert(self, cluster: str, objects: Sequence[Object], version: str) -> list[Object]:
        """The objects, all of another version, in the requested one. Raises InternalError with kube-apiserver's
        message."""
        found: list[Object] = []
        for start in range(0, len(objects), _BATCH):
            batch = objects[start : start + _BATCH]
            try:
                answers = await self._asked(cluster, batch, version)
            except CallFailed as error:
                raise _failed(f"conversion webhook for {_gvk(batch[0])} failed: {error}") from None
            found += _checked(batch, answers, version)
        for obj in found:
            self._structural(version).prune(obj)
        return found

    def _structural(self, version: str) -> Structural:
        if version not in self._compiled:
            self._compiled[version] = Structural.compile(self._schemas[version])
        return self._compiled[version]

    async def _asked(self, cluster: str, objects: Sequence[Object], version: str) -> list[Object]:
        if "v1" not in self._versions:
            raise CallFailed("it does not accept ConversionReview v1, which is what this API server speaks")
        uid = str(uuid4())
        request = {"uid": uid, "desiredAPIVersion": version, "objects": list(objects)}
        review = {"kind": "ConversionReview", "apiVersion": REVIEW_VERSION, "request": request}
        return _converted(await self._client.ask(cluster, self._config, review, seconds=_SECONDS), uid)

    def _remember(self, key: tuple[str, bytes, str], shown: bytes) -> None:
        if key in self._known:
            return
        self._known[key] = shown
        self._bytes += len(key[1]) + len(shown)
        while self._bytes > _REMEMBERED:
            oldest = next(iter(self._known))
            self._bytes -= len(oldest[1]) + len(self._known.pop(oldest))


def _converted(body: bytes, uid: str) -> list[Object]:
    """The objects of an answer. Raises CallFailed with the problem of the answer."""
    try:
        review = decode_json(body, _Review)
    except msgspec.DecodeError as error:
        raise CallFailed(f"the answer is no ConversionReview: {error}") from None
    if (review.api_version, review.kind) != (REVIEW_VERSION, "ConversionReview"):
        expected = f"{REVIEW_VERSION}, Kind=ConversionReview"
        raise CallFailed(f"expected webhook response of {expected}, got {review.api_version}, Kind={review.kind}")
    response = review.response
    if response is None:
        raise CallFailed("no response provided")
    if response.uid != uid:
        raise CallFailed(f'expected response.uid="{uid}", got "{response.uid}"')
    result = response.result or {}
    if result.get("status") != "Success":
        message = result.get("message") or f"response.result.status was '{result.get('status', '')}', not 'Success'"
        raise CallFailed(str(message))
    return response.converted_objects or []


def _checked(objects: Sequence[Object], answers: Sequence[Object], version: str) -> list[Object]:
    """The answers, with the metadata restored that a conversion may not change. Raises InternalError."""
    who = f"conversion webhook for {_gvk(objects[0])}"
    if len(answers) != len(objects):
        raise _failed(f"{who} returned {len(answers)} objects, expected {len(objects)}")
    found = []
    for place, (obj, answer) in enumerate(zip(objects, answers, strict=True)):
        problem = _another(obj, answer, version)
        if problem:
            raise _failed(f"{who} returned invalid object at index {place}: {shortened(problem)}")
        if problem := _changed(obj, answer):
            raise _failed(f"{who} returned invalid object: {shortened(problem)}")
        metadata = {key: value for key, value in obj["metadata"].items() if key not in ("labels", "annotations")}
        for field in ("labels", "annotations"):
            if answer["metadata"].get(field):
                metadata[field] = answer["metadata"][field]
        found.append({**answer, "metadata": metadata})
    return found


def _another(obj: Object, answer: Object, version: str) -> str:
    if answer.get("apiVersion") != version:
        return f"invalid groupVersion (expected {version}, received {answer.get('apiVersion', '')})"
    if answer.get("kind") != obj["kind"]:
        return f"invalid kind (expected {obj['kind']}, received {answer.get('kind', '')})"
    return ""


def _changed(obj: Object, answer: Object) -> str:
    metadata, own = answer.get("metadata"), obj["metadata"]
    if not isinstance(metadata, dict):
        return "metadata must be an object"
    for field, shown in _IDENTITY:
        if metadata.get(field, "") != own.get(field, ""):
            return f"must have the same {shown}: {own.get(field, '')} != {metadata.get(field, '')}"
    for field in ("labels", "annotations"):
        values = metadata.get(field) or {}
        if not isinstance(values, dict) or not all(isinstance(each, str) for each in values.values()):
            return f"metadata.{field} must be a map of strings"
    return ""


def _failed(message: str) -> InternalError:
    """kube-apiserver gives these no reason."""
    error = InternalError(message)
    error.status_reason = ""
    return error


def _gvk(obj: Object) -> str:
    return f"{obj['apiVersion']}, Kind={obj['kind']}"
